//! Holds a value against a type.

use std::fmt;

use serde_json::Value;

use super::{Member, Type};

/// Where a value departs from its shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Misfit {
    /// The place, `result[2].range.start.line` for instance.
    pub(crate) at: String,
    /// What is wrong there.
    pub(crate) problem: String,
    /// What is there, as JSON.
    pub(crate) got: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.problem)
    }
}

/// The largest `uinteger`, and the bounds of `integer`.
const MOST: f64 = 2_147_483_647.0;
const LEAST: f64 = -2_147_483_648.0;

/// The most steps into a value; JSON that is kept is not nested deeper.
const DEEPEST: usize = 256;

/// Holds `value`, absent if there is none, against `shape`. Named types are looked up in `types`.
///
/// Time is linear in the value, since no type that contains itself does so through two alternatives
/// of one union.
pub(super) fn check(
    types: &[Type],
    shape: &Type,
    at: &str,
    value: Option<&Value>,
) -> Result<(), Misfit> {
    let mut checker = Checker {
        types,
        path: vec![Step::Name(at.to_owned())],
    };
    match (shape, value) {
        (Type::None, None | Some(Value::Null)) | (Type::Any, None) => Ok(()),
        (Type::None, Some(Value::Object(members))) if members.is_empty() => Ok(()),
        (Type::None, Some(value)) => checker.fault(value, "should not be there"),
        (_, None) => Err(checker.missing()),
        (shape, Some(value)) => checker.check(shape, value),
    }
}

enum Step {
    Name(String),
    Index(usize),
}

struct Checker<'a> {
    types: &'a [Type],
    path: Vec<Step>,
}

impl<'a> Checker<'a> {
    fn at(&self) -> String {
        self.path
            .iter()
            .fold(String::new(), |text, step| match step {
                Step::Name(name) if text.is_empty() => name.clone(),
                Step::Name(name) => text + "." + name,
                Step::Index(index) => text + "[" + &index.to_string() + "]",
            })
    }

    fn missing(&self) -> Misfit {
        Misfit {
            at: self.at(),
            problem: "is missing".to_owned(),
            got: "nothing".to_owned(),
        }
    }

    fn fault(&self, value: &Value, problem: impl Into<String>) -> Result<(), Misfit> {
        Err(Misfit {
            at: self.at(),
            problem: problem.into(),
            got: shown(value),
        })
    }

    fn check(&mut self, shape: &'a Type, value: &Value) -> Result<(), Misfit> {
        if self.path.len() > DEEPEST {
            return Ok(());
        }
        match shape {
            Type::Named(place) => self.check(&self.types[*place], value),
            Type::Array(item) => {
                let Value::Array(all) = value else {
                    return self.fault(value, format!("is {}, not an array", kind(value)));
                };
                for (index, value) in all.iter().enumerate() {
                    self.path.push(Step::Index(index));
                    self.check(item, value)?;
                    self.path.pop();
                }
                Ok(())
            }
            Type::Members(members) => self.members(members, value),
            Type::Union(alternatives) => self.union(alternatives, value),
            Type::Uri => match value.as_str() {
                Some(text) if is_uri(text) => Ok(()),
                Some(_) => self.fault(value, "is no URI"),
                None => self.fault(value, format!("is {}, not a string", kind(value))),
            },
            simple if admits(simple, value) => Ok(()),
            simple => self.fault(value, problem(simple, value)),
        }
    }

    fn members(&mut self, members: &'a [Member], value: &Value) -> Result<(), Misfit> {
        let Value::Object(given) = value else {
            return self.fault(value, format!("is {}, not an object", kind(value)));
        };
        for member in members {
            self.path.push(Step::Name(member.name.clone()));
            match given.get(&member.name) {
                // JSON writers of many languages put null for what they leave out.
                None | Some(Value::Null) if member.optional => {}
                None => return Err(self.missing()),
                Some(value) => self.check(&member.shape, value)?,
            }
            self.path.pop();
        }
        Ok(())
    }

