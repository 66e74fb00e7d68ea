//! The table of executions. It keeps what it is given and decides nothing: what is noted and not yet written, and who
//! looks after what, is the store's to know.

use std::time::SystemTime;

use super::{
    Unfinished,
    batch::{Batch, Origin, Rename},
};
use crate::{
    AbandonedExecution, ExecutionFilter, ExecutionKind, ExecutionRecord, ExecutionStatus, StoreError, StoreLimits,
    database::{Database, Statement, Transaction, readable},
    row::{micros, read_execution, read_left_behind, time, to_json},
    size::record_bytes,
};

/// Writes a record, unless another gateway has taken the execution over.
const UPSERT: &str = "INSERT INTO executions (execution_id, tenant, principal, server, path, kernel_id, \
     kernel_session, kind, status, cells, reason, outputs, created_at, started_at, ended_at, gateway, terms, noted_at, \
     file_id, bytes) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) \
     ON CONFLICT (execution_id) DO UPDATE SET server = excluded.server, path = excluded.path, \
     kernel_id = excluded.kernel_id, kernel_session = excluded.kernel_session, status = excluded.status, \
     cells = excluded.cells, reason = excluded.reason, outputs = excluded.outputs, \
     started_at = excluded.started_at, ended_at = excluded.ended_at, noted_at = excluded.noted_at, \
     file_id = excluded.file_id, bytes = excluded.bytes, terms = excluded.terms \
     WHERE executions.gateway = excluded.gateway";
const RENAME: &str = "UPDATE executions SET path = $3 || substr(path, length($2) + 1) \
     WHERE server = $1 AND (path = $2 OR substr(path, 1, length($2) + 1) = $2 || '/')";
const RENAME_FILE: &str = "UPDATE executions SET path = $3 WHERE server = $1 AND file_id = $2 AND path <> $3";

/// The runs in one notebook.
#[derive(Debug)]
pub(crate) struct NotebookRunsRow {
    pub(crate) server: String,
    pub(crate) path: String,
    pub(crate) executions: u64,
    pub(crate) last_started: Option<SystemTime>,
}

/// A kernel in which a gateway ran code of no notebook.
#[derive(Debug)]
pub(crate) struct CodeKernel {
    pub(crate) server: String,
    pub(crate) kernel: String,
    pub(crate) gateway: Option<String>,
}

impl Database {
    /// Writes all changes, as those of a gateway, or none. Says how many bytes the records take, about.
    pub(crate) async fn write_executions(&self, batch: &Batch, gateway: &str) -> Result<usize, StoreError> {
        if let ([record], []) = (&batch.records[..], &batch.renames[..]) {
            // One statement is a transaction of its own, in a third of the time.
            let (statement, bytes) = upsert_statement(record, gateway)?;
            check_upserted(record, self.execute(statement).await?);
            return Ok(bytes);
        }
        let mut transaction = self.begin().await?;
        for renamed in &batch.renames {
            rename(&mut transaction, renamed).await?;
        }
        let mut bytes = 0;
        for record in &batch.records {
            bytes += upsert(&mut transaction, record, gateway).await?;
        }
        transaction.commit().await?;
        Ok(bytes)
    }

    pub(crate) async fn execution(&self, id: &str) -> Result<Option<ExecutionRecord>, StoreError> {
        let statement = Statement::new("SELECT * FROM executions WHERE execution_id = $1").bind(id);
        let row = self.row(statement).await?;
        Ok(row.as_ref().map(read_execution).transpose()?)
    }

    /// The newest first, up to a limit in the place of the filter's own.
    pub(crate) async fn executions(
        &self,
        filter: &ExecutionFilter,
        limit: usize,
    ) -> Result<Vec<ExecutionRecord>, StoreError> {
        let mut statement = Statement::new("SELECT * FROM executions WHERE tenant = ");
        statement.push_bind(&filter.tenant);
        statement.push(" AND principal = ").push_bind(&filter.principal);
        let narrow = [
            (" AND server = ", filter.server.as_deref()),
            (" AND path = ", filter.path.as_deref()),
            (" AND status = ", filter.status.map(ExecutionStatus::as_str)),
        ];
        for (condition, value) in narrow {
            if let Some(value) = value {
                statement.push(condition).push_bind(value);
            }
        }
        statement.push(" ORDER BY created_at DESC, execution_id DESC LIMIT ");
        statement.push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        Ok(readable(self.rows(statement).await?, "executions", read_execution))
    }

