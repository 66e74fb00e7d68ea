//! Records in the log of the gateway, for those who have `audit` at level debug in it.

use super::AuditRecord;

pub(super) fn log(record: &AuditRecord<'_>) {
    if !tracing::enabled!(target: "audit", tracing::Level::DEBUG) {
        return;
    }
    let (decision, rule) = match record.decision {
        super::Decision::Allowed => ("allowed", None),
        super::Decision::Denied { rule } => ("denied", Some(rule)),
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
        approval = record.approval,
        outcome = ?record.outcome,
        duration_ms = u64::try_from(record.duration.as_millis()).unwrap_or(u64::MAX),
        request_id = record.request_id,
        count = record.count,
        "a call was made",
    );
}
