//! `audit`: the record of calls, out of the store, for an operator.

use std::{
    io::{self, BufWriter, ErrorKind, Write},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use clap::Args;
use store::{AuditFilter, AuditRow, Console};

use super::{CommandError, block_on, checked_config, failed};
use crate::audit::json_line;

/// Calls that are read at once.
const PAGE: usize = 1000;

#[derive(Args)]
pub(super) struct Arguments {
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only calls since a time ("2026-03-01", "2026-03-01T12:00:00Z") or for so long ("2h", "7d")
    #[arg(long, value_name = "T", value_parser = since)]
    since: Option<SystemTime>,
    /// Only calls of one principal, e.g. "token:ana-agent"
    #[arg(long, value_name = "P")]
    principal: Option<String>,
    /// Only calls on one path, or URI of a resource, as they named it
    #[arg(long, value_name = "P")]
    path: Option<String>,
    /// Print JSON lines, as in `audit.file`
    #[arg(long)]
    json: bool,
}

/// Reads a time, or a duration before now.
fn since(text: &str) -> Result<SystemTime, String> {
    let text = text.trim();
    let days = |date: &str| humantime::parse_rfc3339_weak(&format!("{date} 00:00:00"));
    let time = humantime::parse_rfc3339_weak(text).or_else(|_| days(text));
    let ago = |duration: Duration| SystemTime::now().checked_sub(duration);
    time.ok()
        .or_else(|| humantime::parse_duration(text).ok().and_then(ago))
        .ok_or_else(|| {
            "expected a date, a time such as 2026-03-01T12:00:00Z, or a duration such as 2h or 7d".to_owned()
        })
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let config = checked_config(arguments.config.as_deref())?;
    block_on(async {
        let console = Console::open(config.store.url.expose()).await;
        let console = console.map_err(|error| failed(&error))?;
        let printed = print(&console, arguments).await;
        console.close().await;
        printed
    })?
}

/// Prints the calls page by page, the newest first.
async fn print(console: &Console, arguments: &Arguments) -> Result<(), CommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut filter = AuditFilter {
        since: arguments.since,
        principal: arguments.principal.clone(),
        path: arguments.path.clone(),
        limit: PAGE,
        ..AuditFilter::default()
    };
    loop {
        let page = console.audit(&filter).await.map_err(|error| failed(&error))?;
        let lines = page.rows.iter().map(|row| match arguments.json {
            true => json_line(row),
            false => text_line(row),
        });
        let mut written = lines.map(|line| writeln!(out, "{line}")).find(Result::is_err);
        if page.next.is_none() && written.is_none() {
            written = Some(out.flush());
        }
        match written {
            // Whoever reads has seen enough.
            Some(Err(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Some(Err(error)) => return Err(CommandError::Failed(format!("cannot print: {error}"))),
            Some(Ok(())) | None => {}
        }
        match page.next {
            Some(next) => filter.before = Some(next),
            None => return Ok(()),
        }
    }
}

/// A row for people: what is not known is left out.
fn text_line(row: &AuditRow) -> String {
    let named = |name: &str| match name.is_empty() {
        true => "-".to_owned(),
        false => plain(name),
    };
    let mut words = vec![
        humantime::format_rfc3339_seconds(row.time).to_string(),
        row.decision.clone(),
        row.outcome.clone(),
        named(&row.principal),
        plain(&row.tool),
    ];
    let more = [
        ("server", row.server.as_deref()),
        ("path", row.path.as_deref()),
        ("rule", row.rule.as_deref()),
        ("approval", row.approval.as_deref()),
        ("tenant", Some(row.tenant.as_str())),
        ("from", row.address.as_deref()),
        ("request", Some(row.request_id.as_str())),
    ];
    let known = more
        .iter()
        .filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    words.extend(known.map(|(name, value)| format!("{name}={}", plain(value))));
    words.push(format!("{}ms", row.duration_ms));
    if row.count != 1 {
        words.push(format!("{} times", row.count));
    }
    words.join(" ")
}

/// A name on its line, whatever a caller put into it: terminals obey what is in a line.
fn plain(name: &str) -> String {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && c != '"';
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("{name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn times_and_durations_are_read() {
        let day = UNIX_EPOCH + Duration::from_secs(19_000 * 24 * 3600);
        assert_eq!(since("2022-01-08"), Ok(day));
        assert_eq!(since("2022-01-08T00:00:01Z"), Ok(day + Duration::from_secs(1)));
        let ago = SystemTime::now().duration_since(since("2h").unwrap()).unwrap();
        assert!((7200 - 60..=7200 + 600).contains(&ago.as_secs()), "{ago:?}");
        for bad in ["", "yesterday", "2022-13-01", "-1h", "99999999999999y"] {
            assert!(since(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_a_caller_named_stays_on_its_line() {
        let row = AuditRow {
            time: UNIX_EPOCH,
            principal: String::new(),
            tenant: String::new(),
            address: Some("::1".into()),
            tool: "x\u{1b}[2J".into(),
            server: None,
            path: Some("a b\n.ipynb".into()),
            decision: "deny".into(),
            rule: Some("unknown".into()),
            approval: None,
            outcome: "failed".into(),
            duration_ms: 3,
            request_id: "r".into(),
            count: 1,
        };
        assert_eq!(
            text_line(&row),
            "1970-01-01T00:00:00Z deny failed - \"x\\u{1b}[2J\" path=\"a b\\n.ipynb\" rule=unknown from=::1 request=r 3ms"
        );
        let several = AuditRow { count: 4990, ..row };
        assert!(text_line(&several).ends_with(" request=r 3ms 4990 times"));
    }
}
