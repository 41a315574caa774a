//! Reading JSON by kind, without an intermediate tree.
//!
//! What a server sends is taken for what it is, not for what a type would like it to be: a [`Shape`]
//! says what it makes of each kind of value and never fails, so that the only errors left are those
//! of the JSON text itself. Values nobody wants are skipped without recursion, however deep.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What is made of one JSON value of any kind.
pub(crate) trait Shape<'de>: Sized {
    /// The outcome.
    type Out;

    /// A value of a kind that has no method of its own below.
    fn other(self) -> Self::Out;

    /// `null`.
    fn null(self) -> Self::Out {
        self.other()
    }

    /// `true` or `false`.
    fn flag(self, _: bool) -> Self::Out {
        self.other()
    }

    /// A number that is a whole one and not negative, `3.0` included (NAV-5), up to 2^53.
    fn natural(self, _: u64) -> Self::Out {
        self.other()
    }

    /// A number that is a whole negative one.
    fn negative(self, _: i64) -> Self::Out {
        self.other()
    }

    /// A string; borrowed where it has no escapes.
    fn text(self, _: Cow<'de, str>) -> Self::Out {
        self.other()
    }

    /// An array, to be read to its end.
    fn array<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Out, A::Error> {
        skip_items(&mut items)?;
        Ok(self.other())
    }

    /// An object, to be read to its end.
    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Out, A::Error> {
        skip_members(&mut members)?;
        Ok(self.other())
    }
}

/// Reads the value that comes next in an object.
pub(crate) fn value<'de, S: Shape<'de>, A: MapAccess<'de>>(
    shape: S,
    members: &mut A,
) -> Result<S::Out, A::Error> {
    members.next_value_seed(Any(shape))
}

/// Reads the next item of an array.
pub(crate) fn item<'de, S: Shape<'de>, A: SeqAccess<'de>>(
    shape: S,
    items: &mut A,
) -> Result<Option<S::Out>, A::Error> {
    items.next_element_seed(Any(shape))
}

/// The name of the next member of an object.
pub(crate) fn name<'de, A: MapAccess<'de>>(
    members: &mut A,
) -> Result<Option<Cow<'de, str>>, A::Error> {
    // JSON has no other names than strings.
    members
        .next_key_seed(Any(Text))
        .map(|name| name.map(Option::unwrap_or_default))
}

/// Skips the value of a member that nobody wants.
pub(crate) fn skip<'de, A: MapAccess<'de>>(members: &mut A) -> Result<(), A::Error> {
    members.next_value::<IgnoredAny>().map(drop)
}

/// Skips what is left of an array.
pub(crate) fn skip_items<'de, A: SeqAccess<'de>>(items: &mut A) -> Result<(), A::Error> {
    while items.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_members<'de, A: MapAccess<'de>>(members: &mut A) -> Result<(), A::Error> {
    while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// A whole text.
pub(crate) fn read<'de, S: Shape<'de>>(text: &'de str, shape: S) -> serde_json::Result<S::Out> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let out = Any(shape).deserialize(&mut reader)?;
    reader.end()?;
    Ok(out)
}

/// A string, or nothing.
pub(crate) struct Text;

impl<'de> Shape<'de> for Text {
    type Out = Option<Cow<'de, str>>;

    fn other(self) -> Self::Out {
        None
    }

    fn text(self, text: Cow<'de, str>) -> Self::Out {
        Some(text)
    }
}

/// A member that should be a string.
#[derive(Debug, Default)]
pub(crate) enum TextMember<'de> {
    /// It is not there.
    #[default]
    Absent,
    /// It is something else.
    NotText,
    /// It is one.
    Text(Cow<'de, str>),
}

impl<'de> TextMember<'de> {
    /// The string, or `why`, whatever is there instead.
    pub(crate) fn or<E>(self, why: E) -> Result<Cow<'de, str>, E> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Absent | Self::NotText => Err(why),
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// Reads a [`TextMember`].
pub(crate) fn text_member<'de, A: MapAccess<'de>>(
    members: &mut A,
) -> Result<TextMember<'de>, A::Error> {
    Ok(value(Text, members)?.map_or(TextMember::NotText, TextMember::Text))
}

/// A non-negative integer, or nothing.
pub(crate) struct Natural;

impl Shape<'_> for Natural {
    type Out = Option<u64>;

    fn other(self) -> Self::Out {
        None
    }

    fn natural(self, number: u64) -> Self::Out {
        Some(number)
    }
}

/// A shape in serde's terms.
struct Any<S>(S);

impl<'de, S: Shape<'de>> DeserializeSeed<'de> for Any<S> {
    type Value = S::Out;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Out, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Whole numbers are exact up to here.
const LARGEST: u64 = 1 << 53;

impl<'de, S: Shape<'de>> Visitor<'de> for Any<S> {
    type Value = S::Out;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<S::Out, E> {
        Ok(self.0.null())
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<S::Out, E> {
        Ok(self.0.flag(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<S::Out, E> {
        Ok(if number <= LARGEST {
            self.0.natural(number)
        } else {
            self.0.other()
        })
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<S::Out, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Ok(self.0.negative(number)),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the number is whole and within the range in which both types are exact"
    )]
    fn visit_f64<E: Error>(self, number: f64) -> Result<S::Out, E> {
        let exact = LARGEST as f64;
        Ok(
            if number.fract() != 0.0 || !(-exact..=exact).contains(&number) {
                self.0.other()
            } else if number < 0.0 {
                self.0.negative(number as i64)
            } else {
                self.0.natural(number as u64)
            },
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<S::Out, E> {
        Ok(self.0.text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<S::Out, E> {
        Ok(self.0.text(Cow::Borrowed(text)))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<S::Out, E> {
        Ok(self.0.text(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<S::Out, A::Error> {
        self.0.array(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<S::Out, A::Error> {
        self.0.object(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NAV-5: whole numbers count as integers however they are written.
    #[test]
    fn whole_numbers_are_naturals() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("-0.0", Some(0)),
            ("3.0", Some(3)),
            ("3e2", Some(300)),
            ("9007199254740992", Some(1 << 53)),
            ("9007199254740993", None),
            ("1e300", None),
            ("-1", None),
            ("-1.0", None),
            ("1.5", None),
            ("\"3\"", None),
            ("null", None),
            ("[3]", None),
        ] {
            assert_eq!(read(text, Natural).expect("it is JSON"), expected, "{text}");
        }
    }

    /// Depth that nobody looks into costs no stack.
    #[test]
    fn depth_is_skipped_without_recursion() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read(&deep, Text).expect("it is JSON"), None);
        let deep = format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
        assert_eq!(read(&deep, Natural).expect("it is JSON"), None);
    }
}
