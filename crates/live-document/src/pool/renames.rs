//! Under which name documents are found that were renamed, for as many as are worth remembering.

use std::{num::NonZeroUsize, sync::Arc};

use jupyter_client::DocPath;
use lru::LruCache;
use parking_lot::{Mutex, MutexGuard};

const MAX_RENAMES: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// How often one document is followed to another name; it may even have got its first one back.
const MAX_STEPS: usize = 8;

/// By server and the name that something had the name that it got.
pub(super) struct Renames(Mutex<LruCache<(Arc<str>, DocPath), DocPath>>);

impl Default for Renames {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_RENAMES)))
    }
}

impl Renames {
    pub(super) fn note(&self, server: &Arc<str>, from: &DocPath, to: &DocPath) {
        self.lock().put((Arc::clone(server), from.clone()), to.clone());
    }

    /// The last name that is known of what had this one.
    pub(super) fn follow(&self, server: &str, path: &DocPath) -> Option<DocPath> {
        let (renames, server) = (self.lock(), Arc::<str>::from(server));
        let next = |name: &DocPath| renames.peek(&(Arc::clone(&server), name.clone())).cloned();
        let names = std::iter::successors(next(path), next);
        names.take(MAX_STEPS).last().filter(|name| name != path)
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<(Arc<str>, DocPath), DocPath>> {
        self.0.lock()
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
}
