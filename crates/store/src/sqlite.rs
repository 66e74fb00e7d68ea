//! The database in SQLite: a file, or one in memory.

mod location;
mod schema;

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sqlx::{QueryBuilder, Sqlite, SqliteConnection, SqlitePool};

pub(crate) use location::Location;
pub use location::file_url;
pub use schema::Migrated;

use crate::{
    ExecutionFilter, ExecutionKind, ExecutionRecord, ExecutionStatus, LeftBehind, StoreError, StoreLimits,
    backend::{Backend, Batch, CodeKernel, NotebookRunsRow, Origin, Rename, StoredLease},
    lease::Lease,
    process::Process,
    row::{ExecutionRow, micros, time, to_json},
    size::record_bytes,
    sql,
};

/// Microseconds since 1970.
const NOW: &str = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";

#[derive(Debug)]
pub(crate) struct SqliteBackend {
    pool: SqlitePool,
}

impl SqliteBackend {
    /// Opens the database, making the file and bringing its schema up to date where needed.
    pub(crate) async fn open(location: &Location) -> Result<Self, StoreError> {
        let pool = location.connect().await?;
        schema::migrate(&pool, location).await?;
        Ok(Self { pool })
    }

    pub(crate) fn pool(&self) -> SqlitePool {
        self.pool.clone()
    }

    /// Only brings the schema up to date.
    pub(crate) async fn migrate(location: &Location) -> Result<Migrated, StoreError> {
        let pool = location.connect().await?;
        let migrated = schema::migrate(&pool, location).await;
        pool.close().await;
        migrated
    }
}

