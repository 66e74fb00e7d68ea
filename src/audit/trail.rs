//! Records on their way to the store, to the file and to the log.

use std::sync::Arc;

use store::{AuditRow, Store};

use super::{AuditFile, AuditRecord, AuditSink, Unauditable, json_line, log::log};

/// A caller names what it wants, at any length.
const MAX_NAME: usize = 1024;

/// Writes records to the store, and to a file if there is one.
#[derive(Debug)]
pub struct AuditTrail {
    store: Store,
    file: Option<Arc<AuditFile>>,
    /// True if calls that cannot be recorded are refused.
    is_required: bool,
}

impl AuditTrail {
    pub fn new(store: Store, file: Option<Arc<AuditFile>>, is_required: bool) -> Self {
        Self {
            store,
            file,
            is_required,
        }
    }
}

impl AuditSink for AuditTrail {
    fn is_enabled(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Unauditable> {
        let can_keep = || self.store.can_note_audit() && self.file.as_ref().is_none_or(|file| file.can_take());
        match self.is_required && !can_keep() {
            true => Err(Unauditable),
            false => Ok(()),
        }
    }

    fn record(&self, record: &AuditRecord<'_>) {
        log(record);
        let row = row(record);
        if let Some(file) = &self.file {
            file.note(&json_line(&row));
        }
        self.store.note_audit(row);
    }
}

fn row(record: &AuditRecord<'_>) -> AuditRow {
    let (decision, rule) = record.decision.words();
    AuditRow {
        time: record.time,
        principal: record.principal.unwrap_or_default().to_owned(),
        tenant: record.tenant.unwrap_or_default().to_owned(),
        address: record.address.map(|address| address.to_string()),
        tool: record.tool.to_owned(),
        server: record.server.map(shortened),
        path: record.path.map(shortened),
        decision: decision.to_owned(),
        rule: rule.map(str::to_owned),
        approval: record.approval.map(shortened),
        outcome: record.outcome.as_str().to_owned(),
        duration_ms: i64::try_from(record.duration.as_millis()).unwrap_or(i64::MAX),
        request_id: record.request_id.to_owned(),
    }
}

fn shortened(name: &str) -> String {
    let end = name.floor_char_boundary(MAX_NAME);
    name[..end].to_owned()
}
