//! Finding documents in a whole tree, without what the principal may not see. Symbolic links can make a tree endless, and
//! Jupyter does not tell them from directories.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use globset::{GlobBuilder, GlobMatcher};
use jupyter_client::{DocPath, Document, DocumentKind, JupyterError, JupyterServer, counted};

use crate::tools::{Call, ToolError};

/// Number of directories after which a walk stops; each is a request to Jupyter.
const MAX_DIRECTORIES: usize = 2000;
const DEFAULT_MAX_FOUND: usize = 1000;
const DEFAULT_MAX_DEPTH: usize = 32;
/// Number of unread directories that are named.
const MAX_SKIPPED: usize = 20;

/// Search of a tree: where, for what, and how far.
pub(in crate::tools) struct Walk {
    directory: DocPath,
    /// Beginning of the names of the first level.
    beginning: String,
    filter: Filter,
    /// True if the directory itself was not named, so that a missing one counts as empty.
    may_be_missing: bool,
    /// Predicate of the directories to descend into.
    pub(in crate::tools) enters: fn(&Document) -> bool,
    pub(in crate::tools) max_depth: usize,
    pub(in crate::tools) max_found: usize,
}

/// Condition on paths.
enum Filter {
    All,
    Containing(String),
    Glob(GlobMatcher),
}

impl Filter {
    fn matches(&self, document: &Document) -> bool {
        match self {
            Self::All => true,
            Self::Containing(text) => document.path.contains(text.as_str()),
            Self::Glob(glob) => glob.is_match(&document.path) || glob.is_match(&document.name),
        }
    }
}

/// Documents that a walk found, by path.
pub(in crate::tools) struct Found {
    pub(in crate::tools) documents: Vec<Document>,
    /// True if a limit ended the search before the tree did.
    pub(in crate::tools) truncated: bool,
    /// Directories that were not read, and why.
    pub(in crate::tools) skipped: Vec<String>,
}

/// A directory that is still to be read.
struct Pending {
    path: DocPath,
    above: Option<Arc<Ancestor>>,
}

/// A directory above another one, as its listing looked.
struct Ancestor {
    path: DocPath,
    listing: u64,
    above: Option<Arc<Self>>,
}

impl Ancestor {
    fn all(lowest: Option<&Arc<Self>>) -> impl Iterator<Item = &Self> {
        std::iter::successors(lowest.map(AsRef::as_ref), |ancestor| ancestor.above.as_deref())
    }
}

