//! Tools about kernels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Effect, ToolDefinition, ToolError};
use crate::{jupyter::Kernelspec, types::Toolset};

pub(super) fn tools() -> Vec<ToolDefinition> {
    vec![ToolDefinition::new(
        Toolset::Kernel,
        "list_available_kernels",
        "Lists the kernels (languages) a Jupyter server can start.",
        Effect::Read,
        list_available_kernels,
    )]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KernelsArguments {
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Kernels {
    kernels: Vec<KernelEntry>,
}

#[derive(Serialize, JsonSchema)]
struct KernelEntry {
    name: String,
    display_name: String,
    language: String,
    path: String,
    default: bool,
}

impl From<Kernelspec> for KernelEntry {
    fn from(spec: Kernelspec) -> Self {
        Self {
            name: spec.name,
            display_name: spec.display_name,
            language: spec.language,
            path: spec.path,
            default: spec.is_default,
        }
    }
}

async fn list_available_kernels(call: Call, arguments: KernelsArguments) -> Result<Kernels, ToolError> {
    let specs = call.server(arguments.server.as_deref())?.kernelspecs().await?;
    Ok(Kernels {
        kernels: specs.into_iter().map(KernelEntry::from).collect(),
    })
}
