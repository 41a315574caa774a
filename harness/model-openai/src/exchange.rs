//! One request and its response on a connection that is this exchange's own: when the exchange is
//! dropped, the connection is closed, and nothing of it goes on elsewhere.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use dsh_agent::{Delta, ModelError, model_code as loop_code};
use dsh_session::AssistantMessage;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, DATE, HOST, HeaderMap, HeaderName,
    HeaderValue, LOCATION, PROXY_AUTHORIZATION, RETRY_AFTER, USER_AGENT,
};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;

use crate::assemble::Assembler;
use crate::config::Endpoint;
use crate::connect::Stream;
use crate::failure::{Refusal, code, retry_after};
use crate::sse::{SseError, SseParser};

/// How much of a body is read that is no answer.
const REFUSAL_BYTES: usize = 64 << 10;

/// Sends `body` and puts the answer together.
pub(crate) async fn exchange(
    stream: Box<dyn Stream>,
    endpoint: &Endpoint,
    body: Vec<u8>,
    serial: u64,
    tell: &mut (dyn FnMut(Delta) + Send),
) -> Result<AssistantMessage, ModelError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(endpoint, &error))?;
    let work = async {
        let request = request(endpoint, body)?;
        let response = in_time(endpoint, sender.send_request(request))
            .await?
            .map_err(|error| broken(endpoint, &error))?;
        tracing::debug!(
            host = endpoint.host(),
            status = response.status().as_u16(),
            "response"
        );
        answer(response, endpoint, serial, tell).await
    };
    drive(connection, work).await
}

/// Runs the connection beside the work on it, until the work is done.
async fn drive<T>(connection: impl Future, work: impl Future<Output = T>) -> T {
    let mut connection = pin!(connection);
    let mut work = pin!(work);
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            // How it ended is told to the work as well.
            _ = &mut connection, if open => open = false,
        }
    }
}

fn request(endpoint: &Endpoint, body: Vec<u8>) -> Result<Request<Full<Bytes>>, ModelError> {
    let forwarded = endpoint.proxy.as_ref().filter(|_| !endpoint.is_tls());
    let target = if forwarded.is_some() {
        endpoint.uri.clone()
    } else {
        let path = endpoint.uri.path_and_query().cloned();
        path.map_or_else(|| endpoint.uri.clone(), Uri::from)
    };
    let invalid = |_| {
        ModelError::fatal(
            code::MODEL_BAD_REQUEST,
            "the request cannot be written; check baseUrl",
        )
    };
    let host = endpoint
        .uri
        .authority()
        .map_or("", |authority| authority.as_str());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(target)
        .header(HOST, host)
        .header(
            USER_AGENT,
            concat!("dsh-model-openai/", env!("CARGO_PKG_VERSION")),
        )
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream, application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(invalid)?;
    let headers = request.headers_mut();
    if let Some(key) = &endpoint.key {
        headers.insert(AUTHORIZATION, key.header.clone());
    }
    if let Some(authorization) = forwarded.and_then(|proxy| proxy.authorization.clone()) {
        headers.insert(PROXY_AUTHORIZATION, authorization);
    }
    Ok(request)
}

async fn answer(
    response: Response<Incoming>,
    endpoint: &Endpoint,
    serial: u64,
    tell: &mut (dyn FnMut(Delta) + Send),
) -> Result<AssistantMessage, ModelError> {
    let status = response.status();
    let (head, mut body) = response.into_parts();
    let kind = kind(&head.headers);
    let plain = text(&head.headers, &CONTENT_ENCODING).is_none_or(|coding| coding == "identity");
    let mut assembler = Assembler::new(endpoint);
    if status.as_u16() != 200 || !plain {
        let refusal = Refusal {
            status: status.as_u16(),
            retry_after: pause(&head.headers),
            location: text(&head.headers, &LOCATION).map(str::to_owned),
            body: beginning(&mut body, endpoint).await,
        };
        if plain {
            return Err(refusal.error(endpoint));
        }
    }
    match kind.as_deref() {
        None | Some("text/event-stream") if plain => {
            stream(&mut body, endpoint, &mut assembler, tell).await?;
        }
        Some(json) if plain && (json == "application/json" || json.ends_with("+json")) => {
            let whole = whole(&mut body, endpoint).await?;
            assembler.object(&whole, tell)?;
        }
        kind => {
            let begin = beginning(&mut body, endpoint).await;
            let begin = endpoint.clean(&String::from_utf8_lossy(&begin));
            return Err(ModelError::fatal(
                code::MODEL_BAD_RESPONSE,
                format!(
                    "{} answered with {} instead of a stream of events; check baseUrl (asked was {}): \
                     {begin}",
                    endpoint.host(),
                    endpoint.clean(if plain {
                        kind.unwrap_or("nothing")
                    } else {
                        "a compressed body"
                    }),
                    endpoint.uri.path(),
                ),
            ));
        }
    }
    assembler.finish(serial)
}

