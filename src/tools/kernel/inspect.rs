//! `inspect_variables`: a look into a running kernel that leaves no trace there and works while a cell runs.
//!
//! ipykernel takes requests to execute on its control channel too, where none waits behind a cell. A subshell would answer
//! as well, but it takes the output of threads that cells have started away from their cells, and there is one only since
//! ipykernel 7. Other kernels for Python are asked on the shell channel, while they are idle.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jupyter_client::{
    DocPath, JupyterServer, RunningKernel, counted,
    kernel::{Channel, KernelError, KernelLink},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    error::{ClientError, ErrorKind},
    tools::{
        Call, ToolError,
        notebook::require_notebook_name,
        text::{Describe, Page},
    },
};

/// Longest wait for a kernel to say what it is.
const KERNEL_INFO_TIMEOUT: Duration = Duration::from_secs(5);
/// The look gives up by itself after 2 s; code that holds Python's lock can delay that.
const INSPECT_TIMEOUT: Duration = Duration::from_secs(8);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

const QUIET: &str = include_str!("inspect/quiet.py");
const LOOK: &str = include_str!("inspect/look.py");

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    /// One variable in detail
    name: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Variables {
    path: String,
    /// Null if no kernel runs
    kernel: Option<String>,
    variables: Vec<Variable>,
    /// Names of others, which are not described
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Variable {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    shape: Option<Vec<Option<u64>>>,
    /// Bytes
    size: Option<u64>,
    preview: Option<String>,
    /// Columns of a table, attributes of an object
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<Attribute>,
    #[serde(default, skip_serializing_if = "is_zero")]
    more_attributes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
    /// The library of a function or class that the notebook did not define
    #[serde(default, skip_serializing_if = "Option::is_none")]
    imported: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Attribute {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    preview: Option<String>,
}

/// Answer of the look, as the kernel gives it.
#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    variables: Vec<Variable>,
    #[serde(default)]
    left_out: Vec<String>,
    /// Names like the one that is not there.
    near: Option<Vec<String>>,
}

/// Reason why the variables of a kernel cannot be seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    #[error(
        "the kernel of '{path}' runs {language}, and variables can be seen in Python kernels only; run_code can print them"
    )]
    Language { path: String, language: String },
    #[error(
        "the kernel of '{path}' is busy, and {implementation} does not answer meanwhile as ipykernel does; try again when it is idle"
    )]
    Busy { path: String, implementation: String },
    #[error("the kernel of '{path}' did not answer within {} s: it may be starting, or in code that lets no other run; try again", within.as_secs())]
    Silent { path: String, within: Duration },
    #[error("the kernel of '{path}' could not look at its variables: {why}")]
    Failed { path: String, why: String },
}

impl ClientError for InspectError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Language { .. } => ErrorKind::InvalidArgument,
            Self::Busy { .. } => ErrorKind::Conflict,
            Self::Silent { .. } | Self::Failed { .. } => ErrorKind::Upstream,
        }
    }
}

pub(super) async fn inspect_variables(call: Call, arguments: Arguments) -> Result<Variables, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let path = call.file(&arguments.path)?;
    require_notebook_name("path", &path)?;
    let Some(kernel) = server.kernel_of(&path).await? else {
        server.document(&path).await?;
        if let Some(name) = arguments.name {
            let why = format!("there is no {name:?}, since no kernel runs for '{path}'; executing a cell starts one");
            return Err(ToolError::argument("name", why));
        }
        return Ok(Variables {
            path: path.to_string(),
            kernel: None,
            variables: Vec::new(),
            left_out: Vec::new(),
        });
    };
    let found = look(&call, &server, &path, &kernel, arguments.name.as_deref()).await?;
    if let (Some(near), Some(name)) = (found.near, arguments.name) {
        let near = match near.is_empty() {
            true => "it has none".to_owned(),
            false => format!("some that it has: {}", near.join(", ")),
        };
        let why = format!("the kernel of '{path}' has no variable {name:?}; {near}");
        return Err(ToolError::argument("name", why));
    }
    Ok(Variables {
        path: path.to_string(),
        kernel: Some(kernel.name),
        variables: found.variables,
        left_out: found.left_out,
    })
}

