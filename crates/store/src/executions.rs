//! The record of each execution, so that it can be asked for later and picked up after a restart.

use std::{
    collections::{BTreeSet, HashSet},
    str::FromStr,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use sqlx::{FromRow, QueryBuilder, Row, Sqlite, SqliteConnection, sqlite::SqliteRow};

use super::{
    OtherGateway, Store, StoreError,
    journal::{Rename, moved, moved_back},
    size::{json_bytes, record_bytes},
};
use crate::{ExecutionKind, ExecutionStatus};

/// One execution as it stands. Times are kept to the microsecond.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionRecord {
    pub execution_id: String,
    pub tenant: String,
    pub principal: String,
    pub server: String,
    pub path: Option<String>,
    pub kernel_id: Option<String>,
    /// The session id of the kernel's websocket, under which Jupyter keeps messages for a gateway that
    /// comes back.
    pub kernel_session: Option<String>,
    pub kind: ExecutionKind,
    pub status: ExecutionStatus,
    pub cells: Vec<CellRecord>,
    /// Why it ended as it did, where that needs words.
    pub reason: Option<String>,
    /// What it put out, once it has ended; whoever notes it bounds it.
    pub outputs: Option<Value>,
    pub created_at: SystemTime,
    pub started_at: Option<SystemTime>,
    pub ended_at: Option<SystemTime>,
    pub terms: Terms,
}

/// An execution whose gateway has left.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftBehind {
    pub record: ExecutionRecord,
    /// When that gateway last wrote it.
    pub noted_at: Option<SystemTime>,
}

/// On which terms an execution was begun, for a process that takes it up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// What collaborators see of its owner.
    pub name: Option<String>,
    /// Of its owner's tenant.
    pub max_open_rooms: Option<usize>,
    pub max_output_bytes: Option<usize>,
    /// It goes on after a cell that failed.
    pub ignores_errors: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    pub cell_id: String,
    pub index: usize,
    /// The kernel's request for this cell, once it was sent.
    #[serde(default)]
    pub msg_id: Option<String>,
    pub status: ExecutionStatus,
    #[serde(default)]
    pub execution_count: Option<i64>,
    /// The count that its cell showed before, by which a cell of which nothing was written yet can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<i64>,
    /// Its cell is shown as queued, which must end when it will not run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub queued: bool,
    /// What it asks and waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<StoredQuestion>,
    /// How many characters it put out that were too many to be kept.
    #[serde(default)]
    pub missing: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A question of running code, as another process needs it to pass on an answer. The answer is never stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredQuestion {
    pub prompt: String,
    pub password: bool,
    /// Of the kernel's request.
    pub header: Value,
    /// When it was asked; missing in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<SystemTime>,
}

/// Which executions of one principal to list.
#[derive(Debug, Clone)]
pub struct ExecutionFilter {
    pub tenant: String,
    pub principal: String,
    pub server: Option<String>,
    pub path: Option<String>,
    pub status: Option<ExecutionStatus>,
    pub limit: usize,
}

impl Store {
    /// Takes note of a record without waiting: the newest version of each execution is written in the
    /// background.
    pub fn note_execution(&self, record: ExecutionRecord) {
        self.journal.note(record);
    }

    /// Takes note that a notebook, or all in a directory, has another name now: what was run there goes with it.
    pub fn note_rename(&self, server: &str, from: &str, to: &str) {
        self.journal.note_rename(server, from, to);
    }

    /// An execution of this principal; those of others do not exist.
    pub async fn execution(
        &self,
        tenant: &str,
        principal: &str,
        id: &str,
    ) -> Result<Option<ExecutionRecord>, StoreError> {
        // First what is not yet written: what leaves there meanwhile is in the database.
        let renames = self.journal.renames();
        let record = match self.journal.get(id) {
            Some(noted) => Some(Arc::unwrap_or_clone(noted)),
            None => {
                let query = sqlx::query_as("SELECT * FROM executions WHERE execution_id = $1");
                let stored: Option<ExecutionRecord> = query.bind(id).fetch_optional(&self.pool).await?;
                stored.map(|record| record.after(&renames))
            }
        };
        Ok(record.filter(|record| record.belongs_to(tenant, principal)))
    }

