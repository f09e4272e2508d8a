//! One argument of a person's own program, with places that are filled in for each job.
//!
//! `{prompt}` is the brief (or the message of a resume), `{root}` the absolute path of the job's tree, `{lang}` the
//! person's language, `{session}` the session that a resume goes on with. `{{` and `}}` are a brace each; any other
//! brace is a mistake. What is filled in is never looked at again: a brief that contains `{root}` stays as it is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An argument, parsed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template(Vec<Part>);

/// A piece of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Filled(Placeholder),
}

/// What can be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The brief, or the message of a resume.
    Prompt,
    /// The absolute path of the job's tree.
    Root,
    /// The person's language.
    Lang,
    /// The session that goes on.
    Session,
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Not one of ours.
    #[error(
        "{{{0}}} is no placeholder: there are {{prompt}}, {{root}}, {{lang}} and {{session}}; a brace is written twice"
    )]
    Unknown(String),
    /// A brace that nothing closes or opens.
    #[error("a single brace in {0:?}: a brace is written twice")]
    Brace(String),
    /// No argument holds one.
    #[error("{0:?} contains a NUL byte")]
    Nul(String),
}

impl Template {
    /// Whether `placeholder` occurs in it.
    pub fn has(&self, placeholder: Placeholder) -> bool {
        self.0.contains(&Part::Filled(placeholder))
    }

    /// The argument, with what `value` gives for each placeholder.
    pub fn fill<'v>(&self, value: impl Fn(Placeholder) -> &'v str) -> String {
        let piece = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Filled(placeholder) => value(*placeholder).to_owned(),
        };
        self.0.iter().map(piece).collect()
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        if text.contains('\0') {
            return Err(TemplateError::Nul(text));
        }
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                plain.push_str(&from[..1]);
                rest = after;
                continue;
            }
            let inner = from.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let (name, after) = inner.ok_or_else(|| TemplateError::Brace(text.clone()))?;
            let placeholder = Placeholder::named(name).ok_or_else(|| TemplateError::Unknown(name.to_owned()))?;
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Filled(placeholder));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self(parts))
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.to_string()
    }
}

/// As it is written in a configuration.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Part::Filled(placeholder) => write!(f, "{{{}}}", placeholder.name()),
        })
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Placeholder {
    const ALL: [Self; 4] = [Self::Prompt, Self::Root, Self::Lang, Self::Session];

    /// Its name between the braces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Root => "root",
            Self::Lang => "lang",
            Self::Session => "session",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|placeholder| placeholder.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(text: &str) -> Result<String, TemplateError> {
        let value = |placeholder| match placeholder {
            Placeholder::Prompt => "say {root} {{x}}",
            Placeholder::Root => "/tree",
            Placeholder::Lang => "de",
            Placeholder::Session => "s1",
        };
        Template::try_from(text.to_owned()).map(|template| template.fill(value))
    }

    #[test]
    fn placeholders_are_filled_in_once() {
        for (text, expected) in [
            ("", ""),
            ("-p", "-p"),
            ("{prompt}", "say {root} {{x}}"),
            ("--cd={root}/src:{lang}", "--cd=/tree/src:de"),
            ("{session}{session}", "s1s1"),
            ("{{prompt}}", "{prompt}"),
            ("{{\"lang\":\"{lang}\"}}", "{\"lang\":\"de\"}"),
            ("}}{{", "}{"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn whatever_else_has_a_brace_is_refused() {
        let brace = |text: &str| Err(TemplateError::Brace(text.to_owned()));
        for (text, expected) in [
            ("{promt}", Err(TemplateError::Unknown("promt".to_owned()))),
            ("{}", Err(TemplateError::Unknown(String::new()))),
            ("{ prompt }", Err(TemplateError::Unknown(" prompt ".to_owned()))),
            ("{role}", Err(TemplateError::Unknown("role".to_owned()))),
            ("{prompt", brace("{prompt")),
            ("prompt}", brace("prompt}")),
            ("a\0b", Err(TemplateError::Nul("a\0b".to_owned()))),
        ] {
            assert_eq!(filled(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_recorded_reads_back(text in "([a{}]|\\{prompt\\}|\\{root\\}){0,8}") {
            if let Ok(template) = Template::try_from(text) {
                let recorded = serde_json::to_string(&template).unwrap();
                prop_assert_eq!(serde_json::from_str::<Template>(&recorded).unwrap(), template);
            }
        }
    }
}
