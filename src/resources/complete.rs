//! Completing what stands in addresses and in the arguments of prompts. A name means the same everywhere.

use std::collections::{BTreeSet, HashMap};

use super::{View, cells::Cells};
use crate::{
    jupyter::{DocumentKind, JupyterServer},
    srcbook::templates,
    types::DocPath,
};

/// As many as the protocol allows in one answer.
const MAX_VALUES: usize = 100;

/// What the caller has filled in already.
pub type Known = HashMap<String, String>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    pub values: Vec<String>,
    /// How many there are, those beyond the limit included.
    pub total: usize,
}

impl View {
    /// What could follow the beginning of an argument. Nothing for arguments that are free text.
    pub async fn complete(&self, argument: &str, beginning: &str, known: &Known) -> Completions {
        if !self.may_read() {
            return Completions::default();
        }
        let candidates: BTreeSet<String> = match argument {
            "server" => self.servers.iter().map(|server| server.name().to_owned()).collect(),
            "name" | "template" => templates().iter().map(|template| template.name.to_owned()).collect(),
            "session_id" => self.rooms(known).map(|open| open.info.session_id).collect(),
            "notebook_id" => self.rooms(known).map(|open| open.info.file_id).collect(),
            "cell_id" => self.cells(known, |cells, at| cells.cells[at].id.clone()),
            "filename" => self.cells(known, |cells, at| cells.metadata_of(at).filename),
            "path" => self.paths(beginning, known, DocPath::is_notebook).await,
            "dataset" => self.paths(beginning, known, |path| !path.is_notebook()).await,
            _ => BTreeSet::new(),
        };
        let matching: Vec<String> = candidates
            .into_iter()
            .filter(|candidate| candidate.starts_with(beginning))
            .collect();
        Completions {
            total: matching.len(),
            values: matching.into_iter().take(MAX_VALUES).collect(),
        }
    }

    /// The open notebooks that agree with what is known.
    fn rooms(&self, known: &Known) -> impl Iterator<Item = crate::pool::OpenRoom> {
        let agrees = |key: &str, value: &str| known.get(key).is_none_or(|given| given.is_empty() || given == value);
        let mut rooms = self.notebooks();
        rooms.retain(|open| {
            agrees("session_id", &open.info.session_id)
                && agrees("notebook_id", &open.info.file_id)
                && agrees("path", open.info.path.as_str())
                && agrees("server", &open.server)
        });
        rooms.into_iter()
    }

    /// Of the one notebook that is meant, as far as it is open: reading a file for it would be a lot of work.
    fn cells(&self, known: &Known, shown: impl Fn(&Cells, usize) -> String) -> BTreeSet<String> {
        let mut rooms = self.rooms(known);
        let (Some(open), None) = (rooms.next(), rooms.next()) else {
            return BTreeSet::new();
        };
        let Some(opened) = self.notebook(&open.info.session_id, None) else {
            return BTreeSet::new();
        };
        let cells = Cells::of(&opened);
        (0..cells.cells.len()).map(|at| shown(&cells, at)).collect()
    }

    /// Files of the directory that the beginning names, and the directories to go on with.
    async fn paths(&self, beginning: &str, known: &Known, is_wanted: fn(&DocPath) -> bool) -> BTreeSet<String> {
        let directory = beginning.rsplit_once('/').map_or("", |(directory, _)| directory);
        let (Some(server), Ok(directory)) = (self.server(known), DocPath::parse(directory)) else {
            return BTreeSet::new();
        };
        if !self.principal.may_enter(&directory) {
            return BTreeSet::new();
        }
        // A server that is down has nothing to offer; the call that follows says so.
        let entries = server.list_directory(&directory).await.unwrap_or_default();
        let shown = entries.into_iter().filter_map(|entry| {
            let path = DocPath::parse(&entry.path).ok()?;
            match entry.kind {
                DocumentKind::Directory => self.principal.may_enter(&path).then(|| format!("{path}/")),
                _ => (is_wanted(&path) && self.principal.may_touch(&path)).then(|| path.to_string()),
            }
        });
        shown.collect()
    }

    fn server(&self, known: &Known) -> Option<&JupyterServer> {
        let named = known.get("server").filter(|name| !name.is_empty());
        let server = match named {
            Some(name) => self.servers.iter().find(|server| server.name() == name),
            None => self.servers.first(),
        };
        server.map(|server| &**server)
    }
}
