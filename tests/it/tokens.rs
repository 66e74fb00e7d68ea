//! Costs of work for a model: the bytes of the answers it reads, a quarter of which is about the number of tokens, and
//! the images. `make bench-tokens` prints the figures, beside those of datalayer's server if it is asked to.

mod peer;
mod work;

use self::work::{Cost, Work};

/// A goal: the tokens that a job may cost.
struct Goal {
    job: &'static str,
    tokens: usize,
}

const fn goal(job: &'static str, tokens: usize) -> Goal {
    Goal { job, tokens }
}

const GOALS: [Goal; 7] = [
    goal("outline of 120 cells", 2_500),
    goal("read 120 cells, brief", 8_000),
    goal("execute one print", 30),
    goal("a cell that fails in a library", 250),
    goal("find and fix two failing cells among 120, verify", 3_000),
    goal("run 120 cells, two of which fail", 1_500),
    goal("list of tools", 6_000),
];

#[tokio::test]
async fn answers_are_within_their_goals() {
    let work = Work::begin().await;
    let costs = [
        work.outline().await,
        work.brief().await,
        work.print().await,
        work.failure().await,
        work.fix().await,
        work.run_all().await,
        work.list().await,
    ];
    let peers = peer::costs().await;
    let row = |job: &str, ours: &str, theirs: &str, goal: &str| println!("{job:<50} {ours:>20} {theirs:>20} {goal:>8}");
    row("tokens (bytes / 4)", "gateway", "datalayer", "goal");
    for (index, (goal, cost)) in GOALS.iter().zip(&costs).enumerate() {
        let theirs = peers.get(index).and_then(Option::as_ref).map(Cost::to_string);
        row(
            goal.job,
            &cost.to_string(),
            theirs.as_deref().unwrap_or("-"),
            &goal.tokens.to_string(),
        );
    }
    for (goal, cost) in GOALS.iter().zip(&costs) {
        assert!(cost.tokens() <= goal.tokens, "{}: {cost}", goal.job);
        assert_eq!(cost.images, 0, "{}", goal.job);
    }
}
