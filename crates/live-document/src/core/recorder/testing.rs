//! A sink that remembers what it was told.

use std::sync::Arc;

use history::{Author, Blob, Content, Delta};
use jupyter_client::DocPath;
use parking_lot::Mutex;

use crate::core::{DocumentId, HistorySink, Recorded, RoomKind, state::State};

#[derive(Default)]
pub(crate) struct Memory(Mutex<Told>);

#[derive(Default)]
pub(crate) struct Told {
    pub(crate) opened: Option<Content>,
    pub(crate) versions: Vec<Recorded>,
    pub(crate) blobs: Vec<Blob>,
    pub(crate) renamed: Vec<(String, String)>,
    pub(crate) closed: usize,
}

impl HistorySink for Memory {
    fn opened(&self, _: &Arc<DocumentId>, _: &DocPath, content: &Content, blobs: Vec<Blob>) {
        let mut told = self.0.lock();
        told.opened = Some(content.clone());
        told.blobs.extend(blobs);
    }

    fn record(&self, recorded: Recorded) {
        let mut told = self.0.lock();
        assert_eq!(told.closed, 0, "nothing comes after the end");
        told.blobs.extend(recorded.blobs.iter().cloned());
        told.versions.push(recorded);
    }

    fn renamed(&self, _: &Arc<DocumentId>, from: &DocPath, to: &DocPath) {
        self.0.lock().renamed.push((from.to_string(), to.to_string()));
    }

    fn closed(&self, _: &Arc<DocumentId>) {
        self.0.lock().closed += 1;
    }
}

impl Memory {
    /// Begins to remember the versions of a document.
    pub(crate) fn of(state: &mut State) -> Arc<Self> {
        let memory = Arc::new(Self::default());
        let document = Arc::new(DocumentId {
            server: "lab".into(),
            file_id: "id".into(),
            kind: RoomKind::Notebook,
        });
        state.start_history(document, Arc::clone(&memory) as Arc<dyn HistorySink>);
        memory
    }

    pub(crate) fn told<T>(&self, ask: impl FnOnce(&Told) -> T) -> T {
        ask(&self.0.lock())
    }

    /// The content after all versions.
    pub(crate) fn content(&self) -> Content {
        self.told(|told| {
            let deltas: Vec<&Delta> = told.versions.iter().map(|version| &version.delta).collect();
            let opened = told.opened.as_ref().expect("it was opened");
            Delta::apply_all(opened, deltas).expect("versions that fit each other")
        })
    }

    /// The authors of all versions: an agent by its name, people by theirs, nobody known as "?".
    pub(crate) fn authors(&self) -> Vec<String> {
        let author = |author: &Author| match author {
            Author::Agent { name, .. } => name.to_string(),
            Author::People { names } => format!("people {}", names.join(" ")),
            Author::Outside => "?".to_owned(),
        };
        self.told(|told| told.versions.iter().map(|version| author(&version.author)).collect())
    }

    /// Checks that the versions lead to the content of the document, and that its outputs are kept.
    pub(crate) fn check(&self, state: &mut State) {
        let content = state.recorded_content();
        let versions = self.content();
        let (now, _) = state.document.read_content();
        assert!(content.is_same_but_for_runs(&now), "the recorder knows the document");
        assert!(versions.is_same_but_for_runs(&now), "the versions lead to the document");
        self.told(|told| {
            let deltas = told.versions.iter().flat_map(|version| version.delta.all_outputs());
            for hash in deltas {
                assert!(
                    told.blobs.iter().any(|blob| blob.hash == hash),
                    "outputs are told before they are mentioned"
                );
            }
            assert!(told.versions.iter().all(|version| !version.delta.is_only_runs()));
            let sizes: usize = versions.size();
            assert_eq!(told.versions.last().map_or(sizes, |version| version.size), sizes);
        });
    }
}
