//! Costs of history. Run by hand: `cargo test --test it history_figures:: -- --ignored --nocapture --test-threads=1`.

use std::time::{Duration, Instant};

use serde_json::json;
use test_postgres::TestDatabase;

use crate::{
    history::edit,
    support::{
        Agent, Era, Gateway,
        gateway::{everything, lab_server},
        lab,
        notebook::notebook,
        running::{Home, Running},
    },
};

const EDITS: usize = 10_000;
const PAIRS: usize = 500;
/// Documents that are open before memory is measured, and those that are opened then.
const WARM: usize = 40;
const DOCUMENTS: usize = 120;

fn sources() -> Vec<String> {
    let cell = |n: usize| {
        format!("# step {n}\nframe = load('data-{n}.csv')\nframe = frame[frame.value > {n}]\nframe.describe()\n")
    };
    (0..50).map(cell).collect()
}

fn as_notebook() -> String {
    let sources = sources();
    notebook(&sources.iter().map(String::as_str).collect::<Vec<_>>())
}

fn quantile(sorted: &[Duration], of: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let at = (sorted.len() as f64 * of) as usize;
    sorted[at.min(sorted.len() - 1)]
}

#[tokio::test]
#[ignore = "prints figures"]
async fn ten_thousand_edits() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("history.db");
    let url = store::file_url(&file);
    let gateway = Gateway::configured(&format!(
        "[store]\nurl = \"{url}\"\n{}{}",
        lab_server("lab"),
        everything()
    ))
    .await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &as_notebook());
    let sources = sources();
    for n in 0..EDITS {
        let cell = n % 50;
        edit(
            &agent,
            &path,
            &format!("c{cell}"),
            &format!("{}value = {n}\n", sources[cell]),
        )
        .await;
    }
    let mut times = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        let listed = agent.call("get_document_history", json!({ "path": path })).await.ok();
        times.push(began.elapsed());
        assert_eq!(listed["versions"].as_array().unwrap().len(), 10);
    }
    times.sort_unstable();
    let undo = Instant::now();
    agent
        .call("undo_changes", json!({ "path": path, "steps": 100 }))
        .await
        .ok();
    let undo = undo.elapsed();
    gateway.drain().start();
    gateway.gone().await;
    let bytes: u64 = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    println!(
        "{EDITS} edits: {bytes} bytes of database; newest 10 listed in {:?} (p50), {:?} (p95); 100 undone in {undo:?}",
        quantile(&times, 0.5),
        quantile(&times, 0.95)
    );
    assert!(bytes < 20_000_000);
}

#[tokio::test]
#[ignore = "prints figures"]
async fn an_edit_with_history_and_without() {
    let (on, off) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url = |dir: &tempfile::TempDir| store::file_url(&dir.path().join("history.db"));
    compare("SQLite", [url(&on), url(&off)]).await;
    let (on, off) = (TestDatabase::create(), TestDatabase::create());
    compare("PostgreSQL", [on.url(), off.url()]).await;
}

/// Prints times of edits with a store that keeps a history, and one that does not.
async fn compare(engine: &str, urls: [String; 2]) {
    let config = |url: &str, history: bool| {
        format!(
            "[store]\nurl = \"{url}\"\nhistory = {history}\n{}{}",
            lab_server("lab"),
            everything()
        )
    };
    let gateways = [
        Gateway::configured(&config(&urls[0], true)).await,
        Gateway::configured(&config(&urls[1], false)).await,
    ];
    let agents = [
        Agent::connect(&gateways[0], Era::Modern).await,
        Agent::connect(&gateways[1], Era::Modern).await,
    ];
    let folder = lab().folder();
    let paths = [
        folder.write("on.ipynb", &as_notebook()),
        folder.write("off.ipynb", &as_notebook()),
    ];
    let mut times = [Vec::new(), Vec::new()];
    for n in 0..PAIRS {
        for which in [n % 2, (n + 1) % 2] {
            let began = Instant::now();
            edit(
                &agents[which],
                &paths[which],
                &format!("c{}", n % 50),
                &format!("value = {n}\n"),
            )
            .await;
            times[which].push(began.elapsed());
        }
    }
    let at = |of: f64, times: &mut [Vec<Duration>; 2]| {
        times.each_mut().map(|times| {
            times.sort_unstable();
            quantile(times, of)
        })
    };
    for (name, of) in [("p50", 0.5), ("p95", 0.95)] {
        let [with, without] = at(of, &mut times);
        let ratio = with.as_secs_f64() / without.as_secs_f64();
        println!("{engine}, {name} of an edit: {with:?} with history, {without:?} without, {ratio:.2}x");
    }
}

#[tokio::test]
#[ignore = "prints figures"]
async fn memory_of_open_documents() {
    let folder = lab().folder();
    let paths: Vec<String> = (0..WARM + DOCUMENTS)
        .map(|n| folder.write(&format!("{n}.ipynb"), &as_notebook()))
        .collect();
    for history in ["true", "false"] {
        let home = Home::new();
        let mut command = home.serve_for(lab().url(), lab().token());
        command.env("JMG__STORE__HISTORY", history);
        let gateway = Running::start(command).await;
        let agent = Agent::connect_to(gateway.url(), gateway.token(), Era::Modern).await;
        let mut before = 0;
        for (number, path) in paths.iter().enumerate() {
            if number == WARM {
                before = resident(gateway.pid());
            }
            edit(&agent, path, "c0", "changed").await;
        }
        let after = resident(gateway.pid());
        println!(
            "history {history}: {} KiB for {DOCUMENTS} documents ({before} to {after})",
            after - before
        );
        gateway.signal("-KILL");
        gateway.ended().await;
    }
}

/// KiB of memory that a process has.
fn resident(pid: u32) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
