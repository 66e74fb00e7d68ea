//! The pages for readers: what they link to is there, and what they tell to do can be done.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::support::command::{ended, gateway_command, run};

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

/// What stands in code, in a line of its own or in a sentence.
fn code(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_block = false;
    for line in page.lines() {
        let line = line.trim();
        match (line.starts_with("```"), is_block) {
            (true, _) => is_block = !is_block,
            (false, true) => found.push(line.to_owned()),
            (false, false) => found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned)),
        }
    }
    found
}

#[test]
fn commands_of_the_pages_are_known() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    let mut checked = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        for line in code(&page) {
            let line = line.split(" #").next().unwrap_or_default();
            if let Some(target) = line.strip_prefix("make ") {
                let target = target.split(' ').next().unwrap_or_default();
                assert!(makefile.contains(&format!("\n{target}:")), "{}: {line}", path.display());
            }
            let Some(words) = line.strip_prefix("jupyter-mcp-gateway ") else {
                continue;
            };
            let words = words.split_whitespace().map(|word| word.trim_matches(['[', ']']));
            let (mut arguments, mut flags) = (Vec::new(), Vec::new());
            for word in words {
                match word.starts_with("--") {
                    true => flags.push(word),
                    // The values of flags and other arguments follow the command.
                    false if flags.is_empty() && arguments.len() < 2 => arguments.push(word),
                    false => {}
                }
            }
            // `token` has commands of its own; elsewhere a second word is a value.
            arguments.truncate(if arguments.first() == Some(&"token") { 2 } else { 1 });
            arguments.push("--help");
            let help = run(&arguments);
            assert_eq!(help.code, Some(0), "{}: {line}: {}", path.display(), help.stderr);
            for flag in flags.into_iter().filter(|flag| *flag != "--version") {
                assert!(help.stdout.contains(flag), "{}: {line}: {flag}", path.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 8, "{checked}");
}

/// What a piece of a config needs beside it.
const AROUND: [(&str, &str); 3] = [
    (
        "[[servers]]",
        "[[servers]]\nname = \"lab\"\nurl = \"http://lab:8888/\"\n",
    ),
    ("[[tenants]]", "[[tenants]]\nname = \"research\"\n"),
    (
        "[auth.",
        "[[auth.tokens]]\nname = \"ana\"\ntenant = \"research\"\ntoken = \"token-of-ana\"\n",
    ),
];

#[test]
fn configs_of_the_pages_pass_check_config() {
    let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let mut checked = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        for block in page.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            let mut config = block.replace("sha256 = \"...\"", &format!("sha256 = \"{digest}\""));
            for (section, missing) in AROUND {
                let has = config.contains(section) || section == "[auth." && config.contains("[[auth.");
                if !has {
                    config = format!("{config}\n{missing}");
                }
            }
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("gateway.toml");
            fs::write(&file, &config).expect("a file");
            let mut command = gateway_command();
            command.arg("check-config").arg("--config").arg(&file);
            for secret in ["LAB_A_TOKEN", "OAUTH_CLIENT_SECRET", "MCP_SERVICE_TOKEN"] {
                command.env(secret, "a-secret");
            }
            let ended = ended(command.output().expect("it runs"));
            assert_eq!(ended.code, Some(0), "{}: {}\n{config}", path.display(), ended.stderr);
            checked += 1;
        }
    }
    assert!(checked > 4, "{checked}");
}
