//! What goes wrong between here and the model, as errors with a code, a sentence and a hint whether
//! to try again. Pure.

use std::time::{Duration, SystemTime};

use dsh_agent::ModelError;
use hyper::StatusCode;
use serde_json::Value;

use crate::config::Endpoint;

/// The stable codes, besides those that the loop knows of itself.
pub mod code {
    /// The server refuses the request as it is (400, 422).
    pub const MODEL_BAD_REQUEST: &str = "MODEL_BAD_REQUEST";
    /// The key is missing, wrong, or not allowed to do this (401, 403).
    pub const MODEL_AUTH: &str = "MODEL_AUTH";
    /// The account has no credit left (402, or a 429 that says so).
    pub const MODEL_QUOTA: &str = "MODEL_QUOTA";
    /// There is no such model or no such path (404, 405).
    pub const MODEL_NOT_FOUND: &str = "MODEL_NOT_FOUND";
    /// The request is too long for the server or the model (413).
    pub const MODEL_REQUEST_TOO_LARGE: &str = "MODEL_REQUEST_TOO_LARGE";
    /// Too many requests (429).
    pub const MODEL_RATE_LIMITED: &str = "MODEL_RATE_LIMITED";
    /// The server fails or is overloaded (5xx, 408, or an error in its stream).
    pub const MODEL_SERVER: &str = "MODEL_SERVER";
    /// The server points elsewhere; that is not followed.
    pub const MODEL_REDIRECTED: &str = "MODEL_REDIRECTED";
    /// Nobody could be reached.
    pub const MODEL_UNREACHABLE: &str = "MODEL_UNREACHABLE";
    /// The host's name means nothing here.
    pub const MODEL_DNS: &str = "MODEL_DNS";
    /// No secure connection.
    pub const MODEL_TLS: &str = "MODEL_TLS";
    /// The server was silent for too long.
    pub const MODEL_STALLED: &str = "MODEL_STALLED";
    /// The server sent what is no answer of this protocol.
    pub const MODEL_BAD_RESPONSE: &str = "MODEL_BAD_RESPONSE";
    /// The answer reached the most tokens it may have.
    pub const MODEL_OUTPUT_LIMIT: &str = "MODEL_OUTPUT_LIMIT";
    /// The server held the answer back.
    pub const MODEL_FILTERED: &str = "MODEL_FILTERED";
}

/// What a server says besides the status.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    /// Where a redirect points.
    pub(crate) location: Option<String>,
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
}

impl Refusal {
    /// The error for a response that is no success.
    pub(crate) fn error(&self, endpoint: &Endpoint) -> ModelError {
        let said = said(&self.body);
        let text = endpoint.clean(&said.message);
        let server = || {
            let status = StatusCode::from_u16(self.status).ok();
            let reason = status.and_then(|status| status.canonical_reason());
            let status = reason.map_or_else(
                || self.status.to_string(),
                |reason| format!("{} {reason}", self.status),
            );
            if text.is_empty() {
                format!("{} answered {status}", endpoint.host())
            } else {
                format!("{} answered {status}: {text}", endpoint.host())
            }
        };
        let key = || match &endpoint.key {
            Some(key) => format!("check the key in the environment variable {}", key.variable),
            None => "name the environment variable of a key with apiKeyEnv".to_owned(),
        };
        let quota = said.code == "insufficient_quota";
        match self.status {
            300..400 => {
                let to = self.location.as_deref().unwrap_or("nowhere");
                ModelError::fatal(
                    code::MODEL_REDIRECTED,
                    format!(
                        "{} points to {}, which is not followed so that the key goes nowhere else; \
                         set baseUrl to the right place",
                        server(),
                        endpoint.clean(to)
                    ),
                )
            }
            401 | 403 => ModelError::fatal(code::MODEL_AUTH, format!("{}; {}", server(), key())),
            402 => quota_error(&server()),
            429 if quota => quota_error(&server()),
            404 | 405 => ModelError::fatal(
                code::MODEL_NOT_FOUND,
                format!(
                    "{}; check baseUrl (asked was {}) and the model's name, {:?}",
                    server(),
                    endpoint.uri.path(),
                    endpoint.config.model
                ),
            ),
            413 => ModelError::fatal(
                code::MODEL_REQUEST_TOO_LARGE,
                format!("{}; compact the conversation", server()),
            ),
            429 => ModelError::transient(code::MODEL_RATE_LIMITED, server(), self.retry_after),
            408 | 425 | 500.. => {
                ModelError::transient(code::MODEL_SERVER, server(), self.retry_after)
            }
            400..500 => ModelError::fatal(code::MODEL_BAD_REQUEST, server()),
            _ => ModelError::fatal(
                code::MODEL_BAD_RESPONSE,
                format!("{}, which is no answer; check baseUrl", server()),
            ),
        }
    }
}

