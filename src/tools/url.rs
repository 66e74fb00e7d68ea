//! Tools that convert URLs into paths and back.

use jupyter_client::locate_notebook;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Effect, ToolDefinition, ToolError};
use crate::tools::text::{Describe, Page, described_by};
use crate::types::Toolset;

pub(super) fn tools() -> Vec<ToolDefinition> {
    vec![
        ToolDefinition::new(
            Toolset::Url,
            "get_base_url",
            "Returns a Jupyter server's base URL.",
            Effect::Read,
            get_base_url,
        ),
        ToolDefinition::new(
            Toolset::Url,
            "nb_path_from_url",
            "Finds a notebook's server and path from its URL in a browser.",
            Effect::Read,
            nb_path_from_url,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BaseUrlArguments {
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct BaseUrl {
    base_url: String,
    server: String,
}

described_by!(base_url: BaseUrl);

async fn get_base_url(call: Call, arguments: BaseUrlArguments) -> Result<BaseUrl, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    Ok(BaseUrl {
        base_url: server.public_base_url().to_owned(),
        server: server.name().to_owned(),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FromUrlArguments {
    url: String,
}

#[derive(Serialize, JsonSchema)]
struct FromUrl {
    original_url: String,
    base_url: String,
    notebook_path: String,
    server: String,
}

impl Describe for FromUrl {
    fn describe(&self, page: &mut Page) {
        let Self {
            notebook_path, server, ..
        } = self;
        page.line(format_args!("path {notebook_path:?}, server {server:?}"));
    }
}

async fn nb_path_from_url(call: Call, arguments: FromUrlArguments) -> Result<FromUrl, ToolError> {
    let found = locate_notebook(&arguments.url, call.servers().iter().map(AsRef::as_ref))?;
    call.principal().require_path(&found.path)?;
    Ok(FromUrl {
        base_url: found.base_url.to_owned(),
        notebook_path: found.path.to_string(),
        server: found.server.to_owned(),
        original_url: arguments.url,
    })
}
