//! Front page: what this is, how to connect each client, and the login for people.

use maud::{Markup, html};

use super::{
    Reply, Site, Visit,
    desk::Desk,
    layout::{Frame, brand, document, footer},
};

/// Stands for the token, which no page shows.
const TOKEN: &str = "TOKEN";

/// Configuration of one client.
struct Client {
    id: &'static str,
    name: &'static str,
    /// File or dialog in which the text belongs.
    place: Markup,
    text: String,
}

/// The first page of those who are not logged in.
pub(super) fn front(visit: &Visit, csrf: &str, service: Option<&str>, problem: Option<&str>) -> Markup {
    let root = visit.root();
    // Where people can log in at a service, so can clients.
    let has_browser_login = service.is_some();
    let body = html! {
        header.top { div.bar { (brand(root)) nav aria-label="On this page" { a href="#connect" { "Connect" } a href="#login" { "Log in" } } } }
        main #main tabindex="-1" {
            div.hero {
                div {
                    h1 { "Agents at work in your notebooks" }
                    p.lead {
                        "This gateway is one address through which any number of agents work live in Jupyter, next to the people who have \
                         the same notebooks open. Edits appear at once in everybody's JupyterLab, runs go on when a client leaves, and \
                         every change can be taken back."
                    }
                    dl.facts {
                        div { dt { "MCP endpoint" } dd { code #endpoint { (endpoint(&visit.site)) } (copy("endpoint", "the address")) } }
                        div {
                            dt { "Sign in with" }
                            dd {
                                @if has_browser_login { "your browser, which clients open by themselves; or a bearer token that your operator gave you" }
                                @else { "the bearer token that your operator gave you, or that the gateway printed at its start" }
                            }
                        }
                    }
                }
                (login(root, csrf, service, problem))
            }
            (clients(&visit.site, has_browser_login))
        }
        (footer())
    };
    document(root, "Welcome", body)
}

/// The same for those who are.
pub(super) fn page(desk: &Desk, site: &Site) -> Reply {
    let frame = Frame {
        title: "Connect a client",
        current: "Connect",
        live: None,
        body: html! {
            h1 { "Connect a client" }
            dl.facts {
                div { dt { "MCP endpoint" } dd { code #endpoint { (endpoint(site)) } (copy("endpoint", "the address")) } }
            }
            (clients(site, desk.console.has_browser_login()))
        },
    };
    frame.show(desk)
}

/// The way in: at the service at which people can log in, if there is one, or with a token.
fn login(root: &str, csrf: &str, service: Option<&str>, problem: Option<&str>) -> Markup {
    html! {
        section.card.login aria-labelledby="login" {
            h2 #login { "Log in" }
            p { "See what your agents do: open notebooks, runs, history, and changes that wait for you." }
            @if let Some(service) = service {
                p { a.button.primary #upstream href={ (root) "oauth/login" } { "Log in with " (service) } }
                p { "Or with a token:" }
            }
            @if let Some(problem) = problem { p.message.bad role="alert" #problem { (problem) } }
            form method="post" action={ (root) "console/login" } {
                input type="hidden" name="csrf" value=(csrf);
                // Password managers keep a token only with a name.
                input.hidden type="text" name="username" value="token" autocomplete="username" tabindex="-1" aria-hidden="true" readonly;
                label for="token" { "Token" }
                input #token type="password" name="token" required autofocus[problem.is_some()] autocomplete="current-password" spellcheck="false"
                    autocapitalize="none" aria-invalid=[problem.map(|_| "true")] aria-describedby=[problem.map(|_| "problem")];
                button.primary type="submit" { "Log in" }
            }
        }
    }
}

fn clients(site: &Site, has_browser_login: bool) -> Markup {
    let url = endpoint(site);
    html! {
        section aria-labelledby="connect" {
            h2 #connect { "Connect a client" }
            @if has_browser_login {
                p.quiet { "The address is enough: the client opens your browser, where you log in and allow it." }
                (cards(&by_browser(&url)))
                details.by-token {
                    summary { "With a token, for clients and programs without a browser" }
                    (token_note())
                    (cards(&by_token(&url)))
                }
            } @else {
                (token_note())
                (cards(&by_token(&url)))
            }
        }
    }
}

fn token_note() -> Markup {
    html! { p.quiet { "Put your token in the place of " code { (TOKEN) } ". It is never shown on these pages." } }
}

fn cards(clients: &[Client]) -> Markup {
    html! {
        div.clients {
            @for client in clients {
                article.card aria-labelledby={ (client.id) "-name" } {
                    div.head { h3 id={ (client.id) "-name" } { (client.name) } (copy(client.id, client.name)) }
                    p.quiet { (client.place) }
                    pre.code id=(client.id) tabindex="0" role="group" aria-label={ "Text for " (client.name) } { (client.text) }
                }
            }
        }
    }
}

/// A button that copies what an element shows. Without the script there is none.
fn copy(id: &str, what: &str) -> Markup {
    html! { button.copy type="button" data-copy=(id) hidden { "Copy" span.hidden { " " (what) } } }
}

fn endpoint(site: &Site) -> String {
    format!("{}mcp", site.url)
}

fn by_browser(url: &str) -> [Client; 3] {
    [
        Client {
            id: "claude-code-login",
            name: "Claude Code",
            place: html! { "In a terminal, then " code { "/mcp" } " in Claude Code to log in:" },
            text: format!("claude mcp add --transport http jupyter {url}"),
        },
        Client {
            id: "cursor-login",
            name: "Cursor",
            place: cursor_place(),
            text: format!("{{\n  \"mcpServers\": {{\n    \"jupyter\": {{ \"url\": \"{url}\" }}\n  }}\n}}"),
        },
        Client {
            id: "vs-code-login",
            name: "VS Code",
            place: vs_code_place(),
            text: format!(
                "{{\n  \"servers\": {{\n    \"jupyter\": {{ \"type\": \"http\", \"url\": \"{url}\" }}\n  }}\n}}"
            ),
        },
    ]
}

fn cursor_place() -> Markup {
    html! { "In " code { "~/.cursor/mcp.json" } ":" }
}

fn vs_code_place() -> Markup {
    html! { "In " code { ".vscode/mcp.json" } ":" }
}

fn by_token(url: &str) -> [Client; 4] {
    let header = format!("Authorization: Bearer {TOKEN}");
    let entry = |extra: &str| {
        format!(
            "    \"jupyter\": {{\n{extra}      \"url\": \"{url}\",\n      \"headers\": {{ \"Authorization\": \"Bearer {TOKEN}\" }}\n    }}"
        )
    };
    [
        Client {
            id: "claude-code",
            name: "Claude Code",
            place: html! { "In a terminal:" },
            text: format!("claude mcp add --transport http jupyter \\\n  {url} \\\n  --header \"{header}\""),
        },
        Client {
            id: "cursor",
            name: "Cursor",
            place: cursor_place(),
            text: format!("{{\n  \"mcpServers\": {{\n{}\n  }}\n}}", entry("")),
        },
        Client {
            id: "vs-code",
            name: "VS Code",
            place: vs_code_place(),
            text: format!(
                "{{\n  \"servers\": {{\n{}\n  }}\n}}",
                entry("      \"type\": \"http\",\n")
            ),
        },
        Client {
            id: "python",
            name: "Python",
            place: html! { "After " code { "pip install mcp" } ":" },
            text: python(url),
        },
    ]
}

fn python(url: &str) -> String {
    format!(
        r#"import asyncio
from mcp import Client
from mcp.client.streamable_http import (
    create_mcp_http_client, streamable_http_client)

async def main():
    http = create_mcp_http_client(
        headers={{"Authorization": "Bearer {TOKEN}"}})
    gateway = streamable_http_client("{url}", http_client=http)
    async with Client(gateway) as client:
        print(await client.call_tool("list_nbs", {{}}))

asyncio.run(main())"#
    )
}
