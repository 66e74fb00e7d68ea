//! Forks of a document: what each changes, cell by cell, and taking that over or giving it up.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;
use url::form_urlencoded;

use super::{
    Fields, Place, Reply,
    desk::{Desk, Failure},
    document::{self, hidden, tone},
    layout::Frame,
    markup::{Button, Tone, csrf, diff, moment, nothing, path, state, time},
    run::Message,
};
use crate::{
    error::ErrorKind,
    tools::{ForkReview, ReviewedCell, review_fork},
};

/// Answer of `list_document_forks`.
#[derive(Deserialize)]
struct Forks {
    forks: Vec<Fork>,
    #[serde(default)]
    jupyterlab_forks: Vec<PeoplesFork>,
}

#[derive(Deserialize)]
struct Fork {
    fork_id: String,
    title: String,
    author: String,
    created_at: String,
    review: bool,
    changed_cells: Vec<serde::de::IgnoredAny>,
    is_changed: bool,
}

#[derive(Deserialize)]
struct PeoplesFork {
    title: String,
}

/// Answer of `merge_document_fork`.
#[derive(Deserialize)]
struct Merged {
    message: String,
    fork_kept: bool,
}

fn link(root: &str, place: &Place, fork: &str) -> String {
    let fork = form_urlencoded::Serializer::new(String::new())
        .append_pair("fork", fork)
        .finish();
    format!("{root}console/fork?{}&{fork}", document::query(place))
}

/// The forks of a document; none if there are none.
pub(super) async fn list(desk: &Desk, place: &Place) -> Markup {
    let asked = json!({ "server": place.server, "path": place.path });
    let found = match desk.may_use("list_document_forks") {
        // A document that is gone has a history all the same.
        true => desk.read::<Forks>("list_document_forks", asked).await.ok(),
        false => None,
    };
    html! {
        @if let Some(found) = found.filter(|found| !found.forks.is_empty() || !found.jupyterlab_forks.is_empty()) {
            section.card.forks aria-labelledby="forks-head" {
                h2 #forks-head { "Proposed changes" }
                ul.rows {
                    @for fork in &found.forks { (row(desk, place, fork)) }
                    @for fork in &found.jupyterlab_forks {
                        li.row { div.what { span.title { (named(&fork.title)) } span.quiet { "made in JupyterLab, and merged there" } } }
                    }
                }
            }
        }
    }
}

fn row(desk: &Desk, place: &Place, fork: &Fork) -> Markup {
    let changed = match (fork.changed_cells.len(), fork.is_changed) {
        (0, false) => "no changes".to_owned(),
        (0, true) => "changed".to_owned(),
        (count, _) => format!("{} changed", jupyter_client::counted(count, "cell")),
    };
    html! {
        li.row {
            div.what {
                a.title href=(link(desk.root, place, &fork.fork_id)) { (named(&fork.title)) }
                span.quiet { "by " (fork.author) ", " (time(&fork.created_at)) }
            }
            @if fork.review { (state("waits for review", Tone::Waiting)) }
            span.quiet { (changed) }
        }
    }
}

fn named(title: &str) -> &str {
    match title.trim() {
        "" => "Fork without a title",
        title => title,
    }
}

pub(super) async fn page(desk: &Desk, place: &Place, fork: &str) -> Result<Reply, Failure> {
    desk.require(place)?;
    let review = look(desk, place, fork).await?;
    let body = html! {
        nav.crumbs aria-label="Where this is" {
            a href={ (desk.root) "console" } { "Overview" }
            a href=(document::link(desk.root, place)) { (place.path) }
        }
        h1 { (named(&review.title)) }
        p.lead {
            "Proposed by " (review.author) " for " (path(&place.path)) ", " (moment(review.created_at))
            @if review.is_review { " " (state("waits for review", Tone::Waiting)) }
        }
        @if !review.description.is_empty() { p { (review.description) } }
        (merge_form(desk, place, fork, &review))
        (discard_button(desk, place, fork))
    };
    let frame = Frame {
        title: "Proposed changes",
        current: "",
        live: None,
        body,
    };
    Ok(frame.show(desk))
}

async fn look(desk: &Desk, place: &Place, fork: &str) -> Result<ForkReview, Failure> {
    if !desk.may_use("list_document_forks") {
        let why = "your token may not see forks; ask an operator for the permission `read` and the toolset `history`";
        return Err(Failure::new(ErrorKind::Forbidden, why));
    }
    Ok(review_fork(&desk.looking(), &place.server, &place.path, fork).await?)
}

