//! The table of leases. Whether one has expired is told by the clock of the database, which all gateways share.

use std::time::Duration;

use super::Lease;
use crate::{
    StoreError,
    database::{Database, Statement, readable},
    process::Process,
};

/// A lease as the database has it.
#[derive(Debug, Clone)]
pub(crate) struct StoredLease {
    pub(crate) lease: Lease,
    /// By the clock of the database, in microseconds since 1970.
    pub(crate) expires_at: i64,
    /// True if it was not renewed in time, by the same clock.
    pub(crate) has_expired: bool,
}

impl Database {
    /// Makes or renews a lease, which is valid for so long from now.
    pub(crate) async fn renew_lease(&self, lease: &Lease, valid: Duration) -> Result<(), StoreError> {
        let mut statement = Statement::new("INSERT INTO gateways (gateway, host, pid, started, expires_at) VALUES (");
        statement.push_list([&lease.gateway, &lease.process.host]).push(", ");
        statement
            .push_list([lease.process.pid, lease.process.started])
            .push(", ");
        statement.push(self.now()).push(" + ");
        statement.push_bind(i64::try_from(valid.as_micros()).unwrap_or(i64::MAX));
        statement.push(") ON CONFLICT (gateway) DO UPDATE SET expires_at = excluded.expires_at");
        self.execute(statement).await?;
        Ok(())
    }

    /// All leases, also those that were not renewed in time.
    pub(crate) async fn leases(&self) -> Result<Vec<StoredLease>, StoreError> {
        let mut statement = Statement::new("SELECT gateway, host, pid, started, expires_at, expires_at - ");
        statement.push(self.now()).push(" AS remaining FROM gateways");
        Ok(readable(self.rows(statement).await?, "gateways", |row| {
            Ok(StoredLease {
                lease: Lease {
                    gateway: row.get("gateway")?,
                    process: Process {
                        host: row.get("host")?,
                        pid: row.get("pid")?,
                        started: row.get("started")?,
                    },
                },
                expires_at: row.get("expires_at")?,
                has_expired: row.get::<i64>("remaining")? <= 0,
            })
        }))
    }

    /// Removes a gateway's lease, unless it was renewed after it was `seen`. Says whether it did.
    pub(crate) async fn remove_lease(&self, gateway: &str, seen: Option<&StoredLease>) -> Result<bool, StoreError> {
        let statement =
            Statement::new("DELETE FROM gateways WHERE gateway = $1 AND expires_at = COALESCE($2, expires_at)");
        let statement = statement.bind(gateway).bind(seen.map(|seen| seen.expires_at));
        Ok(self.execute(statement).await? > 0)
    }
}
