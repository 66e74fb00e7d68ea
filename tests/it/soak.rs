//! Agents at work while Jupyter and the gateway are killed and lines are cut. `make soak` does it for longer.

use crate::support::soak::{Plan, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agents_insert_is_there_once_whatever_dies() {
    let plan = Plan::from_env(Plan {
        agents: 6,
        notebooks: 2,
        seconds: 25,
        seed: 1,
        minor: 5,
        executed_percent: 25,
    });
    let outcome = run(&plan).await;
    outcome.assert_nothing_lost_or_doubled();
    assert!(outcome.peak_bytes < 400 << 20, "{outcome:?}");
}
