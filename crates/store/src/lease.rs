//! The gateways that use the database at this moment, so that none takes over the work of another. Each
//! has a lease in the database and renews it.
//!
//! | the other's process | its lease | it is there |
//! | --- | --- | --- |
//! | | removed | no: it left |
//! | runs on this host | | yes, however late it renews |
//! | ended on this host | | no, at once |
//! | on another host | valid | yes |
//! | on another host | expired | no |

mod table;

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

pub(crate) use table::StoredLease;

use crate::{
    Store, StoreError,
    database::Database,
    health::Health,
    process::{Liveness, Process},
};

/// Time without renewal after which the work of a gateway on another host is taken over.
const VALID: Duration = Duration::from_secs(15);
/// Often enough that two renewals may fail.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);
/// Interval between checks whether another gateway has left.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// A gateway's claim to what it runs.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) gateway: String,
    pub(crate) process: Process,
}

/// Another gateway that used the database when it was looked for.
#[derive(Debug)]
pub struct OtherGateway {
    store: Store,
    gateway: String,
}

impl Lease {
    /// Begins the lease of this process.
    pub(crate) async fn begin(database: &Database) -> Result<Self, StoreError> {
        let lease = Self {
            gateway: uuid::Uuid::new_v4().to_string(),
            process: Process::current(),
        };
        database.renew_lease(&lease, VALID).await?;
        Ok(lease)
    }

    /// Renews it until told to stop, and then ends it. It is also what tells soon that the database cannot be written
    /// to, while nothing else is written.
    pub(crate) async fn hold(self: Arc<Self>, database: Database, health: Arc<Health>, stop: CancellationToken) {
        while stop
            .run_until_cancelled(tokio::time::sleep(RENEW_INTERVAL))
            .await
            .is_some()
        {
            let renewed = database.renew_lease(&self, VALID).await;
            if let Err(error) = &renewed {
                tracing::warn!(%error, "the lease in the store cannot be renewed; trying again");
            }
            health.on_write(&renewed);
        }
        if let Err(error) = database.remove_lease(&self.gateway, None).await {
            tracing::debug!(%error, "the lease in the store could not be ended and expires");
        }
    }

    fn is_held(&self, stored: &StoredLease) -> bool {
        let other = &stored.lease;
        self.gateway == other.gateway
            || match other.process.liveness(&self.process) {
                Liveness::Running => true,
                Liveness::Ended => false,
                Liveness::Unknown => !stored.has_expired,
            }
    }
}

impl Store {
    /// The other gateways that use the same database.
    pub async fn other_gateways(&self) -> Result<Vec<OtherGateway>, StoreError> {
        let mut gateways = self.sweep_leases().await?;
        gateways.remove(&self.lease.gateway);
        let other = |gateway| OtherGateway {
            store: self.clone(),
            gateway,
        };
        Ok(gateways.into_iter().map(other).collect())
    }

    /// Removes the leases of gateways that are gone, and says which are there.
    pub(crate) async fn sweep_leases(&self) -> Result<HashSet<String>, StoreError> {
        let mut held = HashSet::new();
        for stored in self.database.leases().await? {
            let gateway = &stored.lease.gateway;
            // One that was renewed meanwhile is there after all.
            if self.lease.is_held(&stored) || !self.database.remove_lease(gateway, Some(&stored)).await? {
                held.insert(stored.lease.gateway);
            }
        }
        // Its own may have expired in the eyes of others.
        held.insert(self.lease.gateway.clone());
        Ok(held)
    }
}

impl OtherGateway {
    /// Waits until it has left, however it left.
    pub async fn wait_until_left(self) {
        loop {
            match self.store.sweep_leases().await {
                Ok(gateways) if !gateways.contains(&self.gateway) => return,
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "whether another gateway has left cannot be told"),
            }
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    }
}
