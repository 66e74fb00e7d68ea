//! Owns how one value is read into its type. Knows nothing of keys; messages about values that may
//! hold a secret (tokens, hashes) do not repeat them.

use std::path::PathBuf;
use std::time::Duration;

use globset::GlobBuilder;
use jupyter_client::Secret;
use toml::Value;

use super::access::{ApprovalBy, ApprovalWhen, Review};
use super::error::Why;
use super::model::{LogFormat, OtlpProtocol};
use super::node::Node;
use crate::types::{Permission, Toolset};

pub(super) type Parsed<T> = Result<T, Why>;

pub(super) fn string(node: &Node) -> Parsed<String> {
    text(node, "a string").map(str::to_owned)
}

pub(super) fn non_empty(node: &Node) -> Parsed<String> {
    let value = string(node)?;
    if value.is_empty() {
        return Err(Why::Empty);
    }
    Ok(value)
}

pub(super) fn flag(node: &Node) -> Parsed<bool> {
    match node {
        Node::Scalar(Value::Boolean(value)) => Ok(*value),
        Node::Text(value) => value
            .trim()
            .to_ascii_lowercase()
            .parse()
            .map_err(|_| bad(value, "a boolean", "expected true or false")),
        other => Err(wrong_type("a boolean", other)),
    }
}

pub(super) fn integer(node: &Node) -> Parsed<i64> {
    match node {
        Node::Scalar(Value::Integer(value)) => Ok(*value),
        Node::Text(value) => value
            .trim()
            .replace('_', "")
            .parse()
            .map_err(|_| bad(value, "an integer", "expected digits such as 1000")),
        other => Err(wrong_type("an integer", other)),
    }
}

/// The elements of a list, which the environment gives as a TOML array or separated by commas.
pub(super) fn items(node: Node) -> Parsed<Vec<Node>> {
    const HINT: &str = "not a list; expected values separated by commas, or a TOML array";
    match node {
        Node::Array(items) => Ok(items),
        Node::Text(list) if list.trim_start().starts_with('[') => match list.trim().parse::<Value>().map(Node::from) {
            Ok(Node::Array(items)) => Ok(items),
            _ => Err(Why::BadHidden(HINT)),
        },
        Node::Text(list) => {
            let items = list.split(',').map(str::trim).filter(|s| !s.is_empty());
            Ok(items.map(|item| Node::Text(item.to_owned())).collect())
        }
        other => Err(wrong_type("a list", &other)),
    }
}

pub(super) fn duration(node: &Node) -> Parsed<Duration> {
    const HINT: &str = "expected a number and a unit such as \"30s\", \"5m\" or \"1h\"";
    // Anything longer is a slip, and sums of it with the clock could overflow.
    const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
    let value = text(node, "a duration such as \"5m\"")?;
    let parsed = humantime::parse_duration(value).map_err(|_| bad(value, "a duration", HINT))?;
    if parsed.is_zero() || parsed > LONGEST {
        let hint = "it must be more than zero and at most a year";
        return Err(bad(value, "a usable duration", hint));
    }
    Ok(parsed)
}

pub(super) fn glob(node: &Node) -> Parsed<String> {
    let value = non_empty(node)?;
    let pattern = value.strip_prefix('!').unwrap_or(&value);
    if pattern.is_empty() {
        return Err(Why::Empty);
    }
    let built = GlobBuilder::new(pattern).literal_separator(true).build();
    match built {
        Ok(_) => Ok(value),
        Err(error) => {
            let cause = error.kind().to_string();
            Err(Why::BadGlob { value, cause })
        }
    }
}

pub(super) fn permission(node: &Node) -> Parsed<Permission> {
    let value = text(node, "a string")?;
    Permission::parse(value).ok_or_else(|| not_one_of(value, "a permission", Permission::ALL.map(Permission::as_str)))
}

pub(super) fn log_format(node: &Node) -> Parsed<LogFormat> {
    match text(node, "a string")? {
        "auto" => Ok(LogFormat::Auto),
        "pretty" => Ok(LogFormat::Pretty),
        "json" => Ok(LogFormat::Json),
        other => Err(not_one_of(other, "a log format", ["auto", "pretty", "json"])),
    }
}

pub(super) fn otlp_protocol(node: &Node) -> Parsed<OtlpProtocol> {
    let value = text(node, "a string")?;
    OtlpProtocol::parse(value).ok_or_else(|| not_one_of(value, "a protocol of OpenTelemetry", OtlpProtocol::NAMES))
}

pub(super) fn review(node: &Node) -> Parsed<Review> {
    match text(node, "a string")? {
        "off" => Ok(Review::Off),
        "required" => Ok(Review::Required),
        other => Err(not_one_of(other, "a kind of review", ["off", "required"])),
    }
}

