//! Tests of the module through its public face.

mod changes;
mod default_file;
mod environment;
mod messages;
mod oauth;
mod robustness;
mod secrets;
mod values;

use super::load::Env;
use super::{Config, ConfigError, Problem};

fn env(pairs: &[(&str, &str)]) -> Env {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn parse(text: &str, pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::from_toml(text, "gateway.toml", &env(pairs))
}

fn load(text: &str) -> Config {
    load_with(text, &[])
}

fn load_with(text: &str, pairs: &[(&str, &str)]) -> Config {
    match parse(text, pairs) {
        Ok(config) => config,
        Err(error) => panic!("refused:\n{error}"),
    }
}

fn refusal(text: &str, pairs: &[(&str, &str)]) -> String {
    match parse(text, pairs) {
        Ok(_) => panic!("accepted: {text:?} with {pairs:?}"),
        Err(error) => error.to_string(),
    }
}

fn problems(text: &str) -> Vec<Problem> {
    match parse(text, &[]) {
        Err(ConfigError::Invalid(problems)) => problems,
        other => panic!("expected problems, got {other:?}"),
    }
}
