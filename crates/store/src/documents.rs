//! Documents that have a history. A document is known by its server, its kind and the server's id of its file; the path
//! is an attribute, and finds the document again when the server has forgotten the id.

use std::time::SystemTime;

use crate::{
    Store, StoreError,
    database::{Database, Row, Statement, Transaction},
    row::micros,
};

/// A document as those who have it open know it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentKey {
    pub server: String,
    /// The server's id of the file.
    pub file_id: String,
    pub path: String,
    /// Of its room: the same file may be open as a notebook and as text.
    pub kind: String,
}

/// A document as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    /// The store's own number of it.
    pub document: i64,
    pub server: String,
    pub file_id: String,
    /// None once another document was found at its path.
    pub path: Option<String>,
    pub kind: String,
    /// Of the newest version; 0 before the first.
    pub latest_seq: i64,
}

/// Only one at a time decides which document a file or a path belongs to.
const IDENTITY_LOCK: &str = "SELECT pg_advisory_xact_lock(4077263001)";
const COLUMNS: &str = "SELECT document, server, file_id, path, kind, latest_seq FROM documents";

impl Store {
    /// The document, which is made where there is none. It is found by its file, or else by its path: a server whose
    /// index of files began anew gives the same file another id, and the document goes on under that.
    pub async fn document(&self, key: &DocumentKey) -> Result<DocumentRow, StoreError> {
        if let Some(found) = of_file(&self.database, key).await?
            && found.path.as_ref() == Some(&key.path)
        {
            return Ok(found);
        }
        let mut transaction = self.begin_identity().await?;
        let document = identify(&mut transaction, key).await?;
        transaction.commit().await?;
        Ok(document)
    }

    /// The document of a kind at a path, if it has a history.
    pub async fn document_at(&self, server: &str, path: &str, kind: &str) -> Result<Option<DocumentRow>, StoreError> {
        let mut statement = Statement::new(COLUMNS);
        statement.push(" WHERE server = ").push_bind(server);
        statement.push(" AND path = ").push_bind(path);
        statement.push(" AND kind = ").push_bind(kind);
        let row = self.database.row(statement).await?;
        Ok(row.as_ref().map(DocumentRow::read).transpose()?)
    }

    /// Records the present path of a file, for its documents and forks.
    pub async fn note_document_path(&self, server: &str, file_id: &str, path: &str) -> Result<(), StoreError> {
        let mut transaction = self.begin_identity().await?;
        // Whoever was there before is somewhere else, or gone.
        let displace = Statement::new(
            "UPDATE documents SET path = NULL WHERE server = $1 AND path = $3 AND file_id <> $2 AND kind IN \
             (SELECT kind FROM documents WHERE server = $1 AND file_id = $2)",
        );
        transaction
            .execute(displace.bind(server).bind(file_id).bind(path))
            .await?;
        for table in [
            "UPDATE documents SET path = $3 WHERE server = $1 AND file_id = $2",
            "UPDATE forks SET path = $3 WHERE server = $1 AND file_id = $2",
        ] {
            let statement = Statement::new(table).bind(server).bind(file_id).bind(path);
            transaction.execute(statement).await?;
        }
        transaction.commit().await
    }

    /// Records that a file or a directory was renamed. Documents and forks there, or below it, go with it.
    pub async fn rename_documents(&self, server: &str, from: &str, to: &str) -> Result<(), StoreError> {
        if from == to {
            return Ok(());
        }
        let mut transaction = self.begin_identity().await?;
        let displace = Statement::new(
            "UPDATE documents SET path = NULL WHERE server = $1 AND EXISTS (SELECT 1 FROM documents AS moved \
             WHERE moved.server = $1 AND moved.kind = documents.kind \
             AND (moved.path = $2 OR substr(moved.path, 1, length($2) + 1) = $2 || '/') \
             AND $3 || substr(moved.path, length($2) + 1) = documents.path)",
        );
        transaction.execute(displace.bind(server).bind(from).bind(to)).await?;
        for table in [
            "UPDATE documents SET path = $3 || substr(path, length($2) + 1) \
             WHERE server = $1 AND (path = $2 OR substr(path, 1, length($2) + 1) = $2 || '/')",
            "UPDATE forks SET path = $3 || substr(path, length($2) + 1) \
             WHERE server = $1 AND (path = $2 OR substr(path, 1, length($2) + 1) = $2 || '/')",
        ] {
            transaction
                .execute(Statement::new(table).bind(server).bind(from).bind(to))
                .await?;
        }
        transaction.commit().await
    }