/// Reads events until the answer is whole, or there are no more.
async fn stream(
    body: &mut Incoming,
    endpoint: &Endpoint,
    assembler: &mut Assembler<'_>,
    tell: &mut (dyn FnMut(Delta) + Send),
) -> Result<(), ModelError> {
    let mut parser = SseParser::new(endpoint.config.max_line_bytes);
    while let Some(bytes) = next(body, endpoint).await? {
        let more = parser.push(&bytes, |data| {
            assembler.event(data, tell).map_err(Failed::Told)
        });
        match more {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(failed) => return Err(failed.error(endpoint)),
        }
    }
    if let Some(data) = parser.finish() {
        assembler.event(&data, tell)?;
    }
    Ok(())
}

enum Failed {
    Sse(SseError),
    Told(ModelError),
}

impl From<SseError> for Failed {
    fn from(error: SseError) -> Self {
        Self::Sse(error)
    }
}

impl Failed {
    fn error(self, endpoint: &Endpoint) -> ModelError {
        match self {
            Self::Told(error) => error,
            Self::Sse(SseError::TooLong) => ModelError::fatal(
                loop_code::MODEL_RESPONSE_TOO_LARGE,
                format!(
                    "{} sent a line of more than {} bytes; raise maxLineBytes if that is right",
                    endpoint.host(),
                    endpoint.config.max_line_bytes
                ),
            ),
            Self::Sse(SseError::NotUtf8) => ModelError::transient(
                code::MODEL_BAD_RESPONSE,
                format!(
                    "{} does not answer as it should: its stream is not UTF-8",
                    endpoint.host()
                ),
                None,
            ),
        }
    }
}

/// The next bytes; none at the end, be it the right one or not: whether the answer is whole is told
/// by what it holds.
async fn next(body: &mut Incoming, endpoint: &Endpoint) -> Result<Option<Bytes>, ModelError> {
    loop {
        match in_time(endpoint, body.frame()).await? {
            None => return Ok(None),
            Some(Err(error)) => {
                tracing::debug!(host = endpoint.host(), %error, "the body broke off");
                return Ok(None);
            }
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

/// The beginning of a body that is no answer. What cannot be read is left out.
async fn beginning(body: &mut Incoming, endpoint: &Endpoint) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < REFUSAL_BYTES
        && let Ok(Some(bytes)) = next(body, endpoint).await
    {
        read.extend_from_slice(&bytes[..bytes.len().min(REFUSAL_BYTES - read.len())]);
    }
    read
}

/// A body that is one object. JSON has some bytes around those that count.
async fn whole(body: &mut Incoming, endpoint: &Endpoint) -> Result<Vec<u8>, ModelError> {
    let most = endpoint.config.max_response_bytes.saturating_mul(2);
    let mut read = Vec::new();
    while let Some(bytes) = next(body, endpoint).await? {
        if read.len() + bytes.len() > most {
            return Err(ModelError::fatal(
                loop_code::MODEL_RESPONSE_TOO_LARGE,
                format!(
                    "the answer of {} is larger than {most} bytes; ask for less, or raise \
                     maxResponseBytes",
                    endpoint.host()
                ),
            ));
        }
        read.extend_from_slice(&bytes);
    }
    Ok(read)
}

async fn in_time<T>(endpoint: &Endpoint, wait: impl Future<Output = T>) -> Result<T, ModelError> {
    let most: Duration = endpoint.idle_timeout();
    tokio::time::timeout(most, wait).await.map_err(|_| {
        ModelError::transient(
            code::MODEL_STALLED,
            format!(
                "{} was silent for {} ms; raise idleTimeoutMs if it needs longer",
                endpoint.host(),
                most.as_millis()
            ),
            None,
        )
    })
}

fn broken(endpoint: &Endpoint, error: &hyper::Error) -> ModelError {
    if error.is_parse() {
        return ModelError::fatal(
            code::MODEL_BAD_RESPONSE,
            format!(
                "{} does not speak HTTP/1.1 ({error}); check baseUrl, its scheme and its port",
                endpoint.host()
            ),
        );
    }
    ModelError::transient(
        loop_code::MODEL_STREAM_CUT,
        format!("{} broke off before it answered ({error})", endpoint.host()),
        None,
    )
}

/// The media type without its parameters, in lower case.
fn kind(headers: &HeaderMap) -> Option<String> {
    let value = text(headers, &CONTENT_TYPE)?;
    let kind = value.split(';').next().unwrap_or_default().trim();
    Some(kind.to_ascii_lowercase())
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers
        .get(name)
        .map(|value: &HeaderValue| value.to_str().unwrap_or("?"))
}

fn pause(headers: &HeaderMap) -> Option<Duration> {
    let now = text(headers, &DATE).and_then(|date| httpdate::parse_http_date(date).ok());
    #[expect(
        clippy::disallowed_methods,
        reason = "a date is compared with the clock here only if the server does not tell its own"
    )]
    let now = now.unwrap_or_else(SystemTime::now);
    retry_after(text(headers, &RETRY_AFTER)?, now)
}