    /// The newest first.
    pub async fn executions(&self, filter: ExecutionFilter) -> Result<Vec<ExecutionRecord>, StoreError> {
        let renames = self.journal.renames();
        let noted = self.noted(|record| record.belongs_to(&filter.tenant, &filter.principal));
        let mut query = QueryBuilder::new("SELECT * FROM executions WHERE tenant = ");
        query.push_bind(&filter.tenant);
        query.push(" AND principal = ").push_bind(&filter.principal);
        let status = filter.status.map(ExecutionStatus::as_str);
        let narrow = [(" AND server = ", filter.server.as_deref()), (" AND status = ", status)];
        for (condition, value) in narrow {
            if let Some(value) = value {
                query.push(condition).push_bind(value);
            }
        }
        if let Some(path) = &filter.path {
            // A stored record may still have a name that its notebook had before.
            let mut names = query.push(" AND path IN (").separated(", ");
            names.push_bind(path);
            let servers: BTreeSet<&str> = renames.iter().map(|rename| rename.server.as_str()).collect();
            for before in servers.iter().filter_map(|server| moved_back(&renames, server, path)) {
                names.push_bind(before);
            }
            query.push(")");
        }
        // What is noted may take the place of what is stored and no longer fit the filter.
        let limit = i64::try_from(filter.limit.saturating_add(noted.len())).unwrap_or(i64::MAX);
        query.push(" ORDER BY created_at DESC, execution_id DESC LIMIT ");
        query.push_bind(limit);
        let stored: Vec<ExecutionRecord> = query.build_query_as().fetch_all(&self.pool).await?;
        let stored = stored.into_iter().map(|record| record.after(&renames));
        let stored = stored.filter(|record| filter.fits(record)).collect();
        let mut found = overlay(stored, noted, |record| filter.fits(record));
        found.truncate(filter.limit);
        Ok(found)
    }

    /// Takes over everybody's executions that have not ended and whose gateway has left. Each is given to one
    /// gateway only, whoever asks at the same time.
    pub async fn take_over(&self) -> Result<Vec<LeftBehind>, StoreError> {
        let mut query = QueryBuilder::new("SELECT DISTINCT gateway FROM executions WHERE status IN (");
        push_statuses(&mut query, |status| !status.is_finished());
        query.push(")");
        let gateways: Vec<Option<String>> = query.build_query_scalar().fetch_all(&self.pool).await?;
        let mut taken = Vec::new();
        for gateway in gateways {
            if gateway
                .as_deref()
                .is_some_and(|gateway| self.presence.is_present(gateway))
            {
                continue;
            }
            let mut query = QueryBuilder::new("UPDATE executions SET gateway = ");
            query.push_bind(&self.presence.gateway);
            query.push(" WHERE gateway IS ").push_bind(&gateway);
            query.push(" AND status IN (");
            push_statuses(&mut query, |status| !status.is_finished());
            query.push(") RETURNING *");
            taken.extend(query.build_query_as::<LeftBehind>().fetch_all(&self.pool).await?);
            if let Some(gateway) = gateway {
                self.presence.forget(&gateway);
            }
        }
        Ok(taken)
    }

    /// The kernels of their own, with their servers, in which gateways that have left ran code of no notebook.
    pub async fn deserted_kernels(&self) -> Result<Vec<(String, String)>, StoreError> {
        let query = sqlx::query_as(
            "SELECT DISTINCT server, kernel_id, gateway FROM executions \
             WHERE path IS NULL AND kind = $1 AND kernel_id IS NOT NULL",
        );
        let kind = ExecutionKind::Code.as_str();
        let mut kernels: Vec<(String, String, Option<String>)> = query.bind(kind).fetch_all(&self.pool).await?;
        kernels.retain(|(_, _, gateway)| {
            !gateway
                .as_ref()
                .is_some_and(|gateway| self.presence.is_present(gateway))
        });
        Ok(kernels
            .into_iter()
            .map(|(server, kernel, _)| (server, kernel))
            .collect())
    }

    /// The other gateways that use the same database.
    pub fn other_gateways(&self) -> Vec<OtherGateway> {
        self.presence.others()
    }

    /// Forgets the executions that ended longer ago than this, and says how many.
    pub async fn prune(&self, keep: Duration) -> Result<u64, StoreError> {
        let oldest = SystemTime::now().checked_sub(keep).unwrap_or(UNIX_EPOCH);
        let mut query = QueryBuilder::new("DELETE FROM executions WHERE status IN (");
        push_statuses(&mut query, ExecutionStatus::is_finished);
        query.push(") AND COALESCE(ended_at, created_at) < ");
        query.push_bind(micros(oldest));
        Ok(query.build().execute(&self.pool).await?.rows_affected())
    }

    pub(super) fn noted(&self, wanted: impl Fn(&ExecutionRecord) -> bool) -> Vec<Arc<ExecutionRecord>> {
        let mut noted = self.journal.all();
        noted.retain(|record| wanted(record));
        noted
    }
}

impl ExecutionRecord {
    pub(super) fn belongs_to(&self, tenant: &str, principal: &str) -> bool {
        self.tenant == tenant && self.principal == principal
    }

    /// About what it takes.
    pub(super) fn bytes(&self) -> usize {
        let reason = self.reason.as_ref().map_or(0, String::len);
        record_bytes([json_bytes(&self.cells), json_bytes(&self.outputs), reason])
    }

    /// The same after its notebook was renamed.
    fn after(mut self, renames: &[Arc<Rename>]) -> Self {
        let path = self.path.as_deref();
        if let Some(path) = path.and_then(|path| moved(renames, &self.server, path)) {
            self.path = Some(path);
        }
        self
    }
}