    /// The runs in each notebook, not counting the executions of these ids.
    pub(crate) async fn runs_by_notebook(&self, except: &[&str]) -> Result<Vec<NotebookRunsRow>, StoreError> {
        let mut statement = Statement::new(
            "SELECT server, path, COUNT(*) AS executions, MAX(started_at) AS last_started FROM executions \
             WHERE path IS NOT NULL AND kind <> 'copy'",
        );
        if !except.is_empty() {
            statement.push(" AND execution_id NOT IN (");
            statement.push_list(except.iter().copied()).push(")");
        }
        statement.push(" GROUP BY server, path");
        Ok(readable(self.rows(statement).await?, "executions", |row| {
            Ok(NotebookRunsRow {
                server: row.get("server")?,
                path: row.get("path")?,
                executions: u64::try_from(row.get::<i64>("executions")?).unwrap_or_default(),
                last_started: row.get::<Option<i64>>("last_started")?.map(time),
            })
        }))
    }

    pub(crate) async fn unfinished_executions(&self) -> Result<Vec<Unfinished>, StoreError> {
        let mut statement = Statement::new(
            "SELECT execution_id, gateway, server, COALESCE(noted_at, created_at) AS noted_at FROM executions WHERE ",
        );
        push_status(&mut statement, |status| !status.is_finished());
        Ok(readable(self.rows(statement).await?, "executions", |row| {
            Ok(Unfinished {
                execution_id: row.get("execution_id")?,
                gateway: row.get("gateway")?,
                server: row.get("server")?,
                noted_at: time(row.get("noted_at")?),
            })
        }))
    }

    /// Gives executions of one gateway to another, unless they have ended or somebody else has got them meanwhile.
    pub(crate) async fn reassign(
        &self,
        executions: &[String],
        from: Option<&str>,
        to: &str,
    ) -> Result<Vec<AbandonedExecution>, StoreError> {
        let mut statement = Statement::new("UPDATE executions SET gateway = ");
        statement.push_bind(to);
        statement.push(" WHERE gateway IS NOT DISTINCT FROM ").push_bind(from);
        statement
            .push(" AND execution_id IN (")
            .push_list(executions)
            .push(") AND ");
        push_status(&mut statement, |status| !status.is_finished());
        statement.push(" RETURNING *");
        Ok(readable(self.rows(statement).await?, "executions", read_left_behind))
    }

    /// The kernels in which code of no notebook was run.
    pub(crate) async fn code_kernels(&self) -> Result<Vec<CodeKernel>, StoreError> {
        let statement = Statement::new(
            "SELECT DISTINCT server, kernel_id, gateway FROM executions \
             WHERE (path IS NULL AND kind = $1 OR kind = $2) AND kernel_id IS NOT NULL",
        );
        let kinds = [ExecutionKind::Code, ExecutionKind::Copy].map(ExecutionKind::as_str);
        let rows = self.rows(statement.bind(kinds[0]).bind(kinds[1])).await?;
        Ok(readable(rows, "executions", |row| {
            Ok(CodeKernel {
                server: row.get("server")?,
                kernel: row.get("kernel_id")?,
                gateway: row.get("gateway")?,
            })
        }))
    }

    /// Deletes the executions that ended before a time, and says how many.
    pub(crate) async fn prune_executions(&self, before: SystemTime) -> Result<u64, StoreError> {
        let mut statement = Statement::new("DELETE FROM executions WHERE ");
        push_status(&mut statement, ExecutionStatus::is_finished);
        statement.push(" AND COALESCE(ended_at, created_at) < ");
        statement.push_bind(micros(before));
        self.execute(statement).await
    }

