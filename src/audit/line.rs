//! A record as a line of JSON, the same in the file and from the command.

use serde::Serialize;
use store::AuditRow;

/// Members in the order of the file.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    principal: Option<&'a str>,
    tenant: Option<&'a str>,
    address: Option<&'a str>,
    tool: &'a str,
    server: Option<&'a str>,
    path: Option<&'a str>,
    decision: &'a str,
    rule: Option<&'a str>,
    approval: Option<&'a str>,
    outcome: &'a str,
    duration_ms: i64,
    request_id: &'a str,
    count: i64,
}

/// The line of a record, without its end.
pub fn json_line(row: &AuditRow) -> String {
    let known = |name: &'_ str| !name.is_empty();
    let line = Line {
        time: humantime::format_rfc3339_micros(row.time).to_string(),
        principal: Some(row.principal.as_str()).filter(|name| known(name)),
        tenant: Some(row.tenant.as_str()).filter(|name| known(name)),
        address: row.address.as_deref(),
        tool: &row.tool,
        server: row.server.as_deref(),
        path: row.path.as_deref(),
        decision: &row.decision,
        rule: row.rule.as_deref(),
        approval: row.approval.as_deref(),
        outcome: &row.outcome,
        duration_ms: row.duration_ms,
        request_id: &row.request_id,
        count: row.count,
    };
    // A struct of texts and numbers always serialises.
    serde_json::to_string(&line).unwrap_or_default()
}
