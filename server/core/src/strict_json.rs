//! JSON that another program wrote: a text in which no object names a member twice.
//!
//! Which of two members of one name counts, every reader decides for itself: `{"type":"turn.failed",
//! "type":"turn.completed"}` is a success to one that takes the last. Such a text means nothing here, as one that is
//! torn. It is noticed while the value is built: lines come by the thousand a second, and none that means something is
//! read twice for it.
//!
//! The one exception was measured: codex 0.171 gives each web search two `id`s, its own and its provider's. Inside of
//! a message an `id` decides nothing but what belongs together, and the last one counts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The value that `text` is; `None` where it is none.
pub(crate) fn value(text: &str) -> Option<Value> {
    let mut text = serde_json::Deserializer::from_str(text);
    let value = Reader { is_inside: false }.deserialize(&mut text).ok()?;
    text.end().ok().map(|()| value)
}

/// The object that `text` is; `None` where it is none.
pub(crate) fn object(text: &str) -> Option<Value> {
    value(text).filter(Value::is_object)
}

/// Whether `text` is an object that means nothing here only because a member of it is named twice.
pub(crate) fn is_ambiguous(text: &str) -> bool {
    object(text).is_none() && serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

#[derive(Clone, Copy)]
struct Reader {
    is_inside: bool,
}

const INSIDE: Reader = Reader { is_inside: true };

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(value) = elements.next_element_seed(INSIDE)? {
            array.push(value);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let may_repeat = self.is_inside && name == "id";
            if object.insert(name, members.next_value_seed(INSIDE)?).is_some() && !may_repeat {
                return Err(Error::custom("a member is named twice"));
            }
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_names_a_member_twice_means_nothing() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"b":2,"a":1}"#,
            r#"{"a":null,"a":null}"#,
            r#"{"id":1,"id":1}"#,
            r#"{"type":1,"\u0074ype":2}"#,
            r#"{"a":[{"b":{"c":1,"c":2}}]}"#,
            r#"[{"a":1,"a":2}]"#,
            r#"{"a":1}{"a":2}"#,
            r#"{"a":"#,
            "",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
        for text in [r#"{"a":{"a":{}},"A":[{"a":1},{"a":1}],"":-1.5e3}"#, "{}", r#"{"a ":1,"a":18446744073709551615}"#]
        {
            assert_eq!(object(text), Some(serde_json::from_str(text).unwrap()), "{text}");
        }
        let search = r#"{"item":{"id":"item_1","type":"web_search","id":"ws_1"}}"#;
        assert_eq!(value(search).unwrap()["item"]["id"], "ws_1");
        assert_eq!((value("7"), object("7"), object("[]")), (Some(7.into()), None, None));
    }

    proptest! {
        /// It is serde_json's own reading but for that.
        #[test]
        fn everything_else_is_read_as_it_is(text in r#"[{}\[\]":,ab0-9.eE truefalsn\\-]{0,40}"#) {
            let read: Option<Value> = serde_json::from_str(&text).ok();
            match value(&text) {
                Some(found) => prop_assert_eq!(Some(found), read),
                // It takes two names for one to be there twice.
                None => prop_assert!(read.is_none() || text.matches(':').count() > 1, "{}", text),
            }
        }
    }
}
