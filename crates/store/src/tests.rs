//! The store on real SQLite, through its public face.

mod history;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::json;
use tempfile::TempDir;

use crate::{
    CellRecord, ExecutionFilter, ExecutionKind, ExecutionRecord, ExecutionStatus, Store, StoreError, StoreLimits,
    Terms, backend::Batch, file_url, lease::Lease, process::Process, sqlite::Location,
};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn url(&self) -> String {
        file_url(&self.0.path().join("gateway.db"))
    }

    async fn open(&self) -> Store {
        Store::open(&self.url(), StoreLimits::default()).await.unwrap()
    }

    /// Runs SQL behind the store's back.
    async fn sql(&self, sql: &'static str) {
        let pool = Location::parse(&self.url()).unwrap().connect().await.unwrap();
        sqlx::raw_sql(sql).execute(&pool).await.unwrap();
        pool.close().await;
    }
}

/// Ana's execution number `n`, started `n` seconds after the beginning of time.
fn record(n: u64, status: ExecutionStatus) -> ExecutionRecord {
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    ExecutionRecord {
        execution_id: format!("e{n}"),
        tenant: "research".into(),
        principal: "ana".into(),
        server: "lab-a".into(),
        path: Some("añ/b.ipynb".into()),
        file_id: Some("f".into()),
        kernel_id: Some("k".into()),
        kernel_session: Some("s".into()),
        kind: ExecutionKind::Cells,
        status,
        cells: vec![CellRecord {
            cell_id: "c".into(),
            index: 3,
            msg_id: Some("m".into()),
            replaces: Some(2),
            queued: false,
            status,
            execution_count: Some(7),
            asks: None,
            differs: None,
            missing: 5,
        }],
        reason: status.is_finished().then(|| "it said so".into()),
        outputs: status.is_finished().then(|| json!([{ "text": "1\u{0}🎉" }])),
        created_at: at(n),
        started_at: Some(at(n + 1)),
        ended_at: status.is_finished().then(|| at(n + 2)),
        terms: Terms {
            name: Some("Ana".into()),
            ..Terms::default()
        },
    }
}

fn anas(limit: usize) -> ExecutionFilter {
    ExecutionFilter {
        tenant: "research".into(),
        principal: "ana".into(),
        server: None,
        path: None,
        status: None,
        limit,
    }
}

async fn ids(store: &Store, filter: ExecutionFilter) -> Vec<String> {
    let found = store.executions(filter).await.unwrap();
    found.into_iter().map(|record| record.execution_id).collect()
}

async fn find(store: &Store, id: &str) -> Option<ExecutionRecord> {
    store.execution("research", "ana", id).await.unwrap()
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn what_was_flushed_is_there_after_the_process_died() {
    let folder = Folder::new();
    let store = folder.open().await;
    let (done, bare) = (
        record(1, ExecutionStatus::Completed),
        ExecutionRecord {
            path: None,
            kernel_id: None,
            kernel_session: None,
            kind: ExecutionKind::Code,
            cells: Vec::new(),
            started_at: None,
            ..record(2, ExecutionStatus::Queued)
        },
    );
    store.note_execution(done.clone());
    store.note_execution(bare.clone());
    store.flush().await;
    // Nothing is closed, as when a process is killed; the files are what is left of it.
    let copy = Folder::new();
    for entry in fs::read_dir(&folder.0).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        fs::copy(&path, copy.0.path().join(path.file_name().unwrap())).unwrap();
    }
    let reopened = copy.open().await;
    assert_eq!(find(&reopened, "e1").await, Some(done));
    assert_eq!(find(&reopened, "e2").await, Some(bare));
}

#[tokio::test]
async fn a_closed_store_has_written_everything() {
    let folder = Folder::new();
    let store = folder.open().await;
    for n in 0..100 {
        store.note_execution(record(n, ExecutionStatus::Running));
    }
    store.close().await;
    assert_eq!(ids(&folder.open().await, anas(1000)).await.len(), 100);
}

