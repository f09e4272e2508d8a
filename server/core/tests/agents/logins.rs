//! Whether somebody is logged in, from what can be seen without asking a provider.

use pactify_core::config::Settings;
use pactify_core::harness::codex::Codex;
use pactify_core::harness::kimi::Kimi;
use pactify_core::harness::opencode::Opencode;
use pactify_core::harness::{Harness, LoginWorth, SeenLogins, registry};

use super::plan::file;

const GATEWAY: &str = "[harnesses.codex.config]\nmodel_provider = \"g\"\n[harnesses.codex.config.model_providers.g]\n\
                       env_key = \"GATEWAY_KEY\"\n";
const OPEN: &str = "[harnesses.codex.config]\nmodel_provider = \"g\"\n[harnesses.codex.config.model_providers.g]\n\
                    base_url = \"http://127.0.0.1:1/v1\"\n";
const OAUTH: &str = "[providers.\"managed:kimi-code\"]\noauth = { key = \"oauth/kimi-code\" }\n";
const KEYED: &str = "[harnesses.opencode.config.provider.g]\noptions = { apiKey = \"{env:GATEWAY_KEY}\" }\n";
const LOCAL: &str = "[harnesses.opencode.config.provider.g]\noptions = { baseURL = \"http://127.0.0.1:1\" }\n";

/// A harness, pactify's configuration, the harness's own, what its logins are worth, which variables are set; and what follows.
type Case<'a> = (&'a dyn Harness, &'a str, &'a str, &'a [LoginWorth], &'a [&'a str], Option<bool>);

#[test]
fn a_login_is_seen_where_its_harness_looks_for_one() {
    use LoginWorth::{Good, Tombstone, Unknown};
    let agy = registry::built_in(&"agy".parse().unwrap()).unwrap();
    let (yes, no, unknown) = (Some(true), Some(false), None);
    let cases: [Case<'_>; 21] = [
        // With a provider of the person's own; otherwise codex itself is asked.
        (&Codex, GATEWAY, "", &[], &["GATEWAY_KEY"], yes),
        (&Codex, GATEWAY, "", &[Good], &[], no),
        (&Codex, OPEN, "", &[], &[], unknown),
        (&Codex, "", "", &[Good], &["GATEWAY_KEY"], unknown),
        (&Kimi, "", "", &[], &[], no),
        (&Kimi, "", OAUTH, &[], &[], no),
        (&Kimi, "", OAUTH, &[Tombstone], &[], no),
        (&Kimi, "", OAUTH, &[Tombstone, Unknown], &[], yes),
        (&Kimi, "", OAUTH, &[Good], &[], yes),
        (&Kimi, "", "[providers.x]\napi_key = \"k\"", &[], &[], yes),
        (&Kimi, "", "[providers.x]\nbase_url = \"http://127.0.0.1:1\"", &[], &[], unknown),
        (&Kimi, "", "", &[], &["KIMI_MODEL_API_KEY"], yes),
        (&Kimi, "", "", &[], &["OPENAI_API_KEY"], no),
        (&Opencode, "", "", &[], &[], no),
        (&Opencode, "", "", &[Good], &[], yes),
        (&Opencode, "", "", &[], &["ANTHROPIC_API_KEY"], yes),
        (&Opencode, KEYED, "", &[], &["GATEWAY_KEY"], yes),
        (&Opencode, KEYED, "", &[Tombstone], &[], no),
        (&Opencode, LOCAL, "", &[], &[], unknown),
        // A keyring may have it.
        (&*agy, "", "", &[], &[], unknown),
        (&*agy, "", "", &[], &["GEMINI_API_KEY"], yes),
    ];
    for (harness, configuration, own, worth, set, expected) in cases {
        let settings = Settings::parse(configuration).unwrap().harness_settings(&harness.name());
        let is_set = |name: &str| set.contains(&name);
        let own_files = [file("config.toml", own)];
        let seen = SeenLogins { worth, person_files: &own_files, settings: &settings, is_set: &is_set };
        let name = harness.name();
        assert_eq!(harness.is_logged_in(&seen), expected, "{name} {configuration:?} {own:?} {worth:?} {set:?}");
    }
}

/// A harness, pactify's configuration, what its logins are worth, which variables are set; and whether a job lacks one.
type Lack<'a> = (&'a dyn Harness, &'a str, &'a [LoginWorth], &'a [&'a str], bool);

#[test]
fn a_job_lacks_a_login_where_it_could_only_work_with_one() {
    use LoginWorth::{Good, Tombstone};
    let cases: [Lack<'_>; 8] = [
        (&Codex, "", &[], &[], true),
        (&Codex, "", &[Tombstone], &[], true),
        (&Codex, "", &[Good], &[], false),
        (&Codex, "", &[], &["CODEX_API_KEY"], false),
        // What its provider lacks is no login.
        (&Codex, GATEWAY, &[], &[], false),
        (&Codex, OPEN, &[], &[], false),
        (&Opencode, "", &[], &[], true),
        (&Opencode, LOCAL, &[], &[], false),
    ];
    for (harness, configuration, worth, set, expected) in cases {
        let settings = Settings::parse(configuration).unwrap().harness_settings(&harness.name());
        let is_set = |name: &str| set.contains(&name);
        let seen = SeenLogins { worth, person_files: &[], settings: &settings, is_set: &is_set };
        assert_eq!(harness.lacks_login(&seen), expected, "{} {configuration:?} {worth:?} {set:?}", harness.name());
    }
}
