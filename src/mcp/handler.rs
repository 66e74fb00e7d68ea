//! The gateway as an MCP server: tools, resources and prompts for whoever asks. One is made per session
//! and per request; of its own it holds only what a session watches.

mod audited;
mod call;
mod plain;

use std::sync::Arc;

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
        CancelledNotificationParam, CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult,
        ErrorCode, Extensions, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
        UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio_util::sync::CancellationToken;

use self::call::ToolCall;
use super::{
    Answer, Caller, Catalogue,
    answer::server_info,
    catalogue::LIST_TTL_MS,
    client::{self, Calls, McpClient, asks_by_answering, is_modern},
    instructions::instructions,
    observe::{Target, observe},
    prompts,
    request_state::RequestStates,
    resources, skills,
    subscriptions::{Notices, SessionWatches},
    tasks::{self, TaskCall, TaskCalls},
};
use crate::{
    resources::{View, notebook_name},
    telemetry::Metrics,
    tools::{Call, Input, Resumption, Services, answer_execution, cancel_execution, open_named},
    types::Toolset,
};

pub struct GatewayHandler {
    catalogue: Arc<Catalogue>,
    services: Services,
    /// Shared, since a handler is made per request and has many instruments.
    metrics: Arc<Metrics>,
    notices: Arc<Notices>,
    watches: SessionWatches,
    /// Whose request it was made for, if it was made for one.
    caller: Option<Caller>,
    calls: Calls,
    tasks: TaskCalls,
    states: RequestStates,
}

impl GatewayHandler {
    /// `leaving` ends the streams on which nothing but notices is awaited.
    pub fn new(catalogue: Arc<Catalogue>, services: Services, metrics: Metrics, leaving: CancellationToken) -> Self {
        Self {
            catalogue,
            services,
            metrics: Arc::new(metrics),
            notices: Arc::new(Notices::new(leaving)),
            watches: SessionWatches::default(),
            caller: None,
            calls: Calls::default(),
            tasks: TaskCalls::default(),
            states: RequestStates::new(),
        }
    }

    /// Another one for a session or request of its own, which watches nothing yet.
    pub fn fresh(&self) -> Self {
        Self {
            catalogue: Arc::clone(&self.catalogue),
            services: self.services.clone(),
            metrics: Arc::clone(&self.metrics),
            notices: Arc::clone(&self.notices),
            watches: SessionWatches::default(),
            caller: Caller::current(),
            calls: Calls::default(),
            tasks: self.tasks.clone(),
            states: self.states.clone(),
        }
    }

    fn view(&self, context: &RequestContext<RoleServer>) -> Result<View, ErrorData> {
        Ok(caller(&context.extensions)?.view(&self.services))
    }

    fn instructions(&self, caller: &Caller) -> String {
        let has_tool = |tool: &str| self.catalogue.is_visible(tool, caller);
        instructions(has_tool, |permission| caller.may(permission), caller.is_readonly())
    }

    /// An error that names only tools which are listed for the caller.
    fn advised(&self, mut error: ErrorData, context: &RequestContext<RoleServer>) -> ErrorData {
        if let Ok(caller) = caller(&context.extensions) {
            error.message = self.catalogue.advise(&error.message, caller).into();
        }
        error
    }

    /// Opens the notebook that an address names as the caller does, and keeps it so while it is read.
    async fn open_named(
        &self,
        uri: &str,
        context: &Arc<RequestContext<RoleServer>>,
    ) -> Result<Option<impl Sized>, ErrorData> {
        let has_names = caller(&context.extensions)?.has_toolset(Toolset::Datalayer);
        let Some(name) = notebook_name(uri).filter(|_| has_names) else {
            return Ok(None);
        };
        match open_named(&self.passive_call(context)?, &name).await {
            Some(Err(error)) => Err(self.advised(ErrorData::invalid_params(error.to_string(), None), context)),
            opened => Ok(opened.transpose().ok().flatten()),
        }
    }

    /// The context of a request that calls no tool.
    fn passive_call(&self, context: &Arc<RequestContext<RoleServer>>) -> Result<Call, ErrorData> {
        let client = McpClient::passive(context);
        Ok(caller(&context.extensions)?.call(&self.services, Arc::new(client)))
    }

