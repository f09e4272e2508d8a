//! What is told of a session of an agent whose model its configuration chooses.

use pactify_core::harness::kimi::Kimi;
use pactify_core::harness::opencode::Opencode;
use pactify_core::harness::{Harness, Step};
use pactify_core::job::access::Access;
use pactify_core::job::event::Known;
use serde_json::json;

use crate::asked::Asked;

#[test]
fn a_model_that_is_another_than_the_one_that_was_asked_for_is_told() {
    for harness in [&Kimi as &dyn Harness, &Opencode] {
        for (wanted, actual, told) in [
            (Some("x/big"), "x/big", None),
            (Some("x/big"), "x/small", Some("x/big was asked for")),
            (None, "x/small", None),
        ] {
            let asked = Asked { model: wanted, ..Asked::of(harness.name().as_str(), "") };
            let mut driver = harness.driver(&asked.request(), Access::Write);
            driver.on_start();
            let capabilities = json!({"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {}}});
            let session = json!({"id": 2, "result": {"sessionId": "s", "configOptions": [
                {"id": "model", "category": "model", "currentValue": actual, "options": []}]}});
            driver.on_line(&capabilities.to_string());
            let steps = driver.on_line(&session.to_string());
            let recorded = |step: &Step| match step {
                Step::Record(Known::SessionStarted { model, .. }) => model.clone(),
                _ => None,
            };
            assert_eq!(steps.iter().find_map(recorded).as_deref(), Some(actual), "what it uses is recorded");
            let notice = steps.iter().find_map(|step| match step {
                Step::Record(Known::Notice { id, text }) if id == "model-differs" => Some(text),
                _ => None,
            });
            assert_eq!(notice.is_some(), told.is_some(), "{wanted:?} {actual}: {steps:?}");
            assert!(notice.is_none_or(|text| text.contains(told.unwrap_or_default()) && text.contains(actual)));
        }
    }
}
