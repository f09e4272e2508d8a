//! Whether somebody is logged in, from what can be seen without asking a provider.

use pactify_core::config::Settings;
use pactify_core::harness::codex::Codex;
use pactify_core::harness::kimi::Kimi;
use pactify_core::harness::opencode::Opencode;
use pactify_core::harness::{Harness, HarnessSettings, LoginWorth, SeenLogins, registry};

use super::plan::file;

const GATEWAY: &str = "[harnesses.codex.config]\nmodel_provider = \"g\"\n[harnesses.codex.config.model_providers.g]\n\
                       env_key = \"GATEWAY_KEY\"\n";
const OPEN: &str = "[harnesses.codex.config]\nmodel_provider = \"g\"\n[harnesses.codex.config.model_providers.g]\n\
                    base_url = \"http://127.0.0.1:1/v1\"\n";
const OAUTH: &str = "[providers.\"managed:kimi-code\"]\noauth = { key = \"oauth/kimi-code\" }\n";
const KEYED: &str = "[harnesses.opencode.config.provider.g]\noptions = { apiKey = \"{env:GATEWAY_KEY}\" }\n";
const BEDROCK: &str = "[harnesses.opencode.config]\nmodel = \"amazon-bedrock/claude\"\n";
const LOCAL: &str = "[harnesses.opencode.config.provider.g]\noptions = { baseURL = \"http://127.0.0.1:1\" }\n";

/// Only kimi knows whether it needs a key.
const KIMIS: &str = "[harnesses.kimi.config.providers.x]\nbase_url = \"http://127.0.0.1:1\"\n";

/// A harness, pactify's configuration, the harness's own, what its logins are worth, which variables are set; and what
/// follows.
type Case<'a> = (&'a dyn Harness, &'a str, &'a str, &'a [LoginWorth], &'a [&'a str], Option<bool>);

#[test]
fn a_login_is_seen_where_its_harness_looks_for_one() {
    use LoginWorth::{Good, Tombstone, Unknown};
    let agy = registry::built_in(&"agy".parse().unwrap()).unwrap();
    let (yes, no, unknown) = (Some(true), Some(false), None);
    let both = format!("{KEYED}{}", LOCAL.replace(".g]", ".local]"));
    let cases: [Case<'_>; 33] = [
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
        (&Kimi, "", "", &[], &["KIMI_MODEL_BASE_URL"], unknown),
        (&Kimi, "", "", &[], &["OPENAI_API_KEY"], no),
        (&Kimi, KIMIS, "", &[], &[], unknown),
        (&Kimi, KIMIS, "", &[Good], &[], yes),
        (&Kimi, "", "no TOML", &[], &[], unknown),
        (&Kimi, "", "no TOML", &[Good], &[], yes),
        (&Opencode, "", "", &[], &[], no),
        (&Opencode, "", "", &[Good], &[], yes),
        (&Opencode, "", "", &[], &["ANTHROPIC_API_KEY"], yes),
        (&Opencode, KEYED, "", &[], &["GATEWAY_KEY"], yes),
        (&Opencode, KEYED, "", &[Tombstone], &[], no),
        (&Opencode, LOCAL, "", &[], &[], unknown),
        (&Opencode, &both, "", &[], &[], unknown),
        (&Opencode, "harnesses.opencode.config.model = \"opencode/free\"", "", &[], &[], unknown),
        (&Opencode, "harnesses.opencode.config.enabled_providers = [\"opencode\"]", "", &[], &[], unknown),
        (&Opencode, "harnesses.opencode.environment = [\"AWS_PROFILE\"]", "", &[], &["AWS_PROFILE"], unknown),
        (&Opencode, "harnesses.opencode.environment = [\"AWS_PROFILE\"]", "", &[], &[], no),
        (&Opencode, "", "", &[], &["AWS_SECRET_ACCESS_KEY"], no),
        (&Opencode, BEDROCK, "", &[], &["AWS_SECRET_ACCESS_KEY"], yes),
        // A keyring may have it.
        (&*agy, "", "", &[], &[], unknown),
        (&*agy, "", "", &[], &["GEMINI_API_KEY"], yes),
    ];
    for (harness, configuration, own, worth, set, expected) in cases {
        let settings = Settings::parse(configuration).unwrap().harness_settings(&harness.name());
        let is_set = |name: &str| set.contains(&name);
        let own_files = [file("config.toml", own)];
        let (model, version) = (settings.model.as_deref(), Some("1.18.33"));
        let seen = SeenLogins { worth, person_files: &own_files, settings: &settings, model, version, is_set: &is_set };
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
        let version = Some("1.18.33");
        let seen = SeenLogins { worth, person_files: &[], settings: &settings, model: None, version, is_set: &is_set };
        assert_eq!(harness.lacks_login(&seen), expected, "{} {configuration:?} {worth:?} {set:?}", harness.name());
    }
}

#[test]
fn of_opencode_a_login_is_missed_only_where_its_version_and_the_job_s_model_want_one() {
    let settings = HarnessSettings { model: Some("gateway/big".to_owned()), ..HarnessSettings::default() };
    for (model, version, expected) in [
        ("gateway/big", Some("1.18.33"), true),
        // The settings' model is not the job's.
        ("opencode/free", Some("1.18.33"), false),
        ("gateway/big", Some("2.0.26"), false),
        ("gateway/big", Some("0.0.0-dev"), false),
        ("gateway/big", None, false),
    ] {
        let (model, is_set) = (Some(model), |_: &str| false);
        let seen = SeenLogins { worth: &[], person_files: &[], settings: &settings, model, version, is_set: &is_set };
        assert_eq!(Opencode.lacks_login(&seen), expected, "{model:?} {version:?}");
    }
}
