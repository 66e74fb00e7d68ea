//! The pages for readers: what they link to is there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const PAGES: &[&str] = &["README.md", "SECURITY.md", "ARCHITECTURE.md", "CHANGELOG.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).expect("docs");
    let docs = docs.map(|entry| entry.expect("an entry").path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    PAGES
        .iter()
        .map(|page| root().join(page))
        .chain(docs.filter(is_page))
        .collect()
}

/// The places of a page that a link can lead to, as forges name them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| -> String {
        let kept = line.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

fn links(page: &str) -> impl Iterator<Item = &str> {
    let after = page.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut broken = Vec::new();
    for path in pages() {
        let text = fs::read_to_string(&path).expect("a page");
        for link in links(&text).filter(|link| !link.starts_with("http")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().expect("a folder").join(file),
            };
            let leads = target.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&target).expect("a page")).contains(anchor));
            if !leads {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_is_linked_from_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    for path in pages().iter().filter(|path| path.starts_with(root().join("docs"))) {
        let name = format!("docs/{}", path.file_name().expect("a name").to_string_lossy());
        assert!(readme.contains(&name), "{name}");
    }
}
