//! The layering that `src/lib.rs` draws: modules import only from rows below their own, and each
//! library has its one place.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The rows of the map, from the top. Modules of one row do not import each other.
const ROWS: &[&[&str]] = &[
    &["main"],
    &["cli"],
    &["app"],
    &["fuzzing"],
    &["http"],
    &["console"],
    &["mcp"],
    &["tools", "resources", "prompts"],
    &["audit", "activity", "approvals", "forks"],
    &["events", "history", "auth", "limits", "srcbook", "skills"],
    &["telemetry"],
    &["config"],
    &["error", "types"],
];

/// The libraries under `crates/`; Cargo sees to it that they depend on each other one way only.
const CRATES: &[&str] = &["executor", "live-document", "history", "jupyter-client", "store"];

/// Libraries that only the named modules and crates may know.
const PLACES: &[(&str, &[&str])] = &[
    ("axum", &["http", "app"]),
    ("hyper", &["http"]),
    ("maud", &["console"]),
    ("rmcp", &["mcp", "events", "http", "app"]),
    ("reqwest", &["jupyter-client", "auth", "app", "telemetry"]),
    ("tokio_tungstenite", &["jupyter-client", "live-document"]),
    ("yrs", &["live-document"]),
    ("sqlx", &["store"]),
    ("clap", &["cli"]),
    ("opentelemetry", &["telemetry"]),
];

#[test]
fn modules_import_only_from_rows_below() {
    let mut wrong = Vec::new();
    for (module, file, line) in lines() {
        for imported in mentioned(&line, "crate::") {
            let (Some(from), Some(to)) = (row(&module), row(&imported)) else {
                continue;
            };
            if to < from || (to == from && imported != module) {
                wrong.push(format!(
                    "{}: `{module}` uses `{imported}`: {}",
                    file.display(),
                    line.trim()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn libraries_stay_in_their_places() {
    let mut wrong = Vec::new();
    for (module, file, line) in lines() {
        for (library, places) in PLACES {
            let named = line.contains(&format!("{library}::")) || line.contains(&format!("use {library}"));
            if named && !line.trim_start().starts_with("//") && !places.contains(&module.as_str()) {
                wrong.push(format!("{}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_has_a_row_and_every_file_says_what_it_owns() {
    for (module, file, _) in lines() {
        assert!(
            row(&module).is_some() || module == "lib" || CRATES.contains(&module.as_str()),
            "{} is in no row of the map",
            file.display()
        );
    }
    for file in sources().into_iter().map(|(_, file)| file) {
        let text = fs::read_to_string(&file).expect("a source file");
        assert!(text.starts_with("//!"), "{} does not open with //!", file.display());
        assert!(
            file.file_name().is_some_and(|name| name != "mod.rs"),
            "{}: use foo.rs beside foo/",
            file.display()
        );
    }
}

/// Every line of code, with its top-level module or crate and its file. Imports that span
/// several lines are one.
fn lines() -> Vec<(String, PathBuf, String)> {
    let mut lines = Vec::new();
    for (module, file) in sources() {
        let text = fs::read_to_string(&file).expect("a source file");
        let code: String = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n");
        for statement in code.split(';') {
            lines.push((module.clone(), file.clone(), statement.replace('\n', " ")));
        }
    }
    lines
}

/// The names that follow a prefix, also inside `crate::{a::X, b::Y}`.
fn mentioned(statement: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in statement.match_indices(prefix) {
        let rest = &statement[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(group) => {
                let mut depth = 0;
                let mut name = String::new();
                for character in group.chars() {
                    match character {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => names.push(std::mem::take(&mut name)),
                        _ if depth == 0 => name.push(character),
                        _ => {}
                    }
                }
                names.push(name);
            }
            None => names.push(rest.to_owned()),
        }
    }
    let first = |name: &String| {
        name.trim()
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    names.iter().map(first).filter(|name| !name.is_empty()).collect()
}

fn row(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

/// Every source file, with its top-level module or, under `crates/`, its crate.
fn sources() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for file in files(&root.join("src")) {
        let relative = file.strip_prefix(root.join("src")).expect("inside src");
        let first = relative.components().next().expect("a component").as_os_str();
        let module = first.to_string_lossy().trim_end_matches(".rs").to_owned();
        sources.push((module, file));
    }
    for name in CRATES {
        let found = files(&root.join("crates").join(name).join("src"));
        sources.extend(found.into_iter().map(|file| ((*name).to_owned(), file)));
    }
    sources
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