    /// One that fits; else what is wrong with the one that the value comes nearest to.
    fn union(&mut self, alternatives: &'a [Type], value: &Value) -> Result<(), Misfit> {
        let fitting: Vec<&Type> = alternatives
            .iter()
            .filter(|alternative| self.resembles(alternative, value))
            .collect();
        let depth = self.path.len();
        let mut nearest: Option<(usize, Misfit)> = None;
        for alternative in fitting {
            let Err(misfit) = self.check(alternative, value) else {
                return Ok(());
            };
            let reached = self.path.len();
            self.path.truncate(depth);
            if nearest.as_ref().is_none_or(|(most, _)| reached > *most) {
                nearest = Some((reached, misfit));
            }
        }
        match nearest {
            Some((_, misfit)) => Err(misfit),
            None => self.fault(
                value,
                format!("is {}, not {}", kind(value), self.any_of(alternatives)),
            ),
        }
    }

    /// Whether it is worth looking closer: the kind of JSON is right.
    fn resembles(&self, alternative: &Type, value: &Value) -> bool {
        match alternative {
            Type::Named(place) => self.resembles(&self.types[*place], value),
            Type::Array(_) => value.is_array(),
            Type::Members(_) => value.is_object(),
            Type::Union(all) => all.iter().any(|one| self.resembles(one, value)),
            Type::Uri => value.is_string(),
            simple => admits(simple, value),
        }
    }

    fn any_of(&self, alternatives: &[Type]) -> String {
        let mut names: Vec<String> = Vec::new();
        for alternative in alternatives {
            let name = self.name(alternative);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(" or ")
    }

    fn name(&self, shape: &Type) -> String {
        match shape {
            Type::Named(place) => self.name(&self.types[*place]),
            Type::Union(all) => self.any_of(all),
            Type::Array(_) => "an array".to_owned(),
            Type::Members(_) => "an object".to_owned(),
            simple => demanded(simple),
        }
    }
}

/// Whether a value is of a type that has no parts.
fn admits(shape: &Type, value: &Value) -> bool {
    match shape {
        Type::Any => true,
        Type::Null | Type::None => value.is_null(),
        Type::Boolean => value.is_boolean(),
        Type::String => value.is_string(),
        Type::Object => value.is_object(),
        Type::Decimal => value.is_number(),
        // JSON knows one kind of number, so 3.0 is an integer.
        Type::Integer => whole(value).is_some_and(|n| (LEAST..=MOST).contains(&n)),
        Type::UInteger => whole(value).is_some_and(|n| (0.0..=MOST).contains(&n)),
        Type::Text(text) => value.as_str() == Some(text),
        #[expect(
            clippy::cast_precision_loss,
            reason = "the numbers in the data are small"
        )]
        Type::Number(number) => {
            whole(value).is_some_and(|n| (n - *number as f64).abs() < f64::EPSILON)
        }
        _ => false,
    }
}

fn whole(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.fract() == 0.0)
}

fn problem(shape: &Type, value: &Value) -> String {
    format!("is {}, not {}", kind(value), demanded(shape))
}

fn demanded(shape: &Type) -> String {
    match shape {
        Type::Text(text) => format!("{text:?}"),
        Type::Number(number) => number.to_string(),
        Type::Null | Type::None => "null".to_owned(),
        Type::Boolean => "true or false".to_owned(),
        Type::Integer => "an integer of 32 bits".to_owned(),
        Type::UInteger => "an integer from 0 to 2147483647".to_owned(),
        Type::Decimal => "a number".to_owned(),
        Type::String => "a string".to_owned(),
        Type::Uri => "a URI".to_owned(),
        Type::Object => "an object".to_owned(),
        _ => "what it should be".to_owned(),
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().nth(40).is_some() => "a string".to_owned(),
        other => other.to_string(),
    }
}

/// The value as JSON, not all of a long one.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(all) if all.len() > 8 => format!("an array of {}", all.len()),
        Value::Object(all) if all.len() > 16 => format!("an object of {} members", all.len()),
        other => other.to_string(),
    }
}

/// RFC 3986: a scheme and a colon, and no character that has to be escaped. Non-ASCII ones are
/// let pass, since many write them and everybody reads them.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let mut letters = scheme.bytes();
    let named = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || b"+-.".contains(&c));
    let clean = |c: u8| !(c.is_ascii_control() || c == b' ' || b"\"<>\\^`{|}".contains(&c));
    let bytes = rest.as_bytes();
    let escaped = bytes.iter().enumerate().all(|(at, byte)| {
        let digits = bytes.get(at + 1..at + 3);
        *byte != b'%' || digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    named && bytes.iter().copied().all(clean) && escaped
}