    /// Deletes the oldest executions that have ended as far as they exceed limits, and says how many.
    pub(crate) async fn forget_oldest_executions(&self, limits: StoreLimits) -> Result<u64, StoreError> {
        let partition = "PARTITION BY tenant, principal";
        let of_one = self.forget_beyond(partition, limits.per_principal).await?;
        let of_all = self.forget_beyond("", limits.total).await?;
        Ok(of_one + of_all)
    }

    async fn forget_beyond(&self, partition: &'static str, limit: usize) -> Result<u64, StoreError> {
        let mut statement = Statement::new(
            "DELETE FROM executions WHERE execution_id IN (SELECT execution_id FROM (SELECT execution_id, SUM(bytes) OVER (",
        );
        statement.push(partition);
        statement.push(" ORDER BY COALESCE(ended_at, created_at) DESC, execution_id DESC) AS kept FROM executions");
        // Else it reads the outputs too.
        if self.is_sqlite() {
            statement.push(" INDEXED BY executions_by_size");
        }
        statement.push(" WHERE ");
        push_status(&mut statement, ExecutionStatus::is_finished);
        statement.push(") AS ranked WHERE kept > ");
        statement.push_bind(i64::try_from(limit).unwrap_or(i64::MAX)).push(")");
        self.execute(statement).await
    }
}

fn push_status(statement: &mut Statement<'_>, wanted: impl Fn(ExecutionStatus) -> bool) {
    statement.push("status IN (");
    let statuses = ExecutionStatus::ALL.into_iter().filter(|status| wanted(*status));
    let words: Vec<&str> = statuses.map(ExecutionStatus::as_str).collect();
    statement.push_list(words).push(")");
}

async fn upsert(transaction: &mut Transaction, record: &ExecutionRecord, gateway: &str) -> Result<usize, StoreError> {
    let (statement, bytes) = upsert_statement(record, gateway)?;
    check_upserted(record, transaction.execute(statement).await?);
    Ok(bytes)
}

/// The statement that writes a record, and about how many bytes the record takes.
fn upsert_statement<'r>(record: &'r ExecutionRecord, gateway: &'r str) -> Result<(Statement<'r>, usize), StoreError> {
    let (cells, outputs) = (
        to_json(&record.cells)?,
        record.outputs.as_ref().map(ToString::to_string),
    );
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let bytes = record_bytes([cells.len(), length(&outputs), length(&record.reason)]);
    let statement = Statement::new(UPSERT)
        .bind(&record.execution_id)
        .bind(&record.tenant)
        .bind(&record.principal)
        .bind(&record.server)
        .bind(&record.path)
        .bind(&record.kernel_id)
        .bind(&record.kernel_session)
        .bind(record.kind.as_str())
        .bind(record.status.as_str())
        .bind(cells)
        .bind(&record.reason)
        .bind(outputs)
        .bind(micros(record.created_at))
        .bind(record.started_at.map(micros))
        .bind(record.ended_at.map(micros))
        .bind(gateway)
        .bind(to_json(&record.terms)?)
        .bind(micros(SystemTime::now()))
        .bind(&record.file_id)
        .bind(i64::try_from(bytes).unwrap_or(i64::MAX));
    Ok((statement, bytes))
}

fn check_upserted(record: &ExecutionRecord, rows: u64) {
    if rows == 0 {
        let execution_id = &record.execution_id;
        tracing::warn!(
            execution_id,
            "another gateway has taken an execution over; its record is left to that one"
        );
    }
}

async fn rename(transaction: &mut Transaction, rename: &Rename) -> Result<(), StoreError> {
    let (sql, from) = match &rename.from {
        Origin::Path(path) => (RENAME, path),
        Origin::File(file_id) => (RENAME_FILE, file_id),
    };
    let statement = Statement::new(sql).bind(&rename.server);
    transaction.execute(statement.bind(from).bind(&rename.to)).await?;
    Ok(())
}
