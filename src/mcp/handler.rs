//! The gateway as an MCP server: lists and calls tools for whoever asks. Holds no state of its own,
//! since one is made per session and per request.

use std::sync::{Arc, LazyLock};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
        CancelledNotificationParam, ContentBlock, DiscoverResult, GetTaskParams, GetTaskResult, Implementation,
        InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult, ListToolsResult, MetaObject,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext},
};

use super::{
    Caller, Catalogue,
    catalogue::Refusal,
    client::{self, Calls, McpClient, can_elicit, is_modern, knows_tasks},
    observe::observe,
    tasks::{self, TaskCall, TaskCalls},
};
use crate::{
    error::ClientError,
    telemetry::Metrics,
    tools::{Block, Call, Input, Output, Resumption, Services, ToolError, answer_execution, cancel_execution},
};

const INSTRUCTIONS: &str = "Work live in Jupyter notebooks next to the people who have them open. \
    Tools take an optional `server`; list_servers shows which there are. Paths are relative to a server's root. \
    A failed call says what to do next.";

/// Lists change only with the gateway's version and the caller's token.
const LIST_TTL_MS: u64 = 60_000;

#[derive(Clone)]
pub struct GatewayHandler {
    catalogue: Arc<Catalogue>,
    services: Services,
    /// Shared, since a handler is made per request and has many instruments.
    metrics: Arc<Metrics>,
    calls: Calls,
    tasks: TaskCalls,
}

impl GatewayHandler {
    pub fn new(catalogue: Arc<Catalogue>, services: Services, metrics: Metrics) -> Self {
        Self {
            catalogue,
            services,
            metrics: Arc::new(metrics),
            calls: Calls::default(),
            tasks: TaskCalls::default(),
        }
    }

    /// A handler for one session, whose requests have numbers of their own.
    pub fn for_session(&self) -> Self {
        Self {
            calls: Calls::default(),
            ..self.clone()
        }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = caller(context)?;
        let definition = match self.catalogue.find(&request.name, caller) {
            Ok(definition) => definition,
            Err(refusal @ Refusal::Unknown(_)) => return Err(ErrorData::invalid_params(refusal.to_string(), None)),
            Err(refusal) => return Ok(failure(&refusal.to_string()).into()),
        };
        let mut call = self.tool_call(context)?;
        if let Some(state) = request.request_state {
            call = call.resuming(client::resumption(state, request.input_responses.as_ref()));
        }
        let arguments = request.arguments.unwrap_or_default();
        let made_by = knows_tasks(context).then(|| TaskCall {
            tool: definition.name,
            arguments: arguments.clone(),
        });
        let result = definition.call(call.clone(), arguments).await;
        if let Ok(Output { open: Some(open), .. }) = &result {
            if let Some(made_by) = made_by {
                return Ok(self.tasks.begin(&call, &open.id, made_by).await?.into());
            }
            if let Some(question) = open
                .question
                .as_ref()
                .filter(|_| is_modern(context) && can_elicit(context))
            {
                return Ok(client::input_required(open.id.clone(), question).into());
            }
        }
        Ok(render(definition.name, request_id(context), result).into())
    }

    /// What a call of this request works with.
    fn tool_call(&self, context: &RequestContext<RoleServer>) -> Result<Call, ErrorData> {
        let client = McpClient::new(context, &self.calls);
        Ok(caller(context)?.call(&self.services, Arc::new(client)))
    }

    /// What the call that became a task would have answered.
    async fn task_result(&self, call: &Call, id: &str, request_id: &str) -> CallToolResult {
        let by_id = || TaskCall {
            tool: "get_execution",
            arguments: JsonObject::from_iter([("execution_id".to_owned(), id.into())]),
        };
        let TaskCall { tool, arguments } = self.tasks.of(id).unwrap_or_else(by_id);
        let Some(definition) = self.catalogue.definition(tool) else {
            return failure("the tool behind this task does not exist");
        };
        let looking = call.clone().resuming(Resumption {
            execution_id: id.to_owned(),
            input: Input::Nothing,
        });
        render(tool, request_id, definition.call(looking, arguments).await)
    }
}

