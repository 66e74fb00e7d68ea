//! Tokens that are revoked while their bearers work: who has one is cut off, and nobody else.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{
    super::{Watcher, agent::ERAS},
    Dice,
    site::Site,
};

/// How soon nobody may hear anything any more.
const CUT_OFF_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Revocations {
    count: usize,
    /// The longest time until everybody was cut off.
    slowest: Duration,
    /// Who was not cut off in time.
    pub(super) late: Vec<String>,
}

/// Revokes a token. Its bearers have another one before, which they use from then on.
pub(super) async fn revoke(site: &Site, dice: &mut Dice, revocations: &mut Revocations) {
    let number = dice.index(site.tokens());
    let other = (number + 1) % site.tokens();
    let (mut revoked, mut watched) = (Vec::new(), Vec::new());
    for era in ERAS {
        let agent = site.agent(number, era).await;
        let watcher = Watcher::start(&agent, era, &[]).await;
        revoked.push((era, agent, watcher));
        let agent = site.agent(other, era).await;
        let watcher = Watcher::start(&agent, era, &[]).await;
        watched.push((agent, watcher));
    }
    site.renew_token(number).await;
    let began = Instant::now();
    site.hang_up().await;
    revocations.count += 1;
    for (era, agent, watcher) in revoked {
        let left = || CUT_OFF_TIMEOUT.saturating_sub(began.elapsed());
        let refused = async {
            let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
            while agent.send(list.clone()).await.status() != 401 {
                sleep(Duration::from_millis(50)).await;
            }
        };
        if timeout(left(), watcher.ended()).await.is_err() {
            revocations
                .late
                .push(format!("the stream of a revoked token went on, {era:?}"));
        }
        if timeout(left(), refused).await.is_err() {
            revocations.late.push(format!("a revoked token was taken, {era:?}"));
        }
    }
    revocations.slowest = revocations.slowest.max(began.elapsed());
    for (agent, watcher) in watched {
        if watcher.has_ended() {
            site.disturbed("a stream ended when the token of others was revoked".to_owned());
        }
        if agent.session.is_some() {
            agent.close().await;
        }
    }
}
