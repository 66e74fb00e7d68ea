//! Changes of documents as they happen, for their followers: watchers and activity.

use std::{sync::Arc, time::SystemTime};

use tokio::sync::broadcast;

use super::{DocumentId, change_log::Author};

/// A change of a document that was made in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentChange {
    pub document: Arc<DocumentId>,
    pub author: Author,
    /// The tool by which a principal of the gateway made it, if that is known.
    pub tool: Option<Arc<str>>,
    /// The revision that it led to.
    pub revision: String,
    /// The cells that it is about, each once; none in a text document.
    pub cells: Vec<Arc<str>>,
    pub kind: ChangeKind,
    /// The lines of those cells, or of the text, in which somebody may be called by name, as the change left them.
    pub calling: Vec<CallingLine>,
    pub time: SystemTime,
}

/// A line in which somebody may be called by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallingLine {
    /// Empty in a text document.
    pub cell: Arc<str>,
    /// From 0.
    pub line: usize,
    pub text: Arc<str>,
    /// No other line comes after it.
    pub is_last: bool,
}

/// Bytes of such lines of one text; what is beyond is not searched.
const MAX_CALLING: usize = 64 * 1024;

impl CallingLine {
    /// Adds those of a text.
    pub(crate) fn add_all(cell: &Arc<str>, text: &str, lines: &mut Vec<Self>) {
        if !text.contains('@') {
            return;
        }
        let last = text.matches('\n').count();
        let mut left = MAX_CALLING;
        for (line, text) in text.split('\n').enumerate().filter(|(_, text)| may_call(text)) {
            if text.len() > left {
                return;
            }
            left -= text.len();
            lines.push(Self {
                cell: Arc::clone(cell),
                line,
                text: text.into(),
                is_last: line == last,
            });
        }
    }
}

/// Returns whether a name may be in a line. Addresses of mail have a character before theirs.
fn may_call(line: &str) -> bool {
    line.match_indices('@').any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric())
    })
}

/// Kind of a change. A change of several kinds has the greatest of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Outputs, counts and whatever else runs write.
    Outputs,
    /// The source of a cell, or the text of a document.
    Source,
    /// The list of cells and their order.
    Structure,
}

/// Sender of one document's changes. It is bounded: a slow subscriber learns that changes were missed.
#[derive(Debug, Clone)]
pub(crate) struct ChangeStream {
    pub(crate) document: Arc<DocumentId>,
    pub(crate) followers: broadcast::Sender<DocumentChange>,
}

/// A change while it is put together.
#[derive(Debug)]
pub(crate) struct Draft {
    kind: ChangeKind,
    cells: Vec<Arc<str>>,
}

impl ChangeStream {
    /// The beginning of a change, if somebody follows.
    pub(crate) fn begin(&self) -> Option<Draft> {
        (self.followers.receiver_count() > 0).then(|| Draft {
            kind: ChangeKind::Outputs,
            cells: Vec::new(),
        })
    }

    pub(crate) fn publish(
        &self,
        draft: Draft,
        author: &Author,
        tool: Option<&Arc<str>>,
        revision: String,
        calling: Vec<CallingLine>,
        time: SystemTime,
    ) {
        let change = DocumentChange {
            document: Arc::clone(&self.document),
            author: author.clone(),
            tool: tool.cloned().filter(|_| author.is_local()),
            revision,
            cells: draft.cells,
            kind: draft.kind,
            calling,
            time,
        };
        // Whoever followed may just have left.
        let _ = self.followers.send(change);
    }
}

impl Draft {
    pub(crate) fn kind(&self) -> ChangeKind {
        self.kind
    }

    pub(crate) fn cells(&self) -> &[Arc<str>] {
        &self.cells
    }

    pub(crate) fn add(&mut self, kind: ChangeKind, cells: impl IntoIterator<Item = Arc<str>>) {
        self.kind = self.kind.max(kind);
        for cell in cells {
            if !self.cells.contains(&cell) {
                self.cells.push(cell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{CellKind, CellWrite, Edit, NewCell, RoomKind, clock::Clock, document::Document};

    #[test]
    fn who_follows_is_told_who_changed_what() {
        let mut document = Document::new(RoomKind::Notebook, Clock::default());
        let followers = broadcast::Sender::new(2);
        let id = Arc::new(DocumentId {
            server: "lab".into(),
            file_id: "f".into(),
            kind: RoomKind::Notebook,
        });
        document.stream = Some(ChangeStream {
            document: Arc::clone(&id),
            followers: followers.clone(),
        });
        let (ana, cell) = ("ana".into(), NewCell::new(CellKind::Code, "1"));
        let cell_id: Arc<str> = cell.id.as_str().into();
        let append = Edit::AppendCells { cells: vec![cell] };
        document.apply_local(&ana, &[append]).expect("valid");
        let mut changes = followers.subscribe();
        assert!(changes.try_recv().is_err(), "before that nobody followed");

        let source = "2".to_owned();
        let set = Edit::SetSource {
            cell: cell_id.to_string(),
            source,
        };
        let edit = |document: &mut Document| document.apply_local(&ana, &[set]);
        document.by_tool(Some("modify"), edit).expect("valid");
        let change = changes.try_recv().expect("a change");
        assert_eq!(
            (&change.document, &change.author, change.tool.as_deref(), change.kind),
            (&id, &Author::Local(ana.clone()), Some("modify"), ChangeKind::Source)
        );
        assert_eq!(
            (change.cells, change.revision),
            (vec![Arc::clone(&cell_id)], document.revision())
        );
        assert!(change.calling.is_empty(), "nobody is called");

        // Both are done before anybody looks.
        for source in ["x@y.z\n# @bob", "bob"] {
            let (cell, source) = (cell_id.to_string(), source.to_owned());
            let set = [Edit::SetSource { cell, source }];
            document.apply_local(&ana, &set).expect("valid");
        }
        let called = changes.try_recv().expect("a change");
        let line = CallingLine {
            cell: Arc::clone(&cell_id),
            line: 1,
            text: "# @bob".into(),
            is_last: true,
        };
        assert_eq!(called.calling, [line]);
        assert!(changes.try_recv().expect("a change").calling.is_empty());

        let run = CellWrite {
            begin: true,
            ..CellWrite::default()
        };
        document.write_cell(&ana, &cell_id, &run).expect("a cell");
        let change = changes.try_recv().expect("a change");
        assert_eq!(
            (change.kind, change.tool, change.cells),
            (ChangeKind::Outputs, None, vec![Arc::clone(&cell_id)])
        );

        document.mark_adopted();
        let change = changes.try_recv().expect("a change");
        assert_eq!(
            (change.kind, change.author, change.cells),
            (ChangeKind::Structure, Author::Unknown, vec![cell_id])
        );

        for _ in 0..3 {
            let cells = vec![NewCell::new(CellKind::Code, "")];
            document
                .apply_local(&ana, &[Edit::AppendCells { cells }])
                .expect("valid");
        }
        let missed = changes.try_recv();
        assert!(
            matches!(missed, Err(broadcast::error::TryRecvError::Lagged(1))),
            "{missed:?}"
        );
        assert_eq!(changes.try_recv().expect("a change").kind, ChangeKind::Structure);
    }
}
