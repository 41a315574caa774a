//! What the answer to `initialize` says (INI-5, INI-6, OPN-2).

use std::borrow::Cow;

use dsh_lsp::Operation;
use serde::de::MapAccess;

use super::{Malformed, capability};
use crate::json::{self, Shape};

/// The parts of the `initialize` result that the host goes by. They are authoritative for the life
/// of the process (INI-6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handshake {
    advertised: [bool; Operation::ALL.len()],
    /// Whether a document may be opened and closed around each query (OPN-2).
    pub(crate) transient_open: bool,
    encoding: Encoding,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Encoding {
    #[default]
    Omitted,
    Named(String),
    NotAString,
}

impl Handshake {
    /// Whether the server advertises the operation (INI-6).
    pub(crate) fn advertises(&self, operation: Operation) -> bool {
        Operation::ALL
            .iter()
            .zip(self.advertised)
            .any(|(&other, yes)| yes && other == operation)
    }

    /// `Err` with what the server chose instead of UTF-16 (INI-5).
    pub(crate) fn check_encoding(&self) -> Result<(), String> {
        match &self.encoding {
            Encoding::Omitted => Ok(()),
            Encoding::Named(name) if name == "utf-16" => Ok(()),
            Encoding::Named(name) => Err(format!("{name:?}")),
            Encoding::NotAString => Err("a value that is not a string".to_owned()),
        }
    }
}

/// Reads the `result` of `initialize`.
pub(crate) struct HandshakeShape;

impl<'de> Shape<'de> for HandshakeShape {
    type Out = Result<Handshake, Malformed>;

    fn other(self) -> Self::Out {
        Err("it is not an object".into())
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Out, A::Error> {
        let mut out = Err("it has no capabilities".into());
        while let Some(name) = json::name(&mut members)? {
            match &*name {
                "capabilities" => out = json::value(CapabilitiesShape, &mut members)?,
                _ => json::skip(&mut members)?,
            }
        }
        Ok(out)
    }
}

struct CapabilitiesShape;

impl<'de> Shape<'de> for CapabilitiesShape {
    type Out = Result<Handshake, Malformed>;

    fn other(self) -> Self::Out {
        Err("its capabilities are not an object".into())
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Out, A::Error> {
        let mut handshake = Handshake::default();
        while let Some(name) = json::name(&mut members)? {
            let operation = Operation::ALL
                .iter()
                .position(|&one| *name == *capability(one));
            match (&*name, operation) {
                (_, Some(index)) => {
                    handshake.advertised[index] = json::value(Advertised, &mut members)?;
                }
                ("textDocumentSync", _) => {
                    handshake.transient_open = json::value(SyncShape, &mut members)?;
                }
                ("positionEncoding", _) => {
                    handshake.encoding = json::value(EncodingShape, &mut members)?;
                }
                _ => json::skip(&mut members)?,
            }
        }
        Ok(Ok(handshake))
    }
}

/// `true` and an options object advertise; everything else does not.
struct Advertised;

impl<'de> Shape<'de> for Advertised {
    type Out = bool;

    fn other(self) -> bool {
        false
    }

    fn flag(self, flag: bool) -> bool {
        flag
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        while json::name(&mut members)?.is_some() {
            json::skip(&mut members)?;
        }
        Ok(true)
    }
}

/// `textDocumentSync`: 1, 2, or an object with `openClose: true`.
struct SyncShape;

impl<'de> Shape<'de> for SyncShape {
    type Out = bool;

    fn other(self) -> bool {
        false
    }

    fn natural(self, kind: u64) -> bool {
        matches!(kind, 1 | 2)
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let mut open_close = false;
        while let Some(name) = json::name(&mut members)? {
            match &*name {
                "openClose" => open_close = json::value(True, &mut members)?,
                _ => json::skip(&mut members)?,
            }
        }
        Ok(open_close)
    }
}

struct True;

impl Shape<'_> for True {
    type Out = bool;

    fn other(self) -> bool {
        false
    }

    fn flag(self, flag: bool) -> bool {
        flag
    }
}

struct EncodingShape;

impl<'de> Shape<'de> for EncodingShape {
    type Out = Encoding;

    fn other(self) -> Encoding {
        Encoding::NotAString
    }

    fn text(self, name: Cow<'de, str>) -> Encoding {
        Encoding::Named(name.into_owned())
    }
}