fn quota_error(server: &str) -> ModelError {
    ModelError::fatal(
        code::MODEL_QUOTA,
        format!("{server}; the account behind the key has no credit left"),
    )
}

/// The error of an object `error` that came in place of an answer, with a status of success.
pub(crate) fn in_band(error: &Value, endpoint: &Endpoint) -> ModelError {
    let said = said_by(error);
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let status = ["code", "status", "status_code"]
        .iter()
        .find_map(|name| number(error.get(*name)?))
        .and_then(|status| u16::try_from(status).ok())
        .filter(|status| (400..600).contains(status));
    if let Some(status) = status {
        let body = serde_json::to_vec(&serde_json::json!({ "error": error })).unwrap_or_default();
        let refusal = Refusal {
            status,
            body,
            ..Refusal::default()
        };
        return refusal.error(endpoint);
    }
    let text = format!(
        "{} gave up the answer: {}",
        endpoint.host(),
        endpoint.clean(&said.message)
    );
    match said.code.as_str() {
        "insufficient_quota" => quota_error(&text),
        "invalid_request_error" | "context_length_exceeded" => {
            ModelError::fatal(code::MODEL_BAD_REQUEST, text)
        }
        _ => ModelError::transient(code::MODEL_SERVER, text, None),
    }
}

/// What the body of a refusal says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    message: String,
    code: String,
}

/// The forms that are met: `{"error": {"message", "code", "type"}}`, `{"error": "…"}`,
/// `{"message": "…"}`, `{"detail": …}`, or any text.
fn said(body: &[u8]) -> Said {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return Said {
            message: String::from_utf8_lossy(body).into_owned(),
            code: String::new(),
        };
    };
    match value.get("error") {
        Some(error) => said_by(error),
        None => said_by(&value),
    }
}

fn said_by(value: &Value) -> Said {
    let text = |names: &[&str]| {
        names.iter().find_map(|name| match value.get(*name)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Null | Value::String(_) => None,
            other => Some(other.to_string()),
        })
    };
    match value {
        Value::String(message) => Said {
            message: message.clone(),
            code: String::new(),
        },
        Value::Object(_) => Said {
            message: text(&["message", "detail"]).unwrap_or_else(|| value.to_string()),
            code: text(&["code", "type"]).unwrap_or_default(),
        },
        other => Said {
            message: other.to_string(),
            code: String::new(),
        },
    }
}

