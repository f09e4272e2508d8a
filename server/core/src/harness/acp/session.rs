//! What an agent says of itself and of a session: what it can do, which model it uses, what may be chosen.

use serde_json::{Value, json};

use super::super::failure::session_lost;
use super::failure;
use super::wire::{self, list, text};
use crate::{Failure, FailureCode, display};

/// The longest session id that is kept, in bytes.
const SESSION_MAX: usize = 256;
/// How many models a refusal names.
const NAMED: usize = 12;

/// The requests by which something is chosen.
pub(super) const SET_MODE: &str = "session/set_mode";
pub(super) const SET_MODEL: &str = "session/set_model";
pub(super) const SET_OPTION: &str = "session/set_config_option";

/// What the agent said of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Agent {
    loads: bool,
    resumes: bool,
}

impl Agent {
    /// Reads the reply to `initialize`.
    pub(super) fn read(agent: &str, result: &Value) -> Result<Self, Failure> {
        let version = result.get("protocolVersion").and_then(Value::as_u64);
        if version != Some(wire::VERSION) {
            let spoken = version.map_or("it names no version".to_owned(), |version| format!("it speaks {version}"));
            return Err(failure::incompatible(agent, &spoken));
        }
        let capabilities = result.get("agentCapabilities").unwrap_or(&Value::Null);
        Ok(Self {
            loads: capabilities.get("loadSession").and_then(Value::as_bool).unwrap_or_default(),
            resumes: capabilities.pointer("/sessionCapabilities/resume").is_some_and(|value| !value.is_null()),
        })
    }

    /// The request by which it goes on with an earlier session.
    pub(super) fn method_to_resume(&self) -> Option<&'static str> {
        match (self.loads, self.resumes) {
            (true, _) => Some("session/load"),
            (false, true) => Some("session/resume"),
            (false, false) => None,
        }
    }
}

/// A session, as it was opened.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Opened {
    pub(super) session: String,
    /// The model that it begins with, by the agent's id of it.
    pub(super) model: Option<String>,
    choice: Choice,
}

/// How a model is chosen.
#[derive(Clone, Debug, Default, PartialEq)]
enum Choice {
    #[default]
    None,
    /// Among these, by `session/set_model`.
    Model(Vec<String>),
    /// Among these, as the value of the session's option of this id.
    Option(String, Vec<String>),
}

impl Opened {
    /// Reads the reply to a request for a session; `asked` is the one to go on with.
    pub(super) fn read(agent: &str, asked: Option<&str>, result: &Value) -> Result<Self, Failure> {
        let named = text(result, "sessionId");
        let session = match asked {
            Some(asked) if named.is_empty() || named == asked => asked,
            Some(_) => return Err(session_lost(agent, "it opened another one instead")),
            None if is_session(named) => named,
            None => return Err(failure::incompatible(agent, "it named no session that could be gone on with")),
        };
        let (model, choice) = models(result).or_else(|| option(result)).unwrap_or_default();
        Ok(Self { session: session.to_owned(), model, choice })
    }

    /// The request that makes the session use `wanted`; none when it does already.
    pub(super) fn choose(&self, agent: &str, wanted: &str) -> Result<Option<(&'static str, Value)>, Failure> {
        if self.model.as_deref() == Some(wanted) {
            return Ok(None);
        }
        let offers = |models: &[String]| models.iter().any(|model| model == wanted);
        match &self.choice {
            Choice::Model(models) if offers(models) => {
                Ok(Some((SET_MODEL, json!({"sessionId": self.session, "modelId": wanted}))))
            }
            Choice::Option(id, models) if offers(models) => {
                Ok(Some((SET_OPTION, json!({"sessionId": self.session, "configId": id, "value": wanted}))))
            }
            Choice::Model(models) | Choice::Option(_, models) => {
                let shown: Vec<_> = models.iter().take(NAMED).map(|model| display::headline(model, 60)).collect();
                Err(no_model(agent, wanted, &format!("it offers {}", shown.join(", "))))
            }
            Choice::None => Err(no_model(agent, wanted, "it lets nobody choose one")),
        }
    }
}

