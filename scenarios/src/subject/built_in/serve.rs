//! The protocol over a pair of streams.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _, BufWriter};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::super::CallError;
use super::super::lines::{LONGEST, Line, Lines};
use super::Server;

/// How many requests may be under way at once.
const MOST: usize = 10_000;
/// How many answers may wait to be written before nothing more is read.
const UNWRITTEN: usize = 256;

/// JSON-RPC: the line is not JSON.
const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the line is not a request.
const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: there is no such method.
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the params do not fit.
const INVALID_PARAMS: i64 = -32602;
/// A failure of the harness; what kind stands in `data.code`.
const FAILED: i64 = -32000;

/// Why serving ended before its input did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The input cannot be read.
    #[error("stdin cannot be read: {0}")]
    Input(#[source] io::Error),
    /// The output cannot be written.
    #[error("stdout cannot be written: {0}")]
    Output(#[source] io::Error),
}

/// Serves one harness until the input ends, or the output breaks; then nothing is mounted any more,
/// whatever was. Dropping the future drops the harness.
///
/// A line that is no request is answered with an error and changes nothing. Of the last line,
/// whatever has no line end is ignored.
pub async fn serve(
    input: impl AsyncBufRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), ServeError> {
    serve_lines(input, output, LONGEST).await
}

async fn serve_lines(
    input: impl AsyncBufRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    longest: usize,
) -> Result<(), ServeError> {
    let server = Server::new();
    let (answers, queue) = mpsc::channel(UNWRITTEN);
    let mut writer = JoinSet::new();
    writer.spawn(write(queue, output));
    let mut waiting = JoinSet::new();
    let mut lines = Lines::new(input, longest);
    let ended = loop {
        let line = tokio::select! {
            biased;
            written = writer.join_next() => break broken(written),
            line = lines.next() => line,
            Some(_) = waiting.join_next() => continue,
        };
        let answer = match line {
            Err(error) => break Err(ServeError::Input(error)),
            Ok(Line::End(_)) => break Ok(()),
            Ok(Line::TooLong) => Some(wrong(
                INVALID_REQUEST,
                &format!("the line is longer than {longest} bytes, the most that is read"),
            )),
            Ok(Line::Whole(line)) => take(&server, &line, &answers, &mut waiting).await,
        };
        if let Some(answer) = answer {
            // Waits while nobody reads; a broken output ends the loop at its next turn.
            let _ = answers.send(answer).await;
        }
    };
    server.close().await;
    waiting.shutdown().await;
    drop(answers);
    if ended.is_ok()
        && let Err(error) = broken(writer.join_next().await)
    {
        return Err(error);
    }
    ended
}

/// What became of the writer, which ends by itself only when it cannot go on.
fn broken(
    written: Option<Result<io::Result<()>, tokio::task::JoinError>>,
) -> Result<(), ServeError> {
    match written {
        None | Some(Ok(Ok(()))) => Ok(()),
        // A reader that is gone wants no more answers.
        Some(Ok(Err(error))) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Some(Ok(Err(error))) => Err(ServeError::Output(error)),
        Some(Err(error)) => Err(ServeError::Output(io::Error::other(error))),
    }
}

async fn write(
    mut queue: mpsc::Receiver<Value>,
    output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut output = BufWriter::new(output);
    while let Some(answer) = queue.recv().await {
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        output.write_all(&line).await?;
        if queue.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

/// Acts on one line. What can be answered at once is.
async fn take(
    server: &Server,
    line: &[u8],
    answers: &mpsc::Sender<Value>,
    waiting: &mut JoinSet<()>,
) -> Option<Value> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let message = match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(message)) => message,
        Ok(_) => return Some(wrong(INVALID_REQUEST, "the line is no JSON object")),
        Err(error) => {
            let told = format!("the line is not JSON: {error}");
            return Some(wrong(PARSE_ERROR, &told));
        }
    };
    let method = message.get("method").and_then(Value::as_str);
    let params = message.get("params").cloned().unwrap_or(Value::Null);
    let (method, id) = match (method, message.get("id")) {
        (Some(method), Some(id @ (Value::Number(_) | Value::String(_)))) => (method, id),
        (Some("cancel"), None) => {
            let id = params.get("id").unwrap_or(&Value::Null).to_string();
            let reason = params.get("reason").and_then(Value::as_str);
            server.cancel(&id, reason.unwrap_or("caller"));
            return None;
        }
        // Notifications are never answered, so one that is not known is dropped.
        (Some(_), None) => return None,
        (Some(_), Some(_)) => {
            return Some(wrong(INVALID_REQUEST, "an id is a number or a string"));
        }
        (None, _) => return Some(wrong(INVALID_REQUEST, "the message has no method")),
    };
    if server.under_way() >= MOST {
        let busy = super::refused(
            "BUSY",
            format!("{MOST} requests are under way, the most there may be"),
        );
        return Some(answer(id, Err(busy)));
    }
    let params = if params.is_null() { json!({}) } else { params };
    let pending = server.request(&id.to_string(), method, params).await;
    let (id, answers) = (id.clone(), answers.clone());
    waiting.spawn(async move {
        let answer = answer(&id, pending.await);
        let _ = answers.send(answer).await;
    });
    None
}

fn wrong(code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}})
}

fn answer(id: &Value, outcome: Result<Value, CallError>) -> Value {
    let error = match outcome {
        Ok(result) => return json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(CallError::Refused {
            code,
            message,
            data,
        }) => {
            let number = match code.as_deref() {
                Some(super::INVALID_PARAMS) => INVALID_PARAMS,
                Some("DUPLICATE_ID") => INVALID_REQUEST,
                Some(super::UNSUPPORTED) => METHOD_NOT_FOUND,
                _ => FAILED,
            };
            json!({"code": number, "message": message, "data": data})
        }
        Err(other) => json!({"code": FAILED, "message": other.to_string()}),
    };
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests;
