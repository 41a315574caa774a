//! What kind of message a body is.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The id of a request or of its answer, with its type: `7` and `"7"` are two ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Id(pub Value);

impl Id {
    /// Whether it is of a type LSP gives to ids: a string or an integer.
    pub fn is_legal(&self) -> bool {
        self.0.is_string() || self.0.is_i64() || self.0.is_u64()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<i64> for Id {
    fn from(id: i64) -> Self {
        Self(id.into())
    }
}

impl From<&str> for Id {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

/// What a body is, by the members it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[non_exhaustive]
pub enum Envelope {
    /// `method` and `id`.
    Request {
        /// The id.
        id: Id,
        /// The method.
        method: String,
    },
    /// `method` without `id`.
    Notification {
        /// The method.
        method: String,
    },
    /// `id` and `result` or `error`, or both, or neither; no `method`.
    Response {
        /// The id, null included.
        id: Id,
        /// Whether there is a `result` member.
        result: bool,
        /// Whether there is an `error` member, and its code if it has an integer one.
        error: Option<Option<i64>>,
    },
    /// JSON that is none of these: an array, a number, an object without `method` and `id`, a
    /// method that is no string.
    Other,
    /// Not JSON in UTF-8.
    NotJson {
        /// What the JSON reader says.
        error: String,
    },
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default)]
    method: Option<Method<'a>>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<Skipped<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A member that is there, whatever its value, null included.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Method<'a> {
    Name(#[serde(borrow)] Cow<'a, str>),
    Else(serde::de::IgnoredAny),
}

/// A value of which only the presence counts.
struct Skipped<'a>(std::marker::PhantomData<&'a ()>);

impl<'de: 'a, 'a> Deserialize<'de> for Skipped<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self(std::marker::PhantomData))
    }
}

impl Envelope {
    /// Reads the members of a body. Time is linear in its length.
    pub fn of(body: &[u8]) -> Self {
        let text = match std::str::from_utf8(body) {
            Ok(text) => text,
            Err(error) => {
                return Self::NotJson {
                    error: error.to_string(),
                };
            }
        };
        // A duplicate member makes the struct's reader fail where the text is still JSON.
        match serde_json::from_str::<Members<'_>>(text) {
            Ok(members) => members.envelope(),
            Err(_) => match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => Self::Other,
                Err(error) => Self::NotJson {
                    error: error.to_string(),
                },
            },
        }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request { method, .. } | Self::Notification { method } => Some(method),
            _ => None,
        }
    }

    /// The id of a request or response.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Self::Request { id, .. } | Self::Response { id, .. } => Some(id),
            _ => None,
        }
    }

    /// The method without the part before its last slash, but whole for `$/…`: `didOpen`,
    /// `definition`, `$/cancelRequest`, `shutdown`.
    pub fn short_name(&self) -> Option<&str> {
        self.method().map(short_name)
    }
}

/// See [`Envelope::short_name`].
pub fn short_name(method: &str) -> &str {
    if method.starts_with("$/") {
        return method;
    }
    method.rsplit_once('/').map_or(method, |(_, name)| name)
}

impl Members<'_> {
    fn envelope(self) -> Envelope {
        #[derive(Deserialize)]
        struct Code {
            code: i64,
        }
        match (self.method, self.id) {
            (Some(Method::Name(method)), Some(id)) => Envelope::Request {
                id: Id(id),
                method: method.into_owned(),
            },
            (Some(Method::Name(method)), None) => Envelope::Notification {
                method: method.into_owned(),
            },
            (Some(Method::Else(_)), _) | (None, None) => Envelope::Other,
            (None, Some(id)) => Envelope::Response {
                id: Id(id),
                result: self.result.is_some(),
                error: self.error.map(|error| {
                    serde_json::from_str::<Code>(error.get())
                        .ok()
                        .map(|error| error.code)
                }),
            },
        }
    }
}
