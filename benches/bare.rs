//! The measure: the least that serves `get_base_url` with rmcp. No identity, limits, telemetry or
//! resumption, and the same answer.

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, serve::ListenerExt};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, MetaObject,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService,
        session::{local::LocalSessionManager, never::NeverSessionManager},
    },
};
use serde_json::json;
use tokio::net::TcpListener;

use super::wire::Era;

#[derive(Clone)]
struct Bare {
    tool: Arc<Tool>,
    meta: MetaObject,
}

impl Bare {
    fn new() -> Self {
        let schema = json!({ "type": "object", "properties": { "server": { "type": "string" } } });
        let schema: JsonObject = serde_json::from_value(schema).expect("an object");
        let info = json!({ "name": "jupyter-mcp-gateway", "title": "Jupyter MCP Gateway", "version": "0.1.0" });
        let meta = JsonObject::from_iter([("io.modelcontextprotocol/serverInfo".to_owned(), info)]);
        Self {
            tool: Arc::new(Tool::new(
                "get_base_url",
                "Returns the base URL of a Jupyter server.",
                schema,
            )),
            meta: MetaObject(meta),
        }
    }
}

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("bare", "1"))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != self.tool.name {
            return Err(ErrorData::invalid_params("Unknown tool", None));
        }
        let structured = json!({ "base_url": "http://127.0.0.1:9", "server": "lab" });
        let mut result = CallToolResult::success(vec![ContentBlock::text(structured.to_string())]);
        result.structured_content = Some(structured);
        result.meta = Some(self.meta.clone());
        Ok(result.into())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == self.tool.name).then(|| (*self.tool).clone())
    }
}

/// Starts a server of one era and returns where it listens.
pub(crate) async fn start(era: Era) -> SocketAddr {
    let handler = Bare::new();
    let factory = move || Ok(handler.clone());
    let config = StreamableHttpServerConfig::default();
    let router = match era {
        Era::Legacy => {
            let manager = Arc::new(LocalSessionManager::default());
            Router::new().route_service("/mcp", StreamableHttpService::new(factory, manager, config))
        }
        Era::Modern => {
            let config = config.with_legacy_session_mode(false).with_json_response(true);
            let manager = Arc::new(NeverSessionManager::default());
            Router::new().route_service("/mcp", StreamableHttpService::new(factory, manager, config))
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("TCP_NODELAY"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}
