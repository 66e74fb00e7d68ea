//! Calls that run nothing, answered without a client to talk back to.

use std::sync::Arc;

use async_trait::async_trait;
use executor::Question;
use futures::future::BoxFuture;
use rmcp::model::CallToolRequestParams;

use super::{
    GatewayHandler, Target,
    call::{Answered, ToolCall},
    caller_of, observe, request_id_of,
};
use crate::{
    mcp::{Answer, Caller, Direct, DirectCall},
    tools::{Client, ClientReply},
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
        self.catalogue.only_reads(tool)
    }

    fn answer(self: Arc<Self>, mut call: DirectCall) -> BoxFuture<'static, Answer> {
        let params = std::mem::take(&mut call.params);
        // The span and the measurement read it.
        call.params.meta.clone_from(&params.meta);
        Box::pin(async move {
            let known = self.catalogue.known_name(&params.name);
            let answer = async {
                GatewayHandler::answer(
                    &self,
                    ToolCall {
                        params,
                        caller: caller_of(Some(&call.parts))?,
                        request_id: request_id_of(Some(&call.parts)),
                        client: Arc::new(Nobody),
                        repeats_with_input: false,
                    },
                )
                .await
            };
            match observe(&self.metrics, "tools/call", Target::Tool(known), &call, answer).await {
                Ok(Answered::Result(answer)) => answer,
                // Nobody takes up tasks or answers questions.
                Ok(Answered::Task(_) | Answered::Question(_)) => Answer::failure("the call goes on"),
                Err(error) => Answer::failure(&error.message),
            }
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