/// A regular expression on code.
pub(super) fn code_pattern(node: &Node) -> Parsed<String> {
    let value = non_empty(node)?;
    match crate::types::code_pattern(&value) {
        Ok(_) => Ok(value),
        Err(error) => {
            // The lines before the last one show the expression.
            let told = error.to_string();
            let cause = told.lines().last().unwrap_or_default();
            let cause = cause.trim_start_matches("error: ").to_owned();
            Err(Why::BadPattern { value, cause })
        }
    }
}

pub(super) fn approval_when(node: &Node) -> Parsed<ApprovalWhen> {
    match text(node, "a string")? {
        "person_present" => Ok(ApprovalWhen::PersonPresent),
        other => Err(not_one_of(other, "a condition", ["person_present"])),
    }
}

pub(super) fn approval_by(node: &Node) -> Parsed<ApprovalBy> {
    match text(node, "a string")? {
        "client" => Ok(ApprovalBy::Client),
        "others" => Ok(ApprovalBy::Others),
        other => Err(not_one_of(other, "somebody who decides", ["client", "others"])),
    }
}

pub(super) fn toolset(node: &Node) -> Parsed<String> {
    let value = string(node)?;
    if Toolset::parse_list([value.as_str()]).is_ok_and(|named| !named.is_empty()) {
        return Ok(value);
    }
    let names = Toolset::ALL.map(Toolset::as_str);
    Err(not_one_of(
        &value,
        "a toolset",
        names.into_iter().chain(["all", "default"]),
    ))
}

/// Directives of tracing's `EnvFilter`. A lone word that is no level would be taken for a target
/// there and silence everything else, so it is refused.
pub(super) fn log_level(node: &Node) -> Parsed<String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let value = string(node)?;
    let is_level = |word: &str| LEVELS.contains(&word.to_ascii_lowercase().as_str());
    let good = |directive: &str| {
        let directive = directive.trim();
        let level = directive.rsplit('=').next().unwrap_or(directive);
        is_level(level) && !directive.starts_with('=')
    };
    if value.contains('[') || value.split(',').all(good) {
        return Ok(value);
    }
    let hint = "expected a level (off, error, warn, info, debug, trace) or a list such as \"info,hyper=warn\"";
    Err(bad(&value, "a log level", hint))
}

pub(super) fn secret(node: &Node) -> Parsed<Secret> {
    string(node).map(Secret::new)
}

/// A bearer token in the open, for development.
pub(super) fn bearer(node: &Node) -> Parsed<Secret> {
    let token = sendable(node)?;
    if token.expose().len() < 8 {
        return Err(Why::BadHidden("too short; expected at least 8 characters"));
    }
    Ok(token)
}

/// A secret to sign tokens with: whoever guesses it may be anybody.
pub(super) fn hmac_secret(node: &Node) -> Parsed<Secret> {
    let secret = secret(node)?;
    if secret.expose().len() < 32 {
        return Err(Why::BadHidden("too short; expected at least 32 characters"));
    }
    Ok(secret)
}

/// A token that fits into an HTTP header.
pub(super) fn sendable(node: &Node) -> Parsed<Secret> {
    let token = secret(node)?;
    if !token.expose().chars().all(|c| c.is_ascii_graphic()) {
        let why = "a token must not contain spaces, control characters or non-ASCII characters";
        return Err(Why::BadHidden(why));
    }
    Ok(token)
}

pub(super) fn sha256(node: &Node) -> Parsed<String> {
    let value = text(node, "a string")?;
    let digits = value.strip_prefix("sha256:").unwrap_or(value);
    if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        let why = "not a SHA-256 hash; expected 64 hexadecimal digits as `token new` prints them";
        return Err(Why::BadHidden(why));
    }
    Ok(digits.to_ascii_lowercase())
}

/// The name of an environment variable; a token that was put here by mistake is not repeated.
pub(super) fn variable(node: &Node) -> Parsed<String> {
    let value = non_empty(node)?;
    let word = value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !word || value.starts_with(|c: char| c.is_ascii_digit()) {
        let why = "not the name of an environment variable; expected one such as \"LAB_A_TOKEN\"";
        return Err(Why::BadHidden(why));
    }
    Ok(value)
}

pub(super) fn path(node: &Node) -> Parsed<PathBuf> {
    non_empty(node).map(PathBuf::from)
}

pub(super) fn text<'a>(node: &'a Node, expected: &'static str) -> Parsed<&'a str> {
    node.text().ok_or_else(|| wrong_type(expected, node))
}

fn wrong_type(expected: &'static str, node: &Node) -> Why {
    let found = node.kind();
    Why::WrongType { expected, found }
}

pub(super) fn bad(value: &str, what: &'static str, hint: &'static str) -> Why {
    let value = value.to_owned();
    Why::BadValue { value, what, hint }
}

fn not_one_of(value: &str, what: &'static str, allowed: impl IntoIterator<Item = &'static str>) -> Why {
    let value = value.to_owned();
    let allowed = allowed.into_iter().collect();
    Why::NotOneOf { value, what, allowed }
}
