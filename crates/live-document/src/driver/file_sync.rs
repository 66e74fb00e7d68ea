//! The file behind an open document, for code that reads and writes it: what was edited is brought to disk, and what
//! was written there is waited for. Jupyter by itself saves a second after the last edit, and looks at files once a second.

use std::time::SystemTime;

use jupyter_client::{Content, Document as File, NewDocument};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::{
    Room, RoomError, RoomKind,
    core::{
        document::sha256,
        policy::{ASK_AGAIN, FILE_POLL_MARGIN, FILE_SYNC_TIMEOUT, REQUESTED_SAVE_TIMEOUT, SAVE_TIMEOUT},
    },
};

/// State of the file on disk.
pub(crate) struct FileSeen {
    /// Modification time of the version that the document has.
    written: Option<SystemTime>,
    checked: Option<Instant>,
}

impl FileSeen {
    /// That of a document that is opened now.
    pub(crate) fn new(written: Option<SystemTime>) -> Self {
        let is_old = |written: &SystemTime| written.elapsed().is_ok_and(|age| age > FILE_POLL_MARGIN);
        Self {
            written: written.filter(is_old),
            checked: None,
        }
    }
}

impl Room {
    /// Returns whether edits of this author are not known to be on disk.
    pub fn has_unsaved_of(&self, author: &str) -> bool {
        self.0.read().document.journal.has_unsaved_of(author)
    }

    /// Has the server write the edits of an author to disk. Returns whether they are there.
    ///
    /// A notebook that people save by hand is left to them; a text file is written all the same, since code would run
    /// without what was acknowledged.
    pub async fn save_edits_of(&self, author: &str) -> bool {
        if self.is_fork() {
            return true;
        }
        let mut news = self.0.read().file_news.subscribe();
        // What the text was since the edit: people may go on typing.
        let mut texts = Vec::new();
        let saving = async {
            while self.is_open() {
                let is_saved = match self.0.kind {
                    RoomKind::Text => self.has_one_of(&mut texts).await,
                    RoomKind::Notebook => !self.has_unsaved_of(author),
                };
                if is_saved {
                    return true;
                }
                match self.may_be_saved() {
                    Some(true) => self.0.save.notify_one(),
                    // The server shows what people want by what it does next.
                    None => {}
                    Some(false) => return false,
                }
                let _ = timeout(ASK_AGAIN, news.changed()).await;
            }
            false
        };
        timeout(SAVE_TIMEOUT, saving).await.unwrap_or(false)
    }

