//! The record of calls, for admins: those of their own tenant.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use maud::{Markup, html};
use store::{AuditFilter, AuditRow};
use url::form_urlencoded;

use super::{
    Fields, Place, Reply,
    desk::{Desk, Failure, RECORDED_AS},
    document::link,
    layout::Frame,
    markup::{Tone, moment, nothing, state},
};
use crate::{error::ErrorKind, tools::ToolError, types::Permission};

/// Calls that are shown.
const MAX_ROWS: usize = 200;

pub(super) async fn page(desk: &Desk, asked: &Fields) -> Result<Reply, Failure> {
    let principal = &desk.visitor.principal;
    principal.require(Permission::Admin).map_err(ToolError::from)?;
    let filter = AuditFilter {
        tenant: Some(principal.tenant.name.clone()),
        principal: asked.given("principal").map(str::to_owned),
        path: asked.given("path").map(str::to_owned),
        is_denied: !asked.get("denied").is_empty(),
        // Looks at this page, for one, are of no interest to most who look; those that were denied are.
        without_allowed: asked.get("looks").is_empty().then(|| RECORDED_AS.to_owned()),
        before: asked.given("before").and_then(place),
        limit: MAX_ROWS,
        ..AuditFilter::default()
    };
    let found = desk.console.store.audit_page(&filter).await.map_err(|error| {
        tracing::warn!(%error, "the audit cannot be read");
        Failure::new(
            ErrorKind::Upstream,
            "the audit cannot be read at this moment; try again later.",
        )
    })?;
    let rows = found.rows;
    let frame = Frame {
        title: "Audit",
        current: "Audit",
        live: None,
        body: html! {
            div.head { h1 { "Audit" } span.quiet { "the latest calls of tenant " (principal.tenant.name) } }
            (filters(desk, asked))
            @if rows.is_empty() { (nothing("No such calls are recorded.")) } @else { (table(desk, &rows)) }
            @if let Some(next) = found.next { p.more { a href=(older(asked, next)) { "Older calls" } } }
        },
    };
    Ok(frame.show(desk))
}

/// The address of the calls that follow.
fn older(asked: &Fields, (time, entry): (SystemTime, i64)) -> String {
    let micros = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let mut query = form_urlencoded::Serializer::new(String::new());
    for name in ["principal", "path", "denied", "looks"] {
        if let Some(value) = asked.given(name) {
            query.append_pair(name, value);
        }
    }
    query.append_pair("before", &format!("{micros}.{entry}"));
    format!("audit?{}", query.finish())
}

/// Time and entry of a call in such an address.
fn place(before: &str) -> Option<(SystemTime, i64)> {
    let (micros, entry) = before.split_once('.')?;
    let time = UNIX_EPOCH.checked_add(Duration::from_micros(micros.parse().ok()?))?;
    Some((time, entry.parse().ok()?))
}

fn filters(desk: &Desk, asked: &Fields) -> Markup {
    html! {
        form.filters method="get" action={ (desk.root) "console/audit" } role="search" aria-label="Choose calls" {
            div { label for="principal" { "Caller" } input #principal name="principal" value=(asked.get("principal")) placeholder="token:ana" autocomplete="off" spellcheck="false"; }
            div { label for="path" { "Path" } input #path name="path" value=(asked.get("path")) autocomplete="off" spellcheck="false"; }
            label.choice for="denied" { input #denied type="checkbox" name="denied" value="yes" checked[!asked.get("denied").is_empty()]; " Only denied" }
            label.choice for="looks" { input #looks type="checkbox" name="looks" value="yes" checked[!asked.get("looks").is_empty()]; " Looks at pages too" }
            button type="submit" { "Show" }
        }
    }
}

fn table(desk: &Desk, rows: &[AuditRow]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Calls" {
            table {
                thead { tr { th { "Time" } th { "Caller" } th { "Tool" } th { "On" } th { "Decision" } th { "Outcome" } th.number { "Took" } th { "From" } } }
                tbody { @for row in rows { (call(desk, row)) } }
            }
        }
    }
}

fn call(desk: &Desk, row: &AuditRow) -> Markup {
    // A call that names no server means the only one that there is.
    let only = match desk.scope.servers() {
        [only] => only.name(),
        _ => "",
    };
    let place = row.path.clone().map(|path| Place {
        server: row.server.clone().unwrap_or_else(|| only.to_owned()),
        path,
    });
    html! {
        tr {
            td { (moment(row.time)) }
            td { (row.principal) }
            td { code { (row.tool) } }
            td {
                @match &place {
                    Some(place) if !place.server.is_empty() => { a href=(link(desk.root, place)) { (place.path) } }
                    Some(place) => { (place.path) }
                    None => { (row.server.as_deref().unwrap_or_default()) }
                }
            }
            td {
                @match &row.rule {
                    Some(rule) => { (state(&format!("denied: {rule}"), Tone::Bad)) }
                    None => { (state("allowed", Tone::Good)) }
                }
                @if let Some(approval) = &row.approval { span.quiet { (approval) } }
            }
            td { (row.outcome) }
            td.number { (row.duration_ms) " ms" }
            td { (row.address.as_deref().unwrap_or_default()) }
        }
    }
}
