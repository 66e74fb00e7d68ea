//! New names of documents that were renamed, for a bounded number of them.

use std::{num::NonZeroUsize, sync::Arc};

use jupyter_client::DocPath;
use lru::LruCache;
use parking_lot::Mutex;

const MAX_RENAMES: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// Number of renames of one document that are followed; it may even have got its first name back.
const MAX_STEPS: usize = 8;

/// The new name of each document, by server and old name.
pub(super) struct Renames(Mutex<LruCache<(Arc<str>, DocPath), DocPath>>);

impl Default for Renames {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_RENAMES)))
    }
}

impl Renames {
    /// Remembers a rename; returns whether it was not the last one known.
    pub(super) fn note(&self, server: &Arc<str>, from: &DocPath, to: &DocPath) -> bool {
        let mut renames = self.0.lock();
        // The document that has this name now was not renamed from it.
        renames.pop(&(Arc::clone(server), to.clone()));
        let known = renames.put((Arc::clone(server), from.clone()), to.clone());
        known.as_ref() != Some(to)
    }

    /// The last known name of the document that had this one.
    pub(super) fn follow(&self, server: &str, path: &DocPath) -> Option<DocPath> {
        let (renames, server) = (self.0.lock(), Arc::<str>::from(server));
        let next = |name: &DocPath| renames.peek(&(Arc::clone(&server), name.clone())).cloned();
        let names = std::iter::successors(next(path), next);
        names.take(MAX_STEPS).last().filter(|name| name != path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_followed_from_one_to_the_next() {
        let (renames, server) = (Renames::default(), Arc::<str>::from("lab"));
        let path = |name: &str| DocPath::parse(name).expect("a path");
        for (from, to) in [("a", "b"), ("b", "c"), ("x", "y"), ("y", "x")] {
            renames.note(&server, &path(from), &path(to));
        }
        assert_eq!(renames.follow("lab", &path("a")), Some(path("c")));
        assert_eq!(renames.follow("lab", &path("c")), None);
        assert_eq!(renames.follow("other", &path("a")), None);
        assert_eq!(renames.follow("lab", &path("x")), None, "it has its name back");
    }
    #[test]
    fn a_rename_is_news_once_and_again_after_it_was_undone() {
        let (renames, server) = (Renames::default(), Arc::<str>::from("lab"));
        let path = |name: &str| DocPath::parse(name).expect("a path");
        let note = |from: &str, to: &str| renames.note(&server, &path(from), &path(to));
        assert!(note("a", "b") && !note("a", "b"));
        assert!(note("b", "a") && note("a", "b"));
    }
}
