//! Edits and runs of somebody in one document, which are one activity until they pause.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use jupyter_client::{DocPath, counted};
use live_document::{Author, DocumentId, RoomKind};

use super::{Activity, Actor, kinds};

/// A pause of so long ends an activity.
const PAUSE: Duration = Duration::from_secs(5);
/// An activity without pauses ends after so long, so that it is told of now and then.
const LONGEST: Duration = Duration::from_secs(60);
/// Cells that an activity names.
const MAX_CELLS: usize = 50;
/// Tools that an activity names.
const MAX_TOOLS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum BurstKind {
    Edit,
    Run,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct BurstKey {
    pub(super) document: DocumentId,
    pub(super) author: Author,
    pub(super) kind: BurstKind,
}

/// Changes of one author that belong together.
pub(super) struct Burst {
    pub(super) activity: Activity,
    began: Instant,
    last: Instant,
    cells: BTreeSet<Arc<str>>,
    tools: BTreeSet<Arc<str>>,
    changes: usize,
    /// Changes that readers were told of.
    told: usize,
}

impl Burst {
    pub(super) fn begin(key: &BurstKey, actor: Actor, path: DocPath, now: Instant) -> Self {
        let kind = match key.kind {
            BurstKind::Edit => kinds::EDIT,
            BurstKind::Run => kinds::EXECUTE,
        };
        let mut activity = Activity::new(kind, actor, &key.document.server, String::new()).about(path);
        activity.file_id = Some(Arc::clone(&key.document.file_id));
        Self {
            activity,
            began: now,
            last: now,
            cells: BTreeSet::new(),
            tools: BTreeSet::new(),
            changes: 0,
            told: 1,
        }
    }

    /// Adds a change, and says in the activity what was done so far.
    pub(super) fn add(
        &mut self,
        key: &BurstKey,
        cells: impl IntoIterator<Item = Arc<str>>,
        tool: Option<&Arc<str>>,
        now: Instant,
    ) {
        self.last = now;
        self.changes += 1;
        self.cells.extend(cells);
        if self.tools.len() < MAX_TOOLS {
            self.tools.extend(tool.cloned());
        }
        self.activity.time = std::time::SystemTime::now();
        self.describe(key);
    }

    fn describe(&mut self, key: &BurstKey) {
        let activity = &mut self.activity;
        let path = activity.path.as_ref().map(ToString::to_string).unwrap_or_default();
        let cells = match (key.document.kind, self.cells.len()) {
            (RoomKind::Text, _) | (_, 0) => String::new(),
            (_, count) => format!("{} of ", counted(count, "cell")),
        };
        activity.description = match key.kind {
            BurstKind::Edit => format!("edited {cells}{path}"),
            BurstKind::Run => format!("ran {cells}{path}"),
        };
        let cells: Vec<&str> = self.cells.iter().take(MAX_CELLS).map(|cell| &**cell).collect();
        if !cells.is_empty() {
            activity.metadata.insert("cell_ids".to_owned(), cells.into());
        }
        if !self.tools.is_empty() {
            let tools: Vec<&str> = self.tools.iter().map(|tool| &**tool).collect();
            activity.metadata.insert("tools".to_owned(), tools.into());
        }
        activity.metadata.insert("changes".to_owned(), self.changes.into());
    }

    /// The time at which it is over, if nothing comes before.
    pub(super) fn ends_at(&self) -> Instant {
        (self.last + PAUSE).min(self.began + LONGEST)
    }

    /// Returns whether there is more in it than readers were told of.
    pub(super) fn has_news(&self) -> bool {
        self.changes > self.told
    }
}
