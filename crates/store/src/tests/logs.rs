//! Activities, and the record of calls.

use super::{history::at, *};
use crate::{ActivityFilter, ActivityRecord, AuditFilter, AuditRow, Console, RevokedToken, file_url};

on_both_engines! {
    activities_and_calls_are_noted_and_found,
    texts_that_a_database_cannot_keep_keep_nothing_else_from_it,
    all_calls_are_read_page_by_page,
    revoked_tokens_are_known_to_every_gateway,
}

pub(super) fn activity(n: usize, time: SystemTime) -> ActivityRecord {
    ActivityRecord {
        activity_id: format!("a{n}"),
        time,
        server: "lab-a".into(),
        path: Some(format!("{n}.ipynb")),
        file_id: Some("f".into()),
        actor: "ana".into(),
        actor_name: "Ana".into(),
        is_agent: true,
        activity_type: "edited".into(),
        description: "1 cell changed".into(),
        metadata: json!({ "cells": [n] }),
    }
}

pub(super) fn call(n: usize, time: SystemTime) -> AuditRow {
    AuditRow {
        time,
        principal: "ana".into(),
        tenant: "research".into(),
        address: Some("127.0.0.1".into()),
        tool: "edit".into(),
        server: None,
        path: Some(format!("{n}.ipynb")),
        decision: "deny".into(),
        rule: Some("paths".into()),
        approval: Some("declined".into()),
        outcome: "failed".into(),
        duration_ms: 3,
        request_id: format!("r{n}"),
        count: 1,
    }
}

pub(super) async fn all_activities(store: &Store) -> Vec<ActivityRecord> {
    let filter = ActivityFilter {
        limit: usize::MAX,
        ..ActivityFilter::default()
    };
    store.activity_log(&filter).await.unwrap()
}

pub(super) async fn all_calls(store: &Store) -> Vec<AuditRow> {
    let filter = AuditFilter {
        limit: usize::MAX,
        ..AuditFilter::default()
    };
    store.audit(&filter).await.unwrap()
}

async fn activities_and_calls_are_noted_and_found(scene: Scene) {
    let store = scene.open().await;
    for n in 1..=4 {
        let time = at(n as u64);
        store.note_activity(ActivityRecord {
            server: if n == 4 { "lab-b" } else { "lab-a" }.into(),
            actor: if n == 2 { "ben" } else { "ana" }.into(),
            ..activity(n, time)
        });
        store.note_audit(call(n, time));
    }
    let ids = async |filter: ActivityFilter| {
        let found = store.activity_log(&filter).await.unwrap();
        found.into_iter().map(|record| record.activity_id).collect::<Vec<_>>()
    };
    let all = || ActivityFilter {
        limit: 10,
        ..ActivityFilter::default()
    };
    assert_eq!(ids(all()).await, ["a4", "a3", "a2", "a1"]);
    assert_eq!(ids(ActivityFilter { limit: 1, ..all() }).await, ["a4"]);
    let on_a = ActivityFilter {
        server: Some("lab-a".into()),
        file_id: Some("f".into()),
        ..all()
    };
    assert_eq!(ids(on_a).await, ["a3", "a2", "a1"]);
    let of_ben = ActivityFilter {
        actor: Some("ben".into()),
        ..all()
    };
    assert_eq!(ids(of_ben).await, ["a2"]);
    let of_paths = ActivityFilter {
        paths: vec!["1.ipynb".into(), "3.ipynb".into()],
        ..all()
    };
    assert_eq!(ids(of_paths).await, ["a3", "a1"]);
    let before = ActivityFilter {
        before: Some(at(3)),
        ..all()
    };
    assert_eq!(ids(before).await, ["a2", "a1"]);
    assert!(all_activities(&store).await.contains(&activity(3, at(3))));
    let since = AuditFilter {
        since: Some(at(3)),
        principal: Some("ana".into()),
        limit: 10,
        ..AuditFilter::default()
    };
    assert_eq!(store.audit(&since).await.unwrap(), [call(4, at(4)), call(3, at(3))]);
    let of_path = AuditFilter {
        path: Some("2.ipynb".into()),
        limit: 10,
        ..AuditFilter::default()
    };
    assert_eq!(store.audit(&of_path).await.unwrap(), [call(2, at(2))]);
    let of_others = AuditFilter {
        tenant: Some("others".into()),
        limit: 10,
        ..AuditFilter::default()
    };
    assert!(store.audit(&of_others).await.unwrap().is_empty());
    store.note_audit(AuditRow {
        decision: "allow".into(),
        ..call(9, at(9))
    });
    let newest = async |without_allowed: Option<String>| {
        let filter = AuditFilter {
            without_allowed,
            limit: 1,
            ..AuditFilter::default()
        };
        store.audit(&filter).await.unwrap().remove(0).request_id
    };
    assert_eq!(newest(None).await, "r9");
    assert_eq!(newest(Some("edit".into())).await, "r4", "what was denied stays");
    assert_eq!(newest(Some("other".into())).await, "r9");
}

async fn texts_that_a_database_cannot_keep_keep_nothing_else_from_it(scene: Scene) {
    let store = scene.open().await;
    store.note_audit(AuditRow {
        path: Some("a\0b".into()),
        ..call(1, at(1))
    });
    store.note_audit(call(2, at(2)));
    store.note_execution(ExecutionRecord {
        reason: Some("a\0b".into()),
        ..record(1, ExecutionStatus::Failed)
    });
    store.flush().await;
    assert_eq!(all_calls(&store).await.len(), 2);
    assert!(find(&store, "e1").await.is_some());
    store.ping().await.unwrap();
}

async fn all_calls_are_read_page_by_page(scene: Scene) {
    let store = scene.open().await;
    // Several began at the same moment.
    for n in 0..7 {
        store.note_audit(call(n, at(n as u64 / 3)));
    }
    store.flush().await;
    let console = Console::open(&scene.url()).await.unwrap();
    let (mut read, mut before) = (Vec::new(), None);
    loop {
        let filter = AuditFilter {
            before,
            limit: 2,
            ..AuditFilter::default()
        };
        let page = console.audit(&filter).await.unwrap();
        read.extend(page.rows.into_iter().map(|row| row.request_id));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(read, ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]);
    console.close().await;
}

async fn revoked_tokens_are_known_to_every_gateway(scene: Scene) {
    let (store, other) = (scene.open().await, scene.open().await);
    assert!(store.revoked_tokens().await.unwrap().is_empty());
    let console = Console::open(&scene.url()).await.unwrap();
    let token = RevokedToken {
        digest: "0a".repeat(32),
        name: "ana".into(),
        revoked_at: at(1),
    };
    assert!(console.revoke_token(&token).await.unwrap());
    let again = RevokedToken {
        revoked_at: at(2),
        ..token.clone()
    };
    assert!(!console.revoke_token(&again).await.unwrap(), "it is revoked already");
    for revoked in [
        store.revoked_tokens().await.unwrap(),
        other.revoked_tokens().await.unwrap(),
        console.revoked_tokens().await.unwrap(),
    ] {
        assert_eq!(revoked, std::slice::from_ref(&token));
    }
    console.close().await;
}

#[tokio::test]
async fn a_command_makes_no_database_where_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.db");
    for (url, told) in [
        (file_url(&file), "does not exist"),
        ("sqlite::memory:".to_owned(), "in memory"),
    ] {
        let error = Console::open(&url).await.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    assert!(!file.exists());
}
