//! Time of each principal's last run on each server: open documents may not have yet what the code wrote.

use std::num::NonZeroUsize;

use jupyter_client::DocPath;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Principals and servers that are remembered. For one that is forgotten a document may be read as it was a second ago.
const MAX_REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

pub(crate) struct RunLog(Mutex<LruCache<(String, String), Ran>>);

/// The latest run, and the latest in any other notebook than that.
struct Ran {
    path: Option<DocPath>,
    at: Instant,
    elsewhere: Option<Instant>,
}

impl Default for RunLog {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_REMEMBERED)))
    }
}

impl RunLog {
    pub(crate) fn note(&self, principal: &str, server: &str, path: Option<&DocPath>) {
        let (key, now) = (key(principal, server), Instant::now());
        let mut log = self.0.lock();
        let elsewhere = log.peek(&key).and_then(|ran| match ran.path.as_ref() == path {
            true => ran.elsewhere,
            false => Some(ran.at),
        });
        let path = path.cloned();
        log.put(
            key,
            Ran {
                path,
                at: now,
                elsewhere,
            },
        );
    }

    /// The latest run that may have written a document.
    pub(crate) fn last(&self, principal: &str, server: &str, document: &DocPath) -> Option<Instant> {
        let log = self.0.lock();
        let ran = log.peek(&key(principal, server))?;
        match ran.path.as_ref() == Some(document) {
            true => ran.elsewhere,
            false => Some(ran.at),
        }
    }
}

fn key(principal: &str, server: &str) -> (String, String) {
    (principal.to_owned(), server.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notebooks_own_runs_do_not_count_for_it() {
        let log = RunLog::default();
        let path = |name: &str| DocPath::parse(name).expect("a path");
        let (a, b) = (path("a.ipynb"), path("b.ipynb"));
        assert_eq!(log.last("ana", "lab", &a), None);
        log.note("ana", "lab", Some(&a));
        assert_eq!(log.last("ana", "lab", &a), None);
        assert!(log.last("ana", "lab", &b).is_some() && log.last("ben", "lab", &b).is_none());
        log.note("ana", "lab", Some(&b));
        log.note("ana", "lab", Some(&b));
        assert!(log.last("ana", "lab", &a) > log.last("ana", "lab", &b));
        log.note("ana", "lab", None);
        assert!(log.last("ana", "lab", &b).is_some());
    }
}
