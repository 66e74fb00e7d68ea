//! Contents and logs for tests.

use std::{collections::HashSet, sync::Arc};

use proptest::prelude::*;
use serde_json::json;

use crate::{
    Author, Cell, CellKind, Content, Delta, Hash, Json, LoggedVersion, Notebook, Outputs, VersionId, plan_undo, undo,
};

pub(crate) fn cell(id: &str, source: &str) -> Cell {
    Cell {
        id: id.into(),
        kind: CellKind::Code,
        source: source.into(),
        metadata: Json::empty(),
        attachments: None,
        execution_count: None,
        outputs: Outputs::None,
    }
}

pub(crate) fn of_cells(cells: impl IntoIterator<Item = Cell>) -> Content {
    Content::Notebook(Notebook {
        metadata: Json::empty(),
        cells: cells.into_iter().map(Arc::new).collect(),
    })
}

/// A notebook of code cells, written as "id:source".
pub(crate) fn notebook(cells: &[&str]) -> Content {
    let split = |text: &&str| text.split_once(':').map(|(id, source)| cell(id, source));
    of_cells(cells.iter().filter_map(split))
}

pub(crate) fn text(text: &str) -> Content {
    Content::Text(text.into())
}

/// A content as [`notebook`] takes it.
pub(crate) fn shown(content: &Content) -> Vec<String> {
    match content {
        Content::Text(text) => vec![text.to_string()],
        Content::Notebook(notebook) => {
            let cells = notebook.cells.iter();
            cells.map(|cell| format!("{}:{}", cell.id, cell.source)).collect()
        }
    }
}

/// A document with its log.
pub(crate) struct Log {
    pub(crate) base: Content,
    pub(crate) now: Content,
    pub(crate) versions: Vec<LoggedVersion>,
}

impl Log {
    pub(crate) fn new(base: Content) -> Self {
        Self {
            now: base.clone(),
            base,
            versions: Vec::new(),
        }
    }

    /// Adds a version by which the document becomes this.
    pub(crate) fn becomes(&mut self, author: &str, content: Content) -> VersionId {
        let delta = Delta::between(&self.now, &content);
        self.push(author, delta, Vec::new())
    }

    /// Changes a cell, or a text document.
    pub(crate) fn replace(&mut self, author: &str, old: &str, new: &str) -> VersionId {
        let content = match &self.now {
            Content::Text(now) => {
                assert!(now.contains(old), "{now:?} has no {old:?}");
                text(&now.replacen(old, new, 1))
            }
            Content::Notebook(now) => {
                let mut now = now.clone();
                let cell = now.cells.iter_mut().find(|cell| cell.source.contains(old));
                let cell = Arc::make_mut(cell.expect("a cell with this text"));
                cell.source = cell.source.replacen(old, new, 1).into();
                Content::Notebook(now)
            }
        };
        self.becomes(author, content)
    }

    pub(crate) fn undo(&mut self, author: &str, undone: &[&VersionId]) -> VersionId {
        let set: HashSet<VersionId> = undone.iter().map(|id| (*id).clone()).collect();
        assert_eq!(
            undo::present(&self.base, &self.versions),
            self.now,
            "the replay leads to the present"
        );
        let delta = plan_undo(&self.base, &self.versions, &set).expect("a log that fits");
        self.push(author, delta, set.into_iter().collect())
    }

    pub(crate) fn push(&mut self, author: &str, delta: Delta, undoes: Vec<VersionId>) -> VersionId {
        let id = VersionId::from(format!("v{}", self.versions.len()));
        self.now = delta.apply(&self.now).expect("a delta that fits");
        self.versions.push(LoggedVersion {
            id: id.clone(),
            author: Author::Agent {
                principal: author.into(),
                name: author.into(),
            },
            undoes,
            delta,
        });
        id
    }

    #[track_caller]
    pub(crate) fn assert_shows(&self, expected: &[&str]) {
        assert_eq!(shown(&self.now), expected);
    }
}

/// Notebooks of a few cells with the ids a to h in any order.
pub(crate) fn any_notebook() -> impl Strategy<Value = Content> {
    let ids = Just(('a'..='h').collect::<Vec<_>>()).prop_shuffle();
    (ids, prop::collection::vec(any_cell(), 0..8), 0_u8..2).prop_map(|(ids, cells, metadata)| {
        let named = ids.into_iter().zip(cells).map(|(id, cell)| {
            Arc::new(Cell {
                id: id.to_string().into(),
                ..cell
            })
        });
        Content::Notebook(Notebook {
            metadata: Json::new(&json!({ "title": metadata })),
            cells: named.collect(),
        })
    })
}

fn any_cell() -> impl Strategy<Value = Cell> {
    let kind = prop_oneof![Just(CellKind::Code), Just(CellKind::Markdown), Just(CellKind::Raw)];
    let outputs = prop_oneof![
        Just(Outputs::None),
        Just(Outputs::Omitted),
        Just(Outputs::Kept(Hash::of(b"1")))
    ];
    let attachments = prop_oneof![Just(None), Just(Some(Json::new(&json!({ "a.png": {} }))))];
    (
        any_text(),
        kind,
        outputs,
        attachments,
        prop::option::of(0_i64..9),
        0_u8..3,
    )
        .prop_map(|(source, kind, outputs, attachments, execution_count, tag)| Cell {
            kind,
            metadata: Json::new(&json!({ "tag": tag })),
            attachments,
            execution_count,
            outputs,
            ..cell("", &source)
        })
}

pub(crate) fn any_text() -> impl Strategy<Value = String> {
    "[ab é漢🎉\u{301}\n]{0,30}"
}
