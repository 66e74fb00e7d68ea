//! Plain requests: calls that run nothing, and the list of tools.

use std::sync::Arc;

use futures::{FutureExt, future::ready};
use rmcp::model::{CallToolRequestParams, ClientRequest, JsonObject};

use super::{
    GatewayHandler, Target,
    call::{Answered, ToolCall},
    caller_of, observe, request_id_of,
};
use crate::{
    audit::{Decision, Outcome},
    auth::scope_of,
    mcp::{Answer, Answerer, Begun, Caller, PlainRequest, StepUp, Written},
    tools::Client,
};

impl Answerer for GatewayHandler {
    fn begin(self: Arc<Self>, mut request: PlainRequest) -> Result<Begun, Box<PlainRequest>> {
        let (is_plain, is_modern) = (request.wants_only_an_answer(), request.is_modern());
        let caller = request.parts.extensions.get::<Caller>();
        let Some(caller) = caller.filter(|_| is_plain) else {
            return Err(Box::new(request));
        };
        let id = request.id.clone();
        match &mut request.request {
            ClientRequest::CallToolRequest(call) if self.needs_no_client(&call.params, caller) => {
                let is_droppable = self.catalogue.only_reads(&call.params.name, caller);
                let params = std::mem::take(&mut call.params);
                Ok(Begun {
                    id,
                    is_droppable,
                    answer: self.answer_plain(params, request).boxed(),
                })
            }
            ClientRequest::ListToolsRequest(_) => {
                let listed = self.catalogue.listed(caller, is_modern);
                let listing = ready(Ok(listed));
                let answer = async move {
                    let listed = observe(&self.metrics, "tools/list", Target::Nothing, &request, listing).await;
                    Written::Shared(listed.unwrap_or_default())
                };
                Ok(Begun {
                    id,
                    is_droppable: true,
                    answer: answer.boxed(),
                })
            }
            _ => Err(Box::new(request)),
        }
    }

    fn cost(&self, request: &ClientRequest, caller: &Caller) -> u32 {
        match request {
            ClientRequest::CallToolRequest(call) => {
                let definition = self.catalogue.definition(&call.params.name, caller);
                definition.map_or(1, |definition| definition.cost(call.params.arguments.as_ref()))
            }
            _ => 1,
        }
    }

    fn step_up(&self, request: &ClientRequest, caller: &Caller) -> Option<StepUp> {
        let ClientRequest::CallToolRequest(call) = request else {
            return None;
        };
        let definition = self.catalogue.find(&call.params.name, caller).ok()?;
        let permissions = caller.principal.step_up(definition.permissions().collect())?;
        let has = caller.principal.permissions();
        let lacking = definition.permissions().find(|needed| !has.contains(*needed))?;
        let context = caller.call(&self.services, Arc::new(Nobody));
        let arguments = call.params.arguments.as_ref();
        if let Some(audited) = context.audited(definition.name, arguments.unwrap_or(&JsonObject::new())) {
            let rule = lacking.as_str();
            audited.end(Decision::Denied { rule }, Outcome::Failed);
        }
        let message = format!(
            "this needs permission `{lacking}`, which your login was not given; log in again and allow it (scope {})",
            scope_of(lacking)
        );
        Some(StepUp { permissions, message })
    }

    fn input_schema(&self, tool: &str, caller: &Caller) -> Option<Arc<JsonObject>> {
        let is_repeated = self.catalogue.has_route_headers() && self.catalogue.is_visible(tool, caller);
        self.catalogue.input_schema(tool, caller).filter(|_| is_repeated)
    }
}

impl GatewayHandler {
    fn needs_no_client(&self, params: &CallToolRequestParams, caller: &Caller) -> bool {
        let repeats = params.request_state.is_some() || params.input_responses.is_some();
        let found = self.catalogue.find(&params.name, caller);
        let (arguments, approvals) = (params.arguments.as_ref(), &caller.principal.tenant.approvals);
        !repeats
            && found.is_ok_and(|definition| {
                definition.needs_no_client(arguments) && !definition.may_need_approval(approvals, arguments)
            })
    }

    async fn answer_plain(self: Arc<Self>, params: CallToolRequestParams, request: PlainRequest) -> Written {
        let known = self.catalogue.known_name(&params.name);
        let answer = async {
            let call = ToolCall {
                params,
                caller: caller_of(Some(&request.parts))?,
                request_id: request_id_of(Some(&request.parts)),
                client: Arc::new(Nobody),
                repeats_with_input: false,
            };
            self.answer(call).await
        };
        let answer = match observe(&self.metrics, "tools/call", Target::Tool(known), &request, answer).await {
            Ok(Answered::Result(answer)) => answer,
            // Nobody takes up tasks or answers questions.
            Ok(Answered::Task(_) | Answered::Question(_)) => Answer::failure("the call goes on by itself"),
            Err(error) => Answer::failure(&error.message),
        };
        Written::Answer(Box::new(match request.is_modern() {
            true => answer,
            false => answer.for_older_era(),
        }))
    }
}

/// Stands for a client that waits for the answer and for nothing else.
struct Nobody;

impl Client for Nobody {}
