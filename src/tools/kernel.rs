//! Tools about kernels.

mod assign;
mod inspect;
mod restart;
mod running;

pub(super) use assign::kernelspec;
pub(super) use inspect::InspectError;
pub(super) use restart::{restart_kernel, start_kernel};
pub(super) use running::{UsedKernel, visible_kernel};

use jupyter_client::Kernelspec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Effect, ToolDefinition, ToolError, definition::WORK_COST, notebook::require_notebook_name};
use crate::tools::text::described_by;
use crate::tools::text::{Describe, Page};
use crate::types::{Permission, Toolset};

pub(super) fn tools() -> Vec<ToolDefinition> {
    let kernel = Toolset::Kernel;
    vec![
        ToolDefinition::new(
            kernel,
            "list_available_kernels",
            "Lists the kernels a server can start.",
            Effect::Read,
            list_available_kernels,
        ),
        ToolDefinition::new(
            kernel,
            "assign_nb_kernel",
            "Gives a notebook another kernel; the one it had ends.",
            Effect::Execute,
            assign::assign_nb_kernel,
        )
        // The notebook names its kernel.
        .also_needs(Permission::Write),
        ToolDefinition::new(
            kernel,
            "restart_nb_kernel",
            "Restarts a notebook's kernel, which loses its variables, and executes all cells (`exec`).",
            Effect::Execute,
            restart::restart_nb_kernel,
        ),
        ToolDefinition::new(
            kernel,
            "interrupt_nb_kernel",
            "Interrupts what a notebook's kernel runs, whoever started it.",
            Effect::Execute,
            interrupt_nb_kernel,
        )
        .costing(1),
        ToolDefinition::new(
            kernel,
            "list_kernels",
            "Lists the kernels that run, with their state and notebook.",
            Effect::Read,
            running::list_kernels,
        ),
        ToolDefinition::new(
            kernel,
            "shutdown_kernel",
            "Ends a kernel; its variables are gone, and what runs there is cancelled.",
            Effect::Execute,
            running::shutdown_kernel,
        )
        .costing(1),
        ToolDefinition::new(
            kernel,
            "inspect_variables",
            "Lists a kernel's variables with type, shape and preview, or one in detail (`name`), also while a cell runs.",
            Effect::Read,
            inspect::inspect_variables,
        )
        .costing(WORK_COST)
        // A kernel holds more than its notebook shows.
        .also_needs(Permission::Execute),
    ]
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

impl Describe for Kernels {
    fn describe(&self, page: &mut Page) {
        page.items(self.kernels.iter().map(|kernel| {
            let default = if kernel.default { " (default)" } else { "" };
            format!("{}{default}: {}, {}", kernel.name, kernel.display_name, kernel.language)
        }));
    }
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

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InterruptArguments {
    path: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Interrupted {
    message: String,
    kernel_interrupted: bool,
}

described_by!(message: Interrupted);

async fn interrupt_nb_kernel(call: Call, arguments: InterruptArguments) -> Result<Interrupted, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    require_notebook_name("path", &path)?;
    let Some(kernel) = server.kernel_of(&path).await? else {
        server.document(&path).await?;
        return Ok(Interrupted {
            message: format!("No kernel runs for '{path}', so there is nothing to interrupt"),
            kernel_interrupted: false,
        });
    };
    call.engine().interrupted(server, &path, call.actor()).await;
    server.interrupt_kernel(&kernel.id).await?;
    Ok(Interrupted {
        message: format!("Successfully interrupted the kernel of '{path}'"),
        kernel_interrupted: true,
    })
}
