//! Documents, their versions and their forks.

use super::*;
use crate::{Before, DocumentKey, ForkRecord, NewVersion, Snapshot, VersionFilter};

on_both_engines! {
    versions_are_listed_by_author_and_moment,
    only_one_appends_after_a_version,
    snapshots_and_blobs_come_with_versions,
    a_document_is_found_by_its_file_and_then_by_its_path,
    forks_are_kept_until_they_are_deleted,
    gateways_that_append_at_once_take_turns,
    a_row_that_cannot_be_read_hides_nothing_else,
    deltas_come_in_pages,
    ten_thousand_versions_are_listed_at_once,
}

pub(super) fn key(file_id: &str, path: &str) -> DocumentKey {
    DocumentKey {
        server: "lab-a".into(),
        file_id: file_id.into(),
        path: path.into(),
        kind: "notebook".into(),
    }
}

pub(super) fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Version number `n`, of ana's agent or, every third, of two people.
pub(super) fn version(n: u64) -> NewVersion {
    let is_agent = !n.is_multiple_of(3);
    NewVersion {
        version_id: format!("v{n}"),
        time: at(n),
        kind: if is_agent { "agent" } else { "people" }.into(),
        principal: is_agent.then(|| "ana".into()),
        authors: match is_agent {
            true => vec!["Ana's agent".into()],
            false => vec!["Ben".into(), "Zoë".into()],
        },
        tool: is_agent.then(|| "edit".into()),
        revision: Some(n.to_string()),
        summary: "1 cell changed".into(),
        size: 100,
        undoes: Vec::new(),
        delta: n.to_be_bytes().to_vec(),
        snapshot: None,
        blobs: Vec::new(),
    }
}

pub(super) fn fork(id: &str) -> ForkRecord {
    ForkRecord {
        fork_id: id.into(),
        server: "lab-a".into(),
        file_id: "f".into(),
        path: "a.ipynb".into(),
        kind: "notebook".into(),
        title: Some("try".into()),
        description: None,
        synchronize: true,
        principal: "ana".into(),
        author_name: "Ana".into(),
        created_at: at(1),
        updated_at: at(2),
        room_id: None,
        is_review: false,
        base: vec![1],
        content: vec![0, 2],
    }
}

pub(super) async fn with_versions(store: &Store, count: u64) -> i64 {
    let document = store.document(&key("f", "a.ipynb")).await.unwrap().document;
    for n in 1..=count {
        let expected = i64::try_from(n - 1).unwrap();
        let appended = store.append_version(document, expected, &version(n)).await.unwrap();
        assert_eq!(appended, Appended::Ok(expected + 1));
    }
    document
}

pub(super) fn newest(limit: usize) -> VersionFilter {
    VersionFilter {
        limit,
        ..VersionFilter::default()
    }
}

pub(super) async fn seqs(store: &Store, document: i64, filter: VersionFilter) -> Vec<i64> {
    let found = store.versions(document, &filter).await.unwrap();
    found.into_iter().map(|version| version.seq).collect()
}

async fn versions_are_listed_by_author_and_moment(scene: Scene) {
    let store = scene.open().await;
    let document = with_versions(&store, 10).await;
    assert_eq!(seqs(&store, document, newest(3)).await, [10, 9, 8]);
    let by = |author: &str| VersionFilter {
        author: Some(author.into()),
        ..newest(3)
    };
    assert_eq!(seqs(&store, document, by("Zoë")).await, [9, 6, 3]);
    assert_eq!(seqs(&store, document, by("ana")).await, [10, 8, 7]);
    let before = |before| VersionFilter {
        before: Some(before),
        ..newest(2)
    };
    assert_eq!(
        seqs(&store, document, before(Before::Version("v5".into()))).await,
        [4, 3]
    );
    assert_eq!(seqs(&store, document, before(Before::Time(at(3)))).await, [2, 1]);
    let of_ana = store.versions_of(document, "ana", 5).await.unwrap();
    assert_eq!(of_ana.iter().map(|version| version.seq).collect::<Vec<_>>(), [7, 8, 10]);
    let (found, one) = store.version("v9").await.unwrap().unwrap();
    assert_eq!((found.document, found.path.as_deref()), (document, Some("a.ipynb")));
    assert_eq!((one.seq, one.authors), (9, vec!["Ben".to_owned(), "Zoë".to_owned()]));
    assert_eq!(store.version("v99").await.unwrap(), None);
}

