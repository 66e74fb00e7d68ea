//! The paths that a tenant or token may touch: globs over normalised paths, `!` denies, deny wins.

mod reach;
#[cfg(test)]
mod tests;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use self::reach::Reach;
use jupyter_client::DocPath;

/// A name that no sensible glob spells out: if a deny rule matches it, the rule covers everything there.
const PROBE: &str = "\u{1}probe\u{1}";

#[derive(Debug, Clone)]
pub struct PathRules {
    /// As they were written.
    patterns: Vec<String>,
    allow: GlobSet,
    deny: GlobSet,
    /// Reach of each allow glob: directories above something allowed must be visible in listings, or nobody could
    /// find the way down.
    ways_down: Vec<Reach>,
    /// The directories of which an allow glob covers all that is in them.
    allow_trees: GlobSet,
    allows_everything: bool,
    reaches: Vec<Reach>,
}

/// Reason why not all of a directory may be touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFullyAllowed {
    /// This denial could match something in it.
    Denied(String),
    /// No rule allows all of it.
    NotAllowed,
}

impl PartialEq for PathRules {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl PathRules {
    /// Builds the rules; a list with only denials allows everything else.
    pub fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        let mut allow = GlobSetBuilder::new();
        let mut allow_trees = GlobSetBuilder::new();
        let mut deny = GlobSetBuilder::new();
        let (mut ways_down, mut reaches) = (Vec::new(), Vec::new());
        let mut allows_everything = false;
        for pattern in patterns {
            match pattern.strip_prefix('!') {
                // Denials ignore case: on a case-insensitive file system `Secret/` is `secret/`.
                Some(denied) => {
                    deny.add(glob(denied, true)?);
                    reaches.push(Reach::of_denial(denied)?);
                }
                None => {
                    allow.add(glob(pattern, false)?);
                    ways_down.push(Reach::of_allowance(pattern)?);
                    allows_everything |= ["**", "**/*"].contains(&trimmed(pattern));
                    if let Some(tree) = tree(pattern) {
                        allow_trees.add(tree);
                    }
                }
            }
        }
        if ways_down.is_empty() && !patterns.is_empty() {
            allow.add(glob("**", false)?);
            ways_down.push(Reach::of_allowance("**")?);
            allows_everything = true;
        }
        Ok(Self {
            patterns: patterns.to_vec(),
            allow: allow.build()?,
            deny: deny.build()?,
            ways_down,
            allow_trees: allow_trees.build()?,
            allows_everything,
            reaches,
        })
    }

    pub fn allows(&self, path: &DocPath) -> bool {
        let denied = match path.is_root() {
            true => self.wholly_denied(path),
            false => self.denies(path.as_str()) || self.in_denied_folder(path) || self.is_denied_folder(path),
        };
        !denied && (self.allow.is_match(path.as_str()) || path.is_root() && self.allow.is_match(PROBE))
    }

    /// Returns whether a directory may be shown and listed: something below it could be allowed.
    pub fn may_enter(&self, directory: &DocPath) -> bool {
        if self.wholly_denied(directory) || self.in_denied_folder(directory) {
            return false;
        }
        self.allows(directory) || self.ways_down.iter().any(|way| way.could_match_below(directory))
    }

    /// Checks that whatever is in a directory may be touched, judged by the rules alone: what is done to a
    /// directory is done to all that is in it, seen or not. Where the rules leave a doubt it is not covered.
    pub fn covers(&self, directory: &DocPath) -> Result<(), NotFullyAllowed> {
        let denial = self.reaches.iter().find(|reach| reach.could_match_below(directory));
        if let Some(denial) = denial {
            return Err(NotFullyAllowed::Denied(format!("!{}", denial.pattern)));
        }
        match self.allows_everything || self.is_in_allowed_tree(directory) {
            true => Ok(()),
            false => Err(NotFullyAllowed::NotAllowed),
        }
    }

    fn is_in_allowed_tree(&self, directory: &DocPath) -> bool {
        let mut folder = directory.clone();
        while !folder.is_root() {
            if self.allow_trees.is_match(folder.as_str()) {
                return true;
            }
            folder = folder.parent();
        }
        false
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

    /// `!secret/**` denies all that is in a folder, hence also the folder itself. A rule that is about everything so
    /// far down, as `!data/*/**` is, names no folder: what is at `data/a.csv` may be a file and is not denied by it.
    fn is_denied_folder(&self, path: &DocPath) -> bool {
        self.denies(&below(path.as_str())) && !self.denies(&below(&below(path.parent().as_str())))
    }

    fn wholly_denied(&self, directory: &DocPath) -> bool {
        self.denies(directory.as_str()) || self.denies(&below(directory.as_str()))
    }
}

/// Something that could be in a directory.
fn below(directory: &str) -> String {
    match directory {
        "" => PROBE.to_owned(),
        folder => format!("{folder}/{PROBE}"),
    }
}

fn glob(pattern: &str, ignore_case: bool) -> Result<Glob, globset::Error> {
    GlobBuilder::new(trimmed(pattern))
        .literal_separator(true)
        .backslash_escape(true)
        .case_insensitive(ignore_case)
        .build()
}

/// A glob as the paths are to which it is held: from the root, and without a slash at its end.
fn trimmed(pattern: &str) -> &str {
    pattern.trim_start_matches("./").trim_matches('/')
}

/// The directories of which a glob matches all that is in them.
fn tree(pattern: &str) -> Option<Glob> {
    let pattern = trimmed(pattern);
    let directory = pattern.strip_suffix("/**/*").or_else(|| pattern.strip_suffix("/**"))?;
    glob(directory, false).ok()
}