#[tokio::test]
async fn a_record_is_seen_before_it_is_written() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    store.note_execution(record(1, ExecutionStatus::Queued));
    store.flush().await;
    // No await until the question, so nothing can have been written meanwhile.
    store.note_execution(record(1, ExecutionStatus::Running));
    store.note_execution(record(2, ExecutionStatus::Queued));
    let running = ExecutionFilter {
        status: Some(ExecutionStatus::Running),
        ..anas(10)
    };
    assert_eq!(ids(&store, running).await, ["e1"]);
    assert_eq!(find(&store, "e2").await.unwrap().status, ExecutionStatus::Queued);
    let queued = ExecutionFilter {
        status: Some(ExecutionStatus::Queued),
        ..anas(10)
    };
    assert_eq!(ids(&store, queued).await, ["e2"]);
}

#[tokio::test]
async fn executions_of_others_do_not_exist() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    store.note_execution(record(1, ExecutionStatus::Running));
    for written in [false, true] {
        for (tenant, principal) in [("research", "ben"), ("sales", "ana")] {
            assert_eq!(store.execution(tenant, principal, "e1").await.unwrap(), None);
            let filter = ExecutionFilter {
                tenant: tenant.into(),
                principal: principal.into(),
                ..anas(10)
            };
            assert!(ids(&store, filter).await.is_empty(), "{written}");
        }
        assert!(find(&store, "e1").await.is_some());
        store.flush().await;
    }
}

#[tokio::test]
async fn lists_are_narrowed_and_begin_with_the_newest() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    for n in 1..=5 {
        let mut record = record(n, ExecutionStatus::Completed);
        if n == 2 {
            record.server = "lab-b".into();
        }
        if n == 3 {
            record.path = None;
        }
        store.note_execution(record);
        if n == 4 {
            store.flush().await;
        }
    }
    assert_eq!(ids(&store, anas(10)).await, ["e5", "e4", "e3", "e2", "e1"]);
    assert_eq!(ids(&store, anas(2)).await, ["e5", "e4"]);
    assert!(ids(&store, anas(0)).await.is_empty());
    let on_b = ExecutionFilter {
        server: Some("lab-b".into()),
        ..anas(10)
    };
    assert_eq!(ids(&store, on_b).await, ["e2"]);
    let of_path = ExecutionFilter {
        path: Some("añ/b.ipynb".into()),
        ..anas(10)
    };
    assert_eq!(ids(&store, of_path).await, ["e5", "e4", "e2", "e1"]);
}

#[tokio::test]
async fn executions_follow_their_notebook_to_another_name() {
    let folder = Folder::new();
    let store = folder.open().await;
    store.note_execution(record(1, ExecutionStatus::Completed));
    store.flush().await;
    store.note_execution(record(2, ExecutionStatus::Completed));
    let elsewhere = ExecutionRecord {
        server: "lab-b".into(),
        ..record(3, ExecutionStatus::Completed)
    };
    store.note_execution(elsewhere.clone());
    // Of the file, and then of its directory; one of the same beginning is another.
    store.note_rename("lab-a", "añ/b.ipynb", "añ/c.ipynb");
    store.note_rename("lab-a", "añ", "o'k_%");
    store.note_rename("lab-a", "o'k", "wrong");
    let of = |path: &str| ExecutionFilter {
        path: Some(path.into()),
        ..anas(10)
    };
    for written in [false, true] {
        assert_eq!(ids(&store, of("o'k_%/c.ipynb")).await, ["e2", "e1"], "{written}");
        assert_eq!(ids(&store, of("añ/b.ipynb")).await, ["e3"], "{written}");
        let found = find(&store, "e1").await.unwrap();
        assert_eq!(found.path.as_deref(), Some("o'k_%/c.ipynb"), "{written}");
        assert_eq!(find(&store, "e3").await, Some(elsewhere.clone()), "{written}");
        let by_notebook = store.runs_by_notebook().await.unwrap();
        let runs = by_notebook[&("lab-a".to_owned(), "o'k_%/c.ipynb".to_owned())];
        assert_eq!(
            (by_notebook.len(), runs.executions, runs.last_started),
            (2, 2, record(2, ExecutionStatus::Completed).started_at),
            "{written}"
        );
        store.flush().await;
    }
    store.close().await;
    let reopened = folder.open().await;
    assert_eq!(ids(&reopened, of("o'k_%/c.ipynb")).await, ["e2", "e1"]);
}

