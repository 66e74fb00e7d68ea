//! Types of files, as listings mean them.

use jupyter_client::{Document, DocumentKind};

/// Text by more than its media type, which few of these have.
const TEXT_EXTENSIONS: &[&str] = &[
    "md",
    "markdown",
    "txt",
    "rst",
    "tex",
    "log",
    "csv",
    "tsv",
    "json",
    "jsonl",
    "ndjson",
    "geojson",
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "env",
    "xml",
    "html",
    "htm",
    "svg",
    "css",
    "scss",
    "less",
    "js",
    "mjs",
    "cjs",
    "jsx",
    "ts",
    "tsx",
    "vue",
    "py",
    "pyi",
    "pyx",
    "r",
    "rmd",
    "qmd",
    "jl",
    "rs",
    "go",
    "java",
    "kt",
    "scala",
    "c",
    "h",
    "cc",
    "cpp",
    "hpp",
    "cu",
    "cs",
    "rb",
    "php",
    "pl",
    "lua",
    "swift",
    "sh",
    "bash",
    "zsh",
    "fish",
    "bat",
    "ps1",
    "sql",
    "graphql",
    "proto",
    "bib",
    "diff",
    "patch",
    "lock",
    "properties",
    "gitignore",
    "dockerignore",
    "editorconfig",
    "dot",
    "tf",
];

/// Types by the names that people have for them.
const NAMED: &[(&str, &[&str])] = &[
    ("markdown", &["md", "markdown"]),
    ("python", &["py", "pyi"]),
    ("yaml", &["yaml", "yml"]),
    ("javascript", &["js", "mjs", "cjs"]),
    ("typescript", &["ts", "tsx"]),
    ("html", &["html", "htm"]),
    ("shell", &["sh", "bash", "zsh"]),
    ("jpeg", &["jpg", "jpeg"]),
    ("rust", &["rs"]),
    ("julia", &["jl"]),
];

/// Returns whether a document is of a type: a file of any kind, text, an image, markdown, a media type, a file
/// extension; or a notebook or directory.
pub(super) fn has_type(document: &Document, wanted: &str) -> bool {
    let wanted = wanted.trim().to_ascii_lowercase();
    let wanted = wanted.trim_start_matches('.');
    let is_file = document.kind == DocumentKind::File;
    let mime = document.mimetype.as_deref().unwrap_or_default();
    match wanted {
        "notebook" | "ipynb" => document.kind == DocumentKind::Notebook,
        "directory" | "folder" => document.kind == DocumentKind::Directory,
        _ if !is_file => false,
        "file" => true,
        "text" => {
            mime.starts_with("text/") || has_one_of(&document.name, TEXT_EXTENSIONS) || !document.name.contains('.')
        }
        "image" => mime.starts_with("image/"),
        media if media.contains('/') => mime == media,
        named => match NAMED.iter().find(|(name, _)| *name == named) {
            Some((_, extensions)) => has_one_of(&document.name, extensions),
            None => has_one_of(&document.name, &[named]),
        },
    }
}

fn has_one_of(name: &str, extensions: &[&str]) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| extensions.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_what_people_call_them() {
        let has = |name: &str, kind: &str, mime: Option<&str>, wanted: &str| {
            let document = json!({ "name": name, "path": name, "type": kind, "mimetype": mime });
            has_type(&serde_json::from_value(document).expect("a document"), wanted)
        };
        for (name, mime, types) in [
            ("a.md", None, &["file", "text", "markdown", "md", ".MD"][..]),
            (
                "a.json",
                Some("application/json"),
                &["text", "json", "application/json"],
            ),
            ("Makefile", None, &["file", "text"]),
            ("a.py", Some("text/x-python"), &["text", "python", "py"]),
            ("a.PNG", Some("image/png"), &["file", "image", "png", "image/png"]),
            ("a.yml", None, &["text", "yaml", "yml"]),
        ] {
            for wanted in types {
                assert!(has(name, "file", mime, wanted), "{name}: {wanted}");
            }
            for wanted in ["notebook", "directory", "poem", "parquet"] {
                assert!(!has(name, "file", mime, wanted), "{name}: {wanted}");
            }
        }
        assert!(!has("a.parquet", "file", None, "text") && !has("a.png", "file", Some("image/png"), "text"));
        assert!(has("a.ipynb", "notebook", None, "notebook") && !has("a.ipynb", "notebook", None, "file"));
        assert!(has("d", "directory", None, "directory") && !has("d", "directory", None, "text"));
    }
}
