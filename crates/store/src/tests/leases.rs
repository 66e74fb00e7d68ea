//! Work that gateways leave to each other.

use super::*;

on_both_engines! {
    what_another_gateway_looks_after_is_left_to_it_until_it_leaves,
    what_a_killed_process_of_the_same_host_left_is_taken_over_at_once,
    a_process_of_the_same_host_that_is_slow_to_renew_is_not_taken_for_gone,
    a_gateway_on_another_host_keeps_what_it_runs_until_its_lease_expires,
    a_lease_that_was_renewed_after_it_was_seen_is_not_removed,
    the_last_handle_that_is_dropped_ends_the_lease,
}

async fn what_another_gateway_looks_after_is_left_to_it_until_it_leaves(scene: Scene) {
    let (first, second) = (scene.open().await, scene.open().await);
    first.note_execution(record(1, ExecutionStatus::Running));
    first.flush().await;
    assert_eq!(second.take_over(|_| true).await.unwrap(), []);
    let [other] = <[_; 1]>::try_from(second.other_gateways().await.unwrap()).unwrap();
    let leaving = tokio::spawn(other.wait_until_left());
    // Long enough to end, if it did not wait.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!leaving.is_finished());
    first.close().await;
    leaving.await.unwrap();
    let [taken] = <[_; 1]>::try_from(second.take_over(|_| true).await.unwrap()).unwrap();
    assert_eq!(taken.record, record(1, ExecutionStatus::Running));
    assert!(taken.noted_at.unwrap().elapsed().unwrap() < Duration::from_secs(60));
    drop(first);
    second.close().await;
    let third = scene.open().await;
    let leases = third.database.leases().await.unwrap();
    assert_eq!(leases.len(), 1, "nothing is left of the others");
}

/// Another gateway's lease, by the process that it would have.
async fn put_lease(store: &Store, process: Process, valid: Duration) -> Lease {
    let lease = Lease {
        gateway: "another".into(),
        process,
    };
    store.database.renew_lease(&lease, valid).await.unwrap();
    let batch = Batch {
        records: vec![Arc::new(record(1, ExecutionStatus::Running))],
        ..Batch::default()
    };
    store.database.write_executions(&batch, &lease.gateway).await.unwrap();
    lease
}

async fn what_a_killed_process_of_the_same_host_left_is_taken_over_at_once(scene: Scene) {
    let store = scene.open().await;
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let process = Process::of(child.id());
    put_lease(&store, process, Duration::from_secs(60)).await;
    assert_eq!(store.take_over(|_| true).await.unwrap(), []);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(store.take_over(|_| true).await.unwrap().len(), 1);
    assert_eq!(store.database.leases().await.unwrap().len(), 1, "its lease is removed");
}

async fn a_process_of_the_same_host_that_is_slow_to_renew_is_not_taken_for_gone(scene: Scene) {
    let store = scene.open().await;
    put_lease(&store, Process::current(), Duration::ZERO).await;
    // Only where the system tells that it runs.
    if Process::current().started != 0 {
        assert_eq!(store.take_over(|_| true).await.unwrap(), []);
    }
}

async fn a_gateway_on_another_host_keeps_what_it_runs_until_its_lease_expires(scene: Scene) {
    let store = scene.open().await;
    let elsewhere = Process {
        host: "elsewhere".into(),
        ..Process::current()
    };
    let lease = put_lease(&store, elsewhere, Duration::from_millis(300)).await;
    assert_eq!(store.take_over(|_| true).await.unwrap(), []);
    let [other] = <[_; 1]>::try_from(store.other_gateways().await.unwrap()).unwrap();
    other.wait_until_left().await;
    assert_eq!(store.take_over(|_| true).await.unwrap().len(), 1);
    // It was only cut off, and comes back: what it ran is not its own any more.
    store
        .database
        .renew_lease(&lease, Duration::from_secs(60))
        .await
        .unwrap();
    let late = Batch {
        records: vec![Arc::new(record(1, ExecutionStatus::Failed))],
        ..Batch::default()
    };
    store.database.write_executions(&late, &lease.gateway).await.unwrap();
    assert_eq!(find(&store, "e1").await.unwrap().status, ExecutionStatus::Running);
}

async fn a_lease_that_was_renewed_after_it_was_seen_is_not_removed(scene: Scene) {
    let store = scene.open().await;
    let [seen] = <[_; 1]>::try_from(store.database.leases().await.unwrap()).unwrap();
    store
        .database
        .renew_lease(&seen.lease, Duration::from_secs(60))
        .await
        .unwrap();
    let gateway = &seen.lease.gateway;
    assert!(!store.database.remove_lease(gateway, Some(&seen)).await.unwrap());
    assert!(store.database.remove_lease(gateway, None).await.unwrap());
}

async fn the_last_handle_that_is_dropped_ends_the_lease(scene: Scene) {
    let (first, second) = (scene.open().await, scene.open().await);
    let [other] = <[_; 1]>::try_from(second.other_gateways().await.unwrap()).unwrap();
    drop(first);
    other.wait_until_left().await;
}
