//! Navigation results (NAV-1…5).

use dsh_lsp::{Location, Position, Range};
use serde::de::{MapAccess, SeqAccess};

use super::Malformed;
use crate::json::{self, Natural, Shape, TextMember};

/// Reads the `result` of a navigation: null, one `Location` or `LocationLink`, or an array of them,
/// also mixed, in order (NAV-1). One entry that is neither spoils the whole (NAV-3).
pub(crate) struct LocationsShape;

impl<'de> Shape<'de> for LocationsShape {
    type Out = Result<Vec<Location>, Malformed>;

    fn null(self) -> Self::Out {
        Ok(Vec::new())
    }

    fn other(self) -> Self::Out {
        Err("it is neither null nor a location nor an array of them".into())
    }

    fn object<A: MapAccess<'de>>(self, members: A) -> Result<Self::Out, A::Error> {
        let entry = EntryShape.object(members)?;
        Ok(entry
            .map(|location| vec![location])
            .map_err(Malformed::from))
    }

    fn array<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Out, A::Error> {
        let mut locations = Vec::new();
        while let Some(entry) = json::item(EntryShape, &mut items)? {
            match entry {
                Ok(location) => locations.push(location),
                Err(what) => {
                    json::skip_items(&mut items)?;
                    let index = locations.len();
                    return Ok(Err(Malformed(format!("entry {index}: {what}").into())));
                }
            }
        }
        Ok(Ok(locations))
    }
}

/// One `Location` or `LocationLink`.
struct EntryShape;

/// The members that count, each as it was found: absent, or read as far as it can be.
#[derive(Default)]
struct Entry<'de> {
    uri: TextMember<'de>,
    range: Option<Range>,
    target_uri: TextMember<'de>,
    target_selection_range: Option<Range>,
}

impl<'de> Shape<'de> for EntryShape {
    type Out = Result<Location, &'static str>;

    fn other(self) -> Self::Out {
        Err("it is not an object")
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Out, A::Error> {
        let mut entry = Entry::default();
        while let Some(name) = json::name(&mut members)? {
            match &*name {
                "uri" => entry.uri = json::text_member(&mut members)?,
                "range" => entry.range = json::value(RangeShape, &mut members)?.into_valid(),
                "targetUri" => entry.target_uri = json::text_member(&mut members)?,
                "targetSelectionRange" => {
                    entry.target_selection_range =
                        json::value(RangeShape, &mut members)?.into_valid();
                }
                _ => json::skip(&mut members)?,
            }
        }
        Ok(entry.into_location())
    }
}

impl Entry<'_> {
    fn into_location(self) -> Result<Location, &'static str> {
        let (uri, range) = if !self.uri.is_absent() {
            (
                self.uri.or("its uri is not a string")?,
                self.range.ok_or("its range is malformed")?,
            )
        } else if !self.target_uri.is_absent() {
            let uri = self.target_uri.or("its targetUri is not a string")?;
            let range = self.target_selection_range;
            (uri, range.ok_or("its targetSelectionRange is malformed")?)
        } else {
            return Err("it is neither a Location nor a LocationLink");
        };
        // The URI stays as it was received (NAV-4).
        Ok(Location {
            uri: uri.into_owned(),
            range,
        })
    }
}

/// A `range` member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MaybeRange {
    /// `null`.
    Null,
    /// No range by any reading.
    Malformed,
    /// A range.
    Valid(Range),
}

impl MaybeRange {
    fn into_valid(self) -> Option<Range> {
        match self {
            Self::Valid(range) => Some(range),
            Self::Null | Self::Malformed => None,
        }
    }
}

/// Reads a `Range`.
pub(super) struct RangeShape;

impl<'de> Shape<'de> for RangeShape {
    type Out = MaybeRange;

    fn null(self) -> MaybeRange {
        MaybeRange::Null
    }

    fn other(self) -> MaybeRange {
        MaybeRange::Malformed
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<MaybeRange, A::Error> {
        let (mut start, mut end) = (None, None);
        while let Some(name) = json::name(&mut members)? {
            match &*name {
                "start" => start = json::value(PositionShape, &mut members)?,
                "end" => end = json::value(PositionShape, &mut members)?,
                _ => json::skip(&mut members)?,
            }
        }
        Ok(match (start, end) {
            (Some(start), Some(end)) => MaybeRange::Valid(Range { start, end }),
            _ => MaybeRange::Malformed,
        })
    }
}

struct PositionShape;

impl<'de> Shape<'de> for PositionShape {
    type Out = Option<Position>;

    fn other(self) -> Self::Out {
        None
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Out, A::Error> {
        let (mut line, mut character) = (None, None);
        while let Some(name) = json::name(&mut members)? {
            match &*name {
                "line" => line = json::value(Natural, &mut members)?,
                "character" => character = json::value(Natural, &mut members)?,
                _ => json::skip(&mut members)?,
            }
        }
        Ok(line
            .zip(character)
            .map(|(line, character)| Position { line, character }))
    }
}
