//! Browser logins: clients, logins under way, grants and their tokens.

use super::*;
use crate::{NewGrant, NewTokens, Redeemed, RegisteredClient};

on_both_engines! {
    clients_are_kept_until_they_expire_and_are_not_too_many,
    a_login_is_taken_once_and_in_time,
    a_code_is_redeemed_once,
    refresh_tokens_rotate,
    what_is_revoked_or_expired_is_gone,
}

fn soon() -> SystemTime {
    SystemTime::now() + Duration::from_secs(60)
}

fn past() -> SystemTime {
    SystemTime::now() - Duration::from_secs(1)
}

fn client(id: &str, expires_at: SystemTime) -> RegisteredClient {
    RegisteredClient {
        client_id: id.into(),
        metadata: "{}".into(),
        expires_at,
    }
}

fn grant(id: &str) -> NewGrant {
    NewGrant {
        grant_id: id.into(),
        issuer: "https://login.example.org".into(),
        subject: "ana".into(),
        client_id: "c".into(),
        identity: "{}".into(),
        terms: "{}".into(),
        upstream: Some("sealed".into()),
        code: format!("code of {id}"),
        code_expires: soon(),
    }
}

fn tokens(n: usize) -> NewTokens {
    NewTokens {
        access: format!("access {n}"),
        scope: "jupyter:read".into(),
        access_expires: soon(),
        refresh: format!("refresh {n}"),
        refresh_expires: soon() + Duration::from_secs(n as u64),
        upstream: None,
    }
}

/// A grant with its first tokens.
async fn granted(store: &Store, id: &str, n: usize) {
    store.add_oauth_grant(&grant(id), 10).await.unwrap();
    let redeemed = store.redeem_oauth_code(&grant(id).code).await.unwrap();
    assert!(matches!(redeemed, Redeemed::Granted(_)), "{redeemed:?}");
    assert!(store.rotate_oauth_tokens(id, None, &tokens(n)).await.unwrap());
}

async fn is_valid(store: &Store, n: usize) -> bool {
    store.oauth_access_token(&tokens(n).access).await.unwrap().is_some()
}

async fn clients_are_kept_until_they_expire_and_are_not_too_many(scene: Scene) {
    let store = scene.open().await;
    assert!(store.add_oauth_client(&client("a", past()), 2).await.unwrap());
    assert!(store.add_oauth_client(&client("b", soon()), 2).await.unwrap());
    assert!(!store.add_oauth_client(&client("c", soon()), 2).await.unwrap());
    assert_eq!(store.oauth_client("a").await.unwrap(), None);
    assert_eq!(store.oauth_client("b").await.unwrap().as_deref(), Some("{}"));
    store.keep_oauth_client("b", past()).await.unwrap();
    assert!(store.oauth_client("b").await.unwrap().is_some(), "never sooner");
    store.compact().await.unwrap();
    assert!(store.add_oauth_client(&client("c", soon()), 2).await.unwrap());
}

async fn a_login_is_taken_once_and_in_time(scene: Scene) {
    let store = scene.open().await;
    store.put_oauth_login("a", "x", soon(), 10).await.unwrap();
    assert_eq!(store.take_oauth_login("a").await.unwrap().as_deref(), Some("x"));
    assert_eq!(store.take_oauth_login("a").await.unwrap(), None);
    store.put_oauth_login("b", "x", past(), 10).await.unwrap();
    assert_eq!(store.take_oauth_login("b").await.unwrap(), None);
    for n in 0..4 {
        let expires_at = soon() + Duration::from_secs(n);
        store.put_oauth_login(&n.to_string(), "x", expires_at, 2).await.unwrap();
    }
    let mut left = Vec::new();
    for n in 0..4 {
        left.push(store.take_oauth_login(&n.to_string()).await.unwrap().is_some());
    }
    assert_eq!(left, [false, false, true, true]);
}

async fn a_code_is_redeemed_once(scene: Scene) {
    let store = scene.open().await;
    assert_eq!(store.redeem_oauth_code("none").await.unwrap(), Redeemed::Unknown);
    granted(&store, "g", 1).await;
    let found = store.oauth_access_token("access 1").await.unwrap().unwrap();
    assert_eq!(
        (found.grant.subject.as_str(), found.scope.as_str()),
        ("ana", "jupyter:read")
    );
    assert_eq!(found.grant.upstream.as_deref(), Some("sealed"));
    assert_eq!(
        store.redeem_oauth_code("code of g").await.unwrap(),
        Redeemed::Reused,
        "and what was granted is revoked"
    );
    assert!(!is_valid(&store, 1).await);
    let late = NewGrant {
        code_expires: past(),
        ..grant("late")
    };
    store.add_oauth_grant(&late, 10).await.unwrap();
    assert_eq!(store.redeem_oauth_code(&late.code).await.unwrap(), Redeemed::Unknown);
    // Without its code, a grant gives nothing.
    store.add_oauth_grant(&grant("h"), 10).await.unwrap();
    assert!(!store.rotate_oauth_tokens("h", None, &tokens(7)).await.unwrap());
}

async fn refresh_tokens_rotate(scene: Scene) {
    let store = scene.open().await;
    granted(&store, "g", 1).await;
    let mut next = tokens(2);
    next.upstream = Some((None, "{\"name\":\"Ana\"}".into()));
    assert!(store.rotate_oauth_tokens("g", Some("refresh 1"), &next).await.unwrap());
    assert!(
        !store
            .rotate_oauth_tokens("g", Some("refresh 1"), &tokens(3))
            .await
            .unwrap()
    );
    assert!(is_valid(&store, 1).await && is_valid(&store, 2).await && !is_valid(&store, 3).await);
    let kept = store.oauth_grant("g").await.unwrap().unwrap();
    assert_eq!((kept.refresh.as_deref(), kept.upstream), (Some("refresh 2"), None));
    assert_eq!(kept.identity, "{\"name\":\"Ana\"}");
    for n in 3..=30 {
        let before = format!("refresh {}", n - 1);
        let rotated = store.rotate_oauth_tokens("g", Some(&before), &tokens(n)).await;
        assert!(rotated.unwrap());
    }
    let mut valid = 0;
    for n in 1..=30 {
        valid += usize::from(is_valid(&store, n).await);
    }
    assert!(valid <= 17 && is_valid(&store, 30).await, "{valid}");
}

async fn what_is_revoked_or_expired_is_gone(scene: Scene) {
    let store = scene.open().await;
    granted(&store, "g", 1).await;
    granted(&store, "h", 2).await;
    assert!(store.revoke_oauth_grant("g").await.unwrap());
    assert!(!store.revoke_oauth_grant("g").await.unwrap());
    assert!(!is_valid(&store, 1).await && is_valid(&store, 2).await);
    assert!(
        !store
            .rotate_oauth_tokens("g", Some("refresh 1"), &tokens(3))
            .await
            .unwrap()
    );
    scene.sql("UPDATE oauth_tokens SET expires_at = 1").await;
    assert!(!is_valid(&store, 2).await);
    assert!(store.compact().await.unwrap().logins >= 1);
    scene.sql("UPDATE oauth_grants SET expires_at = 1").await;
    assert_eq!(store.oauth_grant("h").await.unwrap(), None);
    assert!(store.compact().await.unwrap().logins >= 1);
    for n in 0..5 {
        store.add_oauth_grant(&grant(&format!("n{n}")), 3).await.unwrap();
    }
    assert_eq!(
        store.oauth_grant("n0").await.unwrap(),
        None,
        "the oldest of a person go"
    );
    assert!(store.oauth_grant("n4").await.unwrap().is_some());
}
