//! Deadlines: no test waits for ever, and one that waits too long says for what.
//!
//! Every wait of the test support has a limit and a name ([`within`]). Behind them stands a watchdog
//! for whatever a test awaits by itself: it ends the run, naming the test and its last named wait.

use std::{
    cell::RefCell,
    collections::HashMap,
    io::Write,
    sync::{LazyLock, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The longest that one answer or event may take on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(120);
/// The longest that a whole test may take. The first one also installs JupyterLab.
const TEST_LIMIT: Duration = Duration::from_secs(600);

/// Awaits a future; panics with what it stands for if it takes too long.
#[track_caller]
pub fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        note_wait(what);
        let done = tokio::time::timeout(limit, future).await;
        done.unwrap_or_else(|_| panic!("not in {} s: {what} (at {caller})", limit.as_secs()))
    }
}

/// Puts the test of this thread under the watchdog; the name is what it waits for next.
pub fn note_wait(what: &str) {
    // The test harness names its threads after the tests; other threads belong to no test. A soak takes as long as it is told.
    let current = thread::current();
    let is_watched = |name: &&str| name.contains("::") && !name.starts_with("soak::");
    let Some(test) = current.name().filter(is_watched) else {
        return;
    };
    WATCHED.with_borrow_mut(|watched| {
        let watched = watched.get_or_insert_with(|| Watched(test.to_owned()));
        let mut tests = lock_tests();
        let entry = tests.entry(watched.0.clone()).or_insert_with(|| Waiting {
            since: Instant::now(),
            what: String::new(),
        });
        what.clone_into(&mut entry.what);
    });
}

struct Waiting {
    since: Instant,
    what: String,
}

/// The entry of a test, which goes with the test's thread.
struct Watched(String);

impl Drop for Watched {
    fn drop(&mut self) {
        lock_tests().remove(&self.0);
    }
}

thread_local! {
    static WATCHED: RefCell<Option<Watched>> = const { RefCell::new(None) };
}

static TESTS: LazyLock<Mutex<HashMap<String, Waiting>>> = LazyLock::new(|| {
    thread::spawn(watch);
    Mutex::default()
});

fn lock_tests() -> std::sync::MutexGuard<'static, HashMap<String, Waiting>> {
    TESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() {
    loop {
        thread::sleep(Duration::from_secs(1));
        let tests = lock_tests();
        let late = tests.iter().find(|(_, waiting)| waiting.since.elapsed() > TEST_LIMIT);
        if let Some((test, waiting)) = late {
            // Not `eprintln`, which the harness may capture.
            let _ = writeln!(
                std::io::stderr(),
                "test {test} did not end in {} s; it last waited for: {}",
                TEST_LIMIT.as_secs(),
                waiting.what
            );
            std::process::exit(101);
        }
    }
}