impl Walk {
    /// All that is below a directory.
    pub(in crate::tools) fn below(directory: DocPath) -> Self {
        Self {
            directory,
            beginning: String::new(),
            filter: Filter::All,
            may_be_missing: false,
            enters: |_| true,
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

    /// All whose path contains a text, or matches a glob. A text with a slash is what paths begin with, so that not all has
    /// to be searched for it.
    pub(in crate::tools) fn filtered(call: &Call, filter: Option<&str>) -> Result<Self, ToolError> {
        let filter = filter.map(str::trim).unwrap_or_default();
        let is_glob = filter.contains(['*', '?', '[', '{']);
        if !is_glob && (filter.is_empty() || filter.contains('/')) {
            return Self::beginning_with(call, Some(filter));
        }
        // What no path could be is refused here as everywhere.
        let filter = match is_glob {
            true => Filter::Glob(glob("path_filter", filter)?),
            false => Filter::Containing(DocPath::parse(filter)?.to_string()),
        };
        Ok(Self {
            filter,
            ..Self::below(call.directory(None)?)
        })
    }

    /// All that match a glob, searched from the directory that it begins with.
    pub(in crate::tools) fn matching(call: &Call, argument: &str, pattern: &str) -> Result<Self, ToolError> {
        let is_plain = |part: &&str| !part.contains(['*', '?', '[', '{']);
        let beginning: Vec<&str> = pattern.split('/').take_while(is_plain).collect();
        Ok(Self {
            filter: Filter::Glob(glob(argument, pattern)?),
            may_be_missing: true,
            ..Self::below(call.directory(Some(&beginning.join("/")))?)
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
        let picks = Picks {
            enters: self.enters,
            picks: |document: &Document| self.filter.matches(document) && picks(document),
        };
        let mut level = vec![Pending {
            path: self.directory,
            above: None,
        }];
        let mut visited = 0;
        for depth in 0.. {
            if level.is_empty() {
                break;
            }
            if depth > self.max_depth || found.documents.len() > self.max_found {
                found.truncated = true;
                break;
            }
            let unread = level.split_off(level.len().min(MAX_DIRECTORIES - visited));
            visited += level.len();
            let beginning = Some(self.beginning.as_str()).filter(|_| depth == 0);
            level = match walk_level(call, server, level, beginning, &picks, &mut found).await {
                Err(JupyterError::NotFound { .. }) if self.may_be_missing => break,
                below => below?,
            };
            if !unread.is_empty() || visited == MAX_DIRECTORIES && !level.is_empty() {
                found.truncated = true;
                found.skip(format!(
                    "{} and others: the search ends after {MAX_DIRECTORIES} directories; name one to search there",
                    unread.first().or(level.first()).map_or("", |first| first.path.as_str())
                ));
                break;
            }
        }
        found.documents.sort_by(|a, b| a.path.cmp(&b.path));
        if found.documents.len() > self.max_found {
            found.documents.truncate(self.max_found);
            found.truncated = true;
        }
        Ok(found)
    }
}

fn glob(argument: &str, pattern: &str) -> Result<GlobMatcher, ToolError> {
    let glob = GlobBuilder::new(pattern.trim_start_matches("./").trim_start_matches('/'))
        .literal_separator(true)
        .build();
    let glob = glob.map_err(|error| ToolError::argument(argument, error.kind().to_string()))?;
    Ok(glob.compile_matcher())
}

/// Choice of what is looked into and of what is found.
struct Picks<F> {
    enters: fn(&Document) -> bool,
    picks: F,
}

impl Found {
    /// A document that was not searched for.
    pub(in crate::tools) fn one(document: Document) -> Self {
        Self {
            documents: vec![document],
            truncated: false,
            skipped: Vec::new(),
        }
    }

    /// Keeps the first of them and says how many there are.
    pub(in crate::tools) fn cut(&mut self, max_results: usize, what: &str) -> String {
        let count = self.documents.len();
        let many = match self.truncated {
            true => format!("more than {count} {what}s"),
            false => counted(count, what),
        };
        self.documents.truncate(max_results);
        match count > max_results {
            true => format!("Found {many} (showing first {max_results} results)"),
            false => format!("Found {many} available for collaboration"),
        }
    }

    fn skip(&mut self, directory: String) {
        if self.skipped.len() < MAX_SKIPPED {
            self.skipped.push(directory);
        }
    }
}

/// Reads one level of the tree, adds what is picked and returns the directories below it. Only the first level
/// has something that its names begin with.
async fn walk_level(
    call: &Call,
    server: &JupyterServer,
    level: Vec<Pending>,
    beginning: Option<&str>,
    picks: &Picks<impl Fn(&Document) -> bool>,
    found: &mut Found,
) -> Result<Vec<Pending>, JupyterError> {
    let mut below = Vec::new();
    let (paths, above): (Vec<_>, Vec<_>) = level.into_iter().map(|pending| (pending.path, pending.above)).unzip();
    for ((directory, entries), above) in server.list_directories(paths).await.into_iter().zip(above) {
        let entries = match entries {
            Ok(entries) => entries,
            // The directory that was asked for must be readable; one far below need not spoil the rest.
            Err(error) if beginning.is_some() => return Err(error),
            Err(error) => {
                found.skip(format!("{directory}: {error}"));
                continue;
            }
        };
        let listing = digest(&entries);
        if let Some(same) = Ancestor::all(above.as_ref()).find(|ancestor| ancestor.listing == listing) {
            found.skip(format!(
                "{directory}: it has the same in it as {:?} above it, as if linked to it",
                same.path.as_str()
            ));
            continue;
        }
        let ancestor = Arc::new(Ancestor {
            path: directory,
            listing,
            above,
        });
        for entry in entries {
            let is_directory = entry.kind == DocumentKind::Directory;
            if !call.sees(&entry.path, is_directory) || !entry.name.starts_with(beginning.unwrap_or_default()) {
                continue;
            }
            if is_directory
                && (picks.enters)(&entry)
                && let Ok(path) = DocPath::parse(&entry.path)
            {
                below.push(Pending {
                    path,
                    above: Some(Arc::clone(&ancestor)),
                });
            }
            if (picks.picks)(&entry) {
                found.documents.push(entry);
            }
        }
    }
    Ok(below)
}

/// Tells directories with different things in them apart. An empty one is like no other.
fn digest(entries: &[Document]) -> u64 {
    let mut entries: Vec<_> = entries
        .iter()
        .map(|entry| (&entry.name, &entry.created, &entry.last_modified, entry.size))
        .collect();
    entries.sort_unstable();
    let mut hasher = DefaultHasher::new();
    entries.hash(&mut hasher);
    hasher.finish()
}
