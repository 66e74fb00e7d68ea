//! Finding documents in a whole tree, without what the principal may not see.

use crate::{
    jupyter::{Document, DocumentKind, JupyterError, JupyterServer},
    tools::{Call, ToolError},
    types::DocPath,
};

/// A walk stops here however deep the tree is; symbolic links can make it endless.
const MAX_DIRECTORIES: usize = 5000;
const DEFAULT_MAX_FOUND: usize = 1000;
const DEFAULT_MAX_DEPTH: usize = 32;

/// Where to look, and how far.
pub(in crate::tools) struct Walk {
    directory: DocPath,
    /// What the names of the first level begin with.
    beginning: String,
    /// Whether the directory was not named itself, so that one that does not exist has nothing in it.
    may_be_missing: bool,
    pub(in crate::tools) max_depth: usize,
    pub(in crate::tools) max_found: usize,
}

/// What a walk found, by path.
pub(in crate::tools) struct Found {
    pub(in crate::tools) documents: Vec<Document>,
    /// Whether a limit ended the search before the tree did.
    pub(in crate::tools) truncated: bool,
    /// Directories that could not be read, and why.
    pub(in crate::tools) skipped: Vec<String>,
}

impl Walk {
    /// All that is below a directory.
    pub(in crate::tools) fn below(directory: DocPath) -> Self {
        Self {
            directory,
            beginning: String::new(),
            may_be_missing: false,
            max_depth: DEFAULT_MAX_DEPTH,
            max_found: DEFAULT_MAX_FOUND,
        }
    }

    /// All whose path begins with `prefix`, which may end in the middle of a name.
    pub(in crate::tools) fn beginning_with(call: &Call, prefix: Option<&str>) -> Result<Self, ToolError> {
        let prefix = prefix.map(str::trim).unwrap_or_default();
        let path = DocPath::parse(prefix)?;
        if path.is_root() || prefix.ends_with('/') {
            return Ok(Self {
                may_be_missing: true,
                ..Self::below(call.directory(Some(path.as_str()))?)
            });
        }
        let directory = call.directory(Some(path.parent().as_str()))?;
        Ok(Self {
            beginning: path.name().to_owned(),
            may_be_missing: true,
            ..Self::below(directory)
        })
    }

    /// The documents that are picked, those nearest to the beginning of the tree first if there are too many.
    pub(in crate::tools) async fn find(
        self,
        call: &Call,
        server: &JupyterServer,
        picks: impl Fn(&Document) -> bool,
    ) -> Result<Found, ToolError> {
        let mut found = Found {
            documents: Vec::new(),
            truncated: false,
            skipped: Vec::new(),
        };
        let mut level = vec![self.directory];
        let mut visited = 0;
        for depth in 0.. {
            if level.is_empty() {
                break;
            }
            visited += level.len();
            if depth > self.max_depth || visited > MAX_DIRECTORIES || found.documents.len() > self.max_found {
                found.truncated = true;
                break;
            }
            let beginning = Some(self.beginning.as_str()).filter(|_| depth == 0);
            level = match walk_level(call, server, level, beginning, &picks, &mut found).await {
                Err(JupyterError::NotFound { .. }) if self.may_be_missing => break,
                below => below?,
            };
        }
        found.documents.sort_by(|a, b| a.path.cmp(&b.path));
        if found.documents.len() > self.max_found {
            found.documents.truncate(self.max_found);
            found.truncated = true;
        }
        Ok(found)
    }
}

impl Found {
    /// Keeps the first of them and says how many there are.
    pub(in crate::tools) fn cut(&mut self, max_results: usize, what: &str) -> String {
        let count = self.documents.len();
        let many = if self.truncated {
            format!("more than {count}")
        } else {
            count.to_string()
        };
        self.documents.truncate(max_results);
        match count > max_results {
            true => format!("Found {many} {what} (showing first {max_results} results)"),
            false => format!("Found {many} {what} available for collaboration"),
        }
    }
}

/// Reads one level of the tree, adds what is picked and returns the directories below it. Only the first level
/// has something that its names begin with.
async fn walk_level(
    call: &Call,
    server: &JupyterServer,
    level: Vec<DocPath>,
    beginning: Option<&str>,
    picks: &impl Fn(&Document) -> bool,
    found: &mut Found,
) -> Result<Vec<DocPath>, JupyterError> {
    let mut below = Vec::new();
    for (directory, entries) in server.list_directories(level).await {
        let entries = match entries {
            Ok(entries) => entries,
            // The directory that was asked for must be readable; one far below need not spoil the rest.
            Err(error) if beginning.is_some() => return Err(error),
            Err(error) => {
                found.skipped.push(format!("{directory}: {error}"));
                continue;
            }
        };
        for entry in entries {
            let is_directory = entry.kind == DocumentKind::Directory;
            if !call.sees(&entry.path, is_directory) || !entry.name.starts_with(beginning.unwrap_or_default()) {
                continue;
            }
            if is_directory {
                below.extend(DocPath::parse(&entry.path));
            }
            if picks(&entry) {
                found.documents.push(entry);
            }
        }
    }
    Ok(below)
}