#[async_trait]
impl Backend for SqliteBackend {
    async fn write(&self, batch: &Batch, gateway: &str) -> Result<usize, StoreError> {
        let mut transaction = self.pool.begin().await?;
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

    async fn execution(&self, id: &str) -> Result<Option<ExecutionRecord>, StoreError> {
        let query = sqlx::query_as(sql::EXECUTION).bind(id);
        let row: Option<ExecutionRow> = query.fetch_optional(&self.pool).await?;
        row.map(TryInto::try_into).transpose()
    }

    async fn executions(&self, filter: &ExecutionFilter, limit: usize) -> Result<Vec<ExecutionRecord>, StoreError> {
        let mut query = QueryBuilder::new(sql::EXECUTIONS);
        query.push_bind(&filter.tenant);
        query.push(" AND principal = ").push_bind(&filter.principal);
        let narrow = [
            (" AND server = ", filter.server.as_deref()),
            (" AND path = ", filter.path.as_deref()),
            (" AND status = ", filter.status.map(ExecutionStatus::as_str)),
        ];
        for (condition, value) in narrow {
            if let Some(value) = value {
                query.push(condition).push_bind(value);
            }
        }
        query.push(" ORDER BY created_at DESC, execution_id DESC LIMIT ");
        query.push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        let rows: Vec<ExecutionRow> = query.build_query_as().fetch_all(&self.pool).await?;
        rows.into_iter().map(TryInto::try_into).collect()
    }

    async fn runs_by_notebook(&self, except: &[&str]) -> Result<Vec<NotebookRunsRow>, StoreError> {
        let mut query = QueryBuilder::new(sql::RUNS_BY_NOTEBOOK);
        if !except.is_empty() {
            query.push(" AND execution_id NOT IN (");
            let mut ids = query.separated(", ");
            for id in except {
                ids.push_bind(*id);
            }
            query.push(")");
        }
        query.push(" GROUP BY server, path");
        let rows: Vec<(String, String, i64, Option<i64>)> = query.build_query_as().fetch_all(&self.pool).await?;
        let runs = rows
            .into_iter()
            .map(|(server, path, executions, last_started)| NotebookRunsRow {
                server,
                path,
                executions: u64::try_from(executions).unwrap_or_default(),
                last_started: last_started.map(time),
            });
        Ok(runs.collect())
    }

    async fn gateways_with_unfinished(&self) -> Result<Vec<Option<String>>, StoreError> {
        let mut query = QueryBuilder::new("SELECT DISTINCT gateway FROM executions WHERE ");
        push_status(&mut query, |status| !status.is_finished());
        Ok(query.build_query_scalar().fetch_all(&self.pool).await?)
    }

    async fn reassign_unfinished(&self, from: Option<&str>, to: &str) -> Result<Vec<LeftBehind>, StoreError> {
        let mut query = QueryBuilder::new("UPDATE executions SET gateway = ");
        query.push_bind(to);
        query
            .push(" WHERE gateway IS NOT DISTINCT FROM ")
            .push_bind(from)
            .push(" AND ");
        push_status(&mut query, |status| !status.is_finished());
        query.push(" RETURNING *");
        let rows: Vec<ExecutionRow> = query.build_query_as().fetch_all(&self.pool).await?;
        rows.into_iter().map(TryInto::try_into).collect()
    }

    async fn code_kernels(&self) -> Result<Vec<CodeKernel>, StoreError> {
        let query = sqlx::query_as(sql::CODE_KERNELS)
            .bind(ExecutionKind::Code.as_str())
            .bind(ExecutionKind::Copy.as_str());
        let rows: Vec<(String, String, Option<String>)> = query.fetch_all(&self.pool).await?;
        let kernel = |(server, kernel, gateway)| CodeKernel {
            server,
            kernel,
            gateway,
        };
        Ok(rows.into_iter().map(kernel).collect())
    }

    async fn prune(&self, before: SystemTime) -> Result<u64, StoreError> {
        let mut query = QueryBuilder::new("DELETE FROM executions WHERE ");
        push_status(&mut query, ExecutionStatus::is_finished);
        query.push(" AND COALESCE(ended_at, created_at) < ");
        query.push_bind(micros(before));
        Ok(query.build().execute(&self.pool).await?.rows_affected())
    }

    async fn forget_oldest(&self, limits: StoreLimits) -> Result<u64, StoreError> {
        let of_one = forget_oldest(&self.pool, "PARTITION BY tenant, principal", limits.per_principal).await?;
        let of_all = forget_oldest(&self.pool, "", limits.total).await?;
        Ok(of_one + of_all)
    }

    async fn renew_lease(&self, lease: &Lease, valid: Duration) -> Result<(), StoreError> {
        let mut query = QueryBuilder::new("INSERT INTO gateways (gateway, host, pid, started, expires_at) VALUES (");
        let mut values = query.separated(", ");
        values.push_bind(&lease.gateway).push_bind(&lease.process.host);
        values.push_bind(lease.process.pid).push_bind(lease.process.started);
        values.push(NOW).push_unseparated(" + ");
        values.push_bind_unseparated(i64::try_from(valid.as_micros()).unwrap_or(i64::MAX));
        query.push(") ON CONFLICT (gateway) DO UPDATE SET expires_at = excluded.expires_at");
        query.build().execute(&self.pool).await?;
        Ok(())
    }

    async fn leases(&self) -> Result<Vec<StoredLease>, StoreError> {
        let mut query = QueryBuilder::new("SELECT gateway, host, pid, started, expires_at, expires_at - ");
        query.push(NOW).push(" FROM gateways");
        let rows: Vec<(String, String, i64, i64, i64, i64)> = query.build_query_as().fetch_all(&self.pool).await?;
        let stored = |(gateway, host, pid, started, expires_at, remaining)| StoredLease {
            lease: Lease {
                gateway,
                process: Process { host, pid, started },
            },
            expires_at,
            has_expired: remaining <= 0,
        };
        Ok(rows.into_iter().map(stored).collect())
    }

    async fn remove_lease(&self, gateway: &str, seen: Option<&StoredLease>) -> Result<bool, StoreError> {
        let query = sqlx::query(sql::REMOVE_LEASE).bind(gateway);
        let query = query.bind(seen.map(|seen| seen.expires_at));
        Ok(query.execute(&self.pool).await?.rows_affected() > 0)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query(sql::PING).fetch_optional(&self.pool).await?;
        Ok(())
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

fn push_status(query: &mut QueryBuilder<Sqlite>, wanted: impl Fn(ExecutionStatus) -> bool) {
    let mut list = query.push("status IN (").separated(", ");
    for status in ExecutionStatus::ALL.into_iter().filter(|status| wanted(*status)) {
        list.push_bind(status.as_str());
    }
    query.push(")");
}

async fn upsert(
    connection: &mut SqliteConnection,
    record: &ExecutionRecord,
    gateway: &str,
) -> Result<usize, sqlx::Error> {
    let (cells, outputs) = (
        to_json(&record.cells)?,
        record.outputs.as_ref().map(ToString::to_string),
    );
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let bytes = record_bytes([cells.len(), length(&outputs), length(&record.reason)]);
    let written = sqlx::query(sql::UPSERT)
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
        .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
        .execute(connection)
        .await?;
    if written.rows_affected() == 0 {
        let execution_id = &record.execution_id;
        tracing::warn!(
            execution_id,
            "another gateway has taken an execution over; its record is left to that one"
        );
    }
    Ok(bytes)
}

async fn forget_oldest(pool: &SqlitePool, partition: &'static str, limit: usize) -> Result<u64, sqlx::Error> {
    let mut query: QueryBuilder<Sqlite> = QueryBuilder::new(
        "DELETE FROM executions WHERE execution_id IN (SELECT execution_id FROM (SELECT execution_id, SUM(bytes) OVER (",
    );
    query.push(partition);
    query.push(
        " ORDER BY COALESCE(ended_at, created_at) DESC, execution_id DESC) AS kept \
         FROM executions INDEXED BY executions_by_size WHERE ",
    );
    push_status(&mut query, ExecutionStatus::is_finished);
    query.push(") WHERE kept > ");
    query.push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
    query.push(")");
    Ok(query.build().execute(pool).await?.rows_affected())
}

async fn rename(connection: &mut SqliteConnection, rename: &Rename) -> Result<(), sqlx::Error> {
    let (statement, from) = match &rename.from {
        Origin::Path(path) => (sql::RENAME, path),
        Origin::File(file_id) => (sql::RENAME_FILE, file_id),
    };
    let query = sqlx::query(statement).bind(&rename.server);
    query.bind(from).bind(&rename.to).execute(connection).await?;
    Ok(())
}
