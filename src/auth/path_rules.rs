//! Which paths a tenant or token may touch: globs over normalised paths, `!` denies, deny wins.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::types::DocPath;

/// A name that no sensible glob spells out: if a deny rule matches it, the rule covers everything there.
const PROBE: &str = "\u{1}probe\u{1}";

#[derive(Debug, Clone)]
pub struct PathRules {
    allow: GlobSet,
    deny: GlobSet,
    /// For each allow glob the leading folders without wildcards: what lies above them must be
    /// visible in listings, or nobody could find the way down.
    allow_prefixes: Vec<String>,
}

impl PathRules {
    /// Builds the rules; a list with only denials allows everything else.
    pub fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        let mut allow = GlobSetBuilder::new();
        let mut deny = GlobSetBuilder::new();
        let mut allow_prefixes = Vec::new();
        for pattern in patterns {
            match pattern.strip_prefix('!') {
                // Denials ignore case: on a case-insensitive file system `Secret/` is `secret/`.
                Some(denied) => drop(deny.add(glob(denied, true)?)),
                None => {
                    allow.add(glob(pattern, false)?);
                    allow_prefixes.push(literal_prefix(pattern));
                }
            }
        }
        if allow_prefixes.is_empty() && !patterns.is_empty() {
            allow.add(glob("**", false)?);
            allow_prefixes.push(String::new());
        }
        Ok(Self {
            allow: allow.build()?,
            deny: deny.build()?,
            allow_prefixes,
        })
    }

    pub fn allows(&self, path: &DocPath) -> bool {
        let denied = self.denies(path.as_str()) || self.in_denied_folder(path);
        !denied && (self.allow.is_match(path.as_str()) || path.is_root() && self.allow.is_match(PROBE))
    }

    /// Whether a directory may be shown and listed: something below it could be allowed.
    pub fn may_enter(&self, directory: &DocPath) -> bool {
        if self.wholly_denied(directory) || self.in_denied_folder(directory) {
            return false;
        }
        self.allows(directory)
            || self
                .allow_prefixes
                .iter()
                .any(|prefix| leads_to(directory.as_str(), prefix))
    }

    fn denies(&self, path: &str) -> bool {
        !path.is_empty() && self.deny.is_match(path)
    }

    /// `!secret` denies the folder, hence also what is in it.
    fn in_denied_folder(&self, path: &DocPath) -> bool {
        let mut folder = path.parent();
        while !folder.is_root() {
            if self.denies(folder.as_str()) {
                return true;
            }
            folder = folder.parent();
        }
        false
    }

    fn wholly_denied(&self, directory: &DocPath) -> bool {
        let below = match directory.as_str() {
            "" => PROBE.to_owned(),
            folder => format!("{folder}/{PROBE}"),
        };
        self.denies(directory.as_str()) || self.denies(&below) && self.denies(&format!("{below}/{PROBE}"))
    }
}

fn glob(pattern: &str, ignore_case: bool) -> Result<Glob, globset::Error> {
    let pattern = pattern.trim_start_matches("./").trim_start_matches('/');
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .case_insensitive(ignore_case)
        .build()
}

/// The folders of a glob before its first wildcard: `projects/a*/x` begins in `projects`.
fn literal_prefix(pattern: &str) -> String {
    let segments: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
    let literal = |segment: &&&str| !segment.contains(['*', '?', '[', '{', '\\']);
    let folders = segments.len().saturating_sub(1);
    let prefix: Vec<&str> = segments[..folders].iter().take_while(literal).copied().collect();
    prefix.join("/")
}

/// Whether `directory` lies on the way to `prefix` or below it.
fn leads_to(directory: &str, prefix: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        outer.is_empty() || inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
    };
    within(prefix, directory) || within(directory, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: &[&str]) -> PathRules {
        let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        PathRules::new(&patterns).expect("valid globs")
    }

    fn path(raw: &str) -> DocPath {
        DocPath::parse(raw).expect("valid path")
    }

    #[test]
    fn everything_and_nothing() {
        let all = rules(&["**"]);
        assert!(all.allows(&path("a/b.ipynb")) && all.allows(&path("")) && all.may_enter(&path("")));
        let none = rules(&[]);
        assert!(!none.allows(&path("a")) && !none.may_enter(&path("")));
    }

    #[test]
    fn a_star_stays_in_its_folder() {
        let rules = rules(&["projects/*.ipynb"]);
        assert!(rules.allows(&path("projects/a.ipynb")));
        assert!(!rules.allows(&path("projects/deep/a.ipynb")));
        assert!(!rules.allows(&path("projects2/a.ipynb")));
    }

    #[test]
    fn denials_win_whatever_their_order_and_case() {
        let rules = rules(&["!projects/secret/**", "projects/**", "!**/*.key"]);
        assert!(rules.allows(&path("projects/a.ipynb")));
        assert!(!rules.allows(&path("projects/secret/a.ipynb")));
        assert!(!rules.allows(&path("projects/Secret/a.ipynb")));
        assert!(!rules.allows(&path("projects/x/id.key")));
        assert!(!rules.may_enter(&path("projects/secret")));
        assert!(!rules.may_enter(&path("projects/secret/deeper")));
        assert!(rules.may_enter(&path("projects/x")));
    }

    #[test]
    fn a_denied_folder_covers_what_is_in_it() {
        let rules = rules(&["**", "!private"]);
        assert!(!rules.allows(&path("private")) && !rules.allows(&path("private/a/b.txt")));
        assert!(!rules.may_enter(&path("private/a")));
    }

    #[test]
    fn only_denials_allow_the_rest() {
        let rules = rules(&["!private/**"]);
        assert!(rules.allows(&path("a.ipynb")) && rules.may_enter(&path("")));
        assert!(!rules.allows(&path("private/a.ipynb")));
    }

    #[test]
    fn the_way_down_to_an_allowed_folder_is_visible() {
        let rules = rules(&["teams/ana/**"]);
        for visible in ["", "teams", "teams/ana", "teams/ana/deep"] {
            assert!(rules.may_enter(&path(visible)), "{visible}");
        }
        for hidden in ["other", "teams/bob", "teams/ana2"] {
            assert!(!rules.may_enter(&path(hidden)), "{hidden}");
        }
        assert!(!rules.allows(&path("teams/x.ipynb")));
    }
}
