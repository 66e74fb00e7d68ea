//! A document: who is in it, its versions with what changed in each, undo and restore, and its forks.

mod changes;

use std::collections::BTreeSet;

use jupyter_client::{DocPath, DocumentKind, counted};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use self::changes::changes;
pub(super) use self::changes::tone;
use super::{
    Fields, Place, Reply,
    desk::{Desk, Failure},
    fork,
    layout::Frame,
    live::Part,
    markup::{Button, csrf, nothing, split, time},
    overview::{Sessions, failed, people},
};
use crate::types::Permission;

/// Versions on a page.
const PAGE: usize = 30;

/// Answer of `get_document_history`.
#[derive(Deserialize)]
pub(super) struct History {
    versions: Vec<Version>,
    has_more: bool,
    note: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    version_id: String,
    timestamp: String,
    author: String,
    tool: Option<String>,
    summary: String,
    kind: String,
    is_undone: bool,
}

impl History {
    /// Who made the versions that are listed, other than by writing the file.
    fn authors(&self) -> impl Iterator<Item = String> {
        let made = self
            .versions
            .iter()
            .filter(|version| matches!(&*version.kind, "agent" | "people"));
        made.map(|version| version.author.clone())
    }
}

/// Answer of the tools that make a document another one.
#[derive(Deserialize)]
struct Changed {
    message: String,
    summary: String,
    #[serde(default)]
    kept: Vec<String>,
    #[serde(default)]
    without_outputs: Vec<String>,
}

/// The address of a document's page.
pub(super) fn link(root: &str, place: &Place) -> String {
    format!("{root}console/document?{}", query(place))
}

pub(super) fn query(place: &Place) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("server", &place.server)
        .append_pair("path", &place.path);
    query.finish()
}

/// A link that opens a document in Jupyter.
pub(super) fn open_link(desk: &Desk, place: &Place) -> Markup {
    let mut servers = desk.scope.servers().iter();
    let server = servers.find(|server| server.name() == place.server);
    let path = DocPath::parse_file(&place.path).ok();
    html! {
        @if let Some((server, path)) = server.zip(path) {
            @let kind = if path.is_notebook() { DocumentKind::Notebook } else { DocumentKind::File };
            a.button href=(server.known_links().to_path(&path, kind)) target="_blank" rel="noopener noreferrer" {
                "Open in Jupyter" span.hidden { ": " (place.path) }
            }
        }
    }
}

pub(super) async fn page(desk: &Desk, place: &Place, asked: &Fields) -> Result<Reply, Failure> {
    desk.require(place)?;
    let history = history(desk, place, asked.given("before")).await;
    let chosen = asked.given("version");
    let is_latest = asked.given("before").is_none();
    let (who, forks) = tokio::join!(people_part(desk, place), fork::list(desk, place));
    let authors: BTreeSet<String> = history.iter().flat_map(History::authors).collect();
    let versions = versions_part(desk, place, history, chosen);
    let changed = match chosen {
        Some(version) => Some(changes(desk, place, version).await),
        None => None,
    };
    let (folder, name) = split(&place.path);
    let body = html! {
        nav.crumbs aria-label="Where this is" {
            a href={ (desk.root) "console" } { "Overview" }
            span { (place.server) }
            @if !folder.is_empty() { span { (folder.trim_end_matches('/')) } }
        }
        div.head { h1 { (name) } (open_link(desk, place)) }
        (who.region())
        (forks)
        div.columns.history {
            div.narrow { (versions.region()) (undo_form(desk, place, &authors)) }
            div.wide #changes {
                @match changed {
                    Some(changed) => { (changed) }
                    None => { section.card.hint { p { "Choose a version to see what changed in it." } } }
                }
            }
        }
    };
    let frame = Frame {
        title: name,
        current: "",
        // Older pages of the list stay as they are.
        live: is_latest.then(|| {
            let chosen = chosen.map(|version| format!("&{}", pair("version", version)));
            format!("page=document&{}{}", query(place), chosen.unwrap_or_default())
        }),
        body,
    };
    Ok(frame.show(desk))
}

fn pair(name: &str, value: &str) -> String {
    form_urlencoded::Serializer::new(String::new())
        .append_pair(name, value)
        .finish()
}

/// The parts that are followed while the page is open.
pub(super) async fn parts(desk: &Desk, place: &Place, chosen: Option<&str>) -> Vec<Part> {
    let who = people_part(desk, place).await;
    let history = history(desk, place, None).await;
    vec![who, versions_part(desk, place, history, chosen)]
}

async fn history(desk: &Desk, place: &Place, before: Option<&str>) -> Result<History, Failure> {
    let asked = json!({ "server": place.server, "path": place.path, "limit": PAGE, "before": before });
    desk.read("get_document_history", asked).await
}

async fn people_part(desk: &Desk, place: &Place) -> Part {
    let asked = json!({ "server": place.server, "document_path": place.path });
    let found = match desk.may_use("get_active_sessions") {
        true => desk.read::<Sessions>("get_active_sessions", asked).await.ok(),
        false => None,
    };
    let sessions = found.map(|found| found.sessions).unwrap_or_default();
    let content = html! {
        @for session in &sessions { div.presence { (people(&session.participants)) } }
        @if sessions.is_empty() { p.quiet { "Not open at this moment." } }
    };
    Part::new("people", content)
}