#[tokio::test]
async fn executions_follow_their_file_from_wherever_it_was() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    let of_file = |number: u64, file_id: Option<&str>| ExecutionRecord {
        file_id: file_id.map(str::to_owned),
        ..record(number, ExecutionStatus::Completed)
    };
    store.note_execution(of_file(1, Some("f")));
    store.note_execution(of_file(2, Some("g")));
    store.flush().await;
    store.note_execution(of_file(3, Some("f")));
    store.note_execution(of_file(4, None));
    store.note_location("lab-a", "f", "c.ipynb");
    store.note_location("lab-b", "g", "c.ipynb");
    let moved = ExecutionFilter {
        path: Some("c.ipynb".into()),
        ..anas(10)
    };
    for written in [false, true] {
        assert_eq!(ids(&store, moved.clone()).await, ["e3", "e1"], "{written}");
        store.flush().await;
    }
    assert_eq!(ids(&store, anas(10)).await.len(), 4);
}

#[tokio::test]
async fn activities_are_of_everybody_and_count_each_execution_once() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    store.note_execution(record(1, ExecutionStatus::Running));
    store.note_execution(ExecutionRecord {
        principal: "ben".into(),
        ..record(2, ExecutionStatus::Running)
    });
    store.note_execution(ExecutionRecord {
        path: None,
        ..record(3, ExecutionStatus::Running)
    });
    store.flush().await;
    store.note_execution(record(1, ExecutionStatus::Completed));
    let found = store.runs_by_notebook().await.unwrap();
    let counts: Vec<_> = found.values().map(|activity| activity.executions).collect();
    assert_eq!(counts, [2]);
}

#[tokio::test]
async fn a_restarted_gateway_finds_what_has_not_ended() {
    let folder = Folder::new();
    let store = folder.open().await;
    for (n, status) in ExecutionStatus::ALL.into_iter().enumerate() {
        store.note_execution(record(n as u64, status));
    }
    store.close().await;
    let store = folder.open().await;
    let mut left = store.take_over().await.unwrap();
    left.sort_by(|a, b| a.record.execution_id.cmp(&b.record.execution_id));
    let statuses: Vec<_> = left.iter().map(|left| left.record.status.as_str()).collect();
    assert_eq!(statuses, ["queued", "running", "input_required"]);
    assert_eq!(store.take_over().await.unwrap(), [], "they are its own now");
}

#[tokio::test]
async fn what_another_gateway_looks_after_is_left_to_it_until_it_leaves() {
    let folder = Folder::new();
    let (first, second) = (folder.open().await, folder.open().await);
    first.note_execution(record(1, ExecutionStatus::Running));
    first.flush().await;
    assert_eq!(second.take_over().await.unwrap(), []);
    let [other] = <[_; 1]>::try_from(second.other_gateways().await.unwrap()).unwrap();
    let leaving = tokio::spawn(other.wait_until_left());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!leaving.is_finished());
    first.close().await;
    leaving.await.unwrap();
    let [taken] = <[_; 1]>::try_from(second.take_over().await.unwrap()).unwrap();
    assert_eq!(taken.record, record(1, ExecutionStatus::Running));
    assert!(taken.noted_at.unwrap().elapsed().unwrap() < Duration::from_secs(60));
    drop(first);
    second.close().await;
    let third = folder.open().await;
    let leases = third.backend.leases().await.unwrap();
    assert_eq!(leases.len(), 1, "nothing is left of the others");
}

/// Another gateway's lease, by the process that it would have.
async fn put_lease(store: &Store, process: Process, valid: Duration) -> Lease {
    let lease = Lease {
        gateway: "another".into(),
        process,
    };
    store.backend.renew_lease(&lease, valid).await.unwrap();
    let batch = Batch {
        records: vec![Arc::new(record(1, ExecutionStatus::Running))],
        ..Batch::default()
    };
    store.backend.write(&batch, &lease.gateway).await.unwrap();
    lease
}

#[tokio::test]
async fn what_a_killed_process_of_the_same_host_left_is_taken_over_at_once() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let process = Process::of(child.id());
    put_lease(&store, process, Duration::from_secs(60)).await;
    assert_eq!(store.take_over().await.unwrap(), []);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(store.take_over().await.unwrap().len(), 1);
    assert_eq!(store.backend.leases().await.unwrap().len(), 1, "its lease is removed");
}

