//! Tool calls of one visitor, from which pages are made, with every check and record that agents' calls have.

use std::{fmt, sync::Arc};

use jupyter_client::DocPath;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Console, Place, Visitor};
use crate::{
    audit::{AuditedCall, Decision, Origin, Outcome},
    error::{ClientError, ErrorKind},
    tools::{Block, Call, Client, Output, Scope, ToolDefinition, ToolError},
    types::Permission,
};

/// Name under which looking at pages is recorded.
pub(super) const RECORDED_AS: &str = "console";

/// A visitor at the console, for the time of one request or of one live page.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) console: Arc<Console>,
    pub(super) visitor: Visitor,
    pub(super) scope: Scope,
    pub(super) origin: Origin,
    /// Relative path from the page to the root.
    pub(super) root: &'static str,
}

/// Reason why something cannot be shown or done, in words for the person.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    /// The rule that forbids it, if one does.
    pub(super) rule: Option<&'static str>,
    message: String,
}

impl Desk {
    /// Returns whether the visitor's tenant has the tool and their token may use it.
    pub(super) fn may_use(&self, tool: &str) -> bool {
        let definition = self.console.tool(tool);
        definition.is_some_and(|tool| self.offers(tool) && tool.permissions().all(|needed| self.may(needed)))
    }

    pub(super) fn may(&self, permission: Permission) -> bool {
        self.visitor.principal.permissions().contains(permission)
    }

    /// Refuses a document of which the visitor may not know, whatever tools they have.
    pub(super) fn require(&self, place: &Place) -> Result<(), Failure> {
        let path = DocPath::parse_file(&place.path).map_err(ToolError::from)?;
        self.visitor.principal.require_path(&path).map_err(ToolError::from)?;
        match self.scope.servers().iter().any(|server| server.name() == place.server) {
            true => Ok(()),
            false => Err(Failure::new(
                ErrorKind::NotFound,
                "there is no such server, or your tenant does not have it.",
            )),
        }
    }

    /// Returns whether the tenant has a tool. Toolsets that clients select make no difference here: whoever looks at a page
    /// spends no context on what is listed.
    fn offers(&self, tool: &ToolDefinition) -> bool {
        let bound = &self.visitor.principal.tenant.toolsets;
        bound.is_empty() || tool.toolsets.iter().any(|toolset| bound.contains(toolset))
    }

    /// Reads by a tool, as part of a page that is recorded as a whole.
    pub(super) async fn read<T: DeserializeOwned>(&self, tool: &str, arguments: Value) -> Result<T, Failure> {
        let call = self.call(Arc::new(Browser)).of_page();
        parsed(tool, self.run(tool, call, arguments).await?)
    }

    /// Does something by a tool, which is recorded as a call of that.
    pub(super) async fn act<T: DeserializeOwned>(&self, tool: &str, arguments: Value) -> Result<T, Failure> {
        let call = self.call(Arc::new(Browser));
        parsed(tool, self.run(tool, call, arguments).await?)
    }

    async fn run(&self, name: &str, call: Call, arguments: Value) -> Result<Output, Failure> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let tool = self.console.tool(name).ok_or_else(Failure::defect)?;
        if !self.offers(tool) {
            if let Some(audited) = call.audited(tool.name, &arguments) {
                audited.end(Decision::Denied { rule: "toolset" }, Outcome::Failed);
            }
            return Err(Failure::new(
                ErrorKind::Forbidden,
                format!("Your tenant does not offer the tool {name}; ask an operator for it."),
            ));
        }
        Ok(tool.call(call, tool.arguments(arguments)).await?)
    }

    /// The context of a call. No toolset is named, so that failures advise nothing that only agents could do.
    fn call(&self, client: Arc<dyn Client>) -> Call {
        let (principal, services) = (Arc::clone(&self.visitor.principal), self.console.services.clone());
        Call::new(principal, self.scope.clone(), services, client)
            .of_person()
            .reviewed(false)
            .coming_from(self.origin.clone())
    }

    /// The context of a look at something, for functions of tools that have no name.
    pub(super) fn looking(&self) -> Call {
        self.call(Arc::new(Browser)).of_page()
    }

    /// Begins the record of a look at a page.
    pub(super) fn recorded(&self, server: &str, path: &str) -> Option<AuditedCall> {
        self.recorded_as(RECORDED_AS, server, path)
    }

    /// Begins the record of something that no tool does.
    pub(super) fn recorded_as(&self, name: &'static str, server: &str, path: &str) -> Option<AuditedCall> {
        let of = |name: &str| Some(Value::from(name)).filter(|_| !name.is_empty());
        let named = [("server", of(server)), ("path", of(path))];
        let named = named
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        self.call(Arc::new(Browser)).audited(name, &named.collect())
    }
}

fn parsed<T: DeserializeOwned>(tool: &str, output: Output) -> Result<T, Failure> {
    let texts = output.blocks.into_iter().filter_map(|block| match block {
        Block::Text(text) => Some(text),
        Block::Image { .. } => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    // Somebody else is to be asked first.
    if output.asks.is_some() || output.structured.is_none() {
        return Err(Failure::new(ErrorKind::Forbidden, text));
    }
    let tree = output.structured.map(crate::tools::Structured::into_tree);
    serde_json::from_value(tree.unwrap_or_default()).map_err(|error| {
        tracing::error!(tool, %error, "the console does not understand the answer of a tool");
        Failure::defect()
    })
}

impl Failure {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            rule: None,
            message: message.into(),
        }
    }

    fn defect() -> Self {
        Self::new(
            ErrorKind::Internal,
            "The gateway failed because of a bug; its log says more.",
        )
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self {
            rule: error.denied_by(),
            ..Self::new(error.kind(), error.to_string())
        }
    }
}

/// A sentence that begins as one.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.message.chars();
        if let Some(first) = rest.next() {
            write!(f, "{}", first.to_uppercase())?;
        }
        f.write_str(rest.as_str())
    }
}

/// The browser behind a call: it waits for the answer, and is asked nothing. Whoever has the token of an agent is nobody else.
struct Browser;

impl Client for Browser {}