    async fn begin_identity(&self) -> Result<Transaction, StoreError> {
        let mut transaction = self.database.begin().await?;
        if transaction.is_postgres() {
            transaction.execute(Statement::new(IDENTITY_LOCK)).await?;
        }
        Ok(transaction)
    }
}

impl DocumentRow {
    pub(crate) fn read(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            document: row.get("document")?,
            server: row.get("server")?,
            file_id: row.get("file_id")?,
            path: row.get("path")?,
            kind: row.get("kind")?,
            latest_seq: row.get("latest_seq")?,
        })
    }
}

async fn of_file(database: &Database, key: &DocumentKey) -> Result<Option<DocumentRow>, StoreError> {
    let row = database.row(by_file(key)).await?;
    Ok(row.as_ref().map(DocumentRow::read).transpose()?)
}

fn by_file(key: &DocumentKey) -> Statement<'_> {
    let mut statement = Statement::new(COLUMNS);
    statement.push(" WHERE server = ").push_bind(&key.server);
    statement.push(" AND kind = ").push_bind(&key.kind);
    statement.push(" AND file_id = ").push_bind(&key.file_id);
    statement
}

fn by_path(key: &DocumentKey) -> Statement<'_> {
    let mut statement = Statement::new(COLUMNS);
    statement.push(" WHERE server = ").push_bind(&key.server);
    statement.push(" AND kind = ").push_bind(&key.kind);
    statement.push(" AND path = ").push_bind(&key.path);
    statement
}

/// Finds or makes the document of a key, and gives it the file and the path of the key.
async fn identify(transaction: &mut Transaction, key: &DocumentKey) -> Result<DocumentRow, StoreError> {
    let of_file = transaction.row(by_file(key)).await?;
    let of_file = of_file.as_ref().map(DocumentRow::read).transpose()?;
    let at_path = transaction.row(by_path(key)).await?;
    let at_path = at_path.as_ref().map(DocumentRow::read).transpose()?;
    match (of_file, at_path) {
        (Some(of_file), at_path) => {
            if let Some(displaced) = at_path.filter(|other| other.document != of_file.document) {
                set_place(transaction, displaced.document, &displaced.file_id, None).await?;
            }
            set_place(transaction, of_file.document, &key.file_id, Some(&key.path)).await
        }
        (None, Some(at_path)) => set_place(transaction, at_path.document, &key.file_id, Some(&key.path)).await,
        (None, None) => create(transaction, key).await,
    }
}

async fn set_place(
    transaction: &mut Transaction,
    document: i64,
    file_id: &str,
    path: Option<&str>,
) -> Result<DocumentRow, StoreError> {
    let statement = Statement::new(
        "UPDATE documents SET file_id = $2, path = $3 WHERE document = $1 \
         RETURNING document, server, file_id, path, kind, latest_seq",
    );
    let statement = statement.bind(document).bind(file_id).bind(path);
    returned(transaction.row(statement).await?)
}

async fn create(transaction: &mut Transaction, key: &DocumentKey) -> Result<DocumentRow, StoreError> {
    let now = micros(SystemTime::now());
    let statement = Statement::new(
        "INSERT INTO documents (server, kind, file_id, path, oldest_at, changed_at) VALUES ($1, $2, $3, $4, $5, $6) \
         RETURNING document, server, file_id, path, kind, latest_seq",
    );
    let statement = statement.bind(&key.server).bind(&key.kind).bind(&key.file_id);
    returned(transaction.row(statement.bind(&key.path).bind(now).bind(now)).await?)
}

fn returned(row: Option<Row>) -> Result<DocumentRow, StoreError> {
    let row = row.ok_or(sqlx::Error::RowNotFound)?;
    Ok(DocumentRow::read(&row)?)
}