fn versions_part(desk: &Desk, place: &Place, history: Result<History, Failure>, chosen: Option<&str>) -> Part {
    let content = match &history {
        Ok(history) => list(desk, place, history, chosen),
        Err(failure) => failed(failure),
    };
    let newest = history.ok().and_then(|history| history.versions.into_iter().next());
    let content = html! {
        section aria-labelledby="versions-head" { div.head { h2 #versions-head { "Versions" } } (content) }
    };
    Part {
        news: newest.map_or_else(String::new, |version| {
            format!("{}: {}", version.author, version.summary)
        }),
        ..Part::new("versions", content)
    }
}

fn list(desk: &Desk, place: &Place, history: &History, chosen: Option<&str>) -> Markup {
    let base = link(desk.root, place);
    html! {
        @if history.versions.is_empty() { (nothing("No versions are kept of this document yet.")) }
        ol.versions {
            @for version in &history.versions {
                @let is_chosen = chosen == Some(&version.version_id);
                li.(kind_class(&version.kind)).undone[version.is_undone] {
                    a href={ (base) "&" (pair("version", &version.version_id)) "#changes" } aria-current=[is_chosen.then_some("true")]
                        data-key=(version.version_id) {
                        strong { (version.author) }
                        span.summary { (version.summary) }
                        span.quiet {
                            (time(&version.timestamp))
                            @if let Some(tool) = &version.tool { " · " (tool) }
                            @if version.is_undone { " · undone" }
                        }
                    }
                }
            }
        }
        @if let Some(last) = history.versions.last().filter(|_| history.has_more) {
            p { a href={ (base) "&" (pair("before", &last.version_id)) } { "Older versions" } }
        }
        @if let Some(note) = &history.note { p.quiet { (note) } }
    }
}

/// A class for who made a version.
fn kind_class(kind: &str) -> &'static str {
    match kind {
        "agent" => "by-agent",
        "people" => "by-people",
        _ => "by-other",
    }
}

fn undo_form(desk: &Desk, place: &Place, authors: &BTreeSet<String>) -> Markup {
    html! {
        @if desk.may_use("undo_changes") {
            section.card aria-labelledby="undo-head" {
                h2 #undo-head { "Undo" }
                form.stack method="post" action={ (desk.root) "console/undo" } {
                    (csrf(desk))
                    (hidden(place))
                    @if desk.may(Permission::Admin) {
                        label for="author" { "Edits of" }
                        input #author name="author" placeholder=(desk.visitor.principal.name) autocomplete="off" spellcheck="false" list="authors" aria-describedby="undo-note";
                        datalist #authors { @for author in authors { option value=(author) {} } }
                    }
                    label for="steps" { "How many of the last edits" }
                    input #steps name="steps" type="number" value="1" min="1" max="1000" inputmode="numeric";
                    div.actions {
                        button.primary type="submit" name="redo" value="" { "Undo" }
                        button type="submit" name="redo" value="yes" { "Redo" }
                    }
                    p.quiet #undo-note {
                        "Takes back exactly these edits; what others did since stays, in the same cell too."
                        @if desk.may(Permission::Admin) { " Without a name they are those of " (desk.visitor.principal.name) "." }
                    }
                }
            }
        }
    }
}

/// The fields that name a document.
pub(super) fn hidden(place: &Place) -> Markup {
    html! {
        input type="hidden" name="server" value=(place.server);
        input type="hidden" name="path" value=(place.path);
    }
}

/// A button that makes the document what it was at a version.
fn restore_button(desk: &Desk, place: &Place, version: &str) -> Markup {
    html! {
        @if desk.may_use("restore_document_version") {
            (Button {
                action: "restore",
                label: "Restore this version",
                about: "",
                fields: &[("version", version), ("server", &place.server), ("path", &place.path)],
                confirm: None,
                class: "primary",
            }.markup(desk))
        }
    }
}

/// Takes back edits, or takes that back.
pub(super) async fn undo(desk: &Desk, place: &Place, form: &Fields) -> Result<String, Failure> {
    let steps: Value = form.given("steps").unwrap_or("1").into();
    let asked = json!({
        "server": place.server,
        "path": place.path,
        "steps": steps,
        "author": form.given("author"),
        "redo": form.get("redo") == "yes",
    });
    Ok(told(&desk.act("undo_changes", asked).await?))
}

/// Makes a document what it was.
pub(super) async fn restore(desk: &Desk, place: &Place, form: &Fields) -> Result<String, Failure> {
    let asked = json!({ "server": place.server, "path": place.path, "version_id": form.get("version") });
    Ok(told(&desk.act("restore_document_version", asked).await?))
}

fn told(changed: &Changed) -> String {
    let mut told = changed.message.clone();
    if !changed.summary.is_empty() {
        told = format!("{told}: {}", changed.summary);
    }
    for (cells, what) in [
        (&changed.kept, "stayed since somebody changed it meanwhile"),
        (
            &changed.without_outputs,
            "came back without its outputs, which were not kept",
        ),
    ] {
        if !cells.is_empty() {
            told = format!("{told}; {} {what}", counted(cells.len(), "cell"));
        }
    }
    format!("{told}.")
}
