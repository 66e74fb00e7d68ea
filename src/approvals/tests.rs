//! What waits, how long, and for whom.

use super::*;
use crate::{
    auth::{ApprovalRules, PathRules, Tenant},
    types::PermissionSet,
};

const KEY: CallKey = [1; 32];

fn principal(id: &str, permissions: &[Permission]) -> Principal {
    let everywhere = || PathRules::new(&["**".to_owned()]).unwrap();
    let tenant = Tenant {
        name: "team".to_owned(),
        servers: Vec::new(),
        connect_urls: Vec::new(),
        permissions: PermissionSet::all(),
        paths: everywhere(),
        toolsets: Vec::new(),
        max_open_rooms: 1,
        max_concurrent_executions: 1,
        review_required: false,
        approvals: ApprovalRules::default(),
    };
    Principal::new(
        id,
        id,
        Arc::new(tenant),
        permissions.iter().copied().collect(),
        everywhere(),
    )
}

fn decider(principal: &Principal, is_in_person: bool) -> Decider<'_> {
    Decider {
        principal,
        is_in_person,
        servers: &[],
    }
}

fn asked(by: &str) -> AskedCall {
    AskedCall {
        principal: by.into(),
        tenant: "team".to_owned(),
        tool: "run_code",
        ..AskedCall::default()
    }
}

fn calls() -> WaitingCalls {
    WaitingCalls::new(Some("/console".to_owned()))
}

fn waits(calls: &WaitingCalls, key: CallKey, by: &str) -> Option<String> {
    match calls.ask(key, &CancellationToken::new(), || asked(by)) {
        Standing::Waits { call, .. } => Some(call.id),
        Standing::Decided(_) | Standing::Unkept(_) => None,
    }
}

fn number(number: usize) -> CallKey {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

#[test]
fn a_person_decides_about_their_own_agent_and_its_token_does_not() {
    let ana = principal("ana", &[Permission::Read]);
    let calls = calls();
    let id = waits(&calls, KEY, "ana").unwrap();
    assert_eq!(calls.seen_by(&decider(&ana, false)).len(), 1);
    assert_eq!(
        calls.decide(&id, &decider(&ana, false), true).unwrap_err(),
        CannotDecide::Own
    );
    calls.decide(&id, &decider(&ana, true), true).unwrap();
    let Standing::Decided(decided) = calls.ask(KEY, &CancellationToken::new(), || asked("ana")) else {
        panic!("it is decided");
    };
    assert!(decided.verdict.is_allowed && &*decided.verdict.by == "ana");
    // Once, unless it is given back.
    calls.give_back(decided.grant);
    assert!(waits(&calls, KEY, "ana").is_none());
    assert!(waits(&calls, KEY, "ana").is_some());
}

#[test]
fn what_nobody_decides_expires_and_what_is_decided_too() {
    let admin = principal("ben", &[Permission::Admin]);
    let calls = calls();
    let first = waits(&calls, KEY, "ana").unwrap();
    let expire = || calls.entries.lock().get_mut(&KEY).unwrap().expires_at = Instant::now();
    expire();
    assert!(calls.seen_by(&decider(&admin, false)).is_empty());
    assert_eq!(
        calls.decide(&first, &decider(&admin, false), true).unwrap_err(),
        CannotDecide::Gone
    );
    let second = waits(&calls, KEY, "ana").unwrap();
    assert_ne!(first, second, "nobody decides about it with an old form");
    calls.decide(&second, &decider(&admin, false), true).unwrap();
    expire();
    assert!(waits(&calls, KEY, "ana").is_some());
}

#[test]
fn what_waits_is_bounded_for_each_principal_and_tenant() {
    let calls = calls();
    for count in 0..MAX_OF_TENANT {
        let by = format!("agent-{}", count / MAX_OF_PRINCIPAL);
        assert!(waits(&calls, number(count), &by).is_some(), "{count}");
    }
    let refused = |by: &str| match calls.ask(KEY, &CancellationToken::new(), || asked(by)) {
        Standing::Unkept(why) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("somebody"), Unkept::TooManyOfTenant);
    calls.withdraw(&number(0));
    assert_eq!(refused("agent-1"), Unkept::TooManyOfPrincipal);
    assert!(waits(&calls, KEY, "somebody").is_some());
}

#[test]
fn a_refusal_is_not_withdrawn_and_a_revoked_caller_waits_for_nothing() {
    let admin = principal("ben", &[Permission::Admin]);
    let calls = calls();
    let id = waits(&calls, KEY, "ana").unwrap();
    calls.decide(&id, &decider(&admin, false), false).unwrap();
    assert!(calls.withdraw(&KEY).is_some_and(|verdict| !verdict.is_allowed));
    assert!(waits(&calls, KEY, "ana").is_none(), "it stays refused");
    let revoked = CancellationToken::new();
    calls.ask(number(1), &revoked, || asked("ida"));
    revoked.cancel();
    assert!(calls.seen_by(&decider(&admin, false)).is_empty());
}

#[tokio::test]
async fn whoever_waits_is_told_at_once() {
    let admin = principal("ben", &[Permission::Admin]);
    let calls = calls();
    let id = waits(&calls, KEY, "ana").unwrap();
    let deciding = async {
        tokio::task::yield_now().await;
        calls.decide(&id, &decider(&admin, false), true).unwrap();
    };
    let (decided, ()) = tokio::join!(calls.decided(&KEY), deciding);
    assert!(decided.unwrap().grant.is_some());
    assert!(calls.decided(&KEY).await.is_none(), "nothing waits any more");
}