impl ServerHandler for GatewayHandler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
            .with_server_info(server_info())
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        observe(&self.metrics, "initialize", None, &context, async {
            context.peer.set_peer_info(request.clone());
            self.negotiate_initialize(&request)
        })
        .await
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        observe(&self.metrics, "server/discover", None, &context, async {
            Ok(DiscoverResult::from_server_info(versions, self.get_info()))
        })
        .await
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        observe(&self.metrics, "tools/list", None, &context, async {
            let tools = self.catalogue.visible(caller(&context)?);
            // What is visible depends on the token, so no shared cache may keep it.
            Ok(ListToolsResult::with_all_items(tools)
                .with_ttl_ms(LIST_TTL_MS)
                .with_cache_scope(CacheScope::Private))
        })
        .await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // A name that is no tool's would make a new time series for every guess.
        let known = self.catalogue.known_name(&request.name);
        observe(
            &self.metrics,
            "tools/call",
            known,
            &context,
            self.call(request, &context),
        )
        .await
    }

    async fn on_cancelled(&self, notice: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        if let Some(id) = &notice.request_id {
            self.calls.taken_back(id);
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        observe(&self.metrics, "tasks/get", None, &context, async {
            let call = self.tool_call(&context)?;
            let id = &request.task_id;
            let result = self.task_result(&call, id, request_id(&context));
            Ok(GetTaskResult::new(tasks::detailed(&call, id, result).await?))
        })
        .await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        observe(&self.metrics, "tasks/update", None, &context, async {
            let call = self.tool_call(&context)?;
            let input = client::input(&request.input_responses);
            let answered = answer_execution(&call, &request.task_id, input).await;
            answered.map_err(|error| tasks::not_found(&error))
        })
        .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        observe(&self.metrics, "tasks/cancel", None, &context, async {
            let cancelled = cancel_execution(&self.tool_call(&context)?, &request.task_id).await;
            cancelled.map(drop).map_err(|error| tasks::not_found(&error))
        })
        .await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.catalogue.tool(name)
    }

    /// rmcp would answer although prompts are not declared.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<rmcp::model::ListPromptsRequestMethod>())
    }
}

/// The edge has authenticated every request that gets here; a missing caller is a wiring mistake.
fn caller(context: &RequestContext<RoleServer>) -> Result<&Caller, ErrorData> {
    context
        .extensions
        .get::<http::request::Parts>()
        .and_then(|parts| parts.extensions.get::<Caller>())
        .ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
}

/// The id under which the edge answered the request, by which logs can be found.
fn request_id(context: &RequestContext<RoleServer>) -> &str {
    let parts = context.extensions.get::<http::request::Parts>();
    parts
        .and_then(|parts| parts.headers.get("x-request-id")?.to_str().ok())
        .unwrap_or_default()
}

fn server_info() -> Implementation {
    Implementation::new("jupyter-mcp-gateway", env!("CARGO_PKG_VERSION")).with_title("Jupyter MCP Gateway")
}

fn render(tool: &str, request_id: &str, result: Result<Output, ToolError>) -> CallToolResult {
    match result {
        Ok(output) => success(output),
        Err(error) => {
            tracing::info!(tool, kind = error.kind().as_str(), request_id, "tool failed");
            failure(&error.to_string())
        }
    }
}

fn success(output: Output) -> CallToolResult {
    let block = |block| match block {
        Block::Text(text) => ContentBlock::text(text),
        Block::Image { data, mime } => ContentBlock::image(data, mime),
    };
    let blocks = output.blocks.into_iter().map(block).collect();
    let mut result = match output.is_failure {
        false => CallToolResult::success(blocks),
        true => CallToolResult::error(blocks),
    };
    result.structured_content = Some(output.structured);
    signed(result)
}

fn failure(message: &str) -> CallToolResult {
    signed(CallToolResult::error(vec![ContentBlock::text(message)]))
}

/// Results name the server that made them, which rmcp leaves to the handler.
fn signed(mut result: CallToolResult) -> CallToolResult {
    static META: LazyLock<MetaObject> = LazyLock::new(|| {
        let server = serde_json::to_value(server_info()).unwrap_or_default();
        MetaObject(JsonObject::from_iter([(
            "io.modelcontextprotocol/serverInfo".to_owned(),
            server,
        )]))
    });
    result.meta = Some(META.clone());
    result
}