/// The model that a reply, or an update, says is used.
pub(super) fn current_model(told: &Value) -> Option<String> {
    let (current, _) = models(told).or_else(|| option(told))?;
    current
}

fn no_model(agent: &str, wanted: &str, why: &str) -> Failure {
    let wanted = display::headline(wanted, 80);
    Failure::new(
        FailureCode::InvalidConfig,
        format!("{agent} cannot be given the model {wanted:?}: {why}"),
        "name one of its models, or none: in the job, or as `model` of the harness in the configuration",
    )
}

fn is_session(id: &str) -> bool {
    (1..=SESSION_MAX).contains(&id.len()) && !id.chars().any(char::is_control)
}

fn models(result: &Value) -> Option<(Option<String>, Choice)> {
    let models = result.get("models").filter(|models| models.is_object())?;
    let current = Some(text(models, "currentModelId").to_owned()).filter(|model| !model.is_empty());
    let offered = list(models, "availableModels").iter().map(|model| text(model, "modelId").to_owned()).collect();
    Some((current, Choice::Model(offered)))
}

fn option(result: &Value) -> Option<(Option<String>, Choice)> {
    let is_model = |option: &&Value| text(option, "category") == "model" || text(option, "id") == "model";
    let option = list(result, "configOptions").iter().find(is_model)?;
    let current = Some(text(option, "currentValue").to_owned()).filter(|model| !model.is_empty());
    let mut offered = Vec::new();
    for entry in list(option, "options") {
        // Options may be grouped.
        let group = list(entry, "options");
        let values = if group.is_empty() { std::slice::from_ref(entry) } else { group };
        offered.extend(values.iter().map(|value| text(value, "value").to_owned()));
    }
    Some((current, Choice::Option(text(option, "id").to_owned(), offered)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_chosen_where_the_agent_offers_it() {
        let by_option = json!({"sessionId": "s", "configOptions": [{"id": "m", "category": "model", "currentValue": "a",
            "options": [{"value": "a"}, {"name": "more", "options": [{"value": "b"}]}]}]});
        let by_model =
            json!({"sessionId": "s", "models": {"currentModelId": "a", "availableModels": [{"modelId": "b"}]}});
        for (result, wanted, expected) in [
            (&by_option, "a", Ok(None)),
            (&by_option, "b", Ok(Some("session/set_config_option"))),
            (&by_option, "c", Err("it offers a, b")),
            (&by_model, "b", Ok(Some("session/set_model"))),
            (&json!({"sessionId": "s"}), "a", Err("lets nobody choose")),
        ] {
            let opened = Opened::read("agent", None, result).unwrap();
            match (opened.choose("agent", wanted), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.map(|(method, _)| method), expected, "{result}"),
                (Err(failure), Err(says)) => assert!(failure.message.contains(says), "{}", failure.message),
                (found, _) => panic!("{result}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_session_is_the_one_that_was_asked_for() {
        let read = |asked, result| Opened::read("agent", asked, &result).map(|opened| opened.session);
        assert_eq!(read(None, json!({"sessionId": "s"})), Ok("s".to_owned()));
        assert_eq!(read(Some("s"), json!({})), Ok("s".to_owned()));
        assert_eq!(read(Some("s"), json!({"sessionId": "s"})), Ok("s".to_owned()));
        assert_eq!(read(Some("s"), json!({"sessionId": "t"})).unwrap_err().code, FailureCode::WrongState);
        for none in
            [json!({}), json!({"sessionId": 7}), json!({"sessionId": "a\nb"}), json!({"sessionId": "x".repeat(300)})]
        {
            assert_eq!(read(None, none).unwrap_err().code, FailureCode::HarnessIncompatible);
        }
    }
}