/// Inspects through the connection that runs code there, if there is one, or through one of its own.
async fn look(
    call: &Call,
    server: &Arc<JupyterServer>,
    path: &DocPath,
    kernel: &RunningKernel,
    name: Option<&str>,
) -> Result<Found, ToolError> {
    let glance = Glance {
        path,
        name,
        is_busy: kernel.execution_state == "busy" || call.engine().busy_with(server.name(), path) > 0,
    };
    // What earlier processes left to be picked up at a kernel goes to who connects to it first.
    call.engine().settled_in().await;
    if let Some(link) = call.engine().link_to(server, path, &kernel.id).await {
        return glance.at(&link).await;
    }
    let session = uuid::Uuid::new_v4().to_string();
    let connecting = KernelLink::connect(Arc::clone(server), &kernel.id, &session);
    let connected = timeout(CONNECT_TIMEOUT, connecting).await;
    let (link, mut events) = connected.map_err(|_| glance.silent(CONNECT_TIMEOUT))??;
    let looked = tokio::select! {
        looked = glance.at(&link) => looked,
        () = async { while events.recv().await.is_some() {} } => {
            Err(kernel_error(KernelError::Closed { kernel: kernel.id.clone() }))
        }
    };
    link.close();
    looked
}

/// A look at the variables of a notebook's kernel.
struct Glance<'a> {
    path: &'a DocPath,
    /// The only one that is wanted.
    name: Option<&'a str>,
    is_busy: bool,
}

impl Glance<'_> {
    async fn at(&self, link: &KernelLink) -> Result<Found, ToolError> {
        let path = self.path.to_string();
        let info = self.ask(
            link,
            Channel::Control,
            "kernel_info_request",
            json!({}),
            KERNEL_INFO_TIMEOUT,
        );
        let info = info.await?;
        let text = |pointer: &str| {
            info.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or("unknown")
                .to_owned()
        };
        let (language, implementation) = (text("/language_info/name"), text("/implementation"));
        if language != "python" {
            return Err(InspectError::Language { path, language }.into());
        }
        let channel = match implementation.as_str() {
            "ipython" => Channel::Control,
            _ if self.is_busy => return Err(InspectError::Busy { path, implementation }.into()),
            _ => Channel::Shell,
        };
        let reply = self.ask(link, channel, "execute_request", request(self.name), INSPECT_TIMEOUT);
        let reply = reply.await?;
        read(&reply).map_err(|why| InspectError::Failed { path, why }.into())
    }

    async fn ask(
        &self,
        link: &KernelLink,
        channel: Channel,
        msg_type: &str,
        content: Value,
        within: Duration,
    ) -> Result<Value, ToolError> {
        let reply = timeout(within, link.ask(channel, msg_type, content)).await;
        reply.map_err(|_| self.silent(within))?.map_err(kernel_error)
    }

    fn silent(&self, within: Duration) -> InspectError {
        let path = self.path.to_string();
        InspectError::Silent { path, within }
    }
}

fn kernel_error(error: KernelError) -> ToolError {
    executor::ExecutionError::from(error).into()
}

/// The request: code that is in no history and names of its own that are in no namespace of the user's.
fn request(name: Option<&str>) -> Value {
    let encode = |text: &str| BASE64_STANDARD.encode(text);
    let asked = encode(&json!({ "name": name }).to_string());
    let run = |code: &str| format!("b.exec(b.__import__('base64').b64decode('{}'), g)", encode(code));
    let code = format!("(lambda b, g: {})(__import__('builtins'), {{}})", run(QUIET));
    let expression = format!(
        "(lambda b, g: ({}, g['look'](b.globals(), '{asked}'))[1])(__import__('builtins'), {{}})",
        run(LOOK)
    );
    json!({
        "code": code,
        "silent": true,
        "store_history": false,
        "user_expressions": { "look": expression },
        // Not to ask anything, but a cell that runs meanwhile could not any more without.
        "allow_stdin": true,
        "stop_on_error": false,
    })
}

/// Reads the text of the expression's value: base64 in quotes.
fn read(reply: &Value) -> Result<Found, String> {
    let failure = |of: &Value| {
        let text = |member: &str| of[member].as_str().unwrap_or("unknown").to_owned();
        format!("{}: {}", text("ename"), text("evalue"))
    };
    let value = &reply["user_expressions"]["look"];
    let Some(text) = value["data"]["text/plain"].as_str() else {
        return Err(failure(if value.is_object() { value } else { reply }));
    };
    let decoded = BASE64_STANDARD.decode(text.trim_matches('\'')).ok();
    let found = decoded.and_then(|json| serde_json::from_slice(&json).ok());
    found.ok_or_else(|| "its answer cannot be read".to_owned())
}

