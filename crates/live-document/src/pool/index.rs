//! Open documents by their ids, and by their present places.

use std::{collections::HashMap, sync::Arc};

use jupyter_client::DocPath;

use super::slot::Slot;
use crate::{DocumentId, RoomKind};

/// Place of a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) server: Arc<str>,
    pub(super) path: DocPath,
    pub(super) kind: RoomKind,
    /// The fork of the document; none for the document itself.
    pub(super) fork: Option<Arc<str>>,
}

impl Place {
    pub(super) fn new(server: &str, path: &DocPath, kind: RoomKind) -> Self {
        Self {
            server: server.into(),
            path: path.clone(),
            kind,
            fork: None,
        }
    }

    /// The place of a fork of a document.
    pub(super) fn of_fork(server: &str, path: &DocPath, kind: RoomKind, fork_id: &str) -> Self {
        Self {
            fork: Some(fork_id.into()),
            ..Self::new(server, path, kind)
        }
    }
}

/// All documents of a pool, those that are still being opened included.
#[derive(Default)]
pub(super) struct Index {
    slots: HashMap<Place, Arc<Slot>>,
    places: HashMap<DocumentId, Place>,
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Number of rooms of a tenant.
    pub(super) fn count_of(&self, tenant: &str) -> usize {
        self.iter().filter(|(_, slot)| &*slot.tenant == tenant).count()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Place, &Arc<Slot>)> {
        self.slots.iter()
    }

    pub(super) fn get(&self, place: &Place) -> Option<&Arc<Slot>> {
        self.slots.get(place)
    }

    pub(super) fn place_of(&self, id: &DocumentId) -> Option<&Place> {
        self.places.get(id)
    }

    pub(super) fn insert(&mut self, place: Place, slot: Arc<Slot>) {
        if let Some(id) = slot.id.get() {
            self.places.insert(id.clone(), place.clone());
        }
        self.slots.insert(place, slot);
    }

    /// Gives a slot the id of the document that was opened in it. Returns the place of another slot that has it
    /// already: the document was renamed, and opened under both names.
    pub(super) fn identify(&mut self, place: &Place, slot: &Arc<Slot>, id: DocumentId) -> Option<Place> {
        let other = self.places.get(&id).and_then(|other| self.slots.get_key_value(other));
        if let Some((other, open)) = other
            && !Arc::ptr_eq(open, slot)
            && open.open_room().is_some()
        {
            return Some(other.clone());
        }
        let id = slot.id.get_or_init(|| id);
        self.places.insert(id.clone(), place.clone());
        None
    }

    /// Removes a slot if it is this one.
    pub(super) fn remove(&mut self, place: &Place, slot: &Arc<Slot>) -> bool {
        let is_it = self.slots.get(place).is_some_and(|current| Arc::ptr_eq(current, slot));
        if is_it {
            self.take(place);
        }
        is_it
    }

    pub(super) fn take(&mut self, place: &Place) -> Option<Arc<Slot>> {
        let slot = self.slots.remove(place)?;
        if let Some(id) = slot.id.get() {
            self.places.remove(id);
        }
        Some(slot)
    }

    /// Removes all slots that fulfil a condition.
    pub(super) fn take_where(&mut self, condition: impl Fn(&Place, &Slot) -> bool) -> Vec<Arc<Slot>> {
        let places: Vec<Place> = self
            .iter()
            .filter(|(place, slot)| condition(place, slot))
            .map(|(place, _)| place.clone())
            .collect();
        places.iter().filter_map(|place| self.take(place)).collect()
    }

    /// The places of a file, or of everything in a directory.
    pub(super) fn at(&self, server: &str, path: &DocPath) -> Vec<(Place, Arc<Slot>)> {
        let is_at = |place: &Place| *place.server == *server && place.path.moved(path, path).is_some();
        self.iter()
            .filter(|(place, _)| is_at(place))
            .map(|(place, slot)| (place.clone(), Arc::clone(slot)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_its_id_when_it_moves() {
        let mut index = Index::default();
        let place = |name: &str| Place::new("lab", &DocPath::parse(name).expect("a path"), RoomKind::Notebook);
        let id = DocumentId {
            server: "lab".into(),
            file_id: "f".into(),
            kind: RoomKind::Notebook,
        };
        let slot = Arc::new(Slot::new(&"tenant".into()));
        index.insert(place("a.ipynb"), Arc::clone(&slot));
        assert!(index.place_of(&id).is_none(), "it is being opened");
        assert_eq!(index.identify(&place("a.ipynb"), &slot, id.clone()), None);
        assert_eq!(index.place_of(&id), Some(&place("a.ipynb")));
        let moved = index.take(&place("a.ipynb")).expect("a slot");
        assert!(index.place_of(&id).is_none());
        index.insert(place("d/b.ipynb"), moved);
        assert_eq!(index.place_of(&id), Some(&place("d/b.ipynb")));
        let directory = DocPath::parse("d").expect("a path");
        assert_eq!(
            (index.at("lab", &directory).len(), index.at("other", &directory).len()),
            (1, 0)
        );
        assert!(!index.remove(&place("d/b.ipynb"), &Arc::new(Slot::new(&"tenant".into()))));
        assert!(index.remove(&place("d/b.ipynb"), &slot) && index.len() == 0);
    }
}
