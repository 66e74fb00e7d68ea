//! Follows a server's events of files and kernels for as long as some of its documents are open.

use std::sync::{Arc, Weak};

use jupyter_client::{JupyterServer, ServerEvent};
use tokio::time::timeout;

use super::Pool;
use crate::core::policy::{FEED_CHECK_INTERVAL, FEED_RETRY};

/// Applies a server's file events to its rooms until it has none.
pub(super) async fn follow(pool: Weak<Pool>, server: Arc<JupyterServer>, name: Arc<str>) {
    loop {
        if let Ok(mut feed) = server.feed().await {
            loop {
                let event = timeout(FEED_CHECK_INTERVAL, feed.next()).await;
                let Some(pool) = pool.upgrade().filter(|pool| pool.has_rooms_of(&name)) else {
                    break;
                };
                match event {
                    Ok(Some(ServerEvent::Renamed { from, to })) => pool.renamed(&name, &from, &to),
                    Ok(Some(ServerEvent::Deleted { path })) => pool.deleted(&name, &path).await,
                    Ok(Some(ServerEvent::Overwritten { path })) => pool.overwritten(&name, &path),
                    Ok(Some(ServerEvent::KernelStarted { kernel_id })) => server.on_kernel_started(&kernel_id),
                    Ok(None) => break,
                    // Nothing happened for a while, which is as good a moment as any to see if it still matters.
                    Err(_) => {}
                }
            }
        }
        let Some(pool) = pool.upgrade() else { return };
        if !pool.has_rooms_of(&name) {
            pool.watched.remove(&name);
            return;
        }
        drop(pool);
        tokio::time::sleep(FEED_RETRY).await;
    }
}
