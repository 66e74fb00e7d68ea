//! Keeping within the limits.

use async_trait::async_trait;

use super::{
    history::{at, key, newest, seqs, version, with_versions},
    logs::{activity, all_calls, call},
    *,
};
use crate::{
    ActivityFilter, AuditFilter, AuditRow, Compacted, HistoryLimits, LogLimits, NewVersion, Snapshot, SnapshotSource,
};

on_both_engines! {
    the_oldest_versions_go_up_to_one_whose_content_is_kept,
    without_anybody_to_make_snapshots_those_that_there_are_decide,
    a_history_far_beyond_its_limits_is_cut_whatever_is_kept_of_it,
    large_versions_push_out_older_ones_of_their_document,
    old_versions_go_and_documents_that_nobody_changed,
    documents_that_were_not_changed_for_longest_make_room_for_others,
    versions_that_are_pinned_stay_whatever_the_limits,
    old_activities_and_calls_go_and_those_that_are_too_many,
    refused_logins_push_out_no_calls,
    what_is_appended_meanwhile_is_kept,
}

/// Makes snapshots that mention one blob.
struct Maker;

#[async_trait]
impl SnapshotSource for Maker {
    async fn snapshot(&self, _: i64, seq: i64) -> Option<Snapshot> {
        Some(Snapshot {
            bytes: seq.to_be_bytes().to_vec(),
            blobs: vec!["kept".into()],
        })
    }
}

/// Makes snapshots too, and needs some versions.
struct Needs(&'static [&'static str]);

#[async_trait]
impl SnapshotSource for Needs {
    async fn snapshot(&self, document: i64, seq: i64) -> Option<Snapshot> {
        Maker.snapshot(document, seq).await
    }

    fn pinned(&self) -> Vec<String> {
        self.0.iter().map(|&id| id.to_owned()).collect()
    }
}

async fn versions_that_are_pinned_stay_whatever_the_limits(scene: Scene) {
    let limits = history(|limits| {
        limits.versions_per_document = 10;
        limits.bytes = 1;
    });
    let store = scene.open_with(limits).await;
    store.set_snapshot_source(Arc::new(Needs(&["v7", "v9", "gone"])));
    let document = with_versions(&store, 40).await;
    let other = store.document(&key("g", "b.ipynb")).await.unwrap().document;
    let newer = NewVersion {
        version_id: "w1".to_owned(),
        time: SystemTime::now(),
        ..version(1)
    };
    store.append_version(other, 0, &newer).await.unwrap();
    let removed = store.compact().await.unwrap();
    assert_eq!((removed.versions, removed.documents), (6, 0));
    assert_eq!(seqs(&store, document, newest(100)).await.last(), Some(&7));
    assert_eq!(store.nearest_snapshot(document, 7).await.unwrap().unwrap().0, 7);
}

/// Limits under which nothing is old.
fn history(change: impl FnOnce(&mut HistoryLimits)) -> StoreLimits {
    let mut limits = StoreLimits::default();
    limits.history.keep = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    change(&mut limits.history);
    limits
}

async fn the_oldest_versions_go_up_to_one_whose_content_is_kept(scene: Scene) {
    let store = scene
        .open_with(history(|limits| limits.versions_per_document = 20))
        .await;
    store.set_snapshot_source(Arc::new(Maker));
    let document = with_versions(&store, 19).await;
    let blobs = ["kept", "gone", "kept too"];
    for (n, hash) in (20..).zip(blobs) {
        let version = NewVersion {
            blobs: vec![(hash.into(), hash.into())],
            ..version(n)
        };
        let seq = i64::try_from(n).unwrap() - 1;
        store.append_version(document, seq, &version).await.unwrap();
    }
    for n in 23..=40 {
        let seq = i64::try_from(n).unwrap() - 1;
        store.append_version(document, seq, &version(n)).await.unwrap();
    }
    scene.sql("UPDATE blobs SET used_at = 0").await;
    let removed = store.compact().await.unwrap();
    assert_eq!((removed.versions, removed.documents, removed.blobs), (22, 0, 2));
    assert_eq!(
        seqs(&store, document, newest(100)).await,
        (23..=40).rev().collect::<Vec<_>>()
    );
    let (seq, content) = store.nearest_snapshot(document, 30).await.unwrap().unwrap();
    assert_eq!((seq, content), (23, 23i64.to_be_bytes().to_vec()));
    for (hash, is_kept) in [("kept", true), ("gone", false), ("kept too", false)] {
        assert_eq!(store.blob(hash).await.unwrap().is_some(), is_kept, "{hash}");
    }
    assert_eq!(store.version("v22").await.unwrap(), None);
    assert_eq!(store.compact().await.unwrap(), Compacted::default(), "once is enough");
    assert_eq!(store.versions_of(document, "ana", 0).await.unwrap()[0].seq, 23);
}

