//! The first page of a visitor: what runs, which documents are open and who is in them, servers, activity, limits.

mod limits;
mod servers;

use futures::future::join_all;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::{
    Place, Reply, approvals,
    desk::{Desk, Failure},
    document::link,
    layout::Frame,
    live::Part,
    markup::{Tone, nothing, path, state, time},
    run::{self, Executions},
};

pub(super) use servers::ServerLooks;

/// Executions and activities that are shown.
const MAX_RUNS: usize = 12;
const MAX_ACTIVITIES: usize = 25;

/// Answer of `get_active_sessions`.
#[derive(Deserialize)]
pub(super) struct Sessions {
    pub(super) sessions: Vec<Session>,
    elsewhere: Vec<Elsewhere>,
}

/// An open document.
#[derive(Deserialize)]
pub(super) struct Session {
    document_path: String,
    server: String,
    status: String,
    pub(super) participants: Vec<Participant>,
}

#[derive(Deserialize)]
pub(super) struct Participant {
    name: String,
    is_agent: bool,
    activity: Option<String>,
}

/// A document that people have open and the gateway has not.
#[derive(Deserialize)]
struct Elsewhere {
    document_path: String,
    users: Vec<String>,
}

#[derive(Deserialize)]
struct Activities {
    activities: Vec<Activity>,
}

#[derive(Deserialize)]
struct Activity {
    timestamp: String,
    user_name: String,
    is_agent: bool,
    description: String,
    activity_type: String,
    server: String,
    document_path: Option<String>,
}

pub(super) async fn page(desk: &Desk) -> Result<Reply, Failure> {
    let parts = Box::pin(parts(desk)).await;
    let part = |id: &str| parts.iter().find(|part| part.id == id).map(Part::region);
    let frame = Frame {
        title: "Overview",
        current: "Overview",
        live: Some("page=overview".to_owned()),
        body: html! {
            h1.hidden { "Overview" }
            (part("approvals").unwrap_or_default())
            div.columns {
                div.wide { (part("runs").unwrap_or_default()) (part("documents").unwrap_or_default()) }
                div.narrow {
                    (part("servers").unwrap_or_default())
                    (part("activity").unwrap_or_default())
                    (part("limits").unwrap_or_default())
                }
            }
        },
    };
    Ok(frame.show(desk))
}

/// The parts that the visitor's token and tenant allow; a token that may nothing sees nothing.
pub(super) async fn parts(desk: &Desk) -> Vec<Part> {
    let parts = tokio::join!(
        allowed(desk, "list_executions", runs(desk)),
        allowed(desk, "get_active_sessions", documents(desk)),
        allowed(desk, "list_servers", servers::part(desk)),
        allowed(desk, "get_user_activity", activity(desk)),
    );
    let (runs, documents, servers, activity) = parts;
    let parts = [
        approvals::part(desk),
        runs,
        documents,
        servers,
        activity,
        Some(limits::part(desk)),
    ];
    parts.into_iter().flatten().collect()
}

/// A part, if the visitor may use the tool by which it is made.
async fn allowed(desk: &Desk, tool: &str, part: impl Future<Output = Part>) -> Option<Part> {
    match desk.may_use(tool) {
        true => Some(part.await),
        false => None,
    }
}

