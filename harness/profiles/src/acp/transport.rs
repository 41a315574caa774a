//! Two streams as the lines that the protocol's crate reads and writes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_client_protocol::Lines as Transport;
use futures::{Sink, Stream};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _};

use crate::lines::{Line, Lines};

/// Set once the editor reads no more: that is an end and no error.
pub(super) type Gone = Arc<AtomicBool>;

/// Lines of at most `longest` bytes from `input`; what is written to `output` that nobody reads sets
/// `gone`.
pub(super) fn transport(
    input: impl AsyncBufRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    longest: usize,
    gone: Gone,
) -> Transport<
    impl Sink<String, Error = io::Error> + Send + 'static,
    impl Stream<Item = io::Result<String>> + Send + 'static,
> {
    let incoming =
        futures::stream::unfold(Some(Lines::new(input, longest)), move |lines| async move {
            let mut lines = lines?;
            loop {
                return match lines.next().await {
                    Ok(Line::Whole(line)) if line.iter().all(u8::is_ascii_whitespace) => continue,
                    // What is no text is no JSON either, and is answered so.
                    Ok(Line::Whole(line)) => {
                        let text = String::from_utf8_lossy(&line).into_owned();
                        Some((Ok(text), Some(lines)))
                    }
                    Ok(Line::TooLong) => {
                        let told =
                            format!("a line has more than {longest} bytes, the most that is read");
                        let error = io::Error::new(io::ErrorKind::InvalidData, told);
                        Some((Err(error), None))
                    }
                    Ok(Line::End) => None,
                    Err(error) => Some((Err(error), None)),
                };
            }
        });
    let outgoing = futures::sink::unfold(output, move |mut output, line: String| {
        let gone = Arc::clone(&gone);
        async move {
            let written = async {
                output.write_all(line.as_bytes()).await?;
                output.write_all(b"\n").await?;
                output.flush().await
            };
            match written.await {
                Ok(()) => Ok(output),
                Err(error) => {
                    if error.kind() == io::ErrorKind::BrokenPipe {
                        gone.store(true, Ordering::Release);
                    }
                    Err(error)
                }
            }
        }
    });
    Transport::new(outgoing, incoming)
}