#[tokio::test]
async fn a_process_of_the_same_host_that_is_slow_to_renew_is_not_taken_for_gone() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    put_lease(&store, Process::current(), Duration::ZERO).await;
    // Only where the system tells that it runs.
    if Process::current().started != 0 {
        assert_eq!(store.take_over().await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_gateway_on_another_host_keeps_what_it_runs_until_its_lease_expires() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    let elsewhere = Process {
        host: "elsewhere".into(),
        ..Process::current()
    };
    let lease = put_lease(&store, elsewhere, Duration::from_millis(300)).await;
    assert_eq!(store.take_over().await.unwrap(), []);
    let [other] = <[_; 1]>::try_from(store.other_gateways().await.unwrap()).unwrap();
    other.wait_until_left().await;
    assert_eq!(store.take_over().await.unwrap().len(), 1);
    // It was only cut off, and comes back: what it ran is not its own any more.
    store
        .backend
        .renew_lease(&lease, Duration::from_secs(60))
        .await
        .unwrap();
    let late = Batch {
        records: vec![Arc::new(record(1, ExecutionStatus::Failed))],
        ..Batch::default()
    };
    store.backend.write(&late, &lease.gateway).await.unwrap();
    assert_eq!(find(&store, "e1").await.unwrap().status, ExecutionStatus::Running);
}

#[tokio::test]
async fn a_lease_that_was_renewed_after_it_was_seen_is_not_removed() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    let [seen] = <[_; 1]>::try_from(store.backend.leases().await.unwrap()).unwrap();
    store
        .backend
        .renew_lease(&seen.lease, Duration::from_secs(60))
        .await
        .unwrap();
    let gateway = &seen.lease.gateway;
    assert!(!store.backend.remove_lease(gateway, Some(&seen)).await.unwrap());
    assert!(store.backend.remove_lease(gateway, None).await.unwrap());
}

#[tokio::test]
async fn the_last_handle_that_is_dropped_ends_the_lease() {
    let folder = Folder::new();
    let (first, second) = (folder.open().await, folder.open().await);
    let [other] = <[_; 1]>::try_from(second.other_gateways().await.unwrap()).unwrap();
    drop(first);
    other.wait_until_left().await;
}

#[tokio::test]
async fn outputs_that_cannot_be_read_again_hide_nothing_else() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let noted = ExecutionRecord {
        outputs: Some(deep),
        ..record(1, ExecutionStatus::Completed)
    };
    store.note_execution(noted.clone());
    store.flush().await;
    let expected = ExecutionRecord { outputs: None, ..noted };
    assert_eq!(store.executions(anas(usize::MAX)).await.unwrap(), [expected]);
}

