//! Notebooks in the executor: each document once, by the server's id of its file, whatever its path. Does no
//! I/O.
//!
//! An execution, its queue and its driver share one [`Notebook`], so that a rename is one change in one place. Where a server
//! has no ids of files, a notebook is known by its path.

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
};

use jupyter_client::DocPath;
use live_document::{DocumentId, RoomKind};
use parking_lot::Mutex;
use tokio::time::Instant;

/// One notebook. Another one is not equal to it, whatever its path.
#[derive(Debug)]
pub(crate) struct Notebook {
    pub(crate) server: Arc<str>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    document: Option<DocumentId>,
    path: DocPath,
    /// Time when the server last said which document is at the path.
    identified: Instant,
}

impl Notebook {
    pub(crate) fn path(&self) -> DocPath {
        self.state.lock().path.clone()
    }

    /// Its id in the pool of open documents.
    pub(crate) fn document(&self) -> Option<DocumentId> {
        self.state.lock().document.clone()
    }

    pub(crate) fn file_id(&self) -> Option<Arc<str>> {
        self.document().map(|document| document.file_id)
    }

    /// The fork of a notebook that it is, if it is one. It shares the notebook's kernel.
    pub(crate) fn fork_id(&self) -> Option<String> {
        self.document()?.fork_id().map(str::to_owned)
    }

    /// Records that its file was replaced by another, which has another id.
    pub(crate) fn set_file_id(&self, file_id: &Arc<str>) {
        self.state.lock().document = Some(document(&self.server, file_id));
    }

    fn is_at(&self, server: &str, path: &DocPath) -> bool {
        *self.server == *server && self.state.lock().path == *path
    }
}

impl PartialEq for Notebook {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Notebook {}

impl Hash for Notebook {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self).hash(state);
    }
}

/// The notebooks that something runs in, or ran in not long ago. Those that nobody holds are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Notebooks(Mutex<Vec<Weak<Notebook>>>);

impl Notebooks {
    /// The notebook of a file.
    pub(crate) fn of_file(&self, server: &str, file_id: &str) -> Option<Arc<Notebook>> {
        self.find(|notebook| *notebook.server == *server && notebook.file_id().as_deref() == Some(file_id))
    }

    /// The notebook that is at a path, as far as renames were noticed.
    pub(crate) fn at(&self, server: &str, path: &DocPath) -> Option<Arc<Notebook>> {
        self.find(|notebook| notebook.is_at(server, path) && notebook.fork_id().is_none())
    }

    /// The notebook that is at a path, and its forks: all of them share a kernel.
    pub(crate) fn all_at(&self, server: &str, path: &DocPath) -> Vec<Arc<Notebook>> {
        let known = self.0.lock();
        let notebooks = known.iter().filter_map(Weak::upgrade);
        notebooks.filter(|notebook| notebook.is_at(server, path)).collect()
    }

    /// The notebook at a path, if the server said so after a time.
    pub(crate) fn identified_since(&self, server: &str, path: &DocPath, since: Instant) -> Option<Arc<Notebook>> {
        let notebook = self.at(server, path)?;
        let is_recent = notebook.state.lock().identified >= since;
        is_recent.then_some(notebook)
    }

    /// The notebook of a file that is at a path. One that is known is returned with the path that it had; one whose
    /// file was not known gets its id.
    pub(crate) fn identify(
        &self,
        server: &str,
        path: &DocPath,
        file_id: Option<&Arc<str>>,
        now: Instant,
    ) -> Arc<Notebook> {
        let mut known = self.0.lock();
        known.retain(|notebook| notebook.strong_count() > 0);
        let notebooks = || known.iter().filter_map(Weak::upgrade);
        let same_file = |notebook: &Arc<Notebook>| {
            *notebook.server == *server && file_id.is_some() && notebook.file_id().as_ref() == file_id
        };
        let same_path = |notebook: &Arc<Notebook>| {
            let is_unknown = file_id.is_none() || notebook.file_id().is_none();
            let is_fork = file_id.is_some_and(is_fork) || notebook.fork_id().is_some();
            notebook.is_at(server, path) && is_unknown && !is_fork
        };
        let found = notebooks().find(same_file).or_else(|| notebooks().find(same_path));
        if let Some(notebook) = found {
            let mut state = notebook.state.lock();
            state.identified = now;
            if let (None, Some(file_id)) = (&state.document, file_id) {
                state.document = Some(document(&notebook.server, file_id));
            }
            drop(state);
            return notebook;
        }
        let server: Arc<str> = server.into();
        let notebook = Arc::new(Notebook {
            state: Mutex::new(State {
                document: file_id.map(|file_id| document(&server, file_id)),
                path: path.clone(),
                identified: now,
            }),
            server,
        });
        known.push(Arc::downgrade(&notebook));
        notebook
    }

