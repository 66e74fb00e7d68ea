//! Records of requests that call no tool: resources, subscriptions, prompts, tasks. Lists of what there is to call or to ask
//! for are not recorded: they reach nothing.

use rmcp::{ErrorData, RoleServer, service::RequestContext};

use super::{GatewayHandler, caller};
use crate::{
    audit::{AuditedCall, Decision, Outcome, Unauditable},
    mcp::{
        Caller,
        observe::{Observed, Target, observe},
    },
    resources::View,
};

impl GatewayHandler {
    /// Runs a request in its span, and records it.
    pub(super) async fn audited<T: Observed + Send>(
        &self,
        method: &'static str,
        target: Target<'_>,
        context: &RequestContext<RoleServer>,
        operation: impl Future<Output = Result<T, ErrorData>> + Send,
    ) -> Result<T, ErrorData> {
        let uri = target.uri();
        observe(&self.metrics, method, target, context, async {
            let caller = caller(&context.extensions)?;
            let reaches_resources = uri.is_some() || method.starts_with("resources/");
            let denial = reaches_resources
                .then(|| caller.view(&self.services).denial_of(uri))
                .flatten();
            let record = self.begin_record(caller, method, uri);
            let result = match self.services.audit.check() {
                Ok(()) => operation.await,
                Err(error) => {
                    end(record, Some(Unauditable::RULE), Outcome::Failed);
                    return Err(ErrorData::internal_error(error.to_string(), None));
                }
            };
            let outcome = match result {
                Ok(_) => Outcome::Completed,
                Err(_) => Outcome::Failed,
            };
            end(record, denial, outcome);
            result
        })
        .await
    }

    /// Records what of the resources that a stream is to watch it may watch.
    pub(super) fn record_watched(&self, caller: &Caller, view: &View, uris: &[String]) {
        for uri in uris {
            let denial = view.denial_of(Some(uri));
            let outcome = match view.watch(uri) {
                Ok(_) => Outcome::Completed,
                Err(_) => Outcome::Failed,
            };
            end(
                self.begin_record(caller, "subscriptions/listen", Some(uri)),
                denial,
                outcome,
            );
        }
    }

    fn begin_record(&self, caller: &Caller, method: &'static str, uri: Option<&str>) -> Option<AuditedCall> {
        let sink = &self.services.audit;
        AuditedCall::begin(sink, &caller.principal, caller.origin(), method, (None, uri))
    }
}

fn end(record: Option<AuditedCall>, denial: Option<&'static str>, outcome: Outcome) {
    if let Some(record) = record {
        let decision = denial.map_or(Decision::Allowed, |rule| Decision::Denied { rule });
        record.end(decision, outcome);
    }
}