    /// The answer of the call that became a task.
    async fn task_result(&self, call: &Call, caller: &Caller, id: &str, request_id: &str) -> CallToolResult {
        let by_id = || TaskCall {
            tool: "get_execution",
            arguments: JsonObject::from_iter([("execution_id".to_owned(), id.into())]),
        };
        let TaskCall { tool, arguments } = self.tasks.of(call, id).unwrap_or_else(by_id);
        let Some(definition) = self.catalogue.definition(tool, caller) else {
            return Answer::failure("the tool behind this task does not exist").into_result();
        };
        let looking = call.clone().resuming(Resumption {
            execution_id: id.to_owned(),
            input: Input::Nothing,
        });
        let result = definition.call(looking, definition.arguments(arguments)).await;
        Answer::of(tool, request_id, result).into_result()
    }
}

impl ServerHandler for GatewayHandler {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tasks()
            .build();
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.insert(skills::EXTENSION.to_owned(), JsonObject::new());
        ServerConfig::new(capabilities).with_server_info(server_info())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        observe(&self.metrics, "initialize", Target::Nothing, &context, async {
            context.peer.set_peer_info(request.clone());
            let mut result = self.negotiate_initialize(&request)?;
            result.instructions = Some(self.instructions(caller(&context.extensions)?));
            Ok(result)
        })
        .await
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        observe(&self.metrics, "server/discover", Target::Nothing, &context, async {
            let instructions = self.instructions(caller(&context.extensions)?);
            let info = self.get_info().with_instructions(instructions);
            Ok(DiscoverResult::from_server_info(versions, info))
        })
        .await
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        observe(&self.metrics, "tools/list", Target::Nothing, &context, async {
            Ok(self.catalogue.list(caller(&context.extensions)?))
        })
        .await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let context = Arc::new(context);
        let known = self.catalogue.known_name(&request.name);
        let answered = observe(&self.metrics, "tools/call", Target::Tool(known), &*context, async {
            let caller = caller(&context.extensions)?;
            let client = match self.catalogue.only_reads(&request.name, caller) {
                true => McpClient::passive(&context),
                false => McpClient::new(&context, &self.calls),
            };
            self.answer(ToolCall {
                params: request,
                caller,
                request_id: request_id(&context),
                client: Arc::new(client),
                repeats_with_input: asks_by_answering(&context),
            })
            .await
        });
        answered.await.map(CallToolResponse::from)
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
        let context = Arc::new(context);
        observe(&self.metrics, "tasks/get", Target::Nothing, &*context, async {
            let call = self.passive_call(&context)?;
            let id = &request.task_id;
            let result = self.task_result(&call, caller(&context.extensions)?, id, request_id(&context));
            let detailed = tasks::detailed(&call, id, result).await;
            Ok(GetTaskResult::new(
                detailed.map_err(|error| self.advised(error, &context))?,
            ))
        })
        .await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let context = Arc::new(context);
        self.audited("tasks/update", Target::Nothing, &context, async {
            let call = self.passive_call(&context)?;
            let input = client::input(&request.input_responses);
            let answered = answer_execution(&call, &request.task_id, input).await;
            answered.map_err(|error| self.advised(tasks::not_found(&error), &context))
        })
        .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let context = Arc::new(context);
        self.audited("tasks/cancel", Target::Nothing, &context, async {
            let cancelled = cancel_execution(&self.passive_call(&context)?, &request.task_id).await;
            cancelled
                .map(drop)
                .map_err(|error| self.advised(tasks::not_found(&error), &context))
        })
        .await
    }

    /// The tool by whose schema rmcp checks a call's headers. Who may not call it is told that instead.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let caller = self.caller.as_ref();
        let is_callable = caller.is_none_or(|caller| self.catalogue.is_visible(name, caller));
        self.catalogue.tool(name, caller).filter(|_| is_callable)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.audited("resources/list", Target::Nothing, &context, async {
            let cursor = request.and_then(|request| request.cursor);
            let page = self.view(&context)?.list(cursor.as_deref()).await;
            let page = page.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
            // Notebooks open and close at any moment.
            Ok(resources::list(page)
                .with_ttl_ms(0)
                .with_cache_scope(CacheScope::Private))
        })
        .await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        observe(
            &self.metrics,
            "resources/templates/list",
            Target::Nothing,
            &context,
            async {
                let with_names = caller(&context.extensions)?.has_toolset(Toolset::Datalayer);
                Ok(resources::templates(with_names)
                    .with_ttl_ms(LIST_TTL_MS)
                    .with_cache_scope(CacheScope::Private))
            },
        )
        .await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let context = Arc::new(context);
        self.audited("resources/read", Target::Resource(&request.uri), &context, async {
            let _open = self.open_named(&request.uri, &context).await?;
            let read = self.view(&context)?.read(&request.uri).await;
            let failure = |error| self.advised(resources::failure(&error, &request.uri), &context);
            let read = read.map_err(failure)?;
            let result = resources::contents(read).with_ttl_ms(0);
            Ok(result.with_cache_scope(CacheScope::Private).into())
        })
        .await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.audited("resources/subscribe", Target::Resource(&request.uri), &context, async {
            let (principal, peer) = (&caller(&context.extensions)?.principal.id, context.peer.clone());
            let view = self.view(&context)?;
            self.watches
                .subscribe(request.uri.clone(), &view, principal, peer, &self.notices)
                .map_err(|error| self.advised(error, &context))
        })
        .await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.audited(
            "resources/unsubscribe",
            Target::Resource(&request.uri),
            &context,
            async {
                self.watches.unsubscribe(&request.uri);
                Ok(())
            },
        )
        .await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let Some(method) = skills::method(&request.method) else {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        };
        self.audited(method, Target::Nothing, &context, async {
            skills::answer(&request, self.view(&context)?.skills(), is_modern(&context))
        })
        .await
    }

    /// Sessions hear of changed lists without asking; there is nobody to answer if that cannot be.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Ok(caller) = caller(&context.extensions) {
            let view = caller.view(&self.services);
            self.watches.follow_list(&view, context.peer, &self.notices);
        }
    }

    /// Resources that the caller can watch at this moment, so that a client knows which notifications it will never
    /// get. Those that do not exist and those that may not be read are left out alike.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        let Some(caller) = &self.caller else {
            accepted.resource_subscriptions = None;
            accepted.resources_list_changed = None;
            return Some(accepted);
        };
        let view = caller.view(&self.services);
        if let Some(uris) = &mut accepted.resource_subscriptions {
            self.record_watched(caller, &view, uris);
            uris.retain(|uri| view.watch(uri).is_ok());
        }
        if !view.may_read() {
            accepted.resources_list_changed = None;
        }
        Some(self.notices.fitting(&caller.principal.id, accepted))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        observe(&self.metrics, "subscriptions/listen", Target::Nothing, request, async {
            let principal = &caller(&request.extensions)?.principal.id;
            self.notices.listen(self.view(request)?, principal, &context).await
        })
        .await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        observe(&self.metrics, "prompts/list", Target::Nothing, &context, async {
            let caller = caller(&context.extensions)?;
            Ok(prompts::list(|tool| self.catalogue.is_visible(tool, caller))
                .with_ttl_ms(LIST_TTL_MS)
                .with_cache_scope(CacheScope::Private))
        })
        .await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (name, context) = (request.name.clone(), Arc::new(context));
        self.audited("prompts/get", Target::Prompt(&name), &context, async {
            let (caller, call) = (caller(&context.extensions)?, self.passive_call(&context)?);
            Ok(prompts::get(request, &self.catalogue, caller, &call).await?.into())
        })
        .await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.audited("completion/complete", Target::Nothing, &context, async {
            let has_tool =
                |tool: &str| caller(&context.extensions).is_ok_and(|caller| self.catalogue.is_visible(tool, caller));
            prompts::complete(request, has_tool, &self.view(&context)?).await
        })
        .await
    }
}

/// The edge has authenticated every request that gets here; a missing caller is a wiring mistake.
fn caller(extensions: &Extensions) -> Result<&Caller, ErrorData> {
    caller_of(extensions.get())
}

fn caller_of(parts: Option<&Parts>) -> Result<&Caller, ErrorData> {
    parts
        .and_then(|parts| parts.extensions.get::<Caller>())
        .ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
}

/// The id under which the edge answered the request, by which logs can be found.
fn request_id(context: &RequestContext<RoleServer>) -> &str {
    request_id_of(context.extensions.get())
}

fn request_id_of(parts: Option<&Parts>) -> &str {
    parts
        .and_then(|parts| parts.headers.get("x-request-id")?.to_str().ok())
        .unwrap_or_default()
}
