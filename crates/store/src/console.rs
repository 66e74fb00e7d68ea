//! The database of gateways as an operator's command uses it: it reads and revokes, and is no gateway itself.

use crate::{
    AuditFilter, AuditPage, RevokedToken, StoreError, audit, database::Database, location::Location, revocations,
    schema,
};

/// The database, without the tasks and the lease of a gateway.
#[derive(Debug)]
pub struct Console {
    database: Database,
}

impl Console {
    /// Opens a database that exists, and brings its schema up to date where needed.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let location = Location::parse(url)?;
        match &location {
            Location::Memory => return Err(StoreError::InMemory),
            Location::File(file) if !file.exists() => {
                return Err(StoreError::NoSuchFile { file: file.clone() });
            }
            Location::File(_) | Location::Postgres(_) => {}
        }
        Self::connect(location).await
    }

    /// The same, making the file where there is none: what is written into it holds for gateways that start later.
    pub async fn open_or_create(url: &str) -> Result<Self, StoreError> {
        match Location::parse(url)? {
            Location::Memory => Err(StoreError::InMemory),
            location => Self::connect(location).await,
        }
    }

    async fn connect(location: Location) -> Result<Self, StoreError> {
        let database = Database::connect(&location, 1).await?;
        schema::migrate(&database, &location).await?;
        Ok(Self { database })
    }

    /// Some of the calls that were recorded, the newest first.
    pub async fn audit(&self, filter: &AuditFilter) -> Result<AuditPage, StoreError> {
        audit::page(&self.database, filter).await
    }

    /// Every token that was revoked.
    pub async fn revoked_tokens(&self) -> Result<Vec<RevokedToken>, StoreError> {
        revocations::all(&self.database).await
    }

    /// Revokes a token, and says whether it was not revoked yet.
    pub async fn revoke_token(&self, token: &RevokedToken) -> Result<bool, StoreError> {
        revocations::add(&self.database, token).await
    }

    /// Closes the database.
    pub async fn close(&self) {
        self.database.close().await;
    }
}
