//! Activities of agents and people, the newest first.

use std::time::SystemTime;

use async_trait::async_trait;
use serde_json::Value;

use crate::{
    Store, StoreError,
    database::{Row, Statement, Transaction, readable},
    notes::Note,
    row::{from_json, micros, time},
    size::json_bytes,
};

/// Something that an agent or a person did.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivityRecord {
    pub activity_id: String,
    pub time: SystemTime,
    pub server: String,
    /// Path at the time.
    pub path: Option<String>,
    pub file_id: Option<String>,
    /// The id of an agent's principal, or the name under which the server knows a person.
    pub actor: String,
    /// Description for people.
    pub actor_name: String,
    pub is_agent: bool,
    pub activity_type: String,
    pub description: String,
    pub metadata: Value,
}

/// Filter for activities.
#[derive(Debug, Clone, Default)]
pub struct ActivityFilter {
    pub server: Option<String>,
    /// Of these documents, by the path at the time; empty for all.
    pub paths: Vec<String>,
    pub file_id: Option<String>,
    pub actor: Option<String>,
    pub before: Option<SystemTime>,
    pub limit: usize,
}

impl Store {
    /// Records an activity without waiting.
    pub fn note_activity(&self, record: ActivityRecord) {
        self.activity.note(record);
    }

    /// The newest first.
    pub async fn activity_log(&self, filter: &ActivityFilter) -> Result<Vec<ActivityRecord>, StoreError> {
        self.activity.wait_to_read().await;
        let mut statement = Statement::new("SELECT * FROM activity WHERE 1 = 1");
        let narrow = [
            (" AND server = ", filter.server.as_deref()),
            (" AND file_id = ", filter.file_id.as_deref()),
            (" AND actor = ", filter.actor.as_deref()),
        ];
        for (condition, value) in narrow {
            if let Some(value) = value {
                statement.push(condition).push_bind(value);
            }
        }
        if !filter.paths.is_empty() {
            statement.push(" AND path IN (").push_list(&filter.paths).push(")");
        }
        if let Some(before) = filter.before {
            statement.push(" AND time < ").push_bind(micros(before));
        }
        statement.push(" ORDER BY time DESC, activity_id DESC LIMIT ");
        statement.push_bind(i64::try_from(filter.limit).unwrap_or(i64::MAX));
        Ok(readable(
            self.database.rows(statement).await?,
            "activity",
            ActivityRecord::read,
        ))
    }
}

impl ActivityRecord {
    fn read(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            activity_id: row.get("activity_id")?,
            time: time(row.get("time")?),
            server: row.get("server")?,
            path: row.get("path")?,
            file_id: row.get("file_id")?,
            actor: row.get("actor")?,
            actor_name: row.get("actor_name")?,
            is_agent: row.get("is_agent")?,
            activity_type: row.get("activity_type")?,
            description: row.get("description")?,
            metadata: from_json(&row.get::<String>("metadata")?)?,
        })
    }
}

#[async_trait]
impl Note for ActivityRecord {
    const TABLE: &'static str = "activity";

    fn bytes(&self) -> usize {
        let texts = [
            &self.activity_id,
            &self.server,
            &self.actor,
            &self.actor_name,
            &self.description,
        ];
        let texts: usize = texts.into_iter().map(String::len).sum();
        let path = self.path.as_ref().map_or(0, String::len);
        256 + texts + path + json_bytes(&self.metadata)
    }

    async fn insert(&self, transaction: &mut Transaction) -> Result<(), StoreError> {
        let statement = Statement::new(
            "INSERT INTO activity (activity_id, time, server, path, file_id, actor, actor_name, is_agent, \
             activity_type, description, metadata) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
             ON CONFLICT (activity_id) DO NOTHING",
        );
        let statement = statement
            .bind(&self.activity_id)
            .bind(micros(self.time))
            .bind(&self.server)
            .bind(&self.path)
            .bind(&self.file_id)
            .bind(&self.actor)
            .bind(&self.actor_name)
            .bind(self.is_agent)
            .bind(&self.activity_type)
            .bind(&self.description)
            .bind(self.metadata.to_string());
        transaction.execute(statement).await?;
        Ok(())
    }
}
