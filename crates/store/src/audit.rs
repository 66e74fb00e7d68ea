//! The log of calls, and whether they were allowed. Only ever appended to; the oldest are pruned.

use std::time::SystemTime;

use async_trait::async_trait;

use crate::{
    Store, StoreError,
    database::{Database, Row, Statement, Transaction, readable},
    notes::Note,
    row::{micros, time},
};

/// One call, or several refused logins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Start of the call.
    pub time: SystemTime,
    /// Empty if nobody knows who called.
    pub principal: String,
    /// Likewise.
    pub tenant: String,
    pub address: Option<String>,
    pub tool: String,
    /// As the caller named it.
    pub server: Option<String>,
    /// As the caller named it.
    pub path: Option<String>,
    /// `allow` or `deny`.
    pub decision: String,
    /// The rule that denied it.
    pub rule: Option<String>,
    /// Decision of the person who was asked, and whose client asked.
    pub approval: Option<String>,
    pub outcome: String,
    pub duration_ms: i64,
    pub request_id: String,
    /// How many it stands for.
    pub count: i64,
}

/// Filter for the audit.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub since: Option<SystemTime>,
    /// Only what comes before the call of this time and this place in the log, as a page told.
    pub before: Option<(SystemTime, i64)>,
    pub tenant: Option<String>,
    pub principal: Option<String>,
    /// Only calls that were denied.
    pub is_denied: bool,
    pub path: Option<String>,
    /// Leaves out the calls of this tool that were allowed.
    pub without_allowed: Option<String>,
    pub limit: usize,
}

impl Store {
    /// Records a call without waiting.
    pub fn note_audit(&self, row: AuditRow) {
        self.audit.note(row);
    }

    /// Returns whether a call that begins now can be noted and kept: the table is written, and there is room to wait.
    pub fn can_note_audit(&self) -> bool {
        self.audit.can_take()
    }

    /// The newest first.
    pub async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        Ok(self.audit_page(filter).await?.rows)
    }

    /// The same, with what names those that follow.
    pub async fn audit_page(&self, filter: &AuditFilter) -> Result<AuditPage, StoreError> {
        self.audit.wait_to_read().await;
        page(&self.database, filter).await
    }
}

/// Some of the calls, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    pub rows: Vec<AuditRow>,
    /// The `before` of the calls that follow, if there may be some.
    pub next: Option<(SystemTime, i64)>,
}

/// The calls that a filter lets through.
pub(crate) async fn page(database: &Database, filter: &AuditFilter) -> Result<AuditPage, StoreError> {
    let mut statement = Statement::new("SELECT * FROM audit WHERE 1 = 1");
    if let Some(since) = filter.since {
        statement.push(" AND time >= ").push_bind(micros(since));
    }
    if let Some((before, entry)) = filter.before {
        let before = micros(before);
        statement.push(" AND (time < ").push_bind(before);
        statement.push(" OR (time = ").push_bind(before);
        statement.push(" AND entry < ").push_bind(entry).push("))");
    }
    if let Some(tenant) = &filter.tenant {
        statement.push(" AND tenant = ").push_bind(tenant);
    }
    if let Some(principal) = &filter.principal {
        statement.push(" AND principal = ").push_bind(principal);
    }
    if filter.is_denied {
        statement.push(" AND decision = 'deny'");
    }
    if let Some(path) = &filter.path {
        statement.push(" AND path = ").push_bind(path);
    }
    if let Some(tool) = &filter.without_allowed {
        statement
            .push(" AND NOT (decision = 'allow' AND tool = ")
            .push_bind(tool)
            .push(")");
    }
    statement.push(" ORDER BY time DESC, entry DESC LIMIT ");
    statement.push_bind(i64::try_from(filter.limit).unwrap_or(i64::MAX));
    let rows = database.rows(statement).await?;
    let is_full = rows.len() == filter.limit;
    let last = rows.last().filter(|_| is_full);
    let next = last.map(|row| Ok::<_, sqlx::Error>((time(row.get("time")?), row.get("entry")?)));
    let next = next.transpose()?;
    Ok(AuditPage {
        rows: readable(rows, "audit", AuditRow::read),
        next,
    })
}

impl AuditRow {
    fn read(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            time: time(row.get("time")?),
            principal: row.get("principal")?,
            tenant: row.get("tenant")?,
            address: row.get("address")?,
            tool: row.get("tool")?,
            server: row.get("server")?,
            path: row.get("path")?,
            decision: row.get("decision")?,
            rule: row.get("rule")?,
            approval: row.get("approval")?,
            outcome: row.get("outcome")?,
            duration_ms: row.get("duration_ms")?,
            request_id: row.get("request_id")?,
            count: row.get("count")?,
        })
    }
}

#[async_trait]
impl Note for AuditRow {
    const TABLE: &'static str = "audit";

    fn bytes(&self) -> usize {
        let path = self.path.as_ref().map_or(0, String::len);
        256 + self.principal.len() + self.tool.len() + path + self.request_id.len()
    }

    async fn insert(&self, transaction: &mut Transaction) -> Result<(), StoreError> {
        let statement = Statement::new(
            "INSERT INTO audit (time, principal, tenant, address, tool, server, path, decision, rule, approval, \
             outcome, duration_ms, request_id, count) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        );
        let statement = statement
            .bind(micros(self.time))
            .bind(&self.principal)
            .bind(&self.tenant)
            .bind(&self.address)
            .bind(&self.tool)
            .bind(&self.server)
            .bind(&self.path)
            .bind(&self.decision)
            .bind(&self.rule)
            .bind(&self.approval)
            .bind(&self.outcome)
            .bind(self.duration_ms)
            .bind(&self.request_id)
            .bind(self.count);
        transaction.execute(statement).await?;
        Ok(())
    }
}