impl Describe for Variables {
    fn describe(&self, page: &mut Page) {
        let Some(kernel) = &self.kernel else {
            page.line(format_args!("{}: no kernel runs, so there are no variables", self.path));
            return;
        };
        let count = counted(self.variables.len() + self.left_out.len(), "variable");
        page.line(format_args!("{} ({kernel}): {count}", self.path));
        let (modules, others): (Vec<_>, Vec<_>) = self.variables.iter().partition(|one| one.kind == "module");
        let is_folded = |one: &&Variable| one.imported.is_some() && self.variables.len() > 1;
        let (imported, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_folded);
        let is_whole = |variable: &&Variable| variable.attributes.is_empty();
        if let [one] = self.variables.as_slice()
            && !is_whole(&one)
        {
            page.line(one);
            page.block(one.doc.as_deref().unwrap_or_default());
            let told = page.items(&one.attributes);
            let more = one.attributes.len() - told + one.more_attributes;
            if more > 0 {
                page.line(format_args!("[{more} more]"));
            }
            return;
        }
        let told = page.items(&others);
        let untold: Vec<&str> = others[told..].iter().map(|one| one.name.as_str()).collect();
        if !modules.is_empty() {
            let named = modules.iter().map(|one| match &one.preview {
                Some(module) if *module != one.name => format!("{} ({module})", one.name),
                _ => one.name.clone(),
            });
            page.line(format_args!("modules: {}", named.collect::<Vec<_>>().join(", ")));
        }
        if !imported.is_empty() {
            page.line(format_args!("imported: {}", by_library(&imported)));
        }
        let unseen = untold.into_iter().chain(self.left_out.iter().map(String::as_str));
        let unseen = unseen.collect::<Vec<_>>().join(", ");
        if !unseen.is_empty() {
            page.line(format_args!(
                "[not described: {unseen}; inspect_variables(name=...) shows one]"
            ));
        }
    }
}

/// Names of functions and classes, after each library's its name.
fn by_library(imported: &[&Variable]) -> String {
    let mut libraries: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in imported {
        let library = one.imported.as_deref().unwrap_or_default();
        libraries.entry(library).or_default().push(&one.name);
    }
    let told = libraries
        .iter()
        .map(|(library, names)| format!("{} ({library})", names.join(", ")));
    told.collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.kind)?;
        if let Some(shape) = self.shape.as_ref().filter(|shape| !shape.is_empty()) {
            let sizes = shape
                .iter()
                .map(|size| size.map_or_else(|| "?".to_owned(), |size| size.to_string()));
            write!(f, " [{}]", sizes.collect::<Vec<_>>().join(" x "))?;
        }
        match self.preview.as_deref() {
            Some("") | None => Ok(()),
            Some(preview) => write!(f, " = {preview}"),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let preview = self.preview.as_deref().unwrap_or_default();
        write!(f, "  .{}: {} = {preview}", self.name, self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_fails_to_look_says_why() {
        let failed = json!({ "user_expressions": { "look": { "status": "error", "ename": "E", "evalue": "v" } } });
        assert_eq!(read(&failed).err().as_deref(), Some("E: v"));
        let aborted = json!({ "status": "error", "ename": "KeyboardInterrupt", "evalue": "" });
        assert_eq!(read(&aborted).err().as_deref(), Some("KeyboardInterrupt: "));
        let odd = json!({ "user_expressions": { "look": { "data": { "text/plain": "'%'" } } } });
        assert!(read(&odd).is_err());
    }

    #[test]
    fn variables_are_told_a_line_each_and_modules_in_one() {
        let variable = |name: &str, kind: &str, preview: &str| Variable {
            name: name.to_owned(),
            kind: kind.to_owned(),
            shape: (kind == "list").then(|| vec![Some(2), None]),
            size: None,
            preview: Some(preview.to_owned()),
            attributes: Vec::new(),
            more_attributes: 0,
            doc: None,
            imported: (kind == "function").then(|| preview.to_owned()),
        };
        let all = Variables {
            path: "a.ipynb".to_owned(),
            kernel: Some("python3".to_owned()),
            variables: vec![
                variable("np", "module", "numpy"),
                variable("x", "list", "[1, 2]"),
                variable("re", "module", "re"),
                variable("show", "function", "bokeh"),
                variable("empty", "dict", ""),
            ],
            left_out: vec!["y".to_owned()],
        };
        let mut page = Page::new(10_000);
        all.describe(&mut page);
        assert_eq!(
            page.into_text(),
            "a.ipynb (python3): 6 variables\nx: list [2 x ?] = [1, 2]\nempty: dict\nmodules: np (numpy), re\n\
             imported: show (bokeh)\n[not described: y; inspect_variables(name=...) shows one]"
        );
    }
}