async fn only_one_appends_after_a_version(scene: Scene) {
    let store = scene.open().await;
    let document = with_versions(&store, 2).await;
    let late = store.append_version(document, 1, &version(3)).await.unwrap();
    assert_eq!(late, Appended::Conflict { latest_seq: 2 });
    let again = store.append_version(document, 1, &version(2)).await.unwrap();
    assert_eq!(again, Appended::Ok(2), "the first attempt was written");
    let unknown = store.append_version(document + 1, 0, &version(3)).await.unwrap_err();
    assert!(matches!(unknown, StoreError::UnknownDocument { .. }), "{unknown}");
    let deltas = store.deltas(document, 0, 9).await.unwrap();
    let expected: Vec<_> = (1..=2i64).map(|n| (n, n.to_be_bytes().to_vec())).collect();
    let found: Vec<_> = deltas.into_iter().map(|(seq, _, delta)| (seq, delta)).collect();
    assert_eq!(found, expected);
}

async fn snapshots_and_blobs_come_with_versions(scene: Scene) {
    let store = scene.open().await;
    let document = with_versions(&store, 2).await;
    let snapshot = Snapshot {
        bytes: b"whole".to_vec(),
        blobs: vec!["h".into()],
    };
    let third = NewVersion {
        snapshot: Some(snapshot.clone()),
        blobs: vec![("h".into(), b"picture".to_vec())],
        ..version(3)
    };
    store.append_version(document, 2, &third).await.unwrap();
    assert_eq!(store.blob("h").await.unwrap().as_deref(), Some(&b"picture"[..]));
    assert_eq!(store.blob("i").await.unwrap(), None);
    assert_eq!(store.nearest_snapshot(document, 2).await.unwrap(), None);
    store.put_snapshot(document, 1, &Snapshot::default()).await.unwrap();
    assert_eq!(
        store.nearest_snapshot(document, 2).await.unwrap(),
        Some((1, Vec::new()))
    );
    let found = store.nearest_snapshot(document, 7).await.unwrap();
    assert_eq!(found, Some((3, snapshot.bytes.clone())));
    assert!(store.put_snapshot(document, 7, &snapshot).await.is_err());
}

async fn a_document_is_found_by_its_file_and_then_by_its_path(scene: Scene) {
    let store = scene.open().await;
    let a = store.document(&key("f", "d/a.ipynb")).await.unwrap();
    let b = store.document(&key("g", "d/b.ipynb")).await.unwrap();
    assert_ne!(a.document, b.document);
    let as_text = DocumentKey {
        kind: "file".into(),
        ..key("f", "d/a.ipynb")
    };
    assert_ne!(store.document(&as_text).await.unwrap().document, a.document);
    // Its server has forgotten its index of files.
    let again = store.document(&key("f2", "d/a.ipynb")).await.unwrap();
    assert_eq!((again.document, again.file_id.as_str()), (a.document, "f2"));
    store.rename_documents("lab-a", "d", "e").await.unwrap();
    let moved = store.document(&key("f3", "e/a.ipynb")).await.unwrap();
    assert_eq!(moved.document, a.document);
    // Another is moved to where it was.
    store.note_document_path("lab-a", "g", "e/a.ipynb").await.unwrap();
    let found = store.document_at("lab-a", "e/a.ipynb", "notebook").await.unwrap();
    assert_eq!(found.unwrap().document, b.document);
    let back = store.document(&key("f3", "z.ipynb")).await.unwrap();
    assert_eq!(back.document, a.document);
}

async fn forks_are_kept_until_they_are_deleted(scene: Scene) {
    let store = scene.open().await;
    let fork = fork("x");
    store.put_fork(&fork).await.unwrap();
    let changed = ForkRecord {
        content: vec![3],
        room_id: Some("r".into()),
        ..fork
    };
    store.put_fork(&changed).await.unwrap();
    assert_eq!(store.fork("x").await.unwrap().as_ref(), Some(&changed));
    assert_eq!(store.forks_of("lab-a", "f").await.unwrap(), [changed]);
    assert_eq!(store.delete_forks_before(at(2)).await.unwrap(), 0);
    assert!(store.delete_fork("x").await.unwrap());
    assert!(!store.delete_fork("x").await.unwrap());
}

