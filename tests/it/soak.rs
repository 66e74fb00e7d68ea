//! Agents at work while Jupyter and the gateway are killed, lines are cut, tokens revoked and requests come in floods. `make soak`
//! does it for longer and with more of them.

use std::time::Duration;

use crate::support::soak::{Plan, run};

/// What the last gateway of a long run may take more than after a third of its life.
const GROWTH: usize = 64 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agents_insert_is_there_once_whatever_dies() {
    let plan = Plan::from_env(Plan {
        agents: 6,
        notebooks: 2,
        seconds: 25,
        seed: 1,
        minor: 5,
        executed_percent: 25,
        cut_percent: 15,
        tenants: 2,
        tokens: 3,
        pause: 120,
        cells: 12,
    });
    let outcome = run(&plan).await;
    outcome.assert_nothing_lost_or_doubled();
    assert!(outcome.cut > 0 && outcome.resumed > 0, "{outcome}");
    let (lived, [_, third, _, end]) = outcome.memory.of_last();
    assert!(outcome.memory.peak() < 600 << 20, "{}", outcome.memory);
    assert!(
        lived < Duration::from_secs(60) || end < third + GROWTH,
        "{}",
        outcome.memory
    );
}
