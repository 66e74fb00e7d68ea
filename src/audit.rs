//! Audit log: one record per tool call, with caller, decision and outcome, also of calls that were denied or dropped.
//! Knows neither sources nor outputs.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use store::{AuditRow, Store};

use crate::auth::Principal;

/// A caller names what it wants, at any length.
const MAX_NAME: usize = 1024;

/// Takes the records of calls.
pub trait AuditSink: Send + Sync {
    /// Returns whether records are wanted; if not, none are made.
    fn is_enabled(&self) -> bool;

    /// Takes a record without waiting.
    fn record(&self, record: &AuditRecord<'_>);
}

/// One call, when it has ended.
#[derive(Debug)]
pub struct AuditRecord<'a> {
    /// Start of the call.
    pub time: SystemTime,
    pub principal: &'a str,
    pub tenant: &'a str,
    pub address: Option<IpAddr>,
    /// One that does not exist as the caller named it.
    pub tool: &'a str,
    /// As the caller named it.
    pub server: Option<&'a str>,
    /// As the caller named it.
    pub path: Option<&'a str>,
    pub decision: Decision,
    pub outcome: Outcome,
    pub duration: Duration,
    pub request_id: &'a str,
}

/// Decision whether a call was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allowed,
    Denied {
        /// The permission that was missing, or the kind of rule that forbids it: `paths`, `toolset`, `readonly`, or
        /// `unknown` for a tool that does not exist.
        rule: &'static str,
    },
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    Failed,
    /// The caller left before it was answered.
    Abandoned,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
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
}

impl AuditedCall {
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
        })
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
            principal: &self.principal.id,
            tenant: &self.principal.tenant.name,
            address: self.origin.address,
            tool: &self.tool,
            server: self.server.as_deref(),
            path: self.path.as_deref(),
            decision,
            outcome,
            duration: began.elapsed(),
            request_id: &self.origin.request_id,
        });
    }
}

/// Writes records to the store, and to the log for those who have `audit` at level debug in it.
#[derive(Debug, Clone)]
pub struct StoreAudit {
    store: Store,
}

impl StoreAudit {
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

impl AuditSink for StoreAudit {
    fn is_enabled(&self) -> bool {
        true
    }

    fn record(&self, record: &AuditRecord<'_>) {
        log(record);
        let (decision, rule) = match record.decision {
            Decision::Allowed => ("allow", None),
            Decision::Denied { rule } => ("deny", Some(rule)),
        };
        self.store.note_audit(AuditRow {
            time: record.time,
            principal: record.principal.to_owned(),
            tenant: record.tenant.to_owned(),
            address: record.address.map(|address| address.to_string()),
            tool: record.tool.to_owned(),
            server: record.server.map(shortened),
            path: record.path.map(shortened),
            decision: decision.to_owned(),
            rule: rule.map(str::to_owned),
            outcome: record.outcome.as_str().to_owned(),
            duration_ms: i64::try_from(record.duration.as_millis()).unwrap_or(i64::MAX),
            request_id: record.request_id.to_owned(),
        });
    }
}

fn shortened(name: &str) -> String {
    let end = name.floor_char_boundary(MAX_NAME);
    name[..end].to_owned()
}

fn log(record: &AuditRecord<'_>) {
    if !tracing::enabled!(target: "audit", tracing::Level::DEBUG) {
        return;
    }
    let (decision, rule) = match record.decision {
        Decision::Allowed => ("allowed", None),
        Decision::Denied { rule } => ("denied", Some(rule)),
    };
    tracing::debug!(
        target: "audit",
        principal = record.principal,
        tenant = record.tenant,
        address = record.address.map(tracing::field::display),
        tool = record.tool,
        server = record.server,
        path = record.path,
        decision,
        rule,
        outcome = ?record.outcome,
        duration_ms = u64::try_from(record.duration.as_millis()).unwrap_or(u64::MAX),
        request_id = record.request_id,
        "a tool was called",
    );
}