/// The pause that a `Retry-After` asks for: seconds, or a date. `now` is the server's own clock,
/// from the same response, or the time here where it does not tell.
pub(crate) fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX >> 32)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use dsh_agent::Retry;
    use serde_json::json;

    use super::*;
    use crate::config::OpenAiConfig;

    fn endpoint() -> Endpoint {
        let config = OpenAiConfig::new("http://host/v1", "m").with_key_from("A_KEY");
        Endpoint::new(config, |_| Some("sk-1234".to_owned())).expect("it is fine")
    }

    #[track_caller]
    fn check(status: u16, body: &str, code: &str, retry: Retry, parts: &[&str]) {
        let refusal = Refusal {
            status,
            retry_after: Some(Duration::from_secs(7)),
            location: Some("http://evil/?k=sk-1234".to_owned()),
            body: body.as_bytes().to_vec(),
        };
        let error = refusal.error(&endpoint());
        assert_eq!((error.code.as_str(), error.retry), (code, retry), "{error}");
        for part in parts {
            assert!(error.message.contains(part), "{part}: {error}");
        }
        assert!(!error.message.contains("sk-1234"), "{error}");
        assert!(error.message.len() < 1000, "{error}");
    }

    #[test]
    fn each_status_has_its_code_its_hint_and_the_server_s_words() {
        let later = Retry::After(Some(Duration::from_secs(7)));
        let never = Retry::Never;
        let said = r#"{"error":{"message":"no: sk-1234","type":"t","code":null}}"#;
        let words: &[&str] = &["host answered", "no: [secret]"];
        check(400, said, code::MODEL_BAD_REQUEST, never, words);
        check(422, said, code::MODEL_BAD_REQUEST, never, words);
        check(418, said, code::MODEL_BAD_REQUEST, never, words);
        check(401, said, code::MODEL_AUTH, never, &["A_KEY", "401"]);
        check(
            403,
            "",
            code::MODEL_AUTH,
            never,
            &["A_KEY", "403 Forbidden"],
        );
        check(402, said, code::MODEL_QUOTA, never, &["credit"]);
        check(
            404,
            said,
            code::MODEL_NOT_FOUND,
            never,
            &["/v1/chat", "\"m\""],
        );
        check(413, said, code::MODEL_REQUEST_TOO_LARGE, never, words);
        check(408, said, code::MODEL_SERVER, later, words);
        check(429, said, code::MODEL_RATE_LIMITED, later, words);
        check(500, "<h1>oops</h1>", code::MODEL_SERVER, later, &["oops"]);
        check(503, said, code::MODEL_SERVER, later, words);
        check(599, said, code::MODEL_SERVER, later, &["599"]);
        check(307, "", code::MODEL_REDIRECTED, never, &["evil", "baseUrl"]);
        check(204, "", code::MODEL_BAD_RESPONSE, never, &["204"]);
        let quota = r#"{"error":{"message":"x","code":"insufficient_quota"}}"#;
        check(429, quota, code::MODEL_QUOTA, never, &["credit"]);
    }

    #[test]
    fn whatever_the_body_is_it_is_told_and_cut() {
        for body in [
            "\u{0}\u{1b}[31m".to_owned(),
            "x".repeat(1 << 20),
            "[".repeat(100_000),
            r#"{"detail":[{"loc":["a"]}]}"#.to_owned(),
            "null".to_owned(),
        ] {
            check(400, &body, code::MODEL_BAD_REQUEST, Retry::Never, &[]);
        }
        let said = said(br#"{"detail":"gone"}"#);
        assert_eq!(said.message, "gone");
    }

    #[test]
    fn an_error_in_the_place_of_an_answer_is_told_by_what_it_holds() {
        let check = |error: Value, code: &str, retry: Retry| {
            let found = in_band(&error, &endpoint());
            assert_eq!((found.code.as_str(), found.retry), (code, retry), "{found}");
            assert!(!found.message.contains("sk-1234"), "{found}");
        };
        let again = Retry::After(None);
        check(json!("sk-1234"), code::MODEL_SERVER, again);
        check(json!({"message": "busy"}), code::MODEL_SERVER, again);
        check(json!({"code": 429}), code::MODEL_RATE_LIMITED, again);
        check(json!({"code": "401"}), code::MODEL_AUTH, Retry::Never);
        check(
            json!({"type": "invalid_request_error"}),
            code::MODEL_BAD_REQUEST,
            Retry::Never,
        );
        check(
            json!({"code": "insufficient_quota"}),
            code::MODEL_QUOTA,
            Retry::Never,
        );
        check(json!({"code": 7}), code::MODEL_SERVER, again);
    }

    #[test]
    fn a_pause_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let of = |text| retry_after(text, now);
        assert_eq!(of(" 30 "), Some(Duration::from_secs(30)));
        assert_eq!(of("0"), Some(Duration::ZERO));
        assert_eq!(
            of("Sun, 06 Nov 1994 08:50:37 GMT"),
            Some(Duration::from_mins(1))
        );
        assert_eq!(of("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert!(of("99999999999999999999999").is_some());
        for text in ["", "-1", "1.5", "soon"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