    /// Has the server write the document to disk as it is now, whoever edited it and whoever does the saving otherwise, and
    /// returns when the file has it.
    pub async fn save(&self) -> Result<(), RoomError> {
        if self.is_fork() {
            return Err(RoomError::NoFile {
                path: self.info().path.to_string(),
            });
        }
        self.connected().await?;
        let path = self.info().path;
        if !self.0.server.document(&path).await?.writable {
            return Err(RoomError::WriteProtected {
                server: self.0.server.name().to_owned(),
                path: path.to_string(),
            });
        }
        match timeout(REQUESTED_SAVE_TIMEOUT, self.write_to_disk()).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(RoomError::NotSaved {
                server: self.0.server.name().to_owned(),
                path: path.to_string(),
            }),
        }
    }

    /// Waits until the server has no edits left to write, or for long enough.
    pub(crate) async fn settle(&self) {
        if !self.is_fork() && (self.is_dirty() || self.0.read().document.journal.has_unsaved()) {
            let _ = timeout(SAVE_TIMEOUT, self.write_to_disk()).await;
        }
    }

    /// Asks for saves until one is known to be done; returns whether that came about.
    async fn write_to_disk(&self) -> bool {
        let mut news = self.0.read().file_news.subscribe();
        let (mut after, _, failed) = self.0.read().saving.progress();
        let mut texts = Vec::new();
        while self.is_open() {
            let (requests, confirmed, failures) = {
                let mut state = self.0.write();
                state.saving.want();
                state.saving.progress()
            };
            // Requests are counted anew on every connection.
            after = after.min(requests);
            let is_saved = match self.0.kind {
                RoomKind::Text => !self.is_dirty() && self.has_one_of(&mut texts).await,
                RoomKind::Notebook => confirmed > after || requests > after && self.has_cells_of_file().await,
            };
            if is_saved {
                return true;
            }
            if failures > failed {
                return false;
            }
            self.0.save.notify_one();
            let _ = timeout(ASK_AGAIN, news.changed()).await;
        }
        false
    }

    /// Returns whether the server may be writing the file. It takes a notebook that is read meanwhile for a broken one,
    /// and puts the former one in its place.
    fn may_be_written_now(&self) -> bool {
        let state = self.0.read();
        let saves_by_itself = state.awareness.autosave() != Some(false);
        state.saving.is_under_way() || saves_by_itself && state.document.is_dirty()
    }

    /// Returns whether the document is marked as differing from its file, as JupyterLab does.
    pub fn is_dirty(&self) -> bool {
        self.0.read().document.is_dirty()
    }

    /// Returns whether the file has the current text or an earlier one. The server's answer to a save is no proof:
    /// one that began before the last edit may end after it.
    async fn has_one_of(&self, texts: &mut Vec<String>) -> bool {
        let text = sha256(&self.0.read().document.text());
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        let file = self.0.server.document_with_hash(&self.info().path).await;
        file.is_ok_and(|file| file.hash.is_some_and(|hash| texts.contains(&hash)))
    }

    fn may_be_saved(&self) -> Option<bool> {
        match self.0.kind {
            RoomKind::Text => Some(true),
            RoomKind::Notebook => self.0.read().awareness.autosave(),
        }
    }

    /// Waits until the document has what code wrote to its file until then, if it wrote anything. Returns whether it has.
    pub async fn follows_file(&self, ran: Instant) -> bool {
        if self.is_fork() || self.0.file.lock().checked.is_some_and(|checked| checked > ran) {
            return true;
        }
        let (began, resets) = (Instant::now(), self.0.read().document.resets());
        let mut news = self.0.read().file_news.subscribe();
        let following = async {
            loop {
                let (path, known) = (self.info().path, self.0.file.lock().written);
                // A file that cannot be asked for is told of by whoever uses it next.
                let Ok(file) = self.0.server.document(&path).await else {
                    return None;
                };
                let written = file.written();
                if written.is_some() && written == known || self.has_content_of(began, resets).await {
                    return written;
                }
                let _ = timeout(ASK_AGAIN, news.changed()).await;
            }
        };
        match timeout(FILE_SYNC_TIMEOUT, following).await {
            Ok(written) => {
                let mut seen = self.0.file.lock();
                seen.written = written.or(seen.written);
                seen.checked = Some(began);
                true
            }
            Err(_) => false,
        }
    }

    /// Returns whether the document has what the file has: saved so, the same, or reset to it since.
    async fn has_content_of(&self, since: Instant, resets: u64) -> bool {
        let path = self.info().path;
        let Ok(file) = self.0.server.document_with_hash(&path).await else {
            return true;
        };
        if let Some(hash) = file.hash.as_deref().filter(|hash| !hash.is_empty()) {
            let state = self.0.read();
            let is_text = self.0.kind == RoomKind::Text;
            if state.document.file_hash() == hash || is_text && sha256(&state.document.text()) == hash {
                return true;
            }
        }
        let was_taken_over = {
            let state = self.0.read();
            state.was_overwritten_since(since.into_std()) && state.document.resets() > resets
        };
        was_taken_over || self.0.kind == RoomKind::Notebook && self.has_cells_of_file().await
    }

    async fn has_cells_of_file(&self) -> bool {
        if self.may_be_written_now() {
            return false;
        }
        let path = self.info().path;
        let file = self.0.server.document_with_content(&path).await.map(File::into_content);
        match (file, self.content()) {
            (Ok(Content::Notebook(file)), NewDocument::Notebook(open)) => outline(&file) == outline(&open),
            _ => false,
        }
    }
}

/// Fingerprint of a notebook's state.
fn outline(notebook: &Value) -> Vec<(&Value, &Value, usize)> {
    let cells = notebook["cells"].as_array().map(Vec::as_slice).unwrap_or_default();
    let outputs = |cell: &Value| cell["outputs"].as_array().map_or(0, Vec::len);
    cells
        .iter()
        .map(|cell| (&cell["cell_type"], &cell["source"], outputs(cell)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_notebook_is_told_by_sources_and_outputs() {
        let notebook = |source: &str, outputs: usize| json!({ "cells": [{ "cell_type": "code", "source": source, "outputs": vec![json!({}); outputs] }] });
        assert_eq!(outline(&notebook("1", 0)), outline(&notebook("1", 0)));
        assert_ne!(outline(&notebook("1", 0)), outline(&notebook("2", 0)));
        assert_ne!(outline(&notebook("1", 0)), outline(&notebook("1", 1)));
    }
}
