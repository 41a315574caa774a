//! Two streams as the lines that the protocol's crate reads and writes.
//!
//! Lines that are no message are answered here: the crate would end the connection at one that is too
//! long, and send one that is no JSON back in full.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_client_protocol::Lines as Transport;
use dsh_harness::kernel::Cancel;
use futures::{Sink, Stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use crate::lines::{LAST_WORDS, Line, Lines, brief};

/// Set once the editor reads no more: that is an end and no error.
pub(super) type Gone = Arc<AtomicBool>;

/// Error codes of JSON-RPC 2.0.
const PARSE: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// Lines of at most `longest` bytes from `input`; what is written to `output` that nobody reads sets
/// `gone`. An editor that takes nothing counts as gone a moment after the cancellation.
pub(super) fn transport(
    input: impl AsyncBufRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    longest: usize,
    gone: Gone,
    cancel: Cancel,
) -> Transport<
    impl Sink<String, Error = io::Error> + Send + 'static,
    impl Stream<Item = io::Result<String>> + Send + 'static,
> {
    let output = Arc::new(Output {
        writer: Mutex::new(output),
        gone,
        cancel,
    });
    let answers = Arc::clone(&output);
    let incoming = futures::stream::unfold(Some(Lines::new(input, longest)), move |lines| {
        let answers = Arc::clone(&answers);
        async move {
            let mut lines = lines?;
            loop {
                let answer = match lines.next().await {
                    Ok(Line::Whole(line)) if line.iter().all(u8::is_ascii_whitespace) => {
                        continue;
                    }
                    Ok(Line::Whole(line)) => match message(line) {
                        Ok(text) => return Some((Ok(text), Some(lines))),
                        Err(answer) => answer,
                    },
                    Ok(Line::TooLong) => refusal(
                        INVALID_REQUEST,
                        &format!(
                            "the line has more than {longest} bytes, the most that is read; \
                                 send less at once"
                        ),
                    ),
                    Ok(Line::End) => return None,
                    Err(error) => return Some((Err(error), None)),
                };
                if let Err(error) = answers.write(&answer).await {
                    return Some((Err(error), None));
                }
            }
        }
    });
    let outgoing = futures::sink::unfold(output, |output, line: String| async move {
        output.write(&without_echo(line)).await?;
        Ok(output)
    });
    Transport::new(outgoing, incoming)
}

/// The end that the crate and this file write to, a line at a time.
struct Output<W> {
    writer: Mutex<W>,
    gone: Gone,
    cancel: Cancel,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    async fn write(&self, line: &str) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        let written = async {
            writer.write_all(line.as_bytes()).await?;
            writer.write_all(b"\n").await?;
            writer.flush().await
        };
        let given_up = async {
            self.cancel.cancelled().await;
            let _ = tokio::time::timeout(LAST_WORDS, std::future::pending::<()>()).await;
        };
        let written = tokio::select! {
            biased;
            written = written => written,
            () = given_up => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if let Err(error) = &written
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            self.gone.store(true, Ordering::Release);
        }
        written
    }
}

/// The text of a line that is JSON; else the answer to it.
fn message(line: Vec<u8>) -> Result<String, String> {
    match serde_json::from_slice::<Value>(&line) {
        Ok(_) => String::from_utf8(line)
            .map_err(|_| refusal(PARSE, "the line is not JSON: it is no UTF-8 text")),
        Err(error) => Err(refusal(
            PARSE,
            &format!("the line is not JSON: {}", brief(&error.to_string())),
        )),
    }
}

/// The answer to a line whose id cannot be told.
fn refusal(code: i64, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}}).to_string()
}

/// An answer of the crate's that says why params are wrong, without the params; every other line as
/// it is.
fn without_echo(line: String) -> String {
    if !line.contains(r#""phase":"deserialization""#) {
        return line;
    }
    let Ok(mut message) = serde_json::from_str::<Value>(&line) else {
        return line;
    };
    let data = message.pointer_mut("/error/data");
    let Some(data) = data.and_then(Value::as_object_mut) else {
        return line;
    };
    data.remove("json");
    if let Some(Value::String(told)) = data.get_mut("error") {
        *told = brief(told);
    }
    message.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_json_is_answered_without_being_sent_back() {
        let deep = "[".repeat(100_000);
        for line in [
            b"SECRET not json" as &[u8],
            b"\"SECRET",
            b"{\"SECRET\": }",
            b"SECRET \xff",
            b"\"SECRET \xff\"",
            deep.as_bytes(),
        ] {
            let answer = message(line.to_vec()).unwrap_err();
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["error"]["code"], PARSE);
            assert_eq!(answer["id"], Value::Null);
            let told = answer["error"]["message"].as_str().unwrap();
            assert!(told.starts_with("the line is not JSON: "), "{told}");
            assert!(!told.contains("SECRET"), "{told}");
        }
        assert_eq!(message(b"{\"a\":1}".to_vec()).unwrap(), "{\"a\":1}");
    }

    #[test]
    fn params_are_not_sent_back_and_other_answers_are_left_alone() {
        let long = "x".repeat(10_000);
        let data = json!({"error": format!("invalid type: {long}"), "json": {"cwd": long},
            "phase": "deserialization"});
        let wrong = json!({"id": 1, "error": {"code": -32602, "message": "m", "data": data}});
        let told = without_echo(wrong.to_string());
        assert!(told.len() < 1000, "{told}");
        assert!(told.contains("invalid type: xxx"), "{told}");
        let text = json!({"params": {"text": r#""phase":"deserialization""#, "json": 1}});
        assert_eq!(without_echo(text.to_string()), text.to_string());
        let nested = json!({"result": {"phase": "deserialization", "json": 1}}).to_string();
        assert_eq!(without_echo(nested.clone()), nested);
    }
}
