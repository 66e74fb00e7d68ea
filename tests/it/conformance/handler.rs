//! Owns the MCP handler that the official conformance suite is run against.
//!
//! It holds the fixtures the suite asks for by name and nothing else. It must not know how it is
//! mounted: no transport, no HTTP, no authentication. The same factory serves the session-bound
//! revisions (up to 2025-11-25, "legacy") and the stateless one (2026-07-28, "modern").

mod ask;
mod callbacks;
mod content;
mod inputs;
mod notices;
mod prompts;
mod resources;
mod subscriptions;
mod tasks;

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::{router::tool::ToolRouter, tool::ToolCallContext},
    model::*,
    service::{RequestContext, SubscriptionContext},
    task_manager::TaskManager,
};

use self::{ask::StateSeal, subscriptions::Subscriptions};

/// Time for which a client may treat a list or a resource as fresh. Any value satisfies the suite.
const CACHE_TTL_MS: u64 = 60_000;

/// State that outlives a single handler.
///
/// rmcp builds one handler per legacy session and one per modern request, so whatever two requests
/// have in common (tasks, open subscriptions, the signing key of `requestState`) lives here.
/// Make one and clone it into the factories of both services.
#[derive(Clone)]
pub struct SharedState {
    tools: Arc<ToolRouter<ConformanceHandler>>,
    tasks: TaskManager,
    subscriptions: Subscriptions,
    seal: StateSeal,
}

impl Default for SharedState {
    fn default() -> Self {
        Self {
            tools: Arc::new(ConformanceHandler::all_tools()),
            tasks: TaskManager::new(),
            subscriptions: Subscriptions::default(),
            seal: StateSeal::default(),
        }
    }
}

/// The handler itself: the shared state plus what belongs to one legacy session.
#[derive(Clone)]
pub struct ConformanceHandler {
    shared: SharedState,
    /// The level of `logging/setLevel`. A modern request carries its own level instead.
    #[expect(deprecated, reason = "SEP-2577 deprecates logging, 2025-11-25 still tests it")]
    session_log_level: Arc<Mutex<LoggingLevel>>,
}

impl ConformanceHandler {
    #[expect(deprecated, reason = "SEP-2577 deprecates logging, 2025-11-25 still tests it")]
    pub fn new(shared: SharedState) -> Self {
        Self {
            shared,
            session_log_level: Arc::new(Mutex::new(LoggingLevel::Info)),
        }
    }

    fn all_tools() -> ToolRouter<Self> {
        Self::content_tools() + Self::notice_tools() + Self::callback_tools() + Self::input_tools() + Self::task_tools()
    }
}

/// Returns whether this request speaks 2026-07-28 or later. Revisions are dates, so text order is age.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// A finished tool call that says one sentence.
fn say(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

#[expect(
    deprecated,
    reason = "SEP-2577 deprecates logging and resources/subscribe, 2025-11-25 still tests both"
)]
impl ServerHandler for ConformanceHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("conformance-fixture", "1.0.0"))
            .with_instructions("Fixtures of the MCP conformance suite. Not for people.")
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = self.shared.tools.list_all();
        // `http-header-validation` calls whichever tool comes first, without arguments, and wants
        // no error. The tools called `test_` all grant that. The task tools would by luck only.
        tools.sort_by_key(|tool| !tool.name.starts_with("test_"));
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(CACHE_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = ToolCallContext::new(self, request, context);
        self.shared.tools.call(call).await
    }

    /// The transport checks `Mcp-Param-*` headers against this schema. Without it they pass unread.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.tools.get(name).cloned()
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list())
            .with_ttl_ms(CACHE_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates())
            .with_ttl_ms(CACHE_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = resources::read(&request.uri)?;
        Ok(ReadResourceResult::new(vec![contents])
            .with_ttl_ms(CACHE_TTL_MS)
            .with_cache_scope(CacheScope::Public)
            .into())
    }

    /// Legacy only. The fixtures never change, so a known address is all there is to check.
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::read(&request.uri).map(drop)
    }

    /// Legacy only. Forgetting something never subscribed to is not an error.
    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list())
            .with_ttl_ms(CACHE_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(request)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = prompts::complete(&request);
        let completion = CompletionInfo::new(values).map_err(|problem| ErrorData::internal_error(problem, None))?;
        Ok(CompleteResult::new(completion))
    }

    /// rmcp routes a well-formed `logging/setLevel` here in every era, although 2026-07-28 removed
    /// the method, so the refusal has to be ours.
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        let mut level = self.session_log_level.lock().unwrap_or_else(PoisonError::into_inner);
        *level = request.level;
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // rmcp cuts this down to the capabilities declared above.
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let _registration = self.shared.subscriptions.register(context.sink().clone());
        context.cancelled().await;
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let task = self.shared.tasks.get_task(&request.task_id)?;
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let tasks = &self.shared.tasks;
        tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&request.task_id)
    }
}
