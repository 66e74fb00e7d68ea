//! Changes of one version, cell by cell.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::{History, restore_button};
use crate::console::{
    Place,
    desk::{Desk, Failure},
    markup::{Tone, diff, nothing, state},
    overview::failed,
};

/// Answer of `diff_document`.
#[derive(Deserialize)]
struct Diff {
    summary: String,
    changes: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    cell_id: Option<String>,
    index: Option<usize>,
    status: String,
    #[serde(default)]
    parts: Vec<String>,
    diff: String,
}

pub(super) async fn changes(desk: &Desk, place: &Place, version: &str) -> Markup {
    let content = match difference(desk, place, version).await {
        Ok(Some(found)) => html! { p.quiet { (found.summary) } @for change in &found.changes { (cell(change)) } },
        Ok(None) => nothing("This is the first version that is kept: the document as it was then."),
        Err(failure) => failed(&failure),
    };
    html! {
        section aria-labelledby="changes-head" {
            div.head { h2 #changes-head { "What changed" } (restore_button(desk, place, version)) }
            (content)
        }
    }
}

/// The difference to the version before; none if there is no such version.
async fn difference(desk: &Desk, place: &Place, version: &str) -> Result<Option<Diff>, Failure> {
    let before = json!({ "server": place.server, "path": place.path, "before": version, "limit": 1 });
    let before: History = desk.read("get_document_history", before).await?;
    let Some(before) = before.versions.first() else {
        return Ok(None);
    };
    let asked = json!({ "server": place.server, "path": place.path, "from": before.version_id, "to": version });
    desk.read("diff_document", asked).await.map(Some)
}

fn cell(change: &Change) -> Markup {
    html! {
        article.card.change {
            div.head {
                h3 { (title(change)) }
                (state(&change.status, tone(&change.status)))
            }
            @if !change.parts.is_empty() { p.quiet { "Also different: " (change.parts.join(", ")) } }
            @if !change.diff.is_empty() { (diff(&change.diff)) }
            @else if change.parts.is_empty() && matches!(&*change.status, "inserted" | "deleted") { p.quiet { "It was empty." } }
        }
    }
}

fn title(change: &Change) -> Markup {
    html! {
        @match (change.index, &change.cell_id) {
            (Some(index), _) => { "Cell " (index) }
            (None, Some(id)) => { "Cell " (id) }
            (None, None) if change.diff.is_empty() => { "The notebook itself" }
            (None, None) => { "Text" }
        }
    }
}

pub(in crate::console) fn tone(status: &str) -> Tone {
    match status {
        "inserted" => Tone::Good,
        "deleted" => Tone::Bad,
        _ => Tone::Busy,
    }
}
