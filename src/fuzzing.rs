//! Entry points for input that comes from elsewhere, for the fuzz targets of `fuzz/` and, for a moment, for property tests.
//! Only there in builds for these.

use crate::{
    auth::{ApprovalRules, PathRules, oauth},
    config::{Config, Env, base_url},
    events, resources,
    types::code_pattern,
};

pub use crate::mcp::fuzzing::{json_rpc, request};

/// The id of an event, as clients send it to resume a stream.
pub fn event_id(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        events::fuzzing::event_id(text);
    }
}

/// The URI of a resource.
pub fn resource(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        resources::fuzzing::address(text);
    }
}

/// What strangers send in a browser login: a query or a form, a registration, a document about a client.
pub fn oauth(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        oauth::fuzzing::parameters(text);
    }
    oauth::fuzzing::client(data);
}

/// A config, the rules and URLs in it included.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = base_url(text);
    let _ = code_pattern(text);
    let _ = PathRules::new(&[text.to_owned()]);
    if let Ok(config) = Config::from_toml(text, "fuzz.toml", &Env::new()) {
        for tenant in &config.tenants {
            // What was accepted can be used.
            assert!(PathRules::new(&tenant.paths).is_ok() && ApprovalRules::new(&tenant.approvals).is_ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use proptest::prelude::*;

    type Target = fn(&[u8]);

    #[test]
    fn what_was_found_before_is_no_panic() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
        let targets: [(&str, Target); 6] = [
            ("json_rpc", super::json_rpc),
            ("request", super::request),
            ("event_id", super::event_id),
            ("resource", super::resource),
            ("oauth", super::oauth),
            ("config", super::config),
        ];
        for (target, run) in targets {
            for seed in fs::read_dir(seeds.join(target)).unwrap() {
                run(&fs::read(seed.unwrap().path()).unwrap());
            }
        }
    }

    proptest! {
        #[test]
        fn no_event_id_is_a_panic(text in "[0-9a-fA-F+-]{0,40}-?[0-9+-]{0,24}|\\PC{0,20}") {
            super::event_id(text.as_bytes());
        }

        #[test]
        fn no_uri_is_a_panic(text in "(notebook://|file:///|documents/|notebooks/|skill://|cells|/|%[0-9a-zA-Z]{0,2}|\\.\\.|diff|outputs|[0-9]{1,22}|\\PC){0,16}") {
            super::resource(text.as_bytes());
        }

        #[test]
        fn no_login_is_a_panic(
            form in "((redirect_uri|scope|code_challenge|code_verifier|refresh_token|ticket|decision|state)=(https?%3A|://|127\\.0\\.0\\.1|app\\.example\\.org|:[0-9]{1,5}|/cb|#|@|jmgr_|\\.|jupyter%3A|read|%[0-9a-fA-F]{2}|\\PC){0,8}&){0,6}",
            member in "(client_name|client_id|redirect_uris|grant_types|response_types|token_endpoint_auth_method)",
            value in "(\"[^\"\\\\]{0,16}\"|\\[(\"(https?://|app:|/)[^\"\\\\]{0,16}\")?\\]|null|[0-9]{1,3})",
        ) {
            super::oauth(form.as_bytes());
            super::oauth(format!("{{\"redirect_uris\": [\"http://localhost/cb\"], \"{member}\": {value}}}").as_bytes());
        }

        #[test]
        fn no_config_is_a_panic(rule in "(code|paths|tools|when) = (\"[^\"\\\\]{0,12}\"|'[^']{0,12}'|\\[\"[^\"\\\\]{0,6}\"\\])", text in "\\PC{0,40}") {
            super::config(text.as_bytes());
            super::config(format!("[[servers]]\nname = \"a\"\nurl = \"http://a/\"\n[[tenants]]\nname = \"t\"\n[[tenants.approvals]]\n{rule}\n").as_bytes());
        }
    }
}
