//! The fuzz targets: each is built, is run by `make fuzz`, and has seeds that the tests of its crate run too.

use std::{collections::BTreeSet, fs, path::Path};

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("a file")
}

/// The names in a folder, without their endings.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).expect("a folder");
    let name = |entry: fs::DirEntry| entry.path().file_stem().expect("a name").to_string_lossy().into_owned();
    entries.map(|entry| name(entry.expect("an entry"))).collect()
}

#[test]
fn every_fuzz_target_is_run() {
    let targets = names("fuzz/fuzz_targets");
    let cargo: toml::Table = read("fuzz/Cargo.toml").parse().expect("TOML");
    let built = cargo["bin"].as_array().expect("a list").iter();
    let built: BTreeSet<String> = built
        .map(|bin| bin["name"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(built, targets, "built");
    let makefile = read("Makefile");
    let fuzzed = makefile.lines().find_map(|line| line.strip_prefix("FUZZ_TARGETS ?= "));
    let fuzzed: BTreeSet<String> = fuzzed.expect("a list").split(' ').map(str::to_owned).collect();
    assert_eq!(fuzzed, targets, "fuzzed");
    assert_eq!(names("fuzz/seeds"), targets, "with seeds");
    let tests =
        ["src", "crates/jupyter-client/src", "crates/live-document/src"].map(|src| read(&format!("{src}/fuzzing.rs")));
    for target in targets {
        let named = format!("(\"{target}\", super::");
        assert!(tests.iter().any(|test| test.contains(&named)), "{target} is in a test");
    }
}