async fn gateways_that_append_at_once_take_turns(scene: Scene) {
    let stores = [scene.open().await, scene.open().await];
    let tasks = stores.clone().into_iter().enumerate().map(|(gateway, store)| {
        tokio::spawn(async move {
            let document = store.document(&key("f", "a.ipynb")).await.unwrap();
            let (mut latest, mut conflicts) = (document.latest_seq, 0);
            for n in 0..40 {
                let version = NewVersion {
                    version_id: format!("{gateway}-{n}"),
                    ..version(n)
                };
                loop {
                    match store.append_version(document.document, latest, &version).await.unwrap() {
                        Appended::Ok(seq) => break latest = seq,
                        Appended::Conflict { latest_seq } => {
                            assert!(latest_seq > latest);
                            latest = latest_seq;
                            conflicts += 1;
                        }
                    }
                }
            }
            (document.document, conflicts)
        })
    });
    let ended = futures::future::join_all(tasks).await;
    let documents: Vec<i64> = ended.into_iter().map(|ended| ended.unwrap().0).collect();
    assert_eq!(documents[0], documents[1], "one document, whoever made it");
    let found = stores[0].versions(documents[0], &newest(100)).await.unwrap();
    let seqs: Vec<i64> = found.iter().map(|version| version.seq).collect();
    assert_eq!(seqs, (1..=80).rev().collect::<Vec<_>>());
    for gateway in ["0-", "1-"] {
        let own = found
            .iter()
            .rev()
            .filter(|version| version.version_id.starts_with(gateway));
        let own: Vec<_> = own
            .map(|version| version.version_id[2..].parse::<u64>().unwrap())
            .collect();
        assert_eq!(own, (0..40).collect::<Vec<_>>(), "each in its order");
    }
}

async fn a_row_that_cannot_be_read_hides_nothing_else(scene: Scene) {
    let store = scene.open().await;
    let document = with_versions(&store, 3).await;
    for n in 1..=3 {
        store.note_activity(logs::activity(n, at(1)));
        store.note_execution(record(n as u64, ExecutionStatus::Running));
    }
    store.flush().await;
    scene
        .sql("UPDATE versions SET authors = 'nonsense' WHERE seq = 2")
        .await;
    scene
        .sql("UPDATE activity SET metadata = '{' WHERE activity_id = 'a2'")
        .await;
    scene
        .sql("UPDATE executions SET status = 'dancing' WHERE execution_id = 'e2'")
        .await;
    assert_eq!(seqs(&store, document, newest(9)).await, [3, 1]);
    let deltas = store.deltas(document, 0, 3).await.unwrap();
    assert_eq!(deltas.iter().map(|(seq, ..)| *seq).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(logs::all_activities(&store).await.len(), 2);
    assert_eq!(ids(&store, anas(9)).await, ["e3", "e1"]);
}

async fn deltas_come_in_pages(scene: Scene) {
    let store = scene.open().await;
    let document = store.document(&key("f", "a.ipynb")).await.unwrap().document;
    for n in 1..=5u64 {
        let large = NewVersion {
            delta: vec![7; 3 * 1024 * 1024],
            ..version(n)
        };
        store
            .append_version(document, i64::try_from(n).unwrap() - 1, &large)
            .await
            .unwrap();
    }
    let (mut pages, mut last) = (Vec::new(), 0);
    loop {
        let page = store.deltas(document, last, 4).await.unwrap();
        let Some((seq, ..)) = page.last() else { break };
        last = *seq;
        pages.push(page.iter().map(|(seq, ..)| *seq).collect::<Vec<_>>());
    }
    assert_eq!(pages, [vec![1, 2], vec![3, 4]]);
}

async fn ten_thousand_versions_are_listed_at_once(scene: Scene) {
    let store = scene.open().await;
    let document = with_versions(&store, 1).await;
    scene
        .sql(
            "WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000) \
             INSERT INTO versions SELECT document, n, 'v' || n, n, kind, principal, authors, tool, revision, summary, \
             size, undoes, bytes, delta FROM versions, numbers",
        )
        .await;
    scene
        .sql(
            "INSERT INTO version_authors SELECT document, CASE WHEN seq % 1000 = 0 THEN 'rare' ELSE 'often' END, seq \
             FROM versions",
        )
        .await;
    let rare = VersionFilter {
        author: Some("rare".into()),
        ..newest(10)
    };
    let old = VersionFilter {
        before: Some(Before::Version("v12".into())),
        ..newest(10)
    };
    // The first time it connects.
    seqs(&store, document, newest(10)).await;
    for (filter, first) in [(newest(10), 10_000), (rare, 10_000), (old, 11)] {
        let began = std::time::Instant::now();
        let found = seqs(&store, document, filter).await;
        let took = began.elapsed();
        assert_eq!((found.len(), found[0]), (10, first));
        assert!(
            took < Duration::from_millis(500),
            "{took:?}, where a few milliseconds are enough"
        );
        println!("a list of 10 among 10000 took {took:?}");
    }
}
