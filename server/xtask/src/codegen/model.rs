//! What a client has to know of a type, read from its JSON schema.
//!
//! Only the part of JSON Schema that the wire's types use is understood; anything else is an error that says where, so
//! that a new shape on the wire is a decision here and never a silent `any`.

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value};

/// A named type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub name: String,
    pub doc: String,
    pub kind: Kind,
}

/// What stands behind a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Object(Vec<Field>),
    /// One of these texts.
    Choice(Vec<Variant>),
    Alias(Type),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub name: String,
    pub doc: String,
    pub kind: Type,
    pub optional: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Variant {
    pub value: String,
    pub doc: String,
}

/// A type where it is used.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    Text,
    Integer,
    Number,
    Boolean,
    /// Any JSON.
    Any,
    Named(String),
    List(Box<Type>),
    Object(Vec<Field>),
    Union(Vec<Type>),
}

impl Item {
    pub(super) fn read(name: &str, schema: &Value) -> anyhow::Result<Self> {
        let item = || -> anyhow::Result<Self> {
            let kind = match variants(schema)? {
                Some(variants) => Kind::Choice(variants),
                None => match Type::read(schema)? {
                    Type::Object(fields) => Kind::Object(fields),
                    other => Kind::Alias(other),
                },
            };
            Ok(Self { name: name.to_owned(), doc: doc(schema), kind })
        };
        item().with_context(|| format!("the schema of {name}"))
    }
}

impl Type {
    fn read(schema: &Value) -> anyhow::Result<Self> {
        let Value::Object(schema) = schema else {
            ensure!(schema == &Value::Bool(true), "nothing fits {schema}");
            return Ok(Self::Any);
        };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let name = reference.strip_prefix("#/$defs/").context("a reference leads out of the schema")?;
            return Ok(Self::Named(name.to_owned()));
        }
        if let Some(choices) = schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_array) {
            let mut types = choices.iter().filter(|choice| !is_null(choice)).map(Self::read);
            let first = types.next().context("a choice without choices")??;
            let rest = types.collect::<anyhow::Result<Vec<_>>>()?;
            return Ok(if rest.is_empty() { first } else { Self::Union(std::iter::once(first).chain(rest).collect()) });
        }
        match schema.get("type") {
            Some(Value::String(name)) => Self::of(name, schema),
            // An absent field and `null` are one to the wire, which never sends `null`.
            Some(Value::Array(names)) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect();
                let [name] = names.as_slice() else { bail!("several types in one: {names:?}") };
                Self::of(name, schema)
            }
            _ if schema.keys().all(|key| key == "description") => Ok(Self::Any),
            _ => bail!("not understood: {}", Value::Object(schema.clone())),
        }
    }

    fn of(name: &str, schema: &Map<String, Value>) -> anyhow::Result<Self> {
        Ok(match name {
            "string" => Self::Text,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "array" => Self::List(Box::new(Self::read(schema.get("items").context("a list of what?")?)?)),
            "object" => Self::Object(fields(schema)?),
            other => bail!("no client has a type for {other}"),
        })
    }
}

/// The texts of an enum without data; `None` for anything else.
fn variants(schema: &Value) -> anyhow::Result<Option<Vec<Variant>>> {
    if let Some(values) = schema.get("enum") {
        return texts(values, "").map(Some);
    }
    let Some(choices) = schema.get("oneOf").and_then(Value::as_array) else { return Ok(None) };
    let mut all = Vec::new();
    for choice in choices {
        match (choice.get("const").and_then(Value::as_str), choice.get("enum")) {
            (Some(value), _) => all.push(Variant { value: value.to_owned(), doc: doc(choice) }),
            (None, Some(values)) => all.extend(texts(values, &doc(choice))?),
            (None, None) => return Ok(None),
        }
    }
    Ok(Some(all))
}

fn texts(values: &Value, doc: &str) -> anyhow::Result<Vec<Variant>> {
    let variant = |value: &Value| Some(Variant { value: value.as_str()?.to_owned(), doc: doc.to_owned() });
    let values = values.as_array().context("an enum is a list")?;
    values.iter().map(|value| variant(value).with_context(|| format!("not a text: {value}"))).collect()
}

fn fields(schema: &Map<String, Value>) -> anyhow::Result<Vec<Field>> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let field = |(name, schema): (&String, &Value)| {
        let kind = Type::read(schema).with_context(|| format!("field `{name}`"))?;
        let optional = !required.contains(&name.as_str());
        Ok(Field { name: name.clone(), doc: doc(schema), kind, optional })
    };
    properties.into_iter().flatten().map(field).collect()
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

/// What rustdoc says, with its links as plain code.
fn doc(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_shape_of_the_wire_is_read() {
        let cases = [
            (json!(true), Type::Any),
            (json!({"description": "x"}), Type::Any),
            (json!({"type": "integer", "format": "uint64"}), Type::Integer),
            (json!({"type": ["string", "null"]}), Type::Text),
            (json!({"anyOf": [{"$ref": "#/$defs/Access"}, {"type": "null"}]}), Type::Named("Access".to_owned())),
            (json!({"type": ["array", "null"], "items": {"type": "boolean"}}), Type::List(Box::new(Type::Boolean))),
            (json!({"anyOf": [{"type": "string"}, {"type": "number"}]}), Type::Union(vec![Type::Text, Type::Number])),
        ];
        for (schema, expected) in cases {
            assert_eq!(Type::read(&schema).unwrap(), expected, "{schema}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_place() {
        let schema = json!({"type": "object", "properties": {"odd": {"not": {"type": "string"}}}});
        let error = format!("{:#}", Item::read("Thing", &schema).unwrap_err());
        assert!(error.starts_with("the schema of Thing: field `odd`: not understood"), "{error}");
    }

    #[test]
    fn an_enum_without_data_is_a_choice_of_texts() {
        let schema = json!({"oneOf": [
            {"const": "write", "description": "May change [`files`].", "type": "string"},
            {"enum": ["a", "b"], "type": "string"},
        ]});
        let Kind::Choice(variants) = Item::read("Access", &schema).unwrap().kind else { panic!("a choice") };
        let read: Vec<(&str, &str)> = variants.iter().map(|v| (v.value.as_str(), v.doc.as_str())).collect();
        assert_eq!(read, [("write", "May change `files`."), ("a", ""), ("b", "")]);
    }
}
