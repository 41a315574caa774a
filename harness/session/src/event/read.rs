//! Reading events without keeping a second copy of what is read.
//!
//! A type that stands among the fields would have to be looked for before the fields can be read.
//! The writer puts `seq`, `atMs` and `type` first, and then the rest is read straight into its place;
//! another order is read as well, the slow way.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer as _, MapAccess,
    VariantAccess, Visitor,
};
use serde::{Deserialize, de};
use serde_json::{Map, Value};

use super::{AssistantMessage, Ending, Event, EventBody, LoggedResult};
use crate::{ContentBlock, MessageSource, ToolCall, ToolSchema};

/// [`EventBody`] with its type outside.
#[derive(Deserialize)]
#[serde(
    remote = "EventBody",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
enum Outside {
    #[serde(rename = "turn/start")]
    TurnStart { turn: u64 },
    #[serde(rename = "turn/end")]
    TurnEnd { turn: u64, outcome: Ending },
    #[serde(rename = "step/start")]
    StepStart { turn: u64, step: u64 },
    #[serde(rename = "step/request")]
    StepRequest {
        turn: u64,
        step: u64,
        #[serde(default)]
        system: Option<String>,
        #[serde(default)]
        tools: Option<Vec<ToolSchema>>,
        sha1: String,
    },
    #[serde(rename = "step/end")]
    StepEnd {
        turn: u64,
        step: u64,
        outcome: Ending,
    },
    #[serde(rename = "user/message")]
    UserMessage {
        source: MessageSource,
        content: Vec<ContentBlock>,
    },
    #[serde(rename = "assistant/message")]
    AssistantMessage(AssistantMessage),
    #[serde(rename = "tool/call")]
    ToolCall {
        call: ToolCall,
        #[serde(default)]
        parent: Option<String>,
    },
    #[serde(rename = "tool/result")]
    ToolResult(LoggedResult),
    #[serde(rename = "compaction")]
    Compaction {
        from: u64,
        to: u64,
        summary: Vec<ContentBlock>,
    },
}

/// A type, and the fields that belong to it.
struct Typed<A> {
    kind: String,
    fields: A,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Typed<A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for Typed<A> {
    type Error = A::Error;
    type Variant = Fields<A>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Fields<A>), A::Error> {
        let kind: StringDeserializer<A::Error> = self.kind.into_deserializer();
        Ok((seed.deserialize(kind)?, Fields(self.fields)))
    }
}

struct Fields<A>(A);

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Fields<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        Err(A::Error::custom("every event has fields"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        seed.deserialize(MapAccessDeserializer::new(self.0))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, A::Error> {
        Err(A::Error::custom("no event is a list"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let (mut seq, mut at_ms, mut kind) = (None, None, None);
        let mut early: Map<String, Value> = Map::new();
        while seq.is_none() || at_ms.is_none() || kind.is_none() {
            let Some(key) = map.next_key::<String>()? else {
                break;
            };
            match key.as_str() {
                "seq" => once(&mut seq, "seq", map.next_value()?)?,
                "atMs" => once(&mut at_ms, "atMs", map.next_value()?)?,
                "type" => once(&mut kind, "type", map.next_value()?)?,
                _ => once_in(&mut early, key, map.next_value()?)?,
            }
        }
        let seq = seq.ok_or_else(|| A::Error::missing_field("seq"))?;
        let at_ms = at_ms.ok_or_else(|| A::Error::missing_field("atMs"))?;
        let kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
        let body = if early.is_empty() {
            Outside::deserialize(Typed { kind, fields: map })?
        } else {
            while let Some((key, value)) = map.next_entry()? {
                once_in(&mut early, key, value)?;
            }
            let fields = de::value::MapDeserializer::new(early.into_iter());
            Outside::deserialize(Typed { kind, fields }).map_err(slow)?
        };
        Ok(Event { seq, at_ms, body })
    }
}

fn slow<E: Error>(error: serde_json::Error) -> E {
    E::custom(error)
}

fn once<T, E: Error>(place: &mut Option<T>, name: &'static str, value: T) -> Result<(), E> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

fn once_in<E: Error>(map: &mut Map<String, Value>, key: String, value: Value) -> Result<(), E> {
    if map.contains_key(&key) {
        return Err(E::custom(format_args!("duplicate field `{key}`")));
    }
    map.insert(key, value);
    Ok(())
}
