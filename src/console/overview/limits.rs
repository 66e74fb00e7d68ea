//! How much of its limits the visitor's tenant uses.

use maud::html;

use crate::console::{desk::Desk, live::Part};

/// Limits are worth a look when half of one is used; the others are folded away.
const NOTABLE: f64 = 0.5;

pub(super) fn part(desk: &Desk) -> Part {
    let tenant = &desk.visitor.principal.tenant.name;
    let limits = desk.console.limits.usage_of(tenant);
    let rows = limits.iter().map(|limit| {
        let id = format!("limit-{}", limit.limit);
        let is_notable = limit.used as f64 >= NOTABLE * limit.max as f64;
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
        "max_bytes_held" => format!("{:.1} MiB", number as f64 / f64::from(1 << 20)),
        _ => number.to_string(),
    }
}
