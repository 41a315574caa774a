//! Bytes as they were, in a form that survives JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of the wire, kept exactly.
///
/// In JSON they are a string where they are UTF-8, and `{"base64": "…"}` where they are not, so
/// that a reader sees text and nothing is lost.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Raw(pub Bytes);

impl Raw {
    /// A copy of `bytes`.
    pub fn copy(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As text, with U+FFFD for what is not UTF-8; for messages, not for judging.
    pub fn lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Raw(b\"{}\")", self.0.escape_ascii())
    }
}

impl From<&[u8]> for Raw {
    fn from(bytes: &[u8]) -> Self {
        Self::copy(bytes)
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Base64 {
    base64: String,
}

/// The JSON form of [`Raw`].
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Form {
    Text(String),
    Bytes(Base64),
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Base64 {
                base64: STANDARD.encode(&self.0),
            }
            .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Form::deserialize(deserializer)? {
            Form::Text(text) => Ok(Self(Bytes::from(text.into_bytes()))),
            Form::Bytes(form) => STANDARD
                .decode(form.base64)
                .map(|bytes| Self(Bytes::from(bytes)))
                .map_err(|error| D::Error::custom(format!("base64: {error}"))),
        }
    }
}

impl JsonSchema for Raw {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Raw".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Form::json_schema(generator)
    }
}
