//! A database that another process keeps to itself, or that has no room left: agents go on, the gateway tells that it is not
//! ready, and everything is written once that is possible again.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use sqlx::{Sqlite, SqlitePool, Transaction};

use crate::{
    history::edit,
    support::{
        Agent, Era, TOKEN, eventually,
        gateway::{everything, lab_server},
        jupyter::install_tls,
        lab,
        lab::Folder,
        notebook::notebook,
        running::{Home, Running},
    },
};

/// How long a call may take that needs nothing of the database.
const PROMPT: Duration = Duration::from_secs(4);

struct Stage {
    gateway: Running,
    agent: Agent,
    folder: Folder,
    path: String,
    database: String,
    _home: Home,
}

impl Stage {
    /// A gateway on a database in a file, which is started by `start` from its command.
    async fn new(start: impl FnOnce(Command) -> Command) -> Self {
        let (home, folder) = (Home::new(), lab().folder());
        let database = store::file_url(&home.path("gateway.db"));
        let limits = "name = \"all\"\nrequests_per_minute = 1000000\nburst = 1000000";
        let tenant = everything().replacen("name = \"all\"", limits, 1);
        let config = format!("[store]\nurl = \"{database}\"\n{}{tenant}", lab_server("lab"));
        let file = home.path("gateway.toml");
        std::fs::write(&file, config).expect("a config");
        let mut command = home.serve();
        command.arg("--config").arg(&file);
        let gateway = Running::start(start(command)).await;
        let agent = Agent::connect_to(gateway.url(), TOKEN, Era::Modern).await;
        Self {
            agent,
            path: folder.write("a.ipynb", &notebook(&["'a'", "6 * 7"])),
            gateway,
            folder,
            database,
            _home: home,
        }
    }

    /// The status of the gateway, and what it says of the store.
    async fn readiness(&self) -> (u16, Value) {
        install_tls();
        let url = self.gateway.url().replace("/mcp", "/readyz");
        let request = reqwest::Client::new().get(url).bearer_auth(TOKEN);
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.expect("JSON");
        (status, body["store"].clone())
    }

    async fn metric(&self, name: &str) -> f64 {
        install_tls();
        let url = self.gateway.url().replace("/mcp", "/metrics");
        let text = reqwest::get(url).await.expect("an answer").text().await.expect("text");
        let of_name = |line: &&str| line.split(['{', ' ']).next() == Some(name);
        let values = text
            .lines()
            .filter(of_name)
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum()
    }

    /// Waits until the gateway tells why it is not ready.
    async fn unready(&self) -> String {
        eventually("it is not ready", async || {
            let (status, store) = self.readiness().await;
            (status == 503 && store["status"] == "down").then(|| store["error"].to_string())
        })
        .await
    }

    /// Waits until it is ready and nothing waits to be written, and checks that nothing was given up.
    async fn has_recovered(&self) {
        eventually("it is ready", async || (self.readiness().await.0 == 200).then_some(())).await;
        eventually("nothing waits", async || {
            (self.metric("jmg_store_backlog").await < 0.5).then_some(())
        })
        .await;
        for lost in ["jmg_store_lost_total", "jmg_history_lost_total"] {
            assert!(self.metric(lost).await < 0.5, "{lost}");
        }
    }

    /// Waits until a query counts this many.
    async fn counts(&self, query: &'static str, expected: usize) {
        let pool = SqlitePool::connect(&self.database).await.expect("the database");
        let mut found = 0_i64;
        let what = format!("{expected} of {query}");
        eventually(&what, async || {
            found = sqlx::query_scalar(query).fetch_one(&pool).await.expect("a number");
            (found == i64::try_from(expected).expect("small")).then_some(())
        })
        .await;
        pool.close().await;
    }
}

/// Keeps others from writing until it is rolled back.
async fn lock(database: &str) -> Transaction<'static, Sqlite> {
    let pool = SqlitePool::connect(database).await.expect("the database");
    pool.begin_with("BEGIN IMMEDIATE").await.expect("the lock")
}

