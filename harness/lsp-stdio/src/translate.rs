//! Between the seam's words and LSP's (OPN-13, INI-5, INI-6, OPN-2, ERR-1, ERR-3). Pure.

mod handshake;
mod hover;
mod locations;

use std::borrow::Cow;

use dsh_lsp::{Hover, Location, LspError, Operation};
use lsp_types::request::{GotoDefinition, GotoImplementation, HoverRequest, References, Request};
use serde::de::MapAccess;

use crate::json::{self, Shape};

pub(crate) use handshake::{Handshake, HandshakeShape};
pub(crate) use hover::HoverShape;
pub(crate) use locations::LocationsShape;

/// LSP's `ContentModified`: the server's state changed under the request.
const CONTENT_MODIFIED: i64 = -32801;

/// LSP's `ServerCancelled`: the server gave up by itself.
const SERVER_CANCELLED: i64 = -32802;

/// The method that asks for an operation (OPN-13).
pub(crate) const fn method(operation: Operation) -> &'static str {
    match operation {
        Operation::GoToDefinition => GotoDefinition::METHOD,
        Operation::FindReferences => References::METHOD,
        Operation::GoToImplementation => GotoImplementation::METHOD,
        Operation::Hover => HoverRequest::METHOD,
    }
}

/// The server capability that advertises an operation (OPN-13).
pub(crate) const fn capability(operation: Operation) -> &'static str {
    match operation {
        Operation::GoToDefinition => "definitionProvider",
        Operation::FindReferences => "referencesProvider",
        Operation::GoToImplementation => "implementationProvider",
        Operation::Hover => "hoverProvider",
    }
}

/// The answer to a query, before the workspace is added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Of the three navigations.
    Locations(Vec<Location>),
    /// Of `hover`.
    Hover(Option<Hover>),
}

/// What is wrong with a payload, in words that follow "the result is malformed:".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) Cow<'static, str>);

impl From<&'static str> for Malformed {
    fn from(what: &'static str) -> Self {
        Self(Cow::Borrowed(what))
    }
}

/// The `error` of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorAnswer {
    code: i64,
    message: Option<String>,
}

impl ErrorAnswer {
    /// Whether asking again may help (ERR-3).
    pub(crate) const fn is_stale(&self) -> bool {
        matches!(self.code, CONTENT_MODIFIED | SERVER_CANCELLED)
    }

    /// The query's failure: the server's own message and code (ERR-1).
    pub(crate) fn into_error(self) -> LspError {
        let server_code = self.code;
        let stale = self.is_stale();
        let message = self
            .message
            .unwrap_or_else(|| "it gave no message".to_owned());
        if stale {
            LspError::Stale {
                server_code,
                message,
            }
        } else {
            LspError::ServerError {
                server_code,
                message,
            }
        }
    }
}

/// Reads an `error` member: `None` for null, which counts as absent.
pub(crate) struct ErrorShape;

impl<'de> Shape<'de> for ErrorShape {
    type Out = Option<ErrorAnswer>;

    fn null(self) -> Self::Out {
        None
    }

    fn other(self) -> Self::Out {
        Some(ErrorAnswer::default())
    }

    fn text(self, text: Cow<'de, str>) -> Self::Out {
        Some(ErrorAnswer {
            code: 0,
            message: Some(text.into_owned()),
        })
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Out, A::Error> {
        let mut error = ErrorAnswer::default();
        while let Some(name) = json::name(&mut members)? {
            match &*name {
                "code" => error.code = json::value(Code, &mut members)?,
                "message" => {
                    let message = json::value(json::Text, &mut members)?;
                    error.message = message.map(Cow::into_owned).filter(|text| !text.is_empty());
                }
                _ => json::skip(&mut members)?,
            }
        }
        Ok(Some(error))
    }
}

/// An error code; 0 where it is none.
struct Code;

impl Shape<'_> for Code {
    type Out = i64;

    fn other(self) -> i64 {
        0
    }

    fn natural(self, number: u64) -> i64 {
        i64::try_from(number).unwrap_or(0)
    }

    fn negative(self, number: i64) -> i64 {
        number
    }
}

#[cfg(test)]
mod tests;
