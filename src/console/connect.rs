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
                        div { dt { "Sign in with" } dd { "the bearer token that your operator gave you, or that the gateway printed at its start" } }
                    }
                }
                (login(root, csrf, service, problem))
            }
            (clients(&visit.site))
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
            (clients(site))
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
                input #token type="password" name="token" required autocomplete="current-password" spellcheck="false"
                    autocapitalize="none" aria-invalid=[problem.map(|_| "true")] aria-describedby=[problem.map(|_| "problem")];
                button.primary type="submit" { "Log in" }
            }
        }
    }
}

fn clients(site: &Site) -> Markup {
    html! {
        section aria-labelledby="connect" {
            h2 #connect { "Connect a client" }
            p.quiet { "Put your token in the place of " code { (TOKEN) } ". It is never shown on these pages." }
            div.clients {
                @for client in all(&endpoint(site)) {
                    section.card aria-labelledby={ (client.id) "-name" } {
                        div.head { h3 id={ (client.id) "-name" } { (client.name) } (copy(client.id, client.name)) }
                        p.quiet { (client.place) }
                        pre.code id=(client.id) tabindex="0" { (client.text) }
                    }
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

fn all(url: &str) -> [Client; 4] {
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
            place: html! { "In " code { "~/.cursor/mcp.json" } ":" },
            text: format!("{{\n  \"mcpServers\": {{\n{}\n  }}\n}}", entry("")),
        },
        Client {
            id: "vs-code",
            name: "VS Code",
            place: html! { "In " code { ".vscode/mcp.json" } ":" },
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
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

async def main():
    http = create_mcp_http_client(headers={{"Authorization": "Bearer {TOKEN}"}})
    async with Client(streamable_http_client("{url}", http_client=http)) as client:
        print(await client.call_tool("list_nbs", {{}}))

asyncio.run(main())"#
    )
}
