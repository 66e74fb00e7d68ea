//! The parts of a document that may differ from the last version.

use std::{collections::HashMap, sync::Arc};

#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Everything.
    pub(crate) all: bool,
    /// The list of cells and their order, or the text of a document that is not a notebook.
    pub(crate) whole: bool,
    /// The metadata of the notebook.
    pub(crate) metadata: bool,
    pub(crate) cells: HashMap<Arc<str>, Parts>,
}

/// Parts of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Anything but its outputs and count.
    pub(crate) content: bool,
    pub(crate) outputs: bool,
    /// An agent changed the outputs, and not a run.
    pub(crate) outputs_by_edit: bool,
}

impl Parts {
    pub(crate) const CONTENT: Self = Self {
        content: true,
        outputs: false,
        outputs_by_edit: false,
    };
    pub(crate) const OUTPUTS: Self = Self {
        content: false,
        outputs: true,
        outputs_by_edit: false,
    };
    pub(crate) const ALL: Self = Self {
        content: true,
        outputs: true,
        outputs_by_edit: false,
    };
}

impl Touched {
    pub(crate) fn everything() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, cell: &Arc<str>, parts: Parts, by_edit: bool) {
        let known = self.cells.entry(Arc::clone(cell)).or_default();
        known.content |= parts.content;
        known.outputs |= parts.outputs;
        known.outputs_by_edit |= parts.outputs && by_edit;
    }

    /// Returns whether an author may have changed something, and not only a run.
    pub(crate) fn has_edits(&self) -> bool {
        let is_edited = |parts: &Parts| parts.content || parts.outputs_by_edit;
        self.all || self.whole || self.metadata || self.cells.values().any(is_edited)
    }

    pub(crate) fn parts_of(&self, cell: &str) -> Parts {
        match self.all {
            true => Parts::ALL,
            false => self.cells.get(cell).copied().unwrap_or_default(),
        }
    }
}