    /// Moves a notebook, or all in a directory, to another path. Notebooks that were known there are forgotten.
    pub(crate) fn rename(&self, server: &str, from: &DocPath, to: &DocPath) {
        let mut known = self.0.lock();
        let here = |notebook: &Arc<Notebook>| *notebook.server == *server;
        let mut moved = Vec::new();
        for notebook in known.iter().filter_map(Weak::upgrade).filter(here) {
            let mut state = notebook.state.lock();
            if let Some(path) = state.path.moved(from, to) {
                state.path = path;
                drop(state);
                moved.push(notebook);
            }
        }
        known.retain(|notebook| {
            let notebook = notebook.upgrade();
            notebook.is_some_and(|notebook| {
                let is_replaced = || moved.iter().any(|moved| notebook.is_at(server, &moved.path()));
                moved.contains(&notebook) || !is_replaced()
            })
        });
    }

    fn find(&self, is_wanted: impl Fn(&Notebook) -> bool) -> Option<Arc<Notebook>> {
        let known = self.0.lock();
        known
            .iter()
            .filter_map(Weak::upgrade)
            .find(|notebook| is_wanted(notebook))
    }
}

/// Returns whether this is the id of a fork rather than of a file.
pub(crate) fn is_fork(file_id: &Arc<str>) -> bool {
    document(&Arc::from(""), file_id).is_fork()
}

fn document(server: &Arc<str>, file_id: &Arc<str>) -> DocumentId {
    DocumentId {
        server: Arc::clone(server),
        file_id: Arc::clone(file_id),
        kind: RoomKind::Notebook,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn path(name: &str) -> DocPath {
        DocPath::parse(name).expect("a path")
    }

    fn identify(notebooks: &Notebooks, name: &str, file_id: Option<&str>) -> Arc<Notebook> {
        notebooks.identify("lab", &path(name), file_id.map(Arc::from).as_ref(), Instant::now())
    }

    #[test]
    fn a_notebook_is_the_same_under_its_new_name() {
        let notebooks = Notebooks::default();
        let notebook = identify(&notebooks, "d/a.ipynb", Some("f"));
        notebooks.rename("other", &path("d"), &path("e"));
        assert_eq!(notebook.path(), path("d/a.ipynb"), "on another server");
        notebooks.rename("lab", &path("d"), &path("e"));
        assert_eq!(notebook.path(), path("e/a.ipynb"));
        notebooks.rename("lab", &path("d"), &path("e"));
        assert_eq!(
            notebooks.at("lab", &path("e/a.ipynb")),
            Some(Arc::clone(&notebook)),
            "it may be told twice"
        );
        notebooks.rename("lab", &path("e/a.ipynb"), &path("b.ipynb"));
        notebooks.rename("lab", &path("e/a.ipynb"), &path("b.ipynb"));
        assert_eq!(notebook.path(), path("b.ipynb"));
        assert_eq!(notebooks.at("lab", &path("d/a.ipynb")), None);
        assert_eq!(notebooks.at("lab", &path("b.ipynb")), Some(Arc::clone(&notebook)));
        assert_eq!(identify(&notebooks, "b.ipynb", Some("f")), notebook);
        let unnoticed = identify(&notebooks, "c.ipynb", Some("f"));
        assert_eq!((&unnoticed, unnoticed.path()), (&notebook, path("b.ipynb")));
    }

    #[test]
    fn another_file_at_the_same_path_is_another_notebook() {
        let notebooks = Notebooks::default();
        let (first, second) = (
            identify(&notebooks, "a.ipynb", Some("f")),
            identify(&notebooks, "a.ipynb", Some("g")),
        );
        assert_ne!(first, second);
        assert_eq!(notebooks.of_file("lab", "g"), Some(second));
        let replaced = identify(&notebooks, "b.ipynb", Some("h"));
        notebooks.rename("lab", &path("a.ipynb"), &path("b.ipynb"));
        assert_eq!(first.path(), path("b.ipynb"));
        assert_ne!(
            notebooks.at("lab", &path("b.ipynb")),
            Some(replaced),
            "it is there no more"
        );
    }

    #[test]
    fn without_ids_of_files_the_path_counts() {
        let notebooks = Notebooks::default();
        let notebook = identify(&notebooks, "a.ipynb", None);
        assert_eq!(identify(&notebooks, "a.ipynb", None), notebook);
        assert_ne!(identify(&notebooks, "b.ipynb", None), notebook);
        assert_eq!(
            identify(&notebooks, "a.ipynb", Some("f")),
            notebook,
            "its id is known now"
        );
        assert_eq!(notebook.file_id().as_deref(), Some("f"));
        assert_eq!(identify(&notebooks, "a.ipynb", None), notebook);
        notebook.set_file_id(&"g".into());
        assert_eq!(
            (notebooks.of_file("lab", "f"), notebooks.of_file("lab", "g")),
            (None, Some(notebook))
        );
    }

    #[test]
    fn notebooks_that_nobody_holds_are_forgotten() {
        let notebooks = Notebooks::default();
        let (held, now) = (identify(&notebooks, "a.ipynb", Some("f")), Instant::now());
        drop(identify(&notebooks, "b.ipynb", Some("g")));
        assert_eq!(notebooks.at("lab", &path("b.ipynb")), None);
        drop(identify(&notebooks, "c.ipynb", None));
        assert_eq!(notebooks.0.lock().len(), 2, "those that are forgotten make room");
        let since = |since| notebooks.identified_since("lab", &path("a.ipynb"), since);
        assert_eq!(
            (since(now - Duration::from_secs(1)), since(now + Duration::from_secs(1))),
            (Some(held), None)
        );
    }
}
