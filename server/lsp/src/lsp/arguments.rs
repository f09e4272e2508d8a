//! The argument of a command: one object, with errors that name the field.
//!
//! Commands come without arguments from editors that cannot pass any; that counts as an empty object. Which fields a
//! verb needs is said by its type in [`pactify_core::protocol`].

use pactify_core::{Failure, FailureCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What the client passed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arguments {
    /// Nothing.
    Absent,
    /// One object.
    Object(Map<String, Value>),
    /// Something else, of which this is the name.
    Unfit(&'static str),
}

impl Arguments {
    /// The arguments of `workspace/executeCommand`.
    pub(super) fn of_command(mut arguments: Vec<Value>) -> Self {
        match arguments.len() {
            0 => Self::Absent,
            1 => Self::typed(arguments.remove(0)),
            _ => Self::Unfit("several arguments"),
        }
    }

    /// The parameters of a typed request.
    pub(super) fn typed(params: Value) -> Self {
        match params {
            Value::Null => Self::Absent,
            Value::Object(fields) => Self::Object(fields),
            Value::Array(_) => Self::Unfit("an array"),
            Value::String(_) => Self::Unfit("a string"),
            Value::Number(_) => Self::Unfit("a number"),
            Value::Bool(_) => Self::Unfit("a boolean"),
        }
    }

    /// Whether there is no field at all.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Object(fields) => fields.is_empty(),
            Self::Unfit(_) => false,
        }
    }

    /// Whether the client said something about `field`.
    pub(super) fn has(&self, field: &str) -> bool {
        matches!(self, Self::Object(fields) if fields.get(field).is_some_and(|value| !value.is_null()))
    }

    /// The same arguments with `field` set.
    pub(super) fn with(self, field: &str, value: impl Into<Value>) -> Self {
        let mut fields = match self {
            Self::Absent => Map::new(),
            Self::Object(fields) => fields,
            unfit @ Self::Unfit(_) => return unfit,
        };
        fields.insert(field.to_owned(), value.into());
        Self::Object(fields)
    }

    /// The arguments as the command `name` wants them.
    pub(super) fn read<T: DeserializeOwned>(self, name: &str) -> Result<T, Failure> {
        let fields = match self {
            Self::Absent => Map::new(),
            Self::Object(fields) => fields,
            Self::Unfit(what) => return Err(invalid(name, &format!("it takes one object, not {what}"))),
        };
        serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
            let place = error.path().to_string();
            match place.as_str() {
                "." | "?" => invalid(name, &error.inner().to_string()),
                field => invalid(name, &format!("field `{field}`: {}", error.inner())),
            }
        })
    }
}

/// A refusal of the arguments of `name`.
pub(super) fn invalid(name: &str, what: &str) -> Failure {
    Failure::new(
        FailureCode::InvalidParams,
        format!("{name}: {what}"),
        format!("pass one object; docs/protocol.md has the fields of {name}"),
    )
}

#[cfg(test)]
mod tests {
    use pactify_core::protocol::{ApplyParams, DelegateParams, ExportParams, StatusParams};
    use serde_json::json;

    use super::*;

    fn refusal<T: DeserializeOwned + std::fmt::Debug>(arguments: Value) -> String {
        let Value::Array(arguments) = arguments else { panic!("not a list") };
        Arguments::of_command(arguments).read::<T>("pactify.x").unwrap_err().message
    }

    #[test]
    fn nothing_and_null_count_as_an_empty_object() {
        for arguments in [vec![], vec![Value::Null], vec![json!({})]] {
            assert_eq!(Arguments::of_command(arguments).read::<StatusParams>("x").unwrap().limit, None);
        }
    }

    #[test]
    fn a_refusal_names_the_field() {
        let cases = [
            (refusal::<DelegateParams>(json!([])), "missing field `brief`"),
            (refusal::<ApplyParams>(json!([{"jobId": "a"}])), "missing field `changeSet`"),
            (refusal::<StatusParams>(json!([{"limit": "many"}])), "field `limit`"),
            (refusal::<DelegateParams>(json!([{"brief": "x", "access": "all"}])), "field `access`"),
            (refusal::<ExportParams>(json!([{"jobId": "a", "as": "zip"}])), "field `as`"),
            (refusal::<StatusParams>(json!(["20261129"])), "one object, not a string"),
            (refusal::<StatusParams>(json!([{}, {}])), "one object, not several arguments"),
        ];
        for (message, named) in cases {
            assert!(message.starts_with("pactify.x: ") && message.contains(named), "{message}");
        }
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let read = Arguments::of_command(vec![json!({"all": true, "sparkle": 1})]).read::<StatusParams>("x");
        assert!(read.unwrap().all);
    }
}
