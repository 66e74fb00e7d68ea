//! The database in memory, which must not go with a connection to it.

use std::{future::poll_fn, task::Poll};

use super::{
    history::{fork, key, version},
    *,
};

async fn open() -> Store {
    Store::open("sqlite::memory:", StoreLimits::default()).await.unwrap()
}

/// Begins with something, and gives it up when it has been waited for so often.
async fn given_up<T>(polls: usize, call: impl Future<Output = T>) {
    let mut call = Box::pin(call);
    for _ in 0..polls {
        if poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_given_up_in_the_middle_lose_nothing() {
    let store = open().await;
    store.put_fork(&fork("kept")).await.unwrap();
    let document = store.document(&key("f", "a.ipynb")).await.unwrap().document;
    let callers = (0..8).map(|caller| {
        let store = store.clone();
        tokio::spawn(async move {
            let own = fork(&format!("of {caller}"));
            for round in 0..150 {
                let polls = (caller * 5 + round) % 40;
                given_up(polls, store.put_fork(&own)).await;
                given_up(polls, store.forks_of("lab-a", "f")).await;
                let latest = store.document(&key("f", "a.ipynb")).await.unwrap().latest_seq;
                let version = version(caller as u64 * 1000 + round as u64);
                Box::pin(given_up(polls, store.append_version(document, latest, &version))).await;
            }
        })
    });
    for caller in futures::future::join_all(callers).await {
        caller.unwrap();
    }
    assert_eq!(store.fork("kept").await.unwrap(), Some(fork("kept")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_takes_nothing_with_it() {
    let store = open().await;
    store.put_fork(&fork("kept")).await.unwrap();
    let Connections::Sqlite(pool) = &store.database.connections else {
        panic!("no such database");
    };
    for _ in 0..3 {
        pool.acquire().await.unwrap().close().await.unwrap();
        assert_eq!(store.fork("kept").await.unwrap(), Some(fork("kept")));
    }
    let other = open().await;
    assert_eq!(other.fork("kept").await.unwrap(), None, "each is a database of its own");
    store.close().await;
}

/// As a gateway that is left does while some of its calls are still being answered.
#[test]
fn a_runtime_that_ends_takes_nothing_with_it() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let (lasting, ending) = (runtime(), runtime());
    let store = lasting.block_on(open());
    lasting.block_on(store.put_fork(&fork("kept"))).unwrap();
    for _ in 0..20 {
        let store = store.clone();
        ending.spawn(async move { store.forks_of("lab-a", "f").await });
    }
    ending.shutdown_background();
    assert_eq!(lasting.block_on(store.fork("kept")).unwrap(), Some(fork("kept")));
}
