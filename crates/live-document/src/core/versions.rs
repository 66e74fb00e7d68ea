//! Tells whoever keeps history of what happens to a document.

use std::{sync::Arc, time::Instant};

use history::{Author, Content};

use super::{
    DocumentId, HistorySink, Recorded, change_log,
    people::user_name,
    recorder::{Draft, Recorder},
    state::State,
};

/// The way of one document's versions to their sink.
pub(crate) struct VersionOutlet {
    pub(crate) document: Arc<DocumentId>,
    pub(crate) sink: Arc<dyn HistorySink>,
}

impl State {
    /// Begins to record versions, unless that is done already.
    pub(crate) fn start_history(&mut self, document: Arc<DocumentId>, sink: Arc<dyn HistorySink>) {
        if self.history.is_some() {
            return;
        }
        let blobs = self.document.start_recording();
        let clients: Vec<u64> = self.awareness.clients().collect();
        self.note_names(&clients);
        self.note_people_here();
        if let Some(recorder) = self.document.recorder() {
            sink.opened(&document, &self.path, recorder.content(), blobs);
        }
        self.history = Some(VersionOutlet { document, sink });
    }

    /// The time at which a version of others' changes is due.
    pub(crate) fn version_due_at(&self) -> Option<Instant> {
        self.document.recorder()?.due_at()
    }

    /// Returns whether [`Self::tell_versions`] has something to do before anything else happens.
    pub(crate) fn has_version_news(&self) -> bool {
        self.document.recorder().is_some_and(Recorder::has_news)
    }

    /// Makes a version of the latest edit, and of what others did if that is due, and tells of all that were made.
    pub(crate) fn tell_versions(&mut self) {
        if self.version_due_at().is_some_and(|due| due <= self.now()) {
            self.document.flush_versions();
        }
        self.document.record_edit();
        let drafts = self.document.recorder_mut().map(Recorder::take_drafts);
        for draft in drafts.into_iter().flatten() {
            self.tell_version(draft);
        }
    }

    fn tell_version(&self, draft: Draft) {
        let Some(history) = &self.history else { return };
        history.sink.record(Recorded {
            document: Arc::clone(&history.document),
            path: self.path.clone(),
            time: self.document.clock().wall(),
            author: self.named(draft.author),
            tool: draft.tool,
            revision: draft.revision,
            undoes: draft.undoes,
            delta: draft.delta,
            content: draft.content,
            size: draft.size,
            blobs: draft.blobs,
            loss: draft.loss,
        });
    }

    /// The content as of the latest version, after everything became one that was in none.
    pub(crate) fn recorded_content(&mut self) -> Content {
        self.document.flush_versions();
        self.tell_versions();
        match self.document.recorder() {
            Some(recorder) => recorder.content().clone(),
            None => self.document.read_content().0,
        }
    }

    /// An author with the name that people see.
    fn named(&self, author: Author) -> Author {
        match author {
            Author::Agent { principal, name } => {
                let known = self.names.name_of(&change_log::Author::Local(Arc::clone(&principal)));
                Author::Agent {
                    name: known.unwrap_or(name),
                    principal,
                }
            }
            Author::People { .. } | Author::Outside => author,
        }
    }

    /// Makes everything a version that is in none yet, and tells that the document is closed.
    pub(crate) fn end_history(&mut self) {
        self.document.flush_versions();
        self.tell_versions();
        if let Some(history) = self.history.take() {
            history.sink.closed(&history.document);
        }
    }

    /// Records who is in the document.
    pub(crate) fn note_people_here(&mut self) {
        if let Some(recorder) = self.document.recorder_mut() {
            recorder
                .people()
                .set_here(self.awareness.people().filter_map(user_name));
        }
    }
}
