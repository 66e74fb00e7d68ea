//! Executions, as they are noted and found again.

use super::*;

on_both_engines! {
    what_was_flushed_is_there_after_the_process_died,
    a_closed_store_has_written_everything,
    a_record_is_seen_before_it_is_written,
    executions_of_others_do_not_exist,
    lists_are_narrowed_and_begin_with_the_newest,
    executions_follow_their_notebook_to_another_name,
    executions_follow_their_file_from_wherever_it_was,
    activities_are_of_everybody_and_count_each_execution_once,
    a_restarted_gateway_finds_what_has_not_ended,
    what_nobody_can_take_up_yet_is_left_for_whoever_can,
    outputs_that_cannot_be_read_again_hide_nothing_else,
    only_old_finished_records_are_pruned,
    many_at_once_end_with_the_newest_of_each,
    the_oldest_that_has_ended_makes_room_for_the_newest,
}

async fn what_was_flushed_is_there_after_the_process_died(scene: Scene) {
    let store = scene.open().await;
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
    // Nothing is closed, as when a process is killed; what is in the database is what is left of it.
    let copy = scene.copy();
    let reopened = copy.as_ref().unwrap_or(&scene).open().await;
    assert_eq!(find(&reopened, "e1").await, Some(done));
    assert_eq!(find(&reopened, "e2").await, Some(bare));
}

async fn a_closed_store_has_written_everything(scene: Scene) {
    let store = scene.open().await;
    for n in 0..100 {
        store.note_execution(record(n, ExecutionStatus::Running));
    }
    store.close().await;
    assert_eq!(ids(&scene.open().await, anas(1000)).await.len(), 100);
}

async fn a_record_is_seen_before_it_is_written(scene: Scene) {
    let store = scene.open().await;
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

async fn executions_of_others_do_not_exist(scene: Scene) {
    let store = scene.open().await;
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

async fn lists_are_narrowed_and_begin_with_the_newest(scene: Scene) {
    let store = scene.open().await;
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

async fn executions_follow_their_notebook_to_another_name(scene: Scene) {
    let store = scene.open().await;
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
    let reopened = scene.open().await;
    assert_eq!(ids(&reopened, of("o'k_%/c.ipynb")).await, ["e2", "e1"]);
}

async fn executions_follow_their_file_from_wherever_it_was(scene: Scene) {
    let store = scene.open().await;
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

async fn activities_are_of_everybody_and_count_each_execution_once(scene: Scene) {
    let store = scene.open().await;
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

async fn a_restarted_gateway_finds_what_has_not_ended(scene: Scene) {
    let store = scene.open().await;
    for (n, status) in ExecutionStatus::ALL.into_iter().enumerate() {
        store.note_execution(record(n as u64, status));
    }
    store.close().await;
    let store = scene.open().await;
    let mut left = store.take_over(|_| true).await.unwrap();
    left.sort_by(|a, b| a.record.execution_id.cmp(&b.record.execution_id));
    let statuses: Vec<_> = left.iter().map(|left| left.record.status.as_str()).collect();
    assert_eq!(statuses, ["queued", "running", "input_required"]);
    assert_eq!(store.take_over(|_| true).await.unwrap(), [], "they are its own now");
}

async fn what_nobody_can_take_up_yet_is_left_for_whoever_can(scene: Scene) {
    let store = scene.open().await;
    for (n, server) in ["lab", "ana"].into_iter().enumerate() {
        store.note_execution(ExecutionRecord {
            server: server.to_owned(),
            ..record(n as u64, ExecutionStatus::Running)
        });
    }
    store.close().await;
    let (first, second) = (scene.open().await, scene.open().await);
    let on = async |store: &Store, wanted: &str| {
        let taken = store.take_over(|unfinished| unfinished.server == wanted).await.unwrap();
        let servers = taken.into_iter().map(|taken| taken.record.server);
        servers.collect::<Vec<_>>()
    };
    assert_eq!(on(&first, "lab").await, ["lab"]);
    assert!(on(&second, "lab").await.is_empty(), "it is the first one's");
    assert_eq!(on(&second, "ana").await, ["ana"]);
    let since = |unfinished: &Unfinished| unfinished.noted_at.elapsed().unwrap() < Duration::from_secs(60);
    assert_eq!(first.take_over(since).await.unwrap(), []);
}

async fn outputs_that_cannot_be_read_again_hide_nothing_else(scene: Scene) {
    let store = scene.open().await;
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

async fn only_old_finished_records_are_pruned(scene: Scene) {
    let store = scene.open().await;
    store.note_execution(record(1, ExecutionStatus::Completed));
    store.note_execution(record(2, ExecutionStatus::Running));
    store.note_execution(ExecutionRecord {
        ended_at: Some(SystemTime::now()),
        ..record(3, ExecutionStatus::Failed)
    });
    store.flush().await;
    assert_eq!(store.prune_executions(Duration::from_secs(3600)).await.unwrap(), 1);
    assert_eq!(ids(&store, anas(10)).await, ["e3", "e2"]);
}

async fn many_at_once_end_with_the_newest_of_each(scene: Scene) {
    let store = scene.open().await;
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
    let stored = scene.open().await.executions(anas(100)).await.unwrap();
    assert_eq!(stored.len(), 20);
    assert!(stored.iter().all(|record| record.cells[0].execution_count == Some(49)));
}

async fn the_oldest_that_has_ended_makes_room_for_the_newest(scene: Scene) {
    const KILOBYTE: usize = 1024;
    let limits = StoreLimits {
        per_principal: 1000 * KILOBYTE,
        total: 1500 * KILOBYTE,
        ..StoreLimits::default()
    };
    let of = |principal: &str, n: u64, status| ExecutionRecord {
        principal: principal.into(),
        outputs: Some(json!("\u{1}".repeat(16 * KILOBYTE))),
        ..record(n, status)
    };
    let store = Store::open(&scene.url(), limits).await.unwrap();
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
    let (of_ana, of_ben) = (ids(&store, anas(100)).await.len(), ids(&store, bens()).await.len());
    assert!(
        (10..=11).contains(&of_ben) && (5..=7).contains(&of_ana),
        "{of_ana} and {of_ben}"
    );
    store.close().await;

    // What was written before there were limits is bounded with the first that is written after.
    let smaller = StoreLimits {
        per_principal: 300 * KILOBYTE,
        ..limits
    };
    let store = Store::open(&scene.url(), smaller).await.unwrap();
    store.note_execution(of("ben", 60, ExecutionStatus::Completed));
    store.flush().await;
    let filter = ExecutionFilter {
        principal: "ben".into(),
        ..anas(100)
    };
    assert_eq!(ids(&store, filter).await, ["e60", "e59", "e58"]);
}
