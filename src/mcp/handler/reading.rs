//! Calls that run nothing, answered without a client to talk back to.

use std::sync::Arc;

use async_trait::async_trait;
use executor::Question;
use futures::future::BoxFuture;
use rmcp::model::CallToolRequestParams;

use super::{GatewayHandler, Target, caller_of, observe, request_id_of};
use crate::{
    mcp::{Answer, Caller, Direct, DirectCall},
    tools::{Client, ClientReply, ToolDefinition},
};

impl Direct for GatewayHandler {
    fn takes(&self, params: &CallToolRequestParams, caller: &Caller) -> bool {
        let repeats = params.request_state.is_some() || params.input_responses.is_some();
        let found = self.catalogue.find(&params.name, caller);
        !repeats && found.is_ok_and(|definition| definition.needs_no_client(params.arguments.as_ref()))
    }

    fn has_route_headers(&self) -> bool {
        self.catalogue.has_route_headers()
    }

    fn only_reads(&self, tool: &str) -> bool {
        self.catalogue.definition(tool).is_some_and(ToolDefinition::only_reads)
    }

    fn answer(self: Arc<Self>, mut call: DirectCall) -> BoxFuture<'static, Answer> {
        let arguments = call.params.arguments.take().unwrap_or_default();
        Box::pin(async move {
            let read = async {
                let caller = caller_of(Some(&call.parts))?;
                // The call was taken, so that it cannot be refused for its name.
                let Some(definition) = self.catalogue.definition(&call.params.name) else {
                    return Ok(Answer::failure("the tool does not exist"));
                };
                let context = caller.call(&self.services, Arc::new(Nobody));
                let result = definition.call(context, arguments).await;
                Ok(Answer::of(definition.name, request_id_of(Some(&call.parts)), result))
            };
            let known = self.catalogue.known_name(&call.params.name);
            let answered = observe(&self.metrics, "tools/call", Target::Tool(known), &call, read).await;
            answered.unwrap_or_else(|error| Answer::failure(&error.message))
        })
    }
}

/// Stands for a client that waits for the answer and for nothing else.
struct Nobody;

#[async_trait]
impl Client for Nobody {
    fn knows_tasks(&self) -> bool {
        false
    }

    fn follows(&self) -> bool {
        false
    }

    async fn progress(&self, _: &str) {}

    async fn ask(&self, _: &Question) -> ClientReply {
        ClientReply::Unable
    }

    /// A call that is not wanted any more is not polled any more.
    async fn cancelled(&self) {
        std::future::pending::<()>().await;
    }

    async fn left(&self) {
        std::future::pending::<()>().await;
    }

    fn takes_back(&self) -> bool {
        false
    }
}