#[tokio::test]
async fn only_old_finished_records_are_pruned() {
    let store = Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap();
    store.note_execution(record(1, ExecutionStatus::Completed));
    store.note_execution(record(2, ExecutionStatus::Running));
    store.note_execution(ExecutionRecord {
        ended_at: Some(SystemTime::now()),
        ..record(3, ExecutionStatus::Failed)
    });
    store.flush().await;
    assert_eq!(store.prune(Duration::from_secs(3600)).await.unwrap(), 1);
    assert_eq!(ids(&store, anas(10)).await, ["e3", "e2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_end_with_the_newest_of_each() {
    let folder = Folder::new();
    let store = folder.open().await;
    let tasks = (0..20u64).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            for count in 0..50 {
                let mut record = record(n, ExecutionStatus::Running);
                record.cells[0].execution_count = Some(count);
                store.note_execution(record);
                let seen = find(&store, &format!("e{n}")).await.unwrap();
                assert_eq!(seen.cells[0].execution_count, Some(count));
                if count % 10 == i64::try_from(n % 10).unwrap() {
                    store.flush().await;
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    store.close().await;
    let stored = folder.open().await.executions(anas(100)).await.unwrap();
    assert_eq!(stored.len(), 20);
    assert!(stored.iter().all(|record| record.cells[0].execution_count == Some(49)));
}

#[tokio::test]
async fn a_write_that_fails_is_told_and_tried_again() {
    let folder = Folder::new();
    let store = folder.open().await;
    store.ping().await.unwrap();
    folder.sql("ALTER TABLE executions RENAME TO elsewhere").await;
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
    folder.sql("ALTER TABLE elsewhere RENAME TO executions").await;
    flush.await.unwrap();
    store.ping().await.unwrap();
    store.close().await;
    assert!(find(&folder.open().await, "e1").await.is_some());
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let folder = Folder::new();
    folder.open().await.close().await;
    folder
        .sql("INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'x', 1, x'00', 0)")
        .await;
    let error = Store::open(&folder.url(), StoreLimits::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("gateway.db was made by a newer version"), "{error}");
    assert!(error.contains("schema 9999, known up to "), "{error}");
    assert!(Store::migrate(&folder.url()).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_start_at_once_make_one_schema() {
    let folder = Folder::new();
    let opened = futures::future::join_all((0..8).map(|_| {
        let url = folder.url();
        tokio::spawn(async move { Store::migrate(&url).await.unwrap().applied.len() })
    }));
    let applied: Vec<usize> = opened.await.into_iter().map(Result::unwrap).collect();
    assert_eq!(applied.iter().filter(|count| **count > 0).count(), 1, "{applied:?}");
}

#[tokio::test]
async fn what_is_no_database_is_named() {
    let folder = Folder::new();
    fs::write(folder.0.path().join("gateway.db"), "a shopping list, of some length").unwrap();
    let error = Store::open(&folder.url(), StoreLimits::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("gateway.db cannot be opened as a database"), "{error}");
    let nowhere = Store::open("sqlite:///no/such/folder/x.db", StoreLimits::default())
        .await
        .unwrap_err();
    assert!(matches!(nowhere, StoreError::Create { .. }), "{nowhere}");
}

#[test]
fn urls_are_read() {
    let file = |path: &str| Location::File(path.into());
    assert_eq!(Location::parse("sqlite::memory:").unwrap(), Location::Memory);
    assert_eq!(Location::parse("sqlite://gateway.db").unwrap(), file("gateway.db"));
    assert_eq!(
        Location::parse("sqlite:///var/lib/x.db").unwrap(),
        file("/var/lib/x.db")
    );
    let odd = "/a b/50%?/ñ#.db";
    assert_eq!(Location::parse(&file_url(odd.as_ref())).unwrap(), file(odd));
    assert!(matches!(
        Location::parse("postgres://h/d"),
        Err(StoreError::Unsupported)
    ));
    assert!(matches!(Location::parse("sqlite://"), Err(StoreError::NoFile)));
    assert!(matches!(
        Location::parse("sqlite://x.db?mode=ro"),
        Err(StoreError::Parameters)
    ));
}

#[tokio::test]
async fn the_oldest_that_has_ended_makes_room_for_the_newest() {
    const KILOBYTE: usize = 1024;
    let folder = Folder::new();
    let limits = StoreLimits {
        per_principal: 1000 * KILOBYTE,
        total: 1500 * KILOBYTE,
    };
    let of = |principal: &str, n: u64, status| ExecutionRecord {
        principal: principal.into(),
        outputs: Some(json!("\u{1}".repeat(16 * KILOBYTE))),
        ..record(n, status)
    };
    let store = Store::open(&folder.url(), limits).await.unwrap();
    store.note_execution(of("ana", 0, ExecutionStatus::Running));
    store.note_execution(of("ben", 1, ExecutionStatus::Completed));
    for n in 2..40 {
        store.note_execution(of("ana", n, ExecutionStatus::Completed));
        store.flush().await;
    }
    let kept = ids(&store, anas(100)).await;
    // Each takes 97 KB, as it is written.
    assert_eq!(kept.first().map(String::as_str), Some("e39"));
    assert_eq!(kept.last().map(String::as_str), Some("e0"), "it has not ended");
    assert!((10..=12).contains(&kept.len()), "{kept:?}");
    let bens = || ExecutionFilter {
        principal: "ben".into(),
        ..anas(100)
    };
    assert_eq!(ids(&store, bens()).await, ["e1"], "his are his own");
    for n in 40..60 {
        store.note_execution(of("ben", n, ExecutionStatus::Completed));
        store.flush().await;
    }
    let (anas, bens) = (ids(&store, anas(100)).await.len(), ids(&store, bens()).await.len());
    assert!(
        (10..=11).contains(&bens) && (5..=7).contains(&anas),
        "{anas} and {bens}"
    );
    store.close().await;

    // What was written before there were limits is bounded with the first that is written after.
    let smaller = StoreLimits {
        per_principal: 300 * KILOBYTE,
        ..limits
    };
    let store = Store::open(&folder.url(), smaller).await.unwrap();
    store.note_execution(of("ben", 60, ExecutionStatus::Completed));
    store.flush().await;
    let filter = ExecutionFilter {
        principal: "ben".into(),
        ..super::tests::anas(100)
    };
    assert_eq!(ids(&store, filter).await, ["e60", "e59", "e58"]);
}