impl ExecutionFilter {
    fn fits(&self, record: &ExecutionRecord) -> bool {
        record.belongs_to(&self.tenant, &self.principal)
            && self.server.as_ref().is_none_or(|server| *server == record.server)
            && self.path.as_ref().is_none_or(|path| record.path.as_ref() == Some(path))
            && self.status.is_none_or(|status| status == record.status)
    }
}

/// What is noted takes the place of what is stored.
fn overlay(
    stored: Vec<ExecutionRecord>,
    noted: Vec<Arc<ExecutionRecord>>,
    fits: impl Fn(&ExecutionRecord) -> bool,
) -> Vec<ExecutionRecord> {
    let newer: HashSet<&str> = noted.iter().map(|record| record.execution_id.as_str()).collect();
    let mut found: Vec<ExecutionRecord> = stored
        .into_iter()
        .filter(|record| !newer.contains(record.execution_id.as_str()))
        .collect();
    let fitting = noted.iter().filter(|record| fits(record));
    found.extend(fitting.map(|record| ExecutionRecord::clone(record)));
    let age = |record: &ExecutionRecord| (micros(record.created_at), record.execution_id.clone());
    found.sort_by_cached_key(|record| std::cmp::Reverse(age(record)));
    found
}

pub(super) fn push_statuses(query: &mut QueryBuilder<Sqlite>, wanted: impl Fn(ExecutionStatus) -> bool) {
    let mut list = query.separated(", ");
    for status in ExecutionStatus::ALL.into_iter().filter(|status| wanted(*status)) {
        list.push_bind(status.as_str());
    }
}

/// Writes a record; how many bytes it takes, about.
pub(super) async fn upsert(
    connection: &mut SqliteConnection,
    record: &ExecutionRecord,
    gateway: &str,
) -> Result<usize, sqlx::Error> {
    let cells = serde_json::to_string(&record.cells).map_err(|error| sqlx::Error::Encode(error.into()))?;
    let outputs = record.outputs.as_ref().map(Value::to_string);
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let bytes = record_bytes([cells.len(), length(&outputs), length(&record.reason)]);
    sqlx::query(
        "INSERT INTO executions (execution_id, tenant, principal, server, path, kernel_id, kernel_session, kind, \
         status, cells, reason, outputs, created_at, started_at, ended_at, gateway, terms, noted_at, bytes) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) \
         ON CONFLICT (execution_id) DO UPDATE SET server = excluded.server, path = excluded.path, \
         kernel_id = excluded.kernel_id, kernel_session = excluded.kernel_session, status = excluded.status, \
         cells = excluded.cells, reason = excluded.reason, outputs = excluded.outputs, \
         started_at = excluded.started_at, ended_at = excluded.ended_at, gateway = excluded.gateway, \
         noted_at = excluded.noted_at, bytes = excluded.bytes",
    )
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
    .bind(serde_json::to_string(&record.terms).map_err(|error| sqlx::Error::Encode(error.into()))?)
    .bind(micros(SystemTime::now()))
    .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
    .execute(connection)
    .await?;
    Ok(bytes)
}

pub(super) async fn rename(connection: &mut SqliteConnection, rename: &Rename) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE executions SET path = $3 || substr(path, length($2) + 1) \
         WHERE server = $1 AND (path = $2 OR substr(path, 1, length($2) + 1) = $2 || '/')",
    )
    .bind(&rename.server)
    .bind(rename.from.as_str())
    .bind(rename.to.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

impl FromRow<'_, SqliteRow> for ExecutionRecord {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let outputs: Option<&str> = row.try_get("outputs")?;
        Ok(Self {
            execution_id: row.try_get("execution_id")?,
            tenant: row.try_get("tenant")?,
            principal: row.try_get("principal")?,
            server: row.try_get("server")?,
            path: row.try_get("path")?,
            kernel_id: row.try_get("kernel_id")?,
            kernel_session: row.try_get("kernel_session")?,
            kind: word(row.try_get("kind")?)?,
            status: word(row.try_get("status")?)?,
            cells: json(row.try_get("cells")?)?,
            reason: row.try_get("reason")?,
            // Outputs nested too deeply to be read again must not take the whole record with them.
            outputs: outputs.and_then(|text| json(text).ok()),
            created_at: time(row.try_get("created_at")?),
            started_at: row.try_get::<Option<i64>, _>("started_at")?.map(time),
            ended_at: row.try_get::<Option<i64>, _>("ended_at")?.map(time),
            terms: match row.try_get("terms")? {
                Some(terms) => json(terms)?,
                None => Terms::default(),
            },
        })
    }
}

impl FromRow<'_, SqliteRow> for LeftBehind {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            record: ExecutionRecord::from_row(row)?,
            noted_at: row.try_get::<Option<i64>, _>("noted_at")?.map(time),
        })
    }
}

fn word<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(text: &str) -> Result<T, sqlx::Error> {
    text.parse().map_err(|error: T::Err| sqlx::Error::Decode(error.into()))
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T, sqlx::Error> {
    serde_json::from_str(text).map_err(|error| sqlx::Error::Decode(error.into()))
}

fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn time(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
