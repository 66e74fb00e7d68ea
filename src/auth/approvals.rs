//! Rules about calls that a person must allow: by the code that would run, the path, the tool, or who is there. Knows nothing
//! of how a person is asked.

use std::fmt;

use jupyter_client::DocPath;
use regex::Regex;

use super::PathRules;
use crate::{
    config::{ApprovalBy, ApprovalConfig, ApprovalWhen},
    types::code_pattern,
};

/// Tools that act on all that is in a directory.
const TREE_TOOLS: [&str; 2] = ["delete_document", "rename_document"];

/// The rules of a tenant, in their order.
#[derive(Debug, Default)]
pub struct ApprovalRules {
    rules: Vec<ApprovalRule>,
    /// As they were written.
    configured: Vec<ApprovalConfig>,
}

/// A rule, whose conditions must all hold.
#[derive(Debug)]
pub struct ApprovalRule {
    name: String,
    code: Option<Regex>,
    paths: Option<PathRules>,
    tools: Vec<String>,
    when: Option<ApprovalWhen>,
    decided_by: ApprovalBy,
    /// What it is about, for people.
    words: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    #[error(transparent)]
    Glob(#[from] globset::Error),
    #[error("an approval's `code` is not a regular expression: {0}")]
    Regex(#[from] regex::Error),
}

impl PartialEq for ApprovalRules {
    fn eq(&self, other: &Self) -> bool {
        self.configured == other.configured
    }
}

impl ApprovalRules {
    pub fn new(configured: &[ApprovalConfig]) -> Result<Self, ApprovalError> {
        let rules = configured
            .iter()
            .enumerate()
            .map(|(index, rule)| ApprovalRule::new(format!("approvals[{index}]"), rule));
        Ok(Self {
            rules: rules.collect::<Result<_, ApprovalError>>()?,
            configured: configured.to_vec(),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules with their positions.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &ApprovalRule)> {
        self.rules.iter().enumerate()
    }
}

impl ApprovalRule {
    fn new(name: String, rule: &ApprovalConfig) -> Result<Self, ApprovalError> {
        let code = rule.code.as_deref().map(code_pattern).transpose()?;
        let paths = match rule.paths.is_empty() {
            true => None,
            false => Some(PathRules::new(&rule.paths)?),
        };
        Ok(Self {
            name,
            code,
            paths,
            tools: rule.tools.clone(),
            when: rule.when,
            decided_by: rule.decided_by,
            words: words(rule),
        })
    }

    /// The name by which operators find it in their config.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it is about calls of a tool: those that it names, else all that do more than read.
    pub fn is_about(&self, tool: &str, only_reads: bool) -> bool {
        match self.tools.is_empty() {
            true => !only_reads,
            false => self.tools.iter().any(|named| named == tool),
        }
    }

    /// Returns whether it is about code, and not about the call as such.
    pub fn is_about_code(&self) -> bool {
        self.code.is_some()
    }

    /// The first part of some code that the rule is about.
    pub fn find<'c>(&self, code: &'c str) -> Option<&'c str> {
        self.code.as_ref()?.find(code).map(|found| found.as_str())
    }

    /// Returns whether it is about a path. Without one it is not about any.
    pub fn covers(&self, tool: &str, path: Option<&DocPath>) -> bool {
        let Some(rules) = &self.paths else { return true };
        let covers = |path: &DocPath| {
            let is_in_tree = || TREE_TOOLS.contains(&tool) && rules.may_enter(path);
            rules.allows(path) || is_in_tree()
        };
        path.is_some_and(|path| covers(path) || path.decoded().is_some_and(|decoded| covers(&decoded)))
    }

    /// Returns whether it holds only while a person is in the document.
    pub fn needs_person(&self) -> bool {
        self.when == Some(ApprovalWhen::PersonPresent)
    }

    /// Returns whether somebody else decides than the person of the caller's client.
    pub fn is_for_others(&self) -> bool {
        self.decided_by == ApprovalBy::Others
    }
}

/// The name with what the rule is about.
impl fmt::Display for ApprovalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.words)
    }
}

fn words(rule: &ApprovalConfig) -> String {
    let code = rule.code.as_ref().map(|code| format!("code that matches {code}"));
    let tools = (!rule.tools.is_empty()).then(|| format!("calls of {}", rule.tools.join(", ")));
    let paths = (!rule.paths.is_empty()).then(|| format!("on paths {}", rule.paths.join(", ")));
    let when = rule
        .when
        .map(|ApprovalWhen::PersonPresent| "while a person is in the document".to_owned());
    let all = [code, tools, paths, when];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(rule: ApprovalConfig) -> ApprovalRule {
        ApprovalRule::new("approvals[0]".to_owned(), &rule).unwrap()
    }

    fn path(path: &str) -> DocPath {
        DocPath::parse(path).unwrap()
    }

    #[test]
    fn code_is_looked_through_line_by_line() {
        let rule = rule(ApprovalConfig {
            code: Some(r"^\s*!|pip install".to_owned()),
            ..ApprovalConfig::default()
        });
        assert_eq!(rule.find("x = 1\n  !ls"), Some("  !"));
        assert_eq!(rule.find("%pip install numpy"), Some("pip install"));
        assert_eq!(rule.find("x != 1"), None);
        assert!(rule.is_about("run_code", false) && rule.covers("run_code", None));
    }

    #[test]
    fn a_rule_says_what_it_is_about() {
        let rule = rule(ApprovalConfig {
            code: Some("^!".to_owned()),
            paths: vec!["prod/**".to_owned()],
            when: Some(ApprovalWhen::PersonPresent),
            ..ApprovalConfig::default()
        });
        let words = "approvals[0]: code that matches ^!, on paths prod/**, while a person is in the document";
        assert_eq!(rule.to_string(), words);
        assert!(!rule.is_for_others());
    }

    #[test]
    fn paths_are_globs_and_tools_names() {
        let of_paths = rule(ApprovalConfig {
            paths: vec!["prod/**".to_owned(), "!prod/scratch/**".to_owned()],
            ..ApprovalConfig::default()
        });
        assert!(of_paths.covers("edit_nb_cell", Some(&path("prod/a.ipynb"))));
        assert!(
            of_paths.covers("edit_nb_cell", Some(&path("%70rod/a.ipynb"))),
            "as a careless proxy reads it"
        );
        assert!(!of_paths.covers("edit_nb_cell", Some(&path("prod/scratch/a.ipynb"))));
        assert!(!of_paths.covers("edit_nb_cell", Some(&path("a.ipynb"))) && !of_paths.covers("run_code", None));
        assert!(
            of_paths.covers("delete_document", Some(&path("prod"))),
            "with all that is in it"
        );
        assert!(of_paths.is_about("edit_nb_cell", false) && !of_paths.is_about("read_nb_cells", true));
        let of_tools = rule(ApprovalConfig {
            tools: vec!["read_nb_cells".to_owned()],
            ..ApprovalConfig::default()
        });
        assert!(of_tools.is_about("read_nb_cells", true) && !of_tools.is_about("edit_nb_cell", false));
    }
}