fn merge_form(desk: &Desk, place: &Place, fork: &str, review: &ForkReview) -> Markup {
    let is_empty = review.cells.as_ref().map_or(review.text.is_empty(), Vec::is_empty);
    let may_merge = desk.may_use("merge_document_fork") && review.may_accept && !is_empty;
    html! {
        form.review method="post" action={ (desk.root) "console/merge" } {
            (csrf(desk))
            (hidden(place))
            input type="hidden" name="fork" value=(fork);
            input type="hidden" name="shown" value=(review.version);
            @if is_empty { (nothing("This fork changes nothing.")) }
            @else if !review.may_accept {
                p.message.note {
                    "Your own edits are under review, so somebody else accepts these: a person who is not under review, or one of your \
                     tenant with permission "
                    code { "admin" }
                    ", who proposed none of them."
                }
            }
            @match &review.cells {
                Some(cells) => {
                    fieldset {
                        legend { (jupyter_client::counted(cells.len(), "changed cell")) }
                        @for cell in cells { (reviewed(cell, may_merge)) }
                    }
                }
                None => { @if !is_empty { (diff(&review.text)) } }
            }
            @if may_merge {
                div.actions.sticky {
                    @if review.cells.is_some() {
                        button.primary type="submit" name="take" value="chosen" { "Merge chosen cells" }
                    }
                    button.primary[review.cells.is_none()] type="submit" name="take" value="all" { "Merge everything" }
                }
            }
        }
    }
}

fn reviewed(cell: &ReviewedCell, may_merge: bool) -> Markup {
    let id = format!("cell-{}", cell.cell_id);
    let title = html! {
        "Cell " @if let Some(position) = cell.position { (position) } @else { (cell.cell_id) }
    };
    html! {
        article.card.change {
            div.head {
                @if may_merge {
                    label.choice for=(id) { input id=(id) type="checkbox" name="cell" value=(cell.cell_id); " " (title) }
                } @else { h2 { (title) } }
                (state(cell.change, tone(cell.change)))
            }
            @if cell.diff.is_empty() { p.quiet { "Only its outputs, its metadata or its place are different." } }
            @else { (diff(&cell.diff)) }
        }
    }
}

fn discard_button(desk: &Desk, place: &Place, fork: &str) -> Markup {
    html! {
        @if desk.may_use("discard_document_fork") {
            (Button {
                action: "discard",
                label: "Discard the fork",
                about: "",
                fields: &[("fork", fork), ("server", &place.server), ("path", &place.path)],
                confirm: Some("Discard this fork with all that was changed in it? This cannot be taken back."),
                class: "danger",
            }.markup(desk))
        }
    }
}

/// Takes over what was chosen; what came of it, and the page that comes next.
pub(super) async fn merge(desk: &Desk, place: &Place, form: &Fields) -> (Result<String, Failure>, String) {
    let fork = form.get("fork");
    let again = link("../", place, fork);
    match take(desk, place, form).await {
        Ok(merged) if merged.fork_kept => (Ok(sentence(&merged.message)), again),
        Ok(merged) => (Ok(sentence(&merged.message)), document::link("../", place)),
        Err(failure) => (Err(failure), again),
    }
}

async fn take(desk: &Desk, place: &Place, form: &Fields) -> Result<Merged, Failure> {
    let (fork, shown) = (form.get("fork"), form.get("shown"));
    let mut asked = json!({ "server": place.server, "path": place.path, "fork_id": fork });
    if form.get("take") != "all" {
        let cells = form.all("cell");
        if cells.is_empty() {
            let why = "choose at least one cell; nothing was merged.";
            return Err(Failure::new(ErrorKind::InvalidArgument, why));
        }
        asked["cell_ids"] = cells.into();
    }
    if look(desk, place, fork).await?.version != shown {
        let why = "the fork has changed since you looked at it, and nothing was merged. This is what it changes now.";
        return Err(Failure::new(ErrorKind::Conflict, why));
    }
    desk.act("merge_document_fork", asked).await
}

/// Gives a fork up.
pub(super) async fn discard(desk: &Desk, place: &Place, fork: &str) -> Result<String, Failure> {
    let asked = json!({ "server": place.server, "path": place.path, "fork_id": fork });
    let discarded: Message = desk.act("discard_document_fork", asked).await?;
    Ok(sentence(&discarded.message))
}

fn sentence(message: &str) -> String {
    format!("{}.", message.trim_end_matches('.'))
}
