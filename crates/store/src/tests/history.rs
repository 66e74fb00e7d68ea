//! Documents, their versions and their forks.

use super::*;
use crate::{ActivityFilter, ActivityRecord, Appended, AuditFilter, AuditRow, Before, DocumentKey, ForkRecord};
use crate::{NewVersion, Snapshot, VersionFilter};

on_both_engines! {
    versions_are_listed_by_author_and_moment,
    only_one_appends_after_a_version,
    snapshots_and_blobs_come_with_versions,
    a_document_is_found_by_its_file_and_then_by_its_path,
    forks_are_kept_until_they_are_deleted,
    activities_and_calls_are_noted_and_found,
}

fn key(file_id: &str, path: &str) -> DocumentKey {
    DocumentKey {
        server: "lab-a".into(),
        file_id: file_id.into(),
        path: path.into(),
        kind: "notebook".into(),
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Version number `n`, of ana's agent or, every third, of two people.
fn version(n: u64) -> NewVersion {
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

async fn with_versions(store: &Store, count: u64) -> i64 {
    let document = store.document(&key("f", "a.ipynb")).await.unwrap().document;
    for n in 1..=count {
        let expected = i64::try_from(n - 1).unwrap();
        let appended = store.append_version(document, expected, &version(n)).await.unwrap();
        assert_eq!(appended, Appended::Ok(expected + 1));
    }
    document
}

fn newest(limit: usize) -> VersionFilter {
    VersionFilter {
        limit,
        ..VersionFilter::default()
    }
}

async fn seqs(store: &Store, document: i64, filter: VersionFilter) -> Vec<i64> {
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
    let fork = ForkRecord {
        fork_id: "x".into(),
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
    };
    store.put_fork(&fork).await.unwrap();
    let changed = ForkRecord {
        content: vec![3],
        room_id: Some("r".into()),
        ..fork
    };
    store.put_fork(&changed).await.unwrap();
    assert_eq!(store.forks_of("lab-a", "f").await.unwrap(), [changed.clone()]);
    assert_eq!(store.fork("x").await.unwrap(), Some(changed));
    assert!(store.delete_fork("x").await.unwrap());
    assert!(!store.delete_fork("x").await.unwrap());
}

async fn activities_and_calls_are_noted_and_found(scene: Scene) {
    let store = scene.open().await;
    for n in 1..=3u64 {
        store.note_activity(ActivityRecord {
            activity_id: format!("a{n}"),
            time: at(n),
            server: "lab-a".into(),
            path: Some(format!("{n}.ipynb")),
            file_id: None,
            actor: "ana".into(),
            actor_name: "Ana".into(),
            is_agent: true,
            activity_type: "edited".into(),
            description: "1 cell changed".into(),
            metadata: json!({ "cells": [n] }),
        });
        store.note_audit(AuditRow {
            time: at(n),
            principal: "ana".into(),
            tenant: "research".into(),
            address: None,
            tool: "edit".into(),
            server: None,
            path: Some(format!("{n}.ipynb")),
            decision: "allow".into(),
            rule: None,
            outcome: "completed".into(),
            duration_ms: 3,
            request_id: "r".into(),
        });
    }
    let filter = ActivityFilter {
        paths: vec!["1.ipynb".into(), "3.ipynb".into()],
        limit: 10,
        ..ActivityFilter::default()
    };
    let found = store.activity_log(&filter).await.unwrap();
    let ids: Vec<_> = found.iter().map(|record| record.activity_id.as_str()).collect();
    assert_eq!(ids, ["a3", "a1"]);
    assert_eq!(found[0].metadata, json!({ "cells": [3] }));
    let filter = AuditFilter {
        since: Some(at(2)),
        limit: 10,
        ..AuditFilter::default()
    };
    let times: Vec<_> = store.audit(&filter).await.unwrap().iter().map(|row| row.time).collect();
    assert_eq!(times, [at(3), at(2)]);
}
