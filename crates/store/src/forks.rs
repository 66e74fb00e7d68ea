//! Forks: copies of documents in which changes are proposed.

use std::time::SystemTime;

use crate::{
    Store, StoreError,
    database::{Row, Statement, readable},
    row::{micros, time},
};

/// A copy of a document. What its content says is opaque here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkRecord {
    pub fork_id: String,
    pub server: String,
    /// Of the document that it was made from.
    pub file_id: String,
    /// Of the document that it was made from.
    pub path: String,
    pub kind: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// Takes over what is changed in the document.
    pub synchronize: bool,
    pub principal: String,
    pub author_name: String,
    pub created_at: SystemTime,
    pub updated_at: SystemTime,
    /// Of the server's own fork, where it has them.
    pub room_id: Option<String>,
    /// Made because the edits of its author have to be accepted by somebody.
    pub is_review: bool,
    /// The document's content when it was made, or last taken over.
    pub base: Vec<u8>,
    pub content: Vec<u8>,
}

impl Store {
    /// Writes a fork, in the place of what was there under its id.
    pub async fn put_fork(&self, fork: &ForkRecord) -> Result<(), StoreError> {
        let statement = Statement::new(
            "INSERT INTO forks (fork_id, server, file_id, path, kind, title, description, synchronize, principal, \
             author_name, created_at, updated_at, room_id, is_review, base, content) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) \
             ON CONFLICT (fork_id) DO UPDATE SET server = excluded.server, file_id = excluded.file_id, \
             path = excluded.path, kind = excluded.kind, title = excluded.title, \
             description = excluded.description, synchronize = excluded.synchronize, \
             principal = excluded.principal, author_name = excluded.author_name, \
             updated_at = excluded.updated_at, room_id = excluded.room_id, is_review = excluded.is_review, \
             base = excluded.base, content = excluded.content",
        );
        let statement = statement
            .bind(&fork.fork_id)
            .bind(&fork.server)
            .bind(&fork.file_id)
            .bind(&fork.path)
            .bind(&fork.kind)
            .bind(&fork.title)
            .bind(&fork.description)
            .bind(fork.synchronize)
            .bind(&fork.principal)
            .bind(&fork.author_name)
            .bind(micros(fork.created_at))
            .bind(micros(fork.updated_at))
            .bind(&fork.room_id)
            .bind(fork.is_review)
            .bind(&fork.base)
            .bind(&fork.content);
        self.database.execute(statement).await?;
        Ok(())
    }

    pub async fn fork(&self, fork_id: &str) -> Result<Option<ForkRecord>, StoreError> {
        let statement = Statement::new("SELECT * FROM forks WHERE fork_id = $1").bind(fork_id);
        let row = self.database.row(statement).await?;
        Ok(row.as_ref().map(ForkRecord::read).transpose()?)
    }

    /// The forks of a document, the oldest first.
    pub async fn forks_of(&self, server: &str, file_id: &str) -> Result<Vec<ForkRecord>, StoreError> {
        let statement =
            Statement::new("SELECT * FROM forks WHERE server = $1 AND file_id = $2 ORDER BY created_at, fork_id");
        let rows = self.database.rows(statement.bind(server).bind(file_id)).await?;
        Ok(readable(rows, "forks", ForkRecord::read))
    }

    /// Deletes the forks of all documents that were not changed since a time, and says how many that were.
    pub async fn delete_forks_before(&self, time: SystemTime) -> Result<u64, StoreError> {
        let statement = Statement::new("DELETE FROM forks WHERE updated_at < $1").bind(micros(time));
        self.database.execute(statement).await
    }

    /// Deletes a fork. Says whether it was there.
    pub async fn delete_fork(&self, fork_id: &str) -> Result<bool, StoreError> {
        let statement = Statement::new("DELETE FROM forks WHERE fork_id = $1").bind(fork_id);
        Ok(self.database.execute(statement).await? > 0)
    }
}

impl ForkRecord {
    fn read(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            fork_id: row.get("fork_id")?,
            server: row.get("server")?,
            file_id: row.get("file_id")?,
            path: row.get("path")?,
            kind: row.get("kind")?,
            title: row.get("title")?,
            description: row.get("description")?,
            synchronize: row.get("synchronize")?,
            principal: row.get("principal")?,
            author_name: row.get("author_name")?,
            created_at: time(row.get("created_at")?),
            updated_at: time(row.get("updated_at")?),
            room_id: row.get("room_id")?,
            is_review: row.get("is_review")?,
            base: row.get("base")?,
            content: row.get("content")?,
        })
    }
}
