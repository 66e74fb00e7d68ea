//! Time of each principal's last run on each server: open documents may not have yet what the code wrote.

use std::{collections::VecDeque, num::NonZeroUsize};

use jupyter_client::DocPath;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::policy::{FILE_TRUSTED, MANY_NOTEBOOKS};

/// Principals and servers that are remembered. For one that is forgotten a document may be read as it was a second ago.
const MAX_REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

pub(crate) struct RunLog(Mutex<LruCache<(String, String), Runs>>);

/// The latest run in each of some notebooks, the newest last.
#[derive(Default)]
struct Runs(VecDeque<Run>);

struct Run {
    path: Option<DocPath>,
    at: Instant,
}

impl Default for RunLog {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_REMEMBERED)))
    }
}

impl RunLog {
    pub(crate) fn note(&self, principal: &str, server: &str, path: Option<&DocPath>) {
        let mut log = self.0.lock();
        let runs = log.get_or_insert_mut(key(principal, server), Runs::default);
        runs.add(path, Instant::now());
    }

    /// The latest run that may have written a document. Of somebody who runs code in many notebooks, what ran just now does
    /// not count yet.
    pub(crate) fn last(&self, principal: &str, server: &str, document: &DocPath) -> Option<Instant> {
        let log = self.0.lock();
        log.peek(&key(principal, server))?.last(document, Instant::now())
    }
}

impl Runs {
    fn add(&mut self, path: Option<&DocPath>, at: Instant) {
        self.0.retain(|run| run.path.as_ref() != path);
        if self.0.len() > MANY_NOTEBOOKS {
            self.0.pop_front();
        }
        self.0.push_back(Run {
            path: path.cloned(),
            at,
        });
    }

    fn last(&self, document: &DocPath, now: Instant) -> Option<Instant> {
        let elsewhere = self.0.iter().rev().filter(|run| run.path.as_ref() != Some(document));
        let mut times = elsewhere.map(|run| run.at);
        let last = times.next()?;
        let trusted_since = now.checked_sub(FILE_TRUSTED).unwrap_or(now);
        match times.nth(MANY_NOTEBOOKS - 2) {
            Some(first_of_many) if first_of_many > trusted_since => Some(trusted_since),
            _ => Some(last),
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

    #[test]
    fn what_runs_in_many_notebooks_at_once_counts_after_a_second() {
        let began = Instant::now();
        let path = |number: usize| DocPath::parse(&format!("{number}.ipynb")).expect("a path");
        let mut runs = Runs::default();
        for number in 0..MANY_NOTEBOOKS {
            runs.add(Some(&path(number)), began);
        }
        let now = began + FILE_TRUSTED / 2;
        assert_eq!(runs.last(&path(0), now), Some(began), "a few others");
        assert_eq!(runs.last(&path(99), now), now.checked_sub(FILE_TRUSTED), "many");
        assert_eq!(runs.last(&path(99), began + FILE_TRUSTED), Some(began), "they ended");
        for number in 0..100 {
            runs.add(Some(&path(number)), now);
        }
        assert_eq!(runs.0.len(), MANY_NOTEBOOKS + 1);
    }
}
