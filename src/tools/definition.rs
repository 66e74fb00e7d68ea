//! A tool as data: its name, schemas and rules beside the function that runs it.

use std::{pin::Pin, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    Arguments, Call, Output, ToolError,
    advice::advise,
    arguments::Parameters,
    authorization::{Reach, authorize, reach},
    awareness::CallNote,
    fork_argument::{take_fork, with_fork},
    output::IntoOutput,
    schema::{input_schema, listed, output_schema},
};
use crate::{
    audit::{Decision, Outcome},
    auth::{ApprovalRules, Principal},
    error::ClientError,
    types::{Permission, Toolset},
};

/// Effect of a tool on the world; clients see it as annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing.
    Read,
    /// Opens or follows what is there, and adds to it only what the caller may add.
    Open,
    /// Shows the caller to others, and changes no document.
    Present,
    /// Only adds.
    Add,
    /// May change or remove what exists.
    Change,
    /// Changes as `Change` does, and doing it twice is as doing it once.
    Set,
    /// Changes what exists and then, unless told otherwise, runs it.
    ChangeAndExecute,
    /// Runs code, which may do anything.
    Execute,
}

/// Cost of what changes something, and of what keeps a kernel or many files busy; reading costs 1.
const EDIT_COST: u32 = 2;
pub(super) const WORK_COST: u32 = 5;

type ToolFunction =
    Arc<dyn Fn(Call, Arguments) -> Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send>> + Send + Sync>;

#[derive(Clone)]
pub struct ToolDefinition {
    pub name: &'static str,
    /// Older names under which it can be called; only people are told of them.
    pub aliases: &'static [&'static str],
    pub description: &'static str,
    /// Toolsets that offer it; its own first.
    pub toolsets: Vec<Toolset>,
    pub permission: Permission,
    /// Needed as well.
    pub also_needs: Option<Permission>,
    pub effect: Effect,
    /// Its reach; a tool without one is never run.
    pub(super) reach: Option<Reach>,
    /// Cost of a call against the rates of its caller.
    cost: u32,
    /// True if it needs its client, to ask the person or to report progress.
    asks: bool,
    /// True if only users of a JupyterHub have it.
    only_for_hub: bool,
    pub input_schema: Map<String, Value>,
    pub output_schema: Map<String, Value>,
    parameters: Arc<Parameters>,
    run: ToolFunction,
}

