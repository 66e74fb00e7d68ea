//! Completing what stands in addresses and in the arguments of prompts. A name means the same everywhere.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use jupyter_client::{Content, DocPath, Document, DocumentKind, JupyterServer};
use tokio::time::timeout;

use super::{View, cells::Cells};
use crate::srcbook::templates;

/// Number of values that the protocol allows in one answer.
const MAX_VALUES: usize = 100;
/// Time that Jupyter has to answer; what comes later is of no use to somebody who types.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Arguments that the caller has filled in already.
pub type Known = HashMap<String, String>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    pub values: Vec<String>,
    /// Number of all values, those beyond the limit included.
    pub total: usize,
}

impl View {
    /// Values that could complete the beginning of an argument; none for free text.
    pub async fn complete(&self, argument: &str, beginning: &str, known: &Known) -> Completions {
        if !self.may_read() {
            return Completions::default();
        }
        let candidates: BTreeSet<String> = match argument {
            "server" => self.servers.iter().map(|server| server.name().to_owned()).collect(),
            "name" => template_names().chain(self.notebook_names()).collect(),
            "template" => template_names().collect(),
            "notebook_name" => self.notebook_names().collect(),
            "session_id" => self.rooms(known).map(|open| open.info.session_id).collect(),
            "notebook_id" => self.rooms(known).map(|open| open.info.file_id).collect(),
            "cell_id" => self.cell_ids(known).await,
            "execution_id" => self.execution_ids(known).await,
            "version_id" | "from" | "to" => self.version_ids(known).await,
            "filename" => self.cells(known, |cells, at| cells.metadata_of(at).filename),
            "path" => self.paths(beginning, known, DocPath::is_notebook).await,
            "dataset" => self.paths(beginning, known, |path| !path.is_notebook()).await,
            _ => BTreeSet::new(),
        };
        let beginning = match argument {
            "path" | "dataset" => normalised(beginning),
            _ => beginning.to_owned(),
        };
        let matching: Vec<String> = candidates
            .into_iter()
            .filter(|candidate| candidate.starts_with(&beginning))
            .collect();
        Completions {
            total: matching.len(),
            values: matching.into_iter().take(MAX_VALUES).collect(),
        }
    }

    /// The names that the principal gave notebooks.
    fn notebook_names(&self) -> impl Iterator<Item = String> {
        self.names.iter().flat_map(HashMap::keys).cloned()
    }

    /// The open notebooks that agree with what is known.
    fn rooms(&self, known: &Known) -> impl Iterator<Item = live_document::pool::OpenRoom> {
        let agrees = |key: &str, value: &str| known.get(key).is_none_or(|given| given.is_empty() || given == value);
        let path = known.get("path").map(|path| normalised(path)).unwrap_or_default();
        let mut rooms = self.notebooks();
        rooms.retain(|open| {
            agrees("session_id", &open.info.session_id)
                && agrees("notebook_id", &open.info.file_id)
                && (path.is_empty() || path == open.info.path.as_str())
                && agrees("server", &open.server)
        });
        rooms.into_iter()
    }

    /// Cell ids of the one notebook that is meant; out of its file if it is known by its path and not open.
    async fn cell_ids(&self, known: &Known) -> BTreeSet<String> {
        let open = self.cells(known, |cells, at| cells.cells[at].id.clone());
        if !open.is_empty() || self.rooms(known).next().is_some() {
            return open;
        }
        let path = known.get("path").and_then(|path| DocPath::parse_file(path).ok());
        let path = path.filter(|path| path.is_notebook() && self.principal.may_touch(path));
        let (Some(server), Some(path)) = (self.server(known), path) else {
            return BTreeSet::new();
        };
        let read = timeout(TIMEOUT, server.document_with_content(&path)).await;
        let Ok(Ok(Content::Notebook(notebook))) = read.map(|read| read.map(Document::into_content)) else {
            return BTreeSet::new();
        };
        let cells = notebook["cells"].as_array().into_iter().flatten();
        cells.filter_map(|cell| Some(cell["id"].as_str()?.to_owned())).collect()
    }

    /// The principal's own in the one open notebook that is meant, the newest of them.
    async fn execution_ids(&self, known: &Known) -> BTreeSet<String> {
        let mut rooms = self.rooms(known);
        let (Some(open), None) = (rooms.next(), rooms.next()) else {
            return BTreeSet::new();
        };
        let owner = self.principal.owner();
        let path = Some(&open.info.path);
        let listing = self.engine.list(&owner, Some(&open.server), path, None, MAX_VALUES);
        let listed = timeout(TIMEOUT, listing).await.ok().and_then(Result::ok);
        let listed = listed.unwrap_or_default().into_iter();
        listed.map(|execution| execution.execution_id).collect()
    }

    /// The newest versions of the one open notebook that is meant.
    async fn version_ids(&self, known: &Known) -> BTreeSet<String> {
        let mut rooms = self.rooms(known);
        let (Some(open), None) = (rooms.next(), rooms.next()) else {
            return BTreeSet::new();
        };
        let listing = self.versions(&open.server, &open.info.path, MAX_VALUES);
        let listed = timeout(TIMEOUT, listing).await.ok().and_then(Result::ok);
        let versions = listed.unwrap_or_default().into_iter();
        versions.map(|version| version.id.to_string()).collect()
    }

    /// Cells of the one open notebook that is meant.
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
        // A server that is down or hangs has nothing to offer; the call that follows says so.
        let listed = timeout(TIMEOUT, server.list_directory(&directory)).await;
        let entries = listed.ok().and_then(Result::ok).unwrap_or_default();
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

/// The beginning of a path in the one spelling that paths have; what cannot be one stays as it is.
fn normalised(beginning: &str) -> String {
    match DocPath::parse(beginning) {
        Ok(path) if !path.is_root() && beginning.ends_with('/') => format!("{path}/"),
        Ok(path) => path.to_string(),
        Err(_) => beginning.to_owned(),
    }
}

fn template_names() -> impl Iterator<Item = String> {
    templates().iter().map(|template| template.name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_spelled_as_paths_are() {
        for (given, meant) in [
            ("", ""),
            ("/", ""),
            ("./", ""),
            ("/a/b", "a/b"),
            ("./a//b/", "a/b/"),
            ("a/", "a/"),
            ("../a", "../a"),
        ] {
            assert_eq!(normalised(given), meant, "{given}");
        }
    }
}
