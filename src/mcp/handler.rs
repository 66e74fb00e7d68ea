//! The gateway as an MCP server: lists and calls tools for whoever asks. Holds no state of its own,
//! since one is made per session and per request.

use std::sync::{Arc, LazyLock};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, DiscoverResult,
        Implementation, InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult, ListToolsResult,
        MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};

use super::{Caller, Catalogue, catalogue::Refusal, observe::observe};
use crate::{
    error::ClientError,
    pool::Pool,
    telemetry::Metrics,
    tools::{Block, ImageLimits, Output, ToolError},
};

const INSTRUCTIONS: &str = "Work live in Jupyter notebooks next to the people who have them open. \
    Tools take an optional `server`; list_servers shows which there are. Paths are relative to a server's root. \
    A failed call says what to do next.";

/// Lists change only with the gateway's version and the caller's token.
const LIST_TTL_MS: u64 = 60_000;

#[derive(Clone)]
pub struct GatewayHandler {
    catalogue: Arc<Catalogue>,
    pool: Arc<Pool>,
    images: ImageLimits,
    /// Shared, since a handler is made per request and has many instruments.
    metrics: Arc<Metrics>,
}

impl GatewayHandler {
    pub fn new(catalogue: Arc<Catalogue>, pool: Arc<Pool>, images: ImageLimits, metrics: Metrics) -> Self {
        Self {
            catalogue,
            pool,
            images,
            metrics: Arc::new(metrics),
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
        let result = definition
            .call(
                caller.call(&self.pool, self.images),
                request.arguments.unwrap_or_default(),
            )
            .await;
        Ok(render(definition.name, request_id(context), result).into())
    }
}

impl ServerHandler for GatewayHandler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
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
    let mut result = CallToolResult::success(blocks);
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
