//! Connections to PostgreSQL. Every wait is bounded: for a connection, for a lock, for an answer.

use std::time::Duration;

use sqlx::{
    Connection, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;

use crate::{StoreError, location::describe};

/// Longest time for a server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait of a caller for a connection, a new one included.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Those who ask whether it works wait less than a second for the answer.
const PING_TIMEOUT: Duration = Duration::from_millis(300);
/// The server ends what takes longer, also if nobody waits for it any more.
const SESSION: &str = "SET statement_timeout = '20s'; SET lock_timeout = '10s'; \
     SET idle_in_transaction_session_timeout = '60s'";

pub(super) async fn connect(options: &PgConnectOptions, connections: u32) -> Result<PgPool, StoreError> {
    // The pool would try again and again, and not say what was wrong.
    let first = open(options, CONNECT_TIMEOUT).await?;
    let _ = first.close().await;
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move {
                sqlx::raw_sql(SESSION).execute(connection).await?;
                Ok(())
            })
        });
    Ok(pool.connect_lazy_with(options.clone()))
}

/// Sends a ping on a free connection, or else on a new one, which tells what is wrong if it cannot be made.
pub(super) async fn ping(pool: &PgPool) -> Result<(), StoreError> {
    if let Some(mut connection) = pool.try_acquire()
        && let Ok(Ok(())) = timeout(PING_TIMEOUT, connection.ping()).await
    {
        return Ok(());
    }
    let connection = open(&pool.connect_options(), PING_TIMEOUT).await?;
    let _ = connection.close().await;
    Ok(())
}

async fn open(options: &PgConnectOptions, patience: Duration) -> Result<PgConnection, StoreError> {
    let why = match timeout(patience, PgConnection::connect_with(options)).await {
        Ok(Ok(connection)) => return Ok(connection),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it has not answered within {patience:?}"),
    };
    Err(StoreError::Connect {
        place: describe(options),
        why,
    })
}
