//! Columns to values and back, whichever database has them.

use std::{
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{AbandonedExecution, ExecutionRecord, Terms, database::Row};

pub(crate) fn read_execution(row: &Row) -> Result<ExecutionRecord, sqlx::Error> {
    Ok(ExecutionRecord {
        execution_id: row.get("execution_id")?,
        tenant: row.get("tenant")?,
        principal: row.get("principal")?,
        server: row.get("server")?,
        path: row.get("path")?,
        file_id: row.get("file_id")?,
        kernel_id: row.get("kernel_id")?,
        kernel_session: row.get("kernel_session")?,
        kind: word(&row.get::<String>("kind")?)?,
        status: word(&row.get::<String>("status")?)?,
        cells: from_json(&row.get::<String>("cells")?)?,
        reason: row.get("reason")?,
        // Outputs nested too deeply to be read again must not take the whole record with them.
        outputs: row
            .get::<Option<String>>("outputs")?
            .and_then(|text| from_json(&text).ok()),
        created_at: time(row.get("created_at")?),
        started_at: row.get::<Option<i64>>("started_at")?.map(time),
        ended_at: row.get::<Option<i64>>("ended_at")?.map(time),
        terms: row
            .get::<Option<String>>("terms")?
            .map_or_else(|| Ok(Terms::default()), |terms| from_json(&terms))?,
    })
}

pub(crate) fn read_left_behind(row: &Row) -> Result<AbandonedExecution, sqlx::Error> {
    Ok(AbandonedExecution {
        record: read_execution(row)?,
        noted_at: row.get::<Option<i64>>("noted_at")?.map(time),
    })
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
