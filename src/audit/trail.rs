//! Records on their way to the store, to the file and to the log.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use store::{AuditRow, Store};

use super::{
    AuditFile, AuditRecord, AuditSink, Decision, LOGIN, Outcome, Unauditable,
    failed_logins::{FailedLogins, Repeated},
    json_line,
    log::log,
};

/// A caller names what it wants, at any length.
const MAX_NAME: usize = 1024;
/// Interval at which refused logins that were counted are looked for.
const COUNTED_INTERVAL: Duration = Duration::from_secs(5);

/// Writes records to the store, and to a file if there is one.
#[derive(Debug)]
pub struct AuditTrail {
    store: Store,
    file: Option<Arc<AuditFile>>,
    /// True if calls that cannot be recorded are refused.
    is_required: bool,
    failed_logins: Mutex<FailedLogins>,
}

impl AuditTrail {
    pub fn new(store: Store, file: Option<Arc<AuditFile>>, is_required: bool) -> Self {
        Self {
            store,
            file,
            is_required,
            failed_logins: Mutex::default(),
        }
    }

    /// Records regularly how many logins were refused, for ever.
    pub async fn count_regularly(&self) {
        loop {
            tokio::time::sleep(COUNTED_INTERVAL).await;
            let ended = self.failed_logins.lock().end_if_over(Instant::now());
            self.tell(ended);
        }
    }

    /// Records what has been counted so far, and writes what is to be in the file.
    pub async fn close(&self) {
        let ended = self.failed_logins.lock().end();
        self.tell(ended);
        if let Some(file) = &self.file {
            file.flush().await;
        }
    }

    fn tell(&self, repeated: Vec<Repeated>) {
        for repeated in repeated {
            self.write(&AuditRecord {
                time: repeated.first,
                principal: None,
                tenant: None,
                address: repeated.address,
                tool: LOGIN,
                server: None,
                path: None,
                decision: Decision::Denied { rule: repeated.reason },
                approval: None,
                outcome: Outcome::Failed,
                duration: repeated.last.duration_since(repeated.first).unwrap_or_default(),
                request_id: "",
                count: repeated.count,
            });
        }
    }

    fn write(&self, record: &AuditRecord<'_>) {
        log(record);
        let row = row(record);
        if let Some(file) = &self.file {
            file.note(&json_line(&row));
        }
        self.store.note_audit(row);
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
        if let (None, Decision::Denied { rule }) = (record.principal, record.decision) {
            let now = (Instant::now(), SystemTime::now());
            let mut logins = self.failed_logins.lock();
            let ended = logins.end_if_over(now.0);
            let is_single = logins.take(record.address, rule, now);
            drop(logins);
            self.tell(ended);
            if !is_single {
                return;
            }
        }
        self.write(record);
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
        count: i64::try_from(record.count).unwrap_or(i64::MAX),
    }
}

fn shortened(name: &str) -> String {
    let end = name.floor_char_boundary(MAX_NAME);
    name[..end].to_owned()
}
