//! Notices of documents that lost recorded content, for everybody who uses them next.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use dashmap::DashMap;
use history::{Content, VersionId};
use jupyter_client::{DocPath, counted};
use live_document::{DocumentId, Loss};

/// Time for which a notice is told to those who were not told yet.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// Most documents with notices; the oldest is forgotten.
const MAX_NOTICES: usize = 1000;
/// A document with less than this never had much to lose.
const MIN_CELLS: usize = 3;
const MIN_CHARACTERS: usize = 200;
/// The part of a document that must be left.
const MIN_LEFT: usize = 5;

#[derive(Default)]
pub(super) struct Notices(DashMap<Arc<DocumentId>, Notice>);

struct Notice {
    what: What,
    /// The version that has what was lost.
    good: VersionId,
    since: Instant,
    told: HashSet<Arc<str>>,
}

pub(super) enum What {
    Loss(Loss),
    /// The document was opened as it was before its last changes.
    SteppedBack {
        changes: usize,
    },
}

impl Notices {
    pub(super) fn add(&self, document: &Arc<DocumentId>, what: What, good: VersionId) {
        self.0.retain(|_, notice| notice.since.elapsed() < KEPT);
        if self.0.len() >= MAX_NOTICES {
            let oldest = self
                .0
                .iter()
                .min_by_key(|notice| notice.since)
                .map(|notice| Arc::clone(notice.key()));
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
        let notice = Notice {
            what,
            good,
            since: Instant::now(),
            told: HashSet::new(),
        };
        self.0.insert(Arc::clone(document), notice);
    }

    /// The notice that somebody who uses a document was not told yet.
    pub(super) fn take(&self, document: &DocumentId, path: &DocPath, principal: &Arc<str>) -> Option<String> {
        let mut notice = self.0.get_mut(document)?;
        let is_new = notice.since.elapsed() < KEPT && notice.told.insert(Arc::clone(principal));
        is_new.then(|| notice.text(path))
    }

    /// The ids of the versions that have what was lost.
    pub(super) fn versions(&self) -> Vec<String> {
        let valid = self.0.iter().filter(|notice| notice.since.elapsed() < KEPT);
        valid.map(|notice| notice.good.to_string()).collect()
    }

    /// The loss of a document, and the version that has what was lost.
    pub(super) fn loss_of(&self, document: &DocumentId) -> Option<(Loss, VersionId)> {
        let notice = self.0.get(document)?;
        match notice.what {
            What::Loss(loss) => Some((loss, notice.good.clone())),
            What::SteppedBack { .. } => None,
        }
    }

    /// Replaces the id of a version: the content that a document was opened with was stored already.
    pub(super) fn rename_version(&self, document: &DocumentId, from: &VersionId, to: &VersionId) {
        if let Some(mut notice) = self.0.get_mut(document).filter(|notice| notice.good == *from) {
            notice.good = to.clone();
        }
    }

    /// Forgets a loss, since somebody restored a version of the document.
    pub(super) fn settle(&self, document: &DocumentId) {
        self.0.remove(document);
    }
}

impl Notice {
    fn text(&self, path: &DocPath) -> String {
        let what = match &self.what {
            What::Loss(loss) => format!(
                "{path} suddenly lost most of its content ({} cells with {} characters before, {} with {} after), and \
                 nobody is known to have deleted it.",
                loss.cells_before, loss.characters_before, loss.cells_after, loss.characters_after
            ),
            What::SteppedBack { changes } => format!(
                "{path} was opened without its last {}: they were recorded, but not saved before Jupyter stopped.",
                counted(*changes, "change")
            ),
        };
        let good = &self.good;
        format!(
            "{what} If that was not wanted, restore_document_version(path={:?}, version_id=\"{good}\") brings it back.",
            path.as_str()
        )
    }
}

/// The loss between two contents, if most of a document is gone.
pub(super) fn sudden_loss(before: &Content, after: &Content) -> Option<Loss> {
    let loss = Loss {
        cells_before: before.cells().len(),
        cells_after: after.cells().len(),
        characters_before: characters(before),
        characters_after: characters(after),
    };
    let had_content = loss.cells_before >= MIN_CELLS || loss.characters_before >= MIN_CHARACTERS;
    let is_most = loss.characters_after * MIN_LEFT < loss.characters_before;
    (had_content && is_most).then_some(loss)
}

fn characters(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.chars().count(),
        Content::Notebook(notebook) => notebook.cells.iter().map(|cell| cell.source.chars().count()).sum(),
    }
}
