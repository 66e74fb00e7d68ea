//! Calls that wait until a person allows them: who wants what, the code as it would run, and the decision about it.

use maud::{Markup, html};

use super::{
    Fields, Place,
    desk::{Desk, Failure},
    document::link,
    live::Part,
    markup::{csrf, path, time},
    overview::server_name,
};
use crate::{
    approvals::{AskedCall, CannotDecide, Decider, Piece, WaitingCall},
    audit::{Decision, Outcome},
    error::ErrorKind,
    tools::ToolError,
};

/// Name under which decisions are recorded.
const RECORDED_AS: &str = "console_approval";

fn decider(desk: &Desk) -> Decider<'_> {
    Decider {
        principal: &desk.visitor.principal,
        is_in_person: desk.visitor.is_in_person(),
        servers: desk.scope.servers(),
    }
}

/// The calls that wait and that the visitor may know of; none for tenants in which nobody is asked.
pub(super) fn part(desk: &Desk) -> Option<Part> {
    if desk.visitor.principal.tenant.approvals.is_empty() {
        return None;
    }
    let decider = decider(desk);
    let waiting = desk.console.services.waiting.seen_by(&decider);
    let content = html! {
        @if !waiting.is_empty() {
            section.approvals aria-labelledby="approvals-head" {
                div.head { h2 #approvals-head { "Waiting for approval" } span.quiet { (waiting.len()) } }
                @for call in &waiting { (card(desk, call, decider.may_decide(&call.asked))) }
            }
        }
    };
    Some(Part {
        news: match waiting.len() {
            0 => String::new(),
            1 => "A call waits for approval".to_owned(),
            count => format!("{count} calls wait for approval"),
        },
        ..Part::new("approvals", content)
    })
}

fn card(desk: &Desk, call: &WaitingCall, may_decide: bool) -> Markup {
    let asked = &call.asked;
    let title = format!("approval-{}", call.id);
    html! {
        article.card.approval aria-labelledby=(title) data-steady {
            h3 id=(title) { span.agent { (asked.name) } " wants to call " code { (asked.tool) } }
            (about(desk, call))
            @for piece in &asked.code { (code(piece)) }
            @if !asked.arguments.is_empty() {
                dl.arguments {
                    @for piece in &asked.arguments { div { dt { (piece.place) } dd { (text(piece)) } } }
                }
            }
            @if may_decide { (form(desk, call)) }
            @else {
                p.quiet {
                    "This is a call of your own token, about which it cannot decide: somebody else of tenant "
                    (asked.tenant) " with permission " code { "admin" } " can."
                }
            }
        }
    }
}

fn about(desk: &Desk, call: &WaitingCall) -> Markup {
    let asked = &call.asked;
    let server = asked.server.as_deref().unwrap_or_default();
    html! {
        dl.about {
            @if !asked.paths.is_empty() {
                div {
                    dt { "On" }
                    dd {
                        (server_name(desk, server))
                        @for (index, on) in asked.paths.iter().enumerate() {
                            @let place = Place { server: server.to_owned(), path: on.to_string() };
                            @if index > 0 { ", " }
                            a href=(link(desk.root, &place)) { (path(&place.path)) }
                        }
                    }
                }
            } @else if !server.is_empty() {
                div { dt { "On" } dd { "server " (server) } }
            }
            div { dt { "Rule" } dd { @for reason in &asked.reasons { span.reason { (reason) } " " } } }
            div { dt { "Token" } dd { code { (asked.principal) } } }
            div {
                dt { "Asked" }
                dd { (super::markup::moment(call.since)) ", expires " (until(call)) }
            }
        }
    }
}

fn until(call: &WaitingCall) -> Markup {
    time(&humantime::format_rfc3339_seconds(call.until).to_string())
}

fn code(piece: &Piece) -> Markup {
    html! {
        figure.piece {
            figcaption.quiet { (piece.place) }
            pre.code tabindex="0" role="group" aria-label={ "Code: " (piece.place) } { (piece.text) }
        }
    }
}

fn text(piece: &Piece) -> Markup {
    html! {
        @match piece.text.contains('\n') {
            true => { pre.code tabindex="0" role="group" aria-label=(piece.place) { (piece.text) } }
            false => { code { (piece.text) } }
        }
    }
}

fn form(desk: &Desk, call: &WaitingCall) -> Markup {
    let about = format!("{} of {}", call.asked.tool, call.asked.name);
    html! {
        form.actions method="post" action={ (desk.root) "console/decide" } {
            (csrf(desk))
            input type="hidden" name="id" value=(call.id);
            button.primary type="submit" name="decision" value="allow" data-key={ "allow:" (call.id) } {
                "Allow once" span.hidden { ": " (about) }
            }
            button.danger type="submit" name="decision" value="refuse" data-key={ "refuse:" (call.id) } {
                "Refuse" span.hidden { ": " (about) }
            }
        }
    }
}

/// Allows a call or refuses it.
pub(super) fn decide(desk: &Desk, form: &Fields) -> Result<String, Failure> {
    let is_allowed = match form.get("decision") {
        "allow" => true,
        "refuse" => false,
        _ => {
            let why = "choose whether to allow it or to refuse it; nothing was decided.";
            return Err(Failure::new(ErrorKind::InvalidArgument, why));
        }
    };
    desk.console.services.audit.check().map_err(ToolError::from)?;
    let (waiting, decider, id) = (&desk.console.services.waiting, decider(desk), form.get("id"));
    let about = waiting.seen_by(&decider).into_iter().find(|call| call.id == id);
    let decided = waiting.decide(id, &decider, is_allowed);
    if let Some(WaitingCall { asked, .. }) = about {
        record(desk, &asked, is_allowed, decided.as_ref().err());
    }
    let asked = decided.map_err(|why| {
        let kind = match why {
            CannotDecide::Gone => ErrorKind::Conflict,
            CannotDecide::Own => ErrorKind::Forbidden,
        };
        Failure::new(kind, why.to_string())
    })?;
    let (tool, name) = (asked.tool, &asked.name);
    Ok(match is_allowed {
        true => format!(
            "Allowed {tool} of {name}, once. It goes on, or when the same call is made again within 10 minutes."
        ),
        false => format!("Refused {tool} of {name}. Nothing was run or changed."),
    })
}

fn record(desk: &Desk, asked: &AskedCall, is_allowed: bool, refused: Option<&CannotDecide>) {
    let path = asked.paths.first().map(ToString::to_string).unwrap_or_default();
    let server = asked.server.as_deref().unwrap_or_default();
    let Some(record) = desk.recorded_as(RECORDED_AS, server, &path) else {
        return;
    };
    let what = if is_allowed { "allowed" } else { "refused" };
    let (decision, outcome) = match refused {
        None => (Decision::Allowed, Outcome::Completed),
        Some(CannotDecide::Own) => (Decision::Denied { rule: "approvals" }, Outcome::Failed),
        Some(CannotDecide::Gone) => (Decision::Allowed, Outcome::Failed),
    };
    let told = format!("{}: {what} {} of {}", asked.rules, asked.tool, asked.principal);
    let told = refused.is_none().then_some(told);
    record.with_approval(told).end(decision, outcome);
}
