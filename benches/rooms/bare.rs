//! Memory of bare documents, measured in a process of their own: this program, started once more.

use std::process::Command;

use yrs::{Doc, Transact, Update, updates::decoder::Decode};

use crate::process::{REST, rss_of};

/// Names the file with the document, in the child.
const FILE: &str = "BENCH_BARE_DOCUMENT";
const COUNT: &str = "BENCH_BARE_COUNT";

/// Resident megabytes of each of so many documents.
pub(super) fn megabytes_each(update: &[u8], count: usize) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("document");
    std::fs::write(&file, update).expect("the document is written");
    let child = Command::new(std::env::current_exe().expect("this program"))
        .env(FILE, &file)
        .env(COUNT, count.to_string())
        .output()
        .expect("it runs again");
    let answer = String::from_utf8(child.stdout).expect("text");
    answer.trim().parse().expect("a number")
}

pub(crate) fn is_bare_child() -> bool {
    std::env::var_os(FILE).is_some()
}

/// Keeps the documents and says what each takes.
pub(crate) fn run_bare_child() {
    let update = std::fs::read(std::env::var_os(FILE).expect("a file")).expect("the document");
    let count: u32 = std::env::var(COUNT).expect("a count").parse().expect("a number");
    let document = || {
        let doc = Doc::new();
        let update = Update::decode_v1(&update).expect("an update");
        doc.transact_mut().apply_update(update).expect("it fits");
        doc
    };
    let mut documents = vec![document()];
    std::thread::sleep(REST);
    let before = rss_of(std::process::id());
    documents.extend((0..count).map(|_| document()));
    std::thread::sleep(REST);
    println!("{}", (rss_of(std::process::id()) - before) / f64::from(count));
    drop(documents);
}