async fn without_anybody_to_make_snapshots_those_that_there_are_decide(scene: Scene) {
    let store = scene
        .open_with(history(|limits| limits.versions_per_document = 20))
        .await;
    let document = with_versions(&store, 30).await;
    assert_eq!(
        store.compact().await.unwrap(),
        Compacted::default(),
        "there is no snapshot"
    );
    store.put_snapshot(document, 5, &Snapshot::default()).await.unwrap();
    assert_eq!(store.compact().await.unwrap().versions, 4);
    store.put_snapshot(document, 13, &Snapshot::default()).await.unwrap();
    assert_eq!(store.compact().await.unwrap().versions, 8);
    assert_eq!(seqs(&store, document, newest(100)).await.last(), Some(&13));
}

async fn a_history_far_beyond_its_limits_is_cut_whatever_is_kept_of_it(scene: Scene) {
    let store = scene
        .open_with(history(|limits| limits.versions_per_document = 10))
        .await;
    let document = with_versions(&store, 21).await;
    assert_eq!(store.compact().await.unwrap().versions, 12);
    assert_eq!(seqs(&store, document, newest(1)).await, [21]);
}

async fn large_versions_push_out_older_ones_of_their_document(scene: Scene) {
    let store = scene
        .open_with(history(|limits| limits.bytes_per_document = 10_000))
        .await;
    store.set_snapshot_source(Arc::new(Maker));
    let document = with_versions(&store, 4).await;
    for n in 5..=9 {
        let large = NewVersion {
            delta: vec![7; 2000],
            ..version(n)
        };
        let seq = i64::try_from(n).unwrap() - 1;
        store.append_version(document, seq, &large).await.unwrap();
    }
    store.compact().await.unwrap();
    // Each takes a quarter more than its delta.
    assert_eq!(seqs(&store, document, newest(100)).await, [9, 8, 7]);
}

async fn old_versions_go_and_documents_that_nobody_changed(scene: Scene) {
    let store = scene.open().await;
    store.set_snapshot_source(Arc::new(Maker));
    let forgotten = with_versions(&store, 3).await;
    let document = store.document(&key("g", "b.ipynb")).await.unwrap().document;
    for (n, time) in [(1, at(1)), (2, at(2)), (3, SystemTime::now()), (4, SystemTime::now())] {
        let version = NewVersion {
            version_id: format!("w{n}"),
            time,
            ..version(n)
        };
        let seq = i64::try_from(n).unwrap() - 1;
        store.append_version(document, seq, &version).await.unwrap();
    }
    let removed = store.compact().await.unwrap();
    assert_eq!((removed.versions, removed.documents), (3 + 2, 1));
    assert_eq!(seqs(&store, document, newest(100)).await, [4, 3]);
    assert!(seqs(&store, forgotten, newest(100)).await.is_empty());
    let error = store.append_version(forgotten, 3, &version(4)).await.unwrap_err();
    assert!(matches!(error, StoreError::UnknownDocument { .. }), "{error}");
    let anew = store.document(&key("f", "a.ipynb")).await.unwrap();
    assert!(anew.document != forgotten && anew.latest_seq == 0, "{anew:?}");
}

async fn documents_that_were_not_changed_for_longest_make_room_for_others(scene: Scene) {
    let store = scene.open_with(history(|limits| limits.bytes = 10_000)).await;
    let mut documents = Vec::new();
    for n in 1..=5u64 {
        let name = n.to_string();
        let document = store.document(&key(&name, &name)).await.unwrap().document;
        let version = NewVersion {
            delta: vec![7; 2200],
            ..version(n)
        };
        store.append_version(document, 0, &version).await.unwrap();
        documents.push(document);
    }
    let removed = store.compact().await.unwrap();
    assert_eq!((removed.versions, removed.documents), (2, 2));
    for (index, document) in documents.into_iter().enumerate() {
        let kept = seqs(&store, document, newest(100)).await.len();
        assert_eq!(kept, usize::from(index >= 2), "{index}");
    }
}

