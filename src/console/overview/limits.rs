//! Use that the visitor's tenant makes of its limits.

use maud::html;

use crate::console::{desk::Desk, live::Part};

/// A limit is worth a look when a half of it is used.
const NOTABLE: usize = 2;
/// Tenths of a MiB in bytes.
const TENTH: usize = (1 << 20) / 10;

pub(super) fn part(desk: &Desk) -> Part {
    let tenant = &desk.visitor.principal.tenant.name;
    let limits = desk.console.limits.usage_of(tenant);
    let rows = limits.iter().map(|limit| {
        let id = format!("limit-{}", limit.limit);
        let is_notable = limit.used.saturating_mul(NOTABLE) >= limit.max;
        html! {
            div.limit.notable[is_notable] {
                label for=(id) { (words(limit.limit)) }
                span { (amount(limit.limit, limit.used)) " of " (amount(limit.limit, limit.max)) }
                progress id=(id) value=(limit.used) max=(limit.max) {}
            }
        }
    });
    let content = html! {
        section aria-labelledby="limits-head" {
            div.head { h2 #limits-head { "Limits of " (tenant) } }
            @for row in rows { (row) }
        }
    };
    Part::new("limits", content)
}

/// A limit in words; its key where it has none.
fn words(key: &'static str) -> &'static str {
    match key {
        "max_requests_in_flight" => "Requests under way",
        "max_streams" => "Open streams",
        "max_sessions" => "MCP sessions",
        "max_bytes_held" => "Memory for requests and answers",
        "max_images_in_work" => "Images being scaled",
        "max_concurrent_executions" => "Executions",
        "max_open_rooms" => "Open documents",
        key => key,
    }
}

fn amount(key: &str, number: usize) -> String {
    match key {
        "max_bytes_held" => format!("{}.{} MiB", number / TENTH / 10, number / TENTH % 10),
        _ => number.to_string(),
    }
}
