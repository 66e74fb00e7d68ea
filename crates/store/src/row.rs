//! Executions as rows: the columns of a table, whichever database has it, to records.

use std::{
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, de::DeserializeOwned};
use sqlx::{FromRow, Row, sqlite::SqliteRow};

use crate::{ExecutionRecord, LeftBehind, StoreError, Terms};

/// One row of `executions`.
pub(crate) struct ExecutionRow {
    execution_id: String,
    tenant: String,
    principal: String,
    server: String,
    path: Option<String>,
    file_id: Option<String>,
    kernel_id: Option<String>,
    kernel_session: Option<String>,
    kind: String,
    status: String,
    cells: String,
    reason: Option<String>,
    outputs: Option<String>,
    created_at: i64,
    started_at: Option<i64>,
    ended_at: Option<i64>,
    terms: Option<String>,
    noted_at: Option<i64>,
}

/// Written out, since deriving it would compile all of SQLite a second time, for the macro.
impl FromRow<'_, SqliteRow> for ExecutionRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            execution_id: row.try_get("execution_id")?,
            tenant: row.try_get("tenant")?,
            principal: row.try_get("principal")?,
            server: row.try_get("server")?,
            path: row.try_get("path")?,
            file_id: row.try_get("file_id")?,
            kernel_id: row.try_get("kernel_id")?,
            kernel_session: row.try_get("kernel_session")?,
            kind: row.try_get("kind")?,
            status: row.try_get("status")?,
            cells: row.try_get("cells")?,
            reason: row.try_get("reason")?,
            outputs: row.try_get("outputs")?,
            created_at: row.try_get("created_at")?,
            started_at: row.try_get("started_at")?,
            ended_at: row.try_get("ended_at")?,
            terms: row.try_get("terms")?,
            noted_at: row.try_get("noted_at")?,
        })
    }
}

impl TryFrom<ExecutionRow> for ExecutionRecord {
    type Error = StoreError;

    fn try_from(row: ExecutionRow) -> Result<Self, StoreError> {
        Ok(Self {
            execution_id: row.execution_id,
            tenant: row.tenant,
            principal: row.principal,
            server: row.server,
            path: row.path,
            file_id: row.file_id,
            kernel_id: row.kernel_id,
            kernel_session: row.kernel_session,
            kind: word(&row.kind)?,
            status: word(&row.status)?,
            cells: from_json(&row.cells)?,
            reason: row.reason,
            // Outputs nested too deeply to be read again must not take the whole record with them.
            outputs: row.outputs.and_then(|text| from_json(&text).ok()),
            created_at: time(row.created_at),
            started_at: row.started_at.map(time),
            ended_at: row.ended_at.map(time),
            terms: row
                .terms
                .map_or_else(|| Ok(Terms::default()), |terms| from_json(&terms))?,
        })
    }
}

impl TryFrom<ExecutionRow> for LeftBehind {
    type Error = StoreError;

    fn try_from(row: ExecutionRow) -> Result<Self, StoreError> {
        let noted_at = row.noted_at.map(time);
        Ok(Self {
            record: row.try_into()?,
            noted_at,
        })
    }
}

fn word<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(text: &str) -> Result<T, sqlx::Error> {
    text.parse().map_err(|error: T::Err| sqlx::Error::Decode(error.into()))
}

pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, sqlx::Error> {
    serde_json::from_str(text).map_err(|error| sqlx::Error::Decode(error.into()))
}

pub(crate) fn to_json(value: &impl Serialize) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

pub(crate) fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn time(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
