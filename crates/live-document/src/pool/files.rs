//! Renaming, overwriting and deletion of the files of open documents, which their rooms follow.

use std::sync::Arc;

use jupyter_client::DocPath;

use super::{
    Pool,
    events::{Moved, PoolEvent, Renamed},
    index::Place,
    slot::Slot,
};
use crate::{DocumentId, Room};

impl Pool {
    /// The name that a document has now, as far as a renaming of it was noticed.
    pub fn new_name_of(&self, server: &str, path: &DocPath) -> Option<DocPath> {
        self.renames.follow(server, path)
    }

    /// Records that a file or directory was renamed, however that was noticed. Open documents move with it.
    pub fn renamed(&self, server: &str, from: &DocPath, to: &DocPath) {
        let is_news = self.renames.note(&server.into(), from, to);
        let mut documents = Vec::new();
        let mut index = self.index.write();
        for (place, slot) in index.at(server, from) {
            let Some(path) = place.path.moved(from, to) else {
                continue;
            };
            index.take(&place);
            match slot.room.get() {
                // A fork is not saved, so that Jupyter need not know where it is.
                Some(room) if place.path == *from || room.is_fork() => room.set_path(&path),
                Some(room) => room.rejoin_at(&path),
                None => {}
            }
            let old = place.path.clone();
            let place = Place { path, ..place };
            documents.extend(slot.id.get().map(|id| Moved {
                document: id.clone(),
                from: old,
                to: place.path.clone(),
            }));
            index.insert(place, slot);
        }
        drop(index);
        if is_news || !documents.is_empty() {
            self.tell(PoolEvent::Renamed(Renamed {
                server: server.into(),
                from: from.clone(),
                to: to.clone(),
                documents,
            }));
        }
    }

    /// Waits until the server is not about to write what will be deleted: a save that is under way then makes the file anew.
    pub async fn settle(&self, server: &str, path: &DocPath) {
        let slots = self.index.read().at(server, path);
        let rooms = slots.iter().filter_map(|(_, slot)| slot.room.get());
        futures::future::join_all(rooms.map(Room::settle)).await;
    }

    /// Ends the rooms of what was deleted, so that the next call says so instead of showing a document that is gone.
    pub async fn deleted(&self, server: &str, path: &DocPath) {
        let gone = self.index.read().at(server, path);
        for (place, slot) in gone {
            self.index.write().remove(&place, &slot);
            if let Some(room) = slot.room.get() {
                room.abandon().await;
            }
        }
    }

    /// A file was written from outside, so that Jupyter overwrites its open document.
    pub(super) fn overwritten(&self, server: &str, path: &DocPath) {
        let slots = self.index.read().at(server, path);
        let of_files = slots.iter().filter(|(place, _)| place.fork.is_none());
        for room in of_files.filter_map(|(_, slot)| slot.room.get()) {
            room.mark_overwritten();
        }
    }

    /// Forgets a room that is over, and follows one that its document told to have another path.
    pub(super) fn refresh(&self, place: &Place) {
        let Some(slot) = self.index.read().get(place).cloned() else {
            return;
        };
        let Some(room) = slot.room.get() else { return };
        if !room.is_open() {
            self.index.write().remove(place, &slot);
        } else if !room.is_at(&place.path) {
            self.follow_to(place, &slot, &room.info().path);
        }
    }

    pub(super) fn refresh_document(&self, document: &DocumentId) {
        let place = self.index.read().place_of(document).cloned();
        if let Some(place) = place {
            self.refresh(&place);
        }
    }

    /// Moves a document that has another path now. If it was opened there meanwhile, that room stays and this one ends.
    fn follow_to(&self, place: &Place, slot: &Arc<Slot>, path: &DocPath) {
        let there = Place {
            path: path.clone(),
            ..place.clone()
        };
        let second = self.index.read().get(&there).is_some();
        if second && self.index.write().remove(place, slot) {
            slot.begin_closing();
        }
        self.renamed(&place.server, &place.path, path);
    }
}
