//! Owns what can be wrong with a configuration and how it is said: `file: key: why`, one line each.
//! No message carries the value of a key that may hold a secret.

use std::fmt;

use thiserror::Error;

use crate::error::nearest;

/// Reason why a configuration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("{file}: cannot be read: {source}")]
    Unreadable { file: String, source: std::io::Error },
    #[error("{file}: line {line}, column {column}: {message}")]
    Syntax {
        file: String,
        line: usize,
        column: usize,
        message: String,
    },
    /// Everything that was found wrong, so that one run of `check-config` is enough.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self::Invalid(vec![problem])
    }
}

/// One thing that is wrong with one key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Problem {
    /// The file, or `env VARIABLE`, that set the key; unknown where only a `Config` is at hand.
    pub origin: Option<String>,
    pub key: String,
    pub why: Why,
}

impl Problem {
    pub fn new(key: impl Into<String>, why: Why) -> Self {
        let key = key.into();
        Self { origin: None, key, why }
    }

    /// Says where the key was set, for example `--listen`.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        write!(f, "{}: {}", self.key, self.why)
    }
}

/// Reason why a key is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Why {
    #[error("unknown key; allowed: {}{}", allowed.join(", "), did_you_mean(name, allowed))]
    UnknownKey { name: String, allowed: Vec<&'static str> },
    #[error("required but missing")]
    Missing,
    #[error("must not be empty")]
    Empty,
    #[error("expected {expected}, found {found}")]
    WrongType {
        expected: &'static str,
        found: &'static str,
    },
    #[error("{} is not {what}; {hint}", quote(value))]
    BadValue {
        value: String,
        what: &'static str,
        hint: &'static str,
    },
    /// A bad value that is, or may contain, a secret.
    #[error("{0}")]
    BadHidden(&'static str),
    #[error("{} is not {what}; allowed: {}{}", quote(value), allowed.join(", "), did_you_mean(value, allowed))]
    NotOneOf {
        value: String,
        what: &'static str,
        allowed: Vec<&'static str>,
    },
    #[error("{} is not a glob: {cause}", quote(value))]
    BadGlob { value: String, cause: String },
    #[error("{} is not a regular expression: {cause}", quote(value))]
    BadPattern { value: String, cause: String },
    #[error("{value} is out of range; allowed: {min} to {max}")]
    OutOfRange { value: i64, min: i64, max: i64 },
    #[error("{} is taken by {first}", quote(value))]
    Duplicate { value: String, first: String },
    #[error("the same bearer token as {first}")]
    SameToken { first: String },
    #[error("{} is not a configured {kind}; configured: {}", quote(value), names(known))]
    Dangling {
        value: String,
        kind: &'static str,
        known: Vec<String>,
    },
    #[error("only one of {} may be set", .0.join(", "))]
    OnlyOneOf(&'static [&'static str]),
    #[error("needs {} too", .0)]
    NeedsToo(&'static str),
    #[error("one of {} is required", .0.join(", "))]
    OneOfRequired(&'static [&'static str]),
    #[error("also set by {other}; names of variables are case-insensitive")]
    SetTwice { other: String },
    #[error("entry {index} does not follow the {len} that exist")]
    IndexGap { index: usize, len: usize },
    #[error("environment variable {variable} is not set")]
    VariableUnset { variable: String },
    #[error("cannot read {path}: {cause}")]
    UnreadableFile { path: String, cause: String },
    #[error(
        "{listen} can be reached from other machines, but nobody would have to log in; add \
         [[auth.tokens]] (see `token new`), [auth.jwt], [auth.jupyterhub] or auth.jupyter.enabled = \
         true, or listen on 127.0.0.1"
    )]
    Exposed { listen: String },
}

/// A key as it is written in TOML, so that a message stays on one line whatever the key is.
pub(super) fn key_name(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        quote(name)
    }
}

fn quote(value: &str) -> String {
    const LONGEST: usize = 80;
    match value.char_indices().nth(LONGEST) {
        None => format!("{value:?}"),
        Some((end, _)) => format!("{:?}...", &value[..end]),
    }
}

fn names(known: &[String]) -> String {
    if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    }
}

fn did_you_mean(given: &str, allowed: &[&str]) -> String {
    match nearest(given, allowed.iter().copied()) {
        Some(word) => format!("; did you mean `{word}`?"),
        None => String::new(),
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}
