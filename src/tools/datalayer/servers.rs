//! `connect_to_jupyter`, `list_files`.

use globset::{GlobBuilder, GlobMatcher};
use jupyter_client::{Document, DocumentKind};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answer::{TableAnswer, TextAnswer, table, text},
    kernels::plain_time,
    target::current_server,
};
use crate::tools::{
    Call, ToolError,
    files::Walk,
    named::{ServerRef, find_server},
    output::ToolReply,
};

/// Number of directories into each other that a listing may go.
const MAX_DEPTH: usize = 3;
const DEFAULT_DEPTH: usize = 1;
const DEFAULT_LIMIT: usize = 25;
/// Number of files of which a listing knows.
const MAX_FOUND: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConnectArguments {
    /// Name or URL of a server the gateway knows
    jupyter_url: String,
    /// Only for other servers an operator allows
    jupyter_token: Option<String>,
    /// Only jupyter
    #[schemars(extend("default" = "jupyter"))]
    document_provider: Option<String>,
}

pub(super) async fn connect_to_jupyter(
    call: Call,
    arguments: ConnectArguments,
) -> Result<ToolReply<TextAnswer>, ToolError> {
    let provider = arguments.document_provider.as_deref().unwrap_or("jupyter");
    if !provider.eq_ignore_ascii_case("jupyter") {
        let why = format!("{provider:?} is not known here; allowed: jupyter");
        return Err(ToolError::argument("document_provider", why));
    }
    let named = arguments.jupyter_url.trim();
    if named.is_empty() {
        return Err(ToolError::argument("jupyter_url", "name a server, or give its URL"));
    }
    let server = find_server(&call, Some(named), arguments.jupyter_token).await?;
    // What does not answer is not chosen.
    server.kernelspecs().await?;
    let choice = ServerRef::of(&server);
    call.connections()
        .choose_server(&call.principal().id, call.session(), choice);
    let result = format!(
        "Successfully connected to Jupyter server: {} (`{}`)\nDocumentProvider: jupyter",
        server.public_base_url(),
        server.name()
    );
    Ok(text("jupyter.connect", result))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FilesArguments {
    #[serde(default)]
    path: String,
    /// 0 to 3
    #[schemars(extend("default" = 1))]
    max_depth: Option<usize>,
    #[serde(default)]
    start_index: usize,
    /// 0 means all
    #[schemars(extend("default" = 25))]
    limit: Option<usize>,
    /// Glob of paths such as **/*.csv
    #[serde(default)]
    pattern: String,
}

pub(super) async fn list_files(call: Call, arguments: FilesArguments) -> Result<ToolReply<TableAnswer>, ToolError> {
    let max_depth = arguments.max_depth.unwrap_or(DEFAULT_DEPTH);
    if max_depth > MAX_DEPTH {
        let why = format!("{max_depth} is out of range; allowed: 0 to {MAX_DEPTH}");
        return Err(ToolError::argument("max_depth", why));
    }
    let pattern = glob(&arguments.pattern)?;
    let server = current_server(&call)?;
    let directory = call.directory(Some(&arguments.path))?;
    let shown = if directory.is_root() {
        "root".to_owned()
    } else {
        directory.to_string()
    };
    let mut walk = Walk::below(directory);
    (walk.max_depth, walk.max_found) = (max_depth, MAX_FOUND);
    let picks = |document: &Document| pattern.as_ref().is_none_or(|glob| glob.is_match(&document.path));
    let found = walk.find(&call, &server, picks).await?.documents;
    let (start, total) = (arguments.start_index, found.len());
    if start > 0 && start >= total {
        let why = format!("{start} is out of range; there are {total} files");
        return Err(ToolError::argument("start_index", why));
    }
    let end = match arguments.limit.unwrap_or(DEFAULT_LIMIT) {
        0 => total,
        limit => start.saturating_add(limit).min(total),
    };
    let empty = match &pattern {
        Some(glob) => format!("No files matching pattern '{}' found in path '{shown}'", glob.glob()),
        None => format!("No files found in path '{shown}'"),
    };
    Ok(table(
        "files.list",
        &format!("Showing {start}-{end} of {total} files\n\n"),
        &["Path", "Type", "Size", "Last_Modified"],
        found[start..end].iter().map(row).collect(),
        &empty,
    ))
}

fn glob(pattern: &str) -> Result<Option<GlobMatcher>, ToolError> {
    if pattern.is_empty() {
        return Ok(None);
    }
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let glob = glob.map_err(|error| ToolError::argument("pattern", error.kind().to_string()))?;
    Ok(Some(glob.compile_matcher()))
}

fn row(document: &Document) -> Vec<String> {
    let kind = match document.kind {
        DocumentKind::Directory => "directory",
        DocumentKind::Notebook => "notebook",
        DocumentKind::File => "file",
    };
    vec![
        document.path.clone(),
        kind.to_owned(),
        document.size.map(size).unwrap_or_default(),
        document.last_modified.as_deref().map(plain_time).unwrap_or_default(),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
fn size(bytes: u64) -> String {
    const KB: u64 = 1024;
    match bytes {
        0..KB => format!("{bytes}B"),
        bytes if bytes < KB * KB => format!("{:.1}KB", bytes as f64 / KB as f64),
        bytes => format!("{:.1}MB", bytes as f64 / (KB * KB) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        assert_eq!([0, 1023, 1536, 3 << 20].map(size), ["0B", "1023B", "1.5KB", "3.0MB"]);
        assert_eq!(plain_time("2026-11-18T06:25:00.123Z"), "2026-11-18 06:25:00");
    }

    #[test]
    fn a_star_stays_in_its_directory() {
        let matches = |pattern: &str, path: &str| glob(pattern).unwrap().is_none_or(|glob| glob.is_match(path));
        assert!(matches("", "a/b.py") && matches("*.py", "b.py") && matches("**/*.py", "b.py"));
        assert!(matches("**/*.py", "a/b.py") && matches("a/[bc].py", "a/b.py"));
        assert!(!matches("*.py", "a/b.py") && !matches("a?b.py", "a/b.py"));
        assert!(glob("[").is_err());
    }
}
