//! Banner that a person reads at start: the URL, the token, and lines to paste into each popular client.

use std::{fmt, net::SocketAddr};

use jupyter_client::Secret;

use super::lab::Lab;
use crate::config::Config;

pub struct Banner {
    url: String,
    /// Shown only if the gateway made it; a configured token is its owner's.
    token: Option<String>,
    /// The page for people, if there is one.
    page: Option<String>,
    servers: Vec<(String, String)>,
    lab_url: Option<String>,
}

impl Banner {
    pub fn new(config: &Config, address: SocketAddr, token: Option<&Secret>, lab: Option<&Lab>) -> Self {
        let url = match &config.http.public_url {
            Some(url) => format!("{}/mcp", url.as_str().trim_end_matches('/')),
            None => format!("{}://{address}/mcp", config.http.scheme()),
        };
        Self {
            page: config.console.enabled.then(|| url.trim_end_matches("mcp").to_owned()),
            url,
            token: token.map(|token| token.expose().to_owned()),
            servers: config
                .servers
                .iter()
                .map(|server| (server.name.clone(), server.url.to_string()))
                .collect(),
            lab_url: lab.map(|lab| format!("{}lab?token={}", lab.url(), lab.token())),
        }
    }
}

impl fmt::Display for Banner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, servers, .. } = self;
        let token = self.token.as_deref().unwrap_or("YOUR_TOKEN");
        writeln!(f, "\nJupyter MCP Gateway is running.\n")?;
        writeln!(f, "  MCP URL      {url}")?;
        if self.token.is_some() {
            writeln!(f, "  Token        {token}")?;
            writeln!(
                f,
                "               (the same at every start; `serve --new-token` makes another)"
            )?;
        }
        if let Some(page) = &self.page {
            writeln!(f, "  In a browser {page} (log in with the token)")?;
        }
        for (name, server) in servers {
            writeln!(f, "  Jupyter      {name}: {server}")?;
        }
        if let Some(lab) = &self.lab_url {
            writeln!(f, "  JupyterLab   {lab}")?;
        }
        writeln!(f, "\nClaude Code:\n")?;
        writeln!(
            f,
            "  claude mcp add --transport http jupyter {url} --header \"Authorization: Bearer {token}\""
        )?;
        writeln!(f, "\nVS Code (.vscode/mcp.json):\n")?;
        writeln!(
            f,
            r#"  {{"servers": {{"jupyter": {{"type": "http", "url": "{url}", "headers": {{"Authorization": "Bearer {token}"}}}}}}}}"#
        )?;
        writeln!(f, "\nCursor (~/.cursor/mcp.json):\n")?;
        writeln!(
            f,
            r#"  {{"mcpServers": {{"jupyter": {{"url": "{url}", "headers": {{"Authorization": "Bearer {token}"}}}}}}}}"#
        )?;
        writeln!(f, "\nPython (pip install mcp):\n")?;
        // Not indented like the rest: Python would refuse what was pasted.
        writeln!(f, "{}", PYTHON.replace("{url}", url).replace("{token}", token))?;
        writeln!(f)
    }
}

const PYTHON: &str = r#"import asyncio
from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

async def main():
    http = create_mcp_http_client(headers={"Authorization": "Bearer {token}"})
    async with Client(streamable_http_client("{url}", http_client=http)) as client:
        print(await client.call_tool("list_nbs", {}))

asyncio.run(main())"#;
