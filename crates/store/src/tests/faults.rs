//! Databases that fail.

use super::*;

on_both_engines! {
    a_write_that_fails_is_told_and_tried_again,
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
