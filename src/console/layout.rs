//! The frame of all pages: head, navigation, messages, and the pages that say that something cannot be shown.

use bytes::Bytes;
use http::StatusCode;
use maud::{DOCTYPE, Markup, html};

use super::{
    Reply,
    desk::{Desk, Failure},
    markup::csrf,
    reply,
    session::Told,
};
use crate::{error::ErrorKind, types::Permission};

/// A page of a visitor.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    /// The page of the navigation that it belongs to.
    pub(super) current: &'a str,
    /// Query by which the page is followed while it is open.
    pub(super) live: Option<String>,
    pub(super) body: Markup,
}

impl Frame<'_> {
    pub(super) fn show(self, desk: &Desk) -> Reply {
        self.show_as(desk, StatusCode::OK)
    }

    fn show_as(self, desk: &Desk, status: StatusCode) -> Reply {
        let live = self.live.map(|query| format!("{}console/live?{query}", desk.root));
        let told = desk.visitor.session.take_told();
        let main = html! {
            (header(desk, self.current))
            main #main tabindex="-1" data-live=[live] {
                @if let Some(told) = told { (message(&told)) }
                (self.body)
            }
            (footer())
        };
        reply::page(status, document(desk.root, self.title, main))
    }
}

/// A document around the content of its body.
pub(super) fn document(root: &str, title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) " · Jupyter MCP Gateway" }
                link rel="icon" type="image/svg+xml" href={ (root) "console/icon.svg" };
                link rel="stylesheet" href={ (root) "console/console.css" };
                script src={ (root) "console/console.js" } defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (body)
                div #announcements .hidden role="status" aria-live="polite" {}
            }
        }
    }
}

/// The name of the product, which leads to the first page.
pub(super) fn brand(root: &str) -> Markup {
    html! {
        a.brand href={ (root) "console" } {
            img src={ (root) "console/icon.svg" } alt="" width="28" height="28";
            span { "Jupyter MCP Gateway" }
        }
    }
}

fn header(desk: &Desk, current: &str) -> Markup {
    let principal = &desk.visitor.principal;
    let link = |name: &str, path: &str| {
        let is_current = name == current;
        html! { a href={ (desk.root) (path) } aria-current=[is_current.then_some("page")] { (name) } }
    };
    html! {
        header.top {
            div.bar {
                (brand(desk.root))
                nav aria-label="Pages" {
                    (link("Overview", "console"))
                    (link("Connect", "console/connect"))
                    @if desk.may(Permission::Admin) { (link("Audit", "console/audit")) }
                }
                div.who {
                    span.name { (principal.name) }
                    span.tenant { span.hidden { "of tenant " } (principal.tenant.name) }
                    form.inline method="post" action={ (desk.root) "console/logout" } {
                        (csrf(desk))
                        button.plain type="submit" { "Log out" }
                    }
                }
            }
        }
    }
}

pub(super) fn footer() -> Markup {
    html! {
        footer {
            p {
                "jupyter-mcp-gateway " (env!("CARGO_PKG_VERSION"))
                span #liveness {}
            }
            noscript { p { "Without its script this page shows what was when it was loaded." } }
        }
    }
}

fn message(told: &Told) -> Markup {
    match told {
        Told::Done(text) => html! { p.message.good role="status" { (text) } },
        Told::Failed(text) => html! { p.message.bad role="alert" { (text) } },
    }
}

/// The page of something that a visitor cannot see.
pub(super) fn failure(desk: &Desk, failure: &Failure) -> Reply {
    let status = match failure.kind {
        ErrorKind::InvalidArgument | ErrorKind::Conflict => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::Upstream => StatusCode::BAD_GATEWAY,
        ErrorKind::Limit => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let frame = Frame {
        title: "Cannot be shown",
        current: "",
        live: None,
        body: html! {
            h1 { "This cannot be shown" }
            p.message.bad role="alert" { (failure) }
            p { a href={ (desk.root) "console" } { "Back to the overview" } }
        },
    };
    frame.show_as(desk, status)
}

/// The page of a path at which there is nothing.
pub(super) fn lost(root: &str) -> Reply {
    refusal(root, StatusCode::NOT_FOUND, "There is no such page.")
}

/// A page for a request that was refused before anybody looked at it.
pub(super) fn refusal(root: &str, status: StatusCode, message: &str) -> Reply {
    let body = html! {
        header.top { div.bar { (brand(root)) } }
        main #main tabindex="-1" {
            h1 { (status.canonical_reason().unwrap_or("Refused")) }
            p.message.bad role="alert" { (message) }
            p { a href={ (root) "console" } { "To the first page" } }
        }
        (footer())
    };
    reply::page(status, document(root, "Refused", body))
}

/// The page after a login elsewhere, which leads on: browsers that come from there keep the cookies of this site back.
pub(super) fn onward() -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="robots" content="noindex";
                meta http-equiv="refresh" content="0; url=../console";
                title { "Logged in · Jupyter MCP Gateway" }
            }
            body { p { "You are logged in. " a href="../console" { "Go on" } } }
        }
    }
}

/// The answer to a page that asks for news after its session has ended: browsers do not ask again.
pub(super) fn over() -> Reply {
    let mut reply = http::Response::new(super::Content::Whole(Bytes::new()));
    *reply.status_mut() = StatusCode::UNAUTHORIZED;
    reply
}
