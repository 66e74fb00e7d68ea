//! Databases that fail.

use std::{env, process::Command, time::Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use sqlx::Sqlite;

use super::{
    history::{at, version, with_versions},
    logs::{activity, all_activities, all_calls, call},
    *,
};
use crate::NewVersion;

on_both_engines! {
    a_write_that_fails_is_told_and_tried_again,
    what_is_noted_while_the_database_fails_is_written_afterwards,
    what_finds_no_room_while_the_database_fails_is_counted,
    connections_that_were_cut_are_made_again,
}

/// A database that does not work.
enum Failure<'a> {
    /// Another process writes and does not end.
    Locked(sqlx::Transaction<'static, Sqlite>),
    /// Nobody is let in.
    TakenAway(&'a TestDatabase),
}

impl<'a> Failure<'a> {
    async fn of(scene: &'a Scene) -> Self {
        match scene {
            Scene::Sqlite(_) => {
                let location = Location::parse(&scene.url()).unwrap();
                let Connections::Sqlite(pool) = Database::connect(&location, 1).await.unwrap().connections else {
                    panic!("no such database");
                };
                Self::Locked(pool.begin_with("BEGIN IMMEDIATE").await.unwrap())
            }
            Scene::Postgres(database) => {
                database.refuse_connections();
                Self::TakenAway(database)
            }
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Locked(_) => "database is locked",
            Self::TakenAway(_) => "is not currently accepting connections",
        }
    }

    async fn end(self) {
        match self {
            Self::Locked(transaction) => transaction.rollback().await.unwrap(),
            Self::TakenAway(database) => database.accept_connections(),
        }
    }
}

/// Reason why the store is not ready, once it says so.
async fn complaint(store: &Store) -> String {
    loop {
        match store.ping().await {
            Ok(()) => tokio::time::sleep(Duration::from_millis(10)).await,
            Err(error) => return error.to_string(),
        }
    }
}

async fn what_is_noted_while_the_database_fails_is_written_afterwards(scene: Scene) {
    let store = scene.open().await;
    let document = with_versions(&store, 1).await;
    let failure = Failure::of(&scene).await;
    store.note_execution(record(1, ExecutionStatus::Running));
    store.note_activity(activity(1, at(1)));
    store.note_audit(call(1, at(1)));
    let began = Instant::now();
    let error = store
        .append_version(document, 1, &version(2))
        .await
        .unwrap_err()
        .to_string();
    assert!(began.elapsed() < Duration::from_secs(30), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    let told = complaint(&store).await;
    assert!(
        told.contains(failure.reason()) || told.contains("no connection"),
        "{told}"
    );
    assert!(!told.contains("hunter2"), "{told}");
    assert!(find(&store, "e1").await.is_some(), "what is noted is known");
    failure.end().await;
    store.flush().await;
    assert_eq!(store.lost_records()(), LostRecords::default());
    let reopened = scene.open().await;
    assert!(find(&reopened, "e1").await.is_some());
    assert_eq!(
        (all_activities(&reopened).await.len(), all_calls(&reopened).await.len()),
        (1, 1)
    );
    let appended = store.append_version(document, 1, &version(2)).await.unwrap();
    assert_eq!(appended, Appended::Ok(2));
    while store.ping().await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn what_finds_no_room_while_the_database_fails_is_counted(scene: Scene) {
    let store = scene.open().await;
    let failure = Failure::of(&scene).await;
    let began = Instant::now();
    for n in 0..20_000 {
        store.note_audit(call(n, at(1)));
    }
    println!("noting 20000 calls took {:?}", began.elapsed());
    let lost = store.lost_records()();
    assert_eq!((lost.audits, lost.activities), (20_000 - 16_384, 0));
    failure.end().await;
    store.flush().await;
    let kept = all_calls(&store).await;
    assert_eq!((kept.len(), kept[0].request_id.as_str()), (16_384, "r19999"));
}

async fn connections_that_were_cut_are_made_again(scene: Scene) {
    let store = scene.open().await;
    let document = with_versions(&store, 1).await;
    if let Scene::Postgres(database) = &scene {
        assert!(!format!("{store:?}").contains("hunter2"));
        database.disconnect();
    }
    let appended = store.append_version(document, 1, &version(2)).await.unwrap();
    assert_eq!(appended, Appended::Ok(2));
    store.ping().await.unwrap();
}

/// The limit on the size of files is of a whole process, so the test is in one of its own.
#[test]
fn a_full_disk_is_told_and_what_was_noted_is_written_once_there_is_room() {
    let script = "trap '' XFSZ; ulimit -S -f 2048; exec \"$0\" --exact tests::faults::on_a_full_disk --ignored";
    let ended = Command::new("sh")
        .args(["-c", script])
        .arg(env::current_exe().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
#[ignore = "needs a limit to the size of files, and is started with one"]
async fn on_a_full_disk() {
    let scene = Scene::sqlite();
    let store = scene.open().await;
    let document = with_versions(&store, 1).await;
    let large = |n| crate::ActivityRecord {
        description: "x".repeat(100_000),
        ..activity(n, at(n as u64))
    };
    let mut noted = 0;
    let told = loop {
        store.note_activity(large(noted));
        noted += 1;
        match store.ping().await {
            Ok(()) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => break error.to_string(),
        }
        assert!(noted < 150, "the disk is not full");
    };
    assert!(told.contains("the store cannot write: "), "{told}");
    // More often than there are connections, each of which must be good for more than one failure.
    for _ in 0..12 {
        let next = NewVersion {
            delta: vec![0; 3_000_000],
            ..version(2)
        };
        let error = store.append_version(document, 1, &next).await.unwrap_err().to_string();
        assert!(error.contains("full") || error.contains("disk I/O error"), "{error}");
    }
    let limit = getrlimit(Resource::Fsize);
    let limited = |current| rustix::process::Rlimit { current, ..limit };
    setrlimit(Resource::Fsize, limited(Some(4096))).unwrap();
    // More often than there are connections.
    for _ in 0..8 {
        let refused = store.append_version(document, 1, &version(2)).await.unwrap_err();
        assert!(refused.to_string().contains("disk"), "{refused}");
    }
    setrlimit(Resource::Fsize, limited(limit.maximum)).unwrap();
    store.flush().await;
    assert_eq!(all_activities(&store).await.len(), noted);
    for n in 2..12 {
        let appended = store.append_version(document, n - 1, &version(n.unsigned_abs())).await;
        assert_eq!(appended.unwrap(), Appended::Ok(n));
    }
    store.ping().await.unwrap();
    for n in 2..10 {
        let appended = store
            .append_version(document, n - 1, &version(n.unsigned_abs()))
            .await
            .unwrap();
        assert_eq!(appended, Appended::Ok(n));
    }
}

async fn a_write_that_fails_is_told_and_tried_again(scene: Scene) {
    let store = scene.open().await;
    store.ping().await.unwrap();
    scene.sql("ALTER TABLE executions RENAME TO elsewhere").await;
    store.note_execution(record(1, ExecutionStatus::Running));
    while !matches!(store.ping().await, Err(StoreError::Writing { .. })) {
        tokio::task::yield_now().await;
    }
    assert!(find(&store, "e1").await.is_some(), "calls go on");
    let flushed = Arc::new(AtomicBool::new(false));
    let flush = tokio::spawn({
        let (store, flushed) = (store.clone(), Arc::clone(&flushed));
        async move {
            store.flush().await;
            flushed.store(true, Ordering::SeqCst);
        }
    });
    tokio::task::yield_now().await;
    assert!(!flushed.load(Ordering::SeqCst), "what is not on disk is not flushed");
    scene.sql("ALTER TABLE elsewhere RENAME TO executions").await;
    flush.await.unwrap();
    store.ping().await.unwrap();
    store.close().await;
    assert!(find(&scene.open().await, "e1").await.is_some());
}