async fn runs(desk: &Desk) -> Part {
    let listed = desk
        .read::<Executions>("list_executions", json!({ "limit": MAX_RUNS }))
        .await;
    let (content, news) = match listed {
        Ok(listed) => (run::list(desk, &listed.executions).await, listed.news()),
        Err(failure) => (failed(&failure), String::new()),
    };
    let content = html! {
        section aria-labelledby="runs-head" {
            div.head { h2 #runs-head { "Runs" } @if !news.is_empty() { span.quiet { (news) } } }
            (content)
        }
    };
    Part {
        news,
        ..Part::new("runs", content)
    }
}

async fn documents(desk: &Desk) -> Part {
    let of_servers = desk
        .scope
        .servers()
        .iter()
        .map(|server| documents_of(desk, server.name()));
    let rows = join_all(of_servers).await.concat();
    let content = html! {
        section aria-labelledby="documents-head" {
            div.head { h2 #documents-head { "Open documents" } @if !rows.is_empty() { span.quiet { (rows.len()) } } }
            @if rows.is_empty() {
                (nothing("No document is open. One appears here when an agent reads it, or when somebody opens it in JupyterLab."))
            } @else {
                ul.rows { @for row in rows { (row) } }
            }
        }
    };
    Part::new("documents", content)
}

async fn documents_of(desk: &Desk, server: &str) -> Vec<Markup> {
    match desk
        .read::<Sessions>("get_active_sessions", json!({ "server": server }))
        .await
    {
        Ok(found) => {
            let here = found.sessions.iter().map(|session| open_document(desk, session));
            let elsewhere = found.elsewhere.iter();
            here.chain(elsewhere.map(|document| document_elsewhere(desk, server, document)))
                .collect()
        }
        Err(failure) => vec![html! { li.row { (failed(&failure)) } }],
    }
}

fn open_document(desk: &Desk, session: &Session) -> Markup {
    let place = Place {
        server: session.server.clone(),
        path: session.document_path.clone(),
    };
    html! {
        li.row {
            div.what {
                a.title href=(link(desk.root, &place)) { (path(&place.path)) }
                span.quiet { (server_name(desk, &place.server)) }
                @if session.status != "connected" { (state(&session.status, Tone::Waiting)) }
            }
            (people(&session.participants))
            (super::document::open_link(desk, &place))
        }
    }
}

fn document_elsewhere(desk: &Desk, server: &str, document: &Elsewhere) -> Markup {
    let place = Place {
        server: server.to_owned(),
        path: document.document_path.clone(),
    };
    html! {
        li.row {
            div.what {
                a.title href=(link(desk.root, &place)) { (path(&place.path)) }
                span.quiet { (server_name(desk, server)) "only in JupyterLab" }
            }
            ul.people aria-label="In it" { @for user in &document.users { li.person { (user) } } }
            (super::document::open_link(desk, &place))
        }
    }
}

/// A server's name, where there is more than one.
pub(super) fn server_name(desk: &Desk, server: &str) -> Markup {
    html! { @if desk.scope.servers().len() > 1 { span.on { (server) " " } } }
}

/// The people and agents in a document.
pub(super) fn people(participants: &[Participant]) -> Markup {
    html! {
        @if participants.is_empty() { span.quiet { "nobody in it" } }
        @else {
            ul.people aria-label="In it" {
                @for participant in participants {
                    li.person.agent[participant.is_agent] {
                        @if participant.is_agent { span.hidden { "agent " } }
                        (participant.name)
                        @if let Some(activity) = &participant.activity { span.does { " " (activity) } }
                    }
                }
            }
        }
    }
}

async fn activity(desk: &Desk) -> Part {
    let found = desk
        .read::<Activities>("get_user_activity", json!({ "limit": MAX_ACTIVITIES }))
        .await;
    let content = match &found {
        Ok(found) if found.activities.is_empty() => nothing("Nothing has happened yet."),
        Ok(found) => html! {
            ol.activity tabindex="0" aria-label="The latest first" {
                @for activity in &found.activities { (activity_row(desk, activity)) }
            }
        },
        Err(failure) => failed(failure),
    };
    let content = html! {
        section aria-labelledby="activity-head" { div.head { h2 #activity-head { "Activity" } } (content) }
    };
    Part::new("activity", content)
}

fn activity_row(desk: &Desk, activity: &Activity) -> Markup {
    let place = activity.document_path.as_ref().map(|path| Place {
        server: activity.server.clone(),
        path: path.clone(),
    });
    html! {
        li.(kind_class(&activity.activity_type)) {
            p {
                strong.agent[activity.is_agent] { (activity.user_name) }
                " " (activity.description)
            }
            p.quiet {
                (time(&activity.timestamp))
                @if let Some(place) = place { " · " a href=(link(desk.root, &place)) { (super::markup::split(&place.path).1) } }
            }
        }
    }
}

/// A class for kinds that are told apart at a glance; others have none.
fn kind_class(kind: &str) -> &'static str {
    match kind {
        "edit" => "edit",
        "execute" => "execute",
        "content_lost" => "lost",
        "mention" => "mention",
        _ => "other",
    }
}

pub(super) fn failed(failure: &Failure) -> Markup {
    html! { p.message.bad { (failure) } }
}
