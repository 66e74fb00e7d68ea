//! Every call of a tool, and whether it was let. Only ever appended to; the oldest are pruned.

use std::time::SystemTime;

use async_trait::async_trait;

use crate::{
    Store, StoreError,
    database::{Row, Statement, Transaction, readable},
    notes::Note,
    row::{micros, time},
};

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Start of the call.
    pub time: SystemTime,
    pub principal: String,
    pub tenant: String,
    pub address: Option<String>,
    pub tool: String,
    /// As the caller named it.
    pub server: Option<String>,
    /// As the caller named it.
    pub path: Option<String>,
    /// `allow` or `deny`.
    pub decision: String,
    /// The one that denied it.
    pub rule: Option<String>,
    pub outcome: String,
    pub duration_ms: i64,
    pub request_id: String,
}

/// Filter for the audit.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub since: Option<SystemTime>,
    pub tenant: Option<String>,
    pub principal: Option<String>,
    /// Only calls that were denied.
    pub is_denied: bool,
    pub path: Option<String>,
    pub limit: usize,
}

impl Store {
    /// Takes note of a call without waiting.
    pub fn note_audit(&self, row: AuditRow) {
        self.audit.note(row);
    }

    /// The newest first.
    pub async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        self.audit.wait_to_read().await;
        let mut statement = Statement::new("SELECT * FROM audit WHERE 1 = 1");
        if let Some(since) = filter.since {
            statement.push(" AND time >= ").push_bind(micros(since));
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
        statement.push(" ORDER BY time DESC, entry DESC LIMIT ");
        statement.push_bind(i64::try_from(filter.limit).unwrap_or(i64::MAX));
        Ok(readable(self.database.rows(statement).await?, "audit", AuditRow::read))
    }
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
            outcome: row.get("outcome")?,
            duration_ms: row.get("duration_ms")?,
            request_id: row.get("request_id")?,
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
            "INSERT INTO audit (time, principal, tenant, address, tool, server, path, decision, rule, outcome, \
             duration_ms, request_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
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
            .bind(&self.outcome)
            .bind(self.duration_ms)
            .bind(&self.request_id);
        transaction.execute(statement).await?;
        Ok(())
    }
}
