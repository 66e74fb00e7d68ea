//! All that the gateway is built from: its licences, and what is in it twice. Needs no network.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

/// Licences that a package may be used under.
const LICENCES: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Licence of the list of certificate authorities, which is data.
const OF_DATA: &str = "CDLA-Permissive-2.0";

/// Packages that others still need in two versions or more.
const TWICE: [&str; 14] = [
    "base64",
    "block-buffer",
    "cpufeatures",
    "crypto-common",
    "digest",
    "getrandom",
    "hashbrown",
    "miniz_oxide",
    "rand",
    "rand_core",
    "sha2",
    "syn",
    "synstructure",
    "tower-http",
];

/// Platforms of what is shipped. Packages for others are not even downloaded.
const PLATFORMS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(PLATFORMS.iter().flat_map(|platform| ["--filter-platform", platform]))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{failed}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// An expression of licences is allowed if each part of `AND` is, and one of each `OR`.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace(['(', ')'], "").replace('/', " OR ");
    let one_of = |part: &str| {
        let mut names = part.split(" OR ").map(str::trim);
        names.any(|name| LICENCES.contains(&name) || name == OF_DATA)
    };
    expression.split(" AND ").all(one_of)
}

#[test]
fn every_package_may_be_used() {
    for package in packages() {
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(is_allowed(licence), "{}: {licence:?}", package["name"]);
    }
}

#[test]
fn nothing_new_is_there_twice() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        versions.entry(text("name")).or_default().insert(text("version"));
    }
    let twice: Vec<_> = versions.iter().filter(|(_, versions)| versions.len() > 1).collect();
    let new: Vec<_> = twice
        .iter()
        .filter(|(name, _)| !TWICE.contains(&name.as_str()))
        .collect();
    assert!(
        new.is_empty(),
        "{new:?}: update one of those who need them, or list it here"
    );
    let once: Vec<_> = TWICE
        .iter()
        .filter(|name| !twice.iter().any(|(twice, _)| twice == *name))
        .collect();
    assert!(once.is_empty(), "{once:?} are there once now; take them off the list");
}
