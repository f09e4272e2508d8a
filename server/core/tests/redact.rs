//! What is taken out of text before it is recorded, and what is left alone.

use std::borrow::Cow;

use pactify_core::redact::{REDACTED, Redactor, secrets_in};
use proptest::prelude::*;
use serde_json::Value;

/// Places where a secret turns up; `@` stands for it.
const PLACES: &[&str] = &[
    "OPENAI_API_KEY=@",
    "export GITHUB_TOKEN=\"@\"",
    "AWS_SECRET_ACCESS_KEY='@' make",
    "DB_PASSWORD_PROD=@ ./run",
    "https://user:@@example.com/x.git",
    "postgres://app:@@localhost:5432/db",
    "GET /v1?access_token=@&x=1",
    "Authorization: Bearer @",
    "curl -H 'authorization: token @' https://api",
    "{\"Authorization\": \"Basic @\"}",
    "bearer @",
    "Set-Cookie: session=@; HttpOnly",
    "\"api_key\": \"@\"",
    "password: '@'",
    "client_secret => \"@\"",
    "token := \"@\"",
    "--password=@",
    "deploy --auth-token @",
    "curl -s -u admin:@ https://h",
    "{\\\"refresh_token\\\": \\\"@\\\"}",
];

#[test]
fn known_shapes_go_wherever_they_stand() {
    let b64 = "MIIEpAIBAAKCAQEA7bq0";
    let pem = format!("-----BEGIN RSA PRIVATE KEY-----\n{b64}\n{b64}==\n-----END RSA PRIVATE KEY-----");
    for (text, secret) in [
        ("ghp_abcdefghijklmnopqrstuvwxyz012345", "ghp_"),
        ("see github_pat_11ABCDEFG0abcdefghijkl_mnop in log", "11ABCDEFG0"),
        ("glpat-abcdefghij0123456789", "glpat-"),
        ("é password: \"schlüssel€7\" ü", "schlüssel€7"),
        ("PASSWORD=ñandú€ und weiter", "ñandú€"),
        ("curl --silent héhé -u jörg:ßecret€ https://x", "ßecret€"),
        ("xoxb-123456789012-abcdefghij", "xoxb-"),
        ("id AKIAIOSFODNN7EXAMPLE here", "AKIA"),
        ("AIzaSyA-0123456789abcdefghijklmnopqrstu", "AIza"),
        ("sk-proj-abcDEF0123456789abcd", "sk-proj"),
        ("sk-ant-api03-abcDEF0123456789", "sk-ant"),
        ("sk_live_abcdefghijklmnop1234", "sk_live"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJ"),
        ("https://0123456789abcdef0123@host/x", "0123456789abcdef0123"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1a2b", "wJalr"),
        (&pem, b64),
        (&Value::from(pem.as_str()).to_string(), b64),
        (&pem[..60], b64),
    ] {
        assert!(text.contains(secret));
        let clean = Redactor::default().redact(text).into_owned();
        assert!(!clean.contains(secret) && clean.contains(REDACTED), "{clean}");
    }
}

/// What the redaction of a peer missed (its issue list: JSON `"token"`, keys of known services, a cloud's secret key,
/// PEM, quoted passwords with blanks), each as it was found and as a harness's stream has it: inside JSON, and JSON in
/// JSON.
#[test]
fn what_others_missed_goes_in_every_nesting() {
    let pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nQyNTUxOQAAACBaaaa==\n-----END OPENSSH PRIVATE KEY-----";
    for (text, secrets) in [
        (r#"{"token":"q7Rt2Lw9Zx4Vb6"}"#, &["q7Rt2Lw9Zx4Vb6"][..]),
        (r#"{"access_token" : "q7Rt2Lw9Zx4Vb6", "n": 1}"#, &["q7Rt2Lw9Zx4Vb6"]),
        ("key sk-ant-api03-AbCdEfGhIjKlMnOpQrStUv-0123456789 used", &["sk-ant-api03", "0123456789"]),
        ("remote: ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", &["ghp_AbCd"]),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", &["wJalrX", "EXAMPLEKEY"]),
        ("export AWS_SECRET_ACCESS_KEY='wJalrXUtnFEMI/K7MDENG'", &["wJalrX"]),
        (pem, &["b3BlbnNzaC1rZXktdjE", "QyNTUxOQAAACB"]),
        ("DB_PASSWORD=\"correct horse battery\"", &["correct", "horse", "battery"]),
        ("PASSWORD='two words'", &["two words"]),
        (r#"password: "correct-horse-7-battery""#, &["correct", "battery"]),
    ] {
        let mut nested = text.to_owned();
        for depth in 0..3 {
            let clean = Redactor::default().redact(&nested).into_owned();
            for secret in secrets {
                assert!(!clean.contains(secret), "{depth}: {clean}");
            }
            assert!(clean.contains(REDACTED), "{clean}");
            nested = serde_json::json!({ "text": nested }).to_string();
        }
    }
}

#[test]
fn secrets_in_settings_are_found_by_their_names() {
    let settings = r#"
        model = "gpt-5.5"
        model_provider = "gateway"
        max_output_tokens = 100
        [model_providers.gateway]
        base_url = "https://llm.example.com/v1"
        env_key = "GATEWAY_KEY"
        bearer_token_env_var = "OTHER"
        experimental_bearer_token = "canary-one-1"
        http_headers = { Authorization = "Bearer canary-two-2", X-Tenant = "canary-three-3" }
        env_http_headers = { X-Api-Key = "NAME_OF_A_VARIABLE" }
        query_params = { "api-key" = "canary-four-4", "api-version" = "2026-01" }
        [provider.x.options]
        apiKey = "canary-five-5"
        signing_key = "canary-eight-8"
        [providers.gateway]
        custom_headers = { X-Team = "canary-seven-7" }
        [mcp.server.env]
        ANYTHING = "canary-six-6"
    "#;
    let mut found = secrets_in(&settings.parse().unwrap());
    found.sort();
    assert_eq!(
        found,
        [
            "Bearer canary-two-2",
            "canary-eight-8",
            "canary-five-5",
            "canary-four-4",
            "canary-one-1",
            "canary-seven-7",
            "canary-six-6",
            "canary-three-3",
            "canary-two-2",
        ]
    );
}

#[test]
fn ordinary_code_and_output_are_untouched() {
    for text in [
        "let token = lexer.next_token(); // the next token",
        "fn check(token: Token, password: &str) -> Result<Secret, Error>",
        "const TOKEN_KIND: &str = \"identifier\";",
        "\"usage\":{\"input_tokens\":240,\"cached_input_tokens\":40}",
        "{\"type\":\"thread.started\",\"thread_id\":\"01a22777-66e6-7ca0-b127-11670663e870\"}",
        "if key == other_key { secrets.push(secret) }",
        "token: \"whitespace\", password: \"required\"",
        "API_KEY=$API_KEY TOKEN=${TOKEN} SECRET=<your secret> PASSWORD=****",
        "env_key = \"GATEWAY_KEY\"",
        "headers: { Authorization: `Bearer ${token}` }",
        "authorization: Option<Credentials>,",
        "bearer authentication is required",
        "git clone https://github.com/owner/repo.git && ssh://git@github.com/owner/repo",
        "https://example.com/a/very/long/path?page=2&sort=desc@here",
        "proxy = \"http://{user}:{password}@{host}:{port}\"",
        "pip install sk-learn-contrib-extras",
        "commit 0c38d8a1f0e2d3c4b5a69788796a5b4c3d2e1f00",
        "password = read_password_from_terminal()?;",
        "let secret = compute_sha256_of_input(value);",
        "error: unexpected argument '--token' found",
        "docker run -u 1000:1000 image",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    ] {
        let clean = Redactor::default().redact(text);
        assert!(matches!(clean, Cow::Borrowed(_)), "{clean}");
    }
}

#[test]
fn values_that_were_let_through_go_in_every_spelling() {
    let value = "p\"a\\ss wörd/1";
    let redactor = Redactor::new([value.to_owned(), "short".to_owned()]);
    let once = Value::from(value).to_string();
    let twice = Value::from(once.as_str()).to_string();
    for text in [value, &once, &twice, "p%22a%5Css%20w%C3%B6rd%2F1"] {
        let clean = redactor.redact(text).into_owned();
        assert!(clean.contains(REDACTED) && !clean.contains("rd/1") && !clean.contains("rd%2F1"), "{clean}");
    }
    assert_eq!(redactor.redact("a short word"), "a short word");
    assert_eq!(format!("{redactor:?}"), "Redactor(4 spellings)");
}

#[test]
fn a_value_inside_another_one_does_not_save_its_rest() {
    let redactor = Redactor::new(["abc-def".to_owned(), "abc-def-and-the-rest".to_owned()]);
    assert_eq!(redactor.redact("x abc-def-and-the-rest y"), format!("x {REDACTED} y"));
}

#[test]
fn a_value_that_is_a_plain_word_does_not_garble_what_a_harness_says() {
    let redactor = Redactor::new(["message".to_owned(), "completed".to_owned(), "wordwordword".to_owned()]);
    let line = r#"{"type":"turn.completed","message":"message"}"#;
    assert_eq!(redactor.redact(line), line);
    assert_eq!(redactor.redact("a wordwordword"), format!("a {REDACTED}"), "a long one is no word by chance");
}

#[test]
fn a_secret_taken_out_of_a_value_leaves_no_other_one_in_it() {
    let line = "Set-Cookie: session=geheim; see https://user:hunter22@example.com/";
    let clean = Redactor::default().redact(line).into_owned();
    assert!(!clean.contains("geheim") && !clean.contains("hunter22"), "{clean}");
    assert_eq!(Redactor::default().redact(&clean), clean);
}

/// A secret of no known kind: letters of both cases and digits, well mixed.
fn canary() -> impl Strategy<Value = String> {
    "([a-z][0-9][A-Z]){4}[A-Za-z0-9]{4,24}"
}

proptest! {
    #[test]
    fn a_canary_never_survives(secret in canary(), place in 0..PLACES.len(), before in "[ -~]{0,20}", after in "[ -~]{0,20}") {
        let stands = PLACES[place].replacen('@', &secret, 1);
        let text = format!("{before} {stands} {after}");
        let clean = Redactor::default().redact(&text).into_owned();
        prop_assert!(!clean.contains(&secret), "{}", clean);
        let json = serde_json::json!({ "text": text }).to_string();
        let clean = Redactor::default().redact(&json).into_owned();
        prop_assert!(!clean.contains(&secret), "{}", clean);
    }

    #[test]
    fn a_value_never_survives(value in "\\PC{8,40}", before in "\\PC{0,20}", after in "\\PC{0,20}") {
        let value = value.trim().to_owned();
        prop_assume!(value.len() >= 8 && !REDACTED.contains(&value));
        prop_assume!(!value.bytes().all(|byte| byte.is_ascii_alphabetic()));
        let redactor = Redactor::new([value.clone()]);
        let text = format!("{before}{value}{after}");
        prop_assert!(!redactor.redact(&text).contains(&value));
        let json = serde_json::json!({ "text": text }).to_string();
        let inner = Value::from(value.as_str()).to_string();
        prop_assert!(!redactor.redact(&json).contains(&inner[1..inner.len() - 1]));
    }

    #[test]
    fn json_stays_json_and_twice_is_once(
        parts in prop::collection::vec(prop_oneof!["\\PC{0,12}", "[\"'\\\\\n:=@/ ]{0,6}", canary(), (0..PLACES.len()).prop_map(|n| PLACES[n].to_owned())], 0..12),
        depth in 0..3usize,
    ) {
        let mut json = serde_json::json!({ "text": parts.concat() }).to_string();
        for _ in 0..depth {
            json = serde_json::json!({ "inner": json }).to_string();
        }
        let clean = Redactor::default().redact(&json).into_owned();
        prop_assert!(serde_json::from_str::<Value>(&clean).is_ok(), "{}", clean);
        let again = Redactor::default().redact(&clean).into_owned();
        prop_assert_eq!(again, clean);
    }
}
