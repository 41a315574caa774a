//! Hover results (HOV-1…5).

use std::borrow::Cow;

use dsh_lsp::Hover;
use serde::de::{MapAccess, SeqAccess};

use super::Malformed;
use super::locations::{MaybeRange, RangeShape};
use crate::json::{self, Shape, Text, TextMember};

/// Reads the `result` of a hover.
pub(crate) struct HoverShape;

impl<'de> Shape<'de> for HoverShape {
    type Out = Result<Option<Hover>, Malformed>;

    fn null(self) -> Self::Out {
        Ok(None)
    }

    fn other(self) -> Self::Out {
        Err("it is neither null nor an object".into())
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Out, A::Error> {
        let mut contents = Err("it has no contents");
        let mut range = MaybeRange::Null;
        while let Some(name) = json::name(&mut members)? {
            match &*name {
                "contents" => contents = json::value(ContentsShape, &mut members)?,
                "range" => range = json::value(RangeShape, &mut members)?,
                _ => json::skip(&mut members)?,
            }
        }
        Ok(hover(contents, range).map_err(Malformed::from))
    }
}

fn hover(
    contents: Result<String, &'static str>,
    range: MaybeRange,
) -> Result<Option<Hover>, &'static str> {
    let contents = contents?;
    let range = match range {
        MaybeRange::Malformed => return Err("its range is malformed"),
        MaybeRange::Null => None,
        MaybeRange::Valid(range) => Some(range),
    };
    Ok((!contents.is_empty()).then_some(Hover { contents, range }))
}

/// `MarkupContent`, `MarkedString`, or an array of those.
struct ContentsShape;

impl<'de> Shape<'de> for ContentsShape {
    type Out = Result<String, &'static str>;

    fn other(self) -> Self::Out {
        Err("its contents have none of the shapes of a hover")
    }

    fn text(self, text: Cow<'de, str>) -> Self::Out {
        Ok(text.into_owned())
    }

    fn object<A: MapAccess<'de>>(self, members: A) -> Result<Self::Out, A::Error> {
        PartShape.object(members)
    }

    fn array<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Out, A::Error> {
        let mut joined = String::new();
        while let Some(part) = json::item(PartShape, &mut items)? {
            match part {
                // A part without text would leave a gap of two blank lines.
                Ok(part) if part.is_empty() => {}
                Ok(part) if joined.is_empty() => joined = part,
                Ok(part) => {
                    joined.push_str("\n\n");
                    joined.push_str(&part);
                }
                Err(what) => {
                    json::skip_items(&mut items)?;
                    return Ok(Err(what));
                }
            }
        }
        Ok(Ok(joined))
    }
}

/// One part of the contents.
struct PartShape;

#[derive(Default)]
struct Part<'de> {
    kind: TextMember<'de>,
    language: TextMember<'de>,
    value: Option<Cow<'de, str>>,
}

impl<'de> Shape<'de> for PartShape {
    type Out = Result<String, &'static str>;

    fn other(self) -> Self::Out {
        Err("its contents have a part that is neither text nor marked text")
    }

    fn text(self, text: Cow<'de, str>) -> Self::Out {
        Ok(text.into_owned())
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Out, A::Error> {
        let mut part = Part::default();
        while let Some(name) = json::name(&mut members)? {
            match &*name {
                "kind" => part.kind = json::text_member(&mut members)?,
                "language" => part.language = json::text_member(&mut members)?,
                "value" => part.value = json::value(Text, &mut members)?,
                _ => json::skip(&mut members)?,
            }
        }
        Ok(part.into_text())
    }
}

impl Part<'_> {
    fn into_text(self) -> Result<String, &'static str> {
        let value = self
            .value
            .ok_or("its contents have no value that is a string")?;
        if self.kind.is_absent() {
            let language = self
                .language
                .or("its contents have neither a kind nor a language")?;
            return Ok(fenced(&language, &value));
        }
        let wrong_kind = "its contents have a kind that is neither markdown nor plaintext";
        match &*self.kind.or(wrong_kind)? {
            "markdown" | "plaintext" => Ok(value.into_owned()),
            _ => Err(wrong_kind),
        }
    }
}

/// A fenced code block; nothing for no code. The fence is longer than any run of backticks inside,
/// so that the block ends where the code does (HOV-5), and the tag stays within its line.
fn fenced(language: &str, code: &str) -> String {
    if code.is_empty() {
        return String::new();
    }
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let tag = language
        .split(|c: char| c == '`' || c.is_control())
        .next()
        .unwrap_or_default();
    format!("{fence}{tag}\n{code}\n{fence}")
}