/// Seconds for which somebody else keeps the database, who looks for what takes longer.
fn locked_for() -> Duration {
    let given = std::env::var("JMG_TEST_LOCKED_SECONDS").ok();
    Duration::from_secs(given.map_or(12, |text| text.parse().expect("seconds")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_go_on_while_another_process_keeps_the_database_locked() {
    let stage = Stage::new(|command| command).await;
    let (agent, path) = (&stage.agent, &stage.path);
    let run = async || {
        let arguments = json!({ "path": path, "ranges": [{ "start": 1, "end": 2 }] });
        agent.call("execute_nb_cells", arguments).await.ok()
    };
    edit(agent, path, "c0", "'before'").await;
    run().await;
    stage
        .counts("SELECT count(*) FROM executions WHERE ended_at IS NOT NULL", 1)
        .await;

    let locked = lock(&stage.database).await;
    let began = Instant::now();
    let (mut edits, mut runs, mut slowest_edit, mut slowest_run) = (0, 0, Duration::ZERO, Duration::ZERO);
    while began.elapsed() < locked_for() {
        let start = Instant::now();
        edit(agent, path, "c0", &format!("'edit {edits}'")).await;
        slowest_edit = slowest_edit.max(start.elapsed());
        edits += 1;
        if edits % 10 == 1 {
            let start = Instant::now();
            let ran = run().await;
            assert_eq!(ran["status"], "completed", "{ran}");
            slowest_run = slowest_run.max(start.elapsed());
            runs += 1;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("{edits} edits, the slowest {slowest_edit:?}; {runs} runs, the slowest {slowest_run:?}");
    let why = stage.unready().await;
    assert!(why.contains("locked"), "{why}");
    locked.rollback().await.expect("the end of the lock");

    stage.has_recovered().await;
    stage
        .counts("SELECT count(*) FROM executions WHERE status = 'completed'", runs + 1)
        .await;
    stage
        .counts("SELECT count(*) FROM audit WHERE tool = 'modify_nb_cells'", edits + 1)
        .await;
    stage
        .counts("SELECT count(*) FROM audit WHERE tool = 'execute_nb_cells'", runs + 1)
        .await;
    // The document as it was opened, and each edit.
    stage
        .counts("SELECT count(*) FROM versions WHERE kind = 'agent'", edits + 1)
        .await;
    assert!(slowest_edit < PROMPT, "{slowest_edit:?}");
    assert!(slowest_run < PROMPT * 2, "{slowest_run:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_go_on_while_the_disk_is_full() {
    // A file may have so many blocks of 512 bytes, which is 4 MiB; more is an error, as on a full disk.
    let script = "trap '' XFSZ; ulimit -S -f 8192; exec \"$0\" \"$@\"";
    let stage = Stage::new(|command| {
        let mut limited = Command::new("sh");
        limited
            .args(["-c", script])
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        limited.current_dir(command.get_current_dir().expect("a home"));
        limited
    })
    .await;
    let (agent, path) = (&stage.agent, &stage.path);
    let mut edits = 0;
    let mut noise = 1_u64;
    let why = loop {
        // What cannot be compressed.
        let text: String = std::iter::repeat_with(|| {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            format!("{noise:016x}")
        })
        .take(10_000)
        .collect();
        edit(agent, path, "c0", &format!("'{text}'")).await;
        edits += 1;
        let (status, store) = stage.readiness().await;
        if status == 503 {
            break store["error"].to_string();
        }
        assert!(edits < 100, "the disk is not full: {store}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    println!("the disk was full after {edits} edits: {why}");
    for _ in 0..5 {
        let start = Instant::now();
        edit(agent, path, "c0", &format!("'edit {edits}'")).await;
        assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
        edits += 1;
    }
    let saved = json!({ "path": path });
    agent.call("save_document", saved).await.ok();
    assert!(stage.folder.read("a.ipynb").contains(&format!("'edit {}'", edits - 1)));

    let pid = Pid::from_raw(i32::try_from(stage.gateway.pid()).expect("a pid"));
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    prlimit(pid, Resource::Fsize, unlimited).expect("room");
    stage.has_recovered().await;
    stage
        .counts("SELECT count(*) FROM versions WHERE kind = 'agent'", edits)
        .await;
    stage
        .counts("SELECT count(*) FROM audit WHERE tool = 'modify_nb_cells'", edits)
        .await;
}
