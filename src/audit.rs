//! Audit log: a record of every call and other access, with caller, decision and outcome, also of those that were denied
//! or dropped. Knows neither sources nor outputs.

mod failed_logins;
mod file;
mod line;
mod log;
mod trail;

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use crate::{
    auth::Principal,
    error::{ClientError, ErrorKind},
};

pub use file::AuditFile;
pub use line::json_line;
pub use trail::AuditTrail;

/// Tool under which it is recorded that nobody could be told by the credentials of a request.
const LOGIN: &str = "login";

/// Takes the records of calls.
pub trait AuditSink: Send + Sync {
    /// Returns whether records are wanted; if not, none are made.
    fn is_enabled(&self) -> bool;

    /// Refuses a call of which the record could not be kept, where calls without one are not wanted.
    fn check(&self) -> Result<(), Unauditable>;

    /// Takes a record without waiting.
    fn record(&self, record: &AuditRecord<'_>);
}

/// A call was refused because its record could not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the audit log cannot be written at this moment, and calls that are not recorded are refused here; nothing was done. \
     Try again later, or tell an operator"
)]
pub struct Unauditable;

impl Unauditable {
    /// The rule that denies such a call.
    pub const RULE: &'static str = "audit";
}

impl ClientError for Unauditable {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }
}

/// One call, when it has ended, or several refused logins.
#[derive(Debug)]
pub struct AuditRecord<'a> {
    /// Start of the call.
    pub time: SystemTime,
    /// None if nobody knows who called.
    pub principal: Option<&'a str>,
    pub tenant: Option<&'a str>,
    pub address: Option<IpAddr>,
    /// The tool, or the method of a request that calls none. A tool that does not exist is as the caller named it.
    pub tool: &'a str,
    /// As the caller named it.
    pub server: Option<&'a str>,
    /// Path, or URI of a resource, as the caller named it.
    pub path: Option<&'a str>,
    pub decision: Decision,
    /// Decision of the person who was asked.
    pub approval: Option<&'a str>,
    pub outcome: Outcome,
    pub duration: Duration,
    pub request_id: &'a str,
    /// How many calls it stands for.
    pub count: u64,
}

/// Decision whether a call was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allowed,
    Denied {
        /// The permission that was missing, or the kind of rule that forbids it: `paths`, `toolset`, `readonly`,
        /// `review`, `approvals`, `audit`, the reason why nobody was logged in, or `unknown` for a tool that does not exist.
        rule: &'static str,
    },
}

impl Decision {
    /// The decision and its rule, as they are kept.
    fn words(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Allowed => ("allow", None),
            Self::Denied { rule } => ("deny", Some(rule)),
        }
    }
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    Failed,
    /// A person is to be asked first, and nothing was done.
    Unanswered,
    /// The caller left before it was answered.
    Abandoned,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Unanswered => "unanswered",
            Self::Abandoned => "abandoned",
        }
    }
}

/// Origin of a request.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub address: Option<IpAddr>,
    pub request_id: Arc<str>,
}

/// A call that is under way, of which the record is made when this is dropped.
pub struct AuditedCall {
    sink: Arc<dyn AuditSink>,
    principal: Arc<Principal>,
    origin: Origin,
    tool: Cow<'static, str>,
    server: Option<String>,
    path: Option<String>,
    began: (SystemTime, Instant),
    ended: (Decision, Outcome),
    approval: Option<String>,
}

impl AuditedCall {
    /// Begins a record, if records are wanted.
    pub fn begin(
        sink: &Arc<dyn AuditSink>,
        principal: &Arc<Principal>,
        origin: &Origin,
        tool: impl Into<Cow<'static, str>>,
        (server, path): (Option<&str>, Option<&str>),
    ) -> Option<Self> {
        sink.is_enabled().then(|| Self {
            sink: Arc::clone(sink),
            principal: Arc::clone(principal),
            origin: origin.clone(),
            tool: tool.into(),
            server: server.map(str::to_owned),
            path: path.map(str::to_owned),
            began: (SystemTime::now(), Instant::now()),
            ended: (Decision::Allowed, Outcome::Abandoned),
            approval: None,
        })
    }

    /// Adds what a person decided who was asked.
    pub fn with_approval(mut self, approval: Option<String>) -> Self {
        self.approval = approval;
        self
    }

    pub fn end(mut self, decision: Decision, outcome: Outcome) {
        self.ended = (decision, outcome);
    }
}

impl Drop for AuditedCall {
    fn drop(&mut self) {
        let (time, began) = self.began;
        let (decision, outcome) = self.ended;
        self.sink.record(&AuditRecord {
            time,
            principal: Some(&self.principal.id),
            tenant: Some(&self.principal.tenant.name),
            address: self.origin.address,
            tool: &self.tool,
            server: self.server.as_deref(),
            path: self.path.as_deref(),
            decision,
            approval: self.approval.as_deref(),
            outcome,
            duration: began.elapsed(),
            request_id: &self.origin.request_id,
            count: 1,
        });
    }
}

/// Records that a client was given tokens for a person who has logged in and allowed it.
pub fn record_login(sink: &dyn AuditSink, origin: &Origin, principal: &str, tenant: &str) {
    let (decision, outcome) = (Decision::Allowed, Outcome::Completed);
    record_at_door(sink, origin, Some((principal, tenant)), decision, outcome);
}

/// Records a request that was refused because nobody could be told by its credentials. Nobody knows which token was meant,
/// and what was sent must not be kept.
pub fn record_failed_login(sink: &dyn AuditSink, origin: &Origin, reason: &'static str) {
    let decision = Decision::Denied { rule: reason };
    record_at_door(sink, origin, None, decision, Outcome::Failed);
}

fn record_at_door(
    sink: &dyn AuditSink,
    origin: &Origin,
    who: Option<(&str, &str)>,
    decision: Decision,
    outcome: Outcome,
) {
    if !sink.is_enabled() {
        return;
    }
    sink.record(&AuditRecord {
        time: SystemTime::now(),
        principal: who.map(|(principal, _)| principal),
        tenant: who.map(|(_, tenant)| tenant),
        address: origin.address,
        tool: LOGIN,
        server: None,
        path: None,
        decision,
        approval: None,
        outcome,
        duration: Duration::ZERO,
        request_id: &origin.request_id,
        count: 1,
    });
}