impl ToolDefinition {
    /// Binds a function to its name. Schemas come from its types, so they cannot drift from the code.
    pub(super) fn new<A, R, F, Fut>(
        toolset: Toolset,
        name: &'static str,
        description: &'static str,
        effect: Effect,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: IntoOutput,
        F: Fn(Call, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let permission = match effect {
            Effect::Read | Effect::Open | Effect::Present => Permission::Read,
            Effect::Add | Effect::Change | Effect::Set | Effect::ChangeAndExecute => Permission::Write,
            Effect::Execute => Permission::Execute,
        };
        let cost = match effect {
            Effect::Read | Effect::Open | Effect::Present => 1,
            Effect::Add | Effect::Change | Effect::Set => EDIT_COST,
            Effect::ChangeAndExecute | Effect::Execute => WORK_COST,
        };
        let input_schema = with_fork(name, input_schema::<A>());
        let function = Arc::new(function);
        let run: ToolFunction = Arc::new(move |call, arguments| {
            let function = Arc::clone(&function);
            Box::pin(async move {
                let arguments = arguments.read()?;
                let faces = call.faces();
                function(call, arguments).await.map(|result| result.into_output(&faces))
            })
        });
        Self {
            name,
            aliases: &[],
            description,
            toolsets: vec![toolset],
            permission,
            also_needs: None,
            effect,
            reach: reach(name),
            cost,
            asks: false,
            only_for_hub: false,
            parameters: Arc::new(Parameters::of(&input_schema)),
            input_schema: listed(input_schema),
            output_schema: output_schema::<R::Schema>(),
            run,
        }
    }

    /// Makes the tool need another permission beside that of its effect.
    pub(super) fn also_needs(mut self, permission: Permission) -> Self {
        self.also_needs = Some(permission);
        self
    }

    /// Sets the cost of a call, if it is not the usual one for its effect.
    pub(super) fn costing(mut self, cost: u32) -> Self {
        self.cost = cost;
        self
    }

    /// Makes the tool need its client, whose person it may ask.
    pub(super) fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    /// All permissions that a caller needs.
    pub fn permissions(&self) -> impl Iterator<Item = Permission> {
        [Some(self.permission), self.also_needs].into_iter().flatten()
    }

    /// Makes the tool need its client, to which it reports progress.
    pub(super) fn reporting(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Offers the tool to users of a JupyterHub only.
    pub(super) fn only_for_hub(mut self) -> Self {
        self.only_for_hub = true;
        self
    }

    /// Returns whether there is such a tool for a principal, who may still lack a permission for it.
    pub fn is_for(&self, principal: &Principal) -> bool {
        !self.only_for_hub || principal.hub().is_some()
    }

    pub(super) fn also_called(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Offers the tool in other toolsets too: their vocabulary has the same name for it, or what they list tells of it.
    pub(super) fn also_in(mut self, toolsets: &[Toolset]) -> Self {
        self.toolsets.extend(toolsets);
        self
    }

    /// Returns whether calls of the tool only read.
    pub fn only_reads(&self) -> bool {
        self.effect == Effect::Read
    }

    /// Returns whether a call with these arguments neither asks its client nor reports progress.
    pub fn needs_no_client(&self, arguments: Option<&Map<String, Value>>) -> bool {
        match self.effect {
            _ if self.asks => false,
            Effect::Read | Effect::Present | Effect::Add | Effect::Change | Effect::Set => true,
            Effect::ChangeAndExecute => {
                let default = self.input_schema.get("properties").map(|all| &all["exec"]["default"]);
                let given = arguments.and_then(|arguments| arguments.get("exec"));
                given.or(default).is_some_and(|exec| exec == false)
            }
            Effect::Open | Effect::Execute => false,
        }
    }

    /// Returns whether a person may have to allow a call with these arguments, by the rules of a tenant.
    pub fn may_need_approval(&self, rules: &ApprovalRules, arguments: Option<&Map<String, Value>>) -> bool {
        // Input for running code is code too.
        let only_reads = self.only_reads() && !arguments.is_some_and(|arguments| arguments.contains_key("input"));
        rules.iter().any(|(_, rule)| rule.is_about(self.name, only_reads))
    }

    /// Cost of a call with these arguments against the rates of its caller.
    pub fn cost(&self, arguments: Option<&Map<String, Value>>) -> u32 {
        match self.effect {
            Effect::ChangeAndExecute if self.needs_no_client(arguments) => EDIT_COST,
            _ => self.cost,
        }
    }

    /// The arguments of a call, in the names and kinds of the tool's schema.
    pub fn arguments(&self, given: Map<String, Value>) -> Arguments {
        self.parameters.fit(given)
    }

    /// Checks the permission, then the arguments, then runs.
    pub async fn call(&self, call: Call, arguments: Arguments) -> Result<Output, ToolError> {
        let call = call.of_tool(self.name, self.effect);
        call.note_caller();
        let audited = call.audited(self.name, arguments.members());
        let note = CallNote::of(self.name, arguments.members());
        let result = self.run_if_permitted(&call, arguments).await;
        call.settle_approvals(&result);
        call.save_forks().await;
        if let Some(note) = note.filter(|_| result.is_ok()) {
            note.record(&call);
        }
        if let Some(audited) = audited {
            let (decision, outcome) = judged(&result);
            audited.with_approval(call.approval()).end(decision, outcome);
        }
        match result {
            Err(ToolError::Unanswered(question)) => Ok(Output::unanswered(*question)),
            Ok(output) => Ok(output.with_notices(call.take_notices())),
            Err(error) => Err(self.in_its_words(advised(&call, call.explained(error)))),
        }
    }

    /// A failure with the prefix of the tool's vocabulary, by which its clients recognise one.
    fn in_its_words(&self, error: ToolError) -> ToolError {
        match self.toolsets.first() {
            Some(Toolset::Datalayer) => ToolError::Advised {
                message: format!("Error executing tool {}: {error}", self.name),
                kind: error.kind(),
            },
            _ => error,
        }
    }

    async fn run_if_permitted(&self, call: &Call, mut arguments: Arguments) -> Result<Output, ToolError> {
        if !self.is_for(call.principal()) {
            return Err(ToolError::NoHub);
        }
        authorize(call, self, arguments.members())?;
        let fork_id = take_fork(self.name, &mut arguments)?;
        if call.has_rules() {
            Box::pin(call.approve_call(arguments.members())).await?;
        }
        (self.run)(call.clone().in_fork(fork_id), arguments).await
    }
}

/// Decision and outcome of a call, for the audit record.
fn judged(result: &Result<Output, ToolError>) -> (Decision, Outcome) {
    match result {
        Ok(Output { asks: Some(_), .. }) => (Decision::Allowed, Outcome::Unanswered),
        Ok(_) => (Decision::Allowed, Outcome::Completed),
        Err(error) => match error.denied_by() {
            Some(rule) if matches!(error, ToolError::Unanswered(_)) => (Decision::Denied { rule }, Outcome::Unanswered),
            Some(rule) => (Decision::Denied { rule }, Outcome::Failed),
            None => (Decision::Allowed, Outcome::Failed),
        },
    }
}

/// The failure as it is, unless it names tools that the caller does not see.
fn advised(call: &Call, error: ToolError) -> ToolError {
    let told = error.to_string();
    let message = advise(call, &told);
    match message == told {
        true => error,
        false => ToolError::Advised {
            message,
            kind: error.kind(),
        },
    }
}