async fn old_activities_and_calls_go_and_those_that_are_too_many(scene: Scene) {
    let limits = LogLimits {
        keep: Duration::from_secs(60),
        records: 2,
    };
    let limits = StoreLimits {
        activity: limits,
        audit: limits,
        ..StoreLimits::default()
    };
    let store = scene.open_with(limits).await;
    let ago = |seconds| SystemTime::now() - Duration::from_secs(seconds);
    // By a clock that was set back meanwhile.
    for (n, time) in [ago(90), ago(30), ago(20), ago(10), ago(100)].into_iter().enumerate() {
        store.note_activity(activity(n, time));
        store.note_audit(call(n, time));
    }
    store.flush().await;
    let removed = store.compact().await.unwrap();
    assert_eq!((removed.activities, removed.audits), (3, 3));
    let kept = store
        .activity_log(&ActivityFilter {
            limit: 9,
            ..ActivityFilter::default()
        })
        .await
        .unwrap();
    let kept: Vec<_> = kept.iter().map(|record| record.activity_id.as_str()).collect();
    assert_eq!(kept, ["a3", "a2"]);
    let calls = store
        .audit(&AuditFilter {
            limit: 9,
            ..AuditFilter::default()
        })
        .await
        .unwrap();
    let calls: Vec<_> = calls.iter().map(|row| row.request_id.as_str()).collect();
    assert_eq!(calls, ["r3", "r2"]);
}

async fn refused_logins_push_out_no_calls(scene: Scene) {
    let limits = LogLimits {
        keep: Duration::from_secs(60),
        records: 30,
    };
    let limits = StoreLimits {
        audit: limits,
        ..StoreLimits::default()
    };
    let store = scene.open_with(limits).await;
    let now = SystemTime::now();
    for n in 0..20 {
        store.note_audit(call(n, now));
    }
    for n in 0..500 {
        store.note_audit(AuditRow {
            principal: String::new(),
            ..call(n, now + Duration::from_millis(n as u64))
        });
    }
    store.flush().await;
    assert_eq!(store.compact().await.unwrap().audits, 497);
    let kept = all_calls(&store).await;
    let (of_nobody, calls): (Vec<_>, Vec<_>) = kept.into_iter().partition(|row| row.principal.is_empty());
    let newest: Vec<_> = of_nobody.iter().map(|row| row.request_id.as_str()).collect();
    assert_eq!((calls.len(), newest), (20, vec!["r499", "r498", "r497"]));
}

async fn what_is_appended_meanwhile_is_kept(scene: Scene) {
    let store = scene
        .open_with(history(|limits| limits.versions_per_document = 20))
        .await;
    store.set_snapshot_source(Arc::new(Maker));
    let document = with_versions(&store, 30).await;
    let appending = tokio::spawn({
        let store = store.clone();
        async move {
            for n in 31..=100u64 {
                let seq = i64::try_from(n).unwrap() - 1;
                store.append_version(document, seq, &version(n)).await.unwrap();
            }
        }
    });
    while !appending.is_finished() {
        store.compact().await.unwrap();
    }
    appending.await.unwrap();
    store.compact().await.unwrap();
    let kept = seqs(&store, document, newest(100)).await;
    let oldest = 101 - i64::try_from(kept.len()).unwrap();
    assert_eq!(kept, (oldest..=100).rev().collect::<Vec<_>>());
    assert!((18..=20).contains(&kept.len()), "{kept:?}");
}

/// Gives back to the disk what is deleted.
#[tokio::test]
async fn a_file_shrinks_when_much_of_it_is_removed() {
    let scene = Scene::sqlite();
    let store = scene
        .open_with(history(|limits| limits.bytes_per_document = 100_000))
        .await;
    store.set_snapshot_source(Arc::new(Maker));
    let document = store.document(&key("f", "a.ipynb")).await.unwrap().document;
    for n in 1..=40u64 {
        let large = NewVersion {
            delta: vec![7; 100_000],
            ..version(n)
        };
        let seq = i64::try_from(n).unwrap() - 1;
        store.append_version(document, seq, &large).await.unwrap();
    }
    store.compact().await.unwrap();
    store.close().await;
    let Scene::Sqlite(folder) = &scene else { unreachable!() };
    let bytes = fs::metadata(folder.path().join("gateway.db")).unwrap().len();
    assert!(bytes < 1_000_000, "{bytes}");
}
