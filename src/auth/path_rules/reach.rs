//! Reach of a glob: whether it could match something below a directory, whatever is there.

use globset::GlobMatcher;
use jupyter_client::DocPath;

use super::{glob, trimmed};

/// A glob as it was written, and as the steps by which it goes down.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    pub(super) pattern: String,
    steps: Vec<Step>,
    /// True if a match of a directory covers everything in it.
    is_inherited: bool,
}

#[derive(Debug, Clone)]
enum Step {
    /// `**`, and whatever cannot be told apart by names.
    Anywhere,
    Name(Box<GlobMatcher>),
}

impl Reach {
    pub(super) fn of_denial(pattern: &str) -> Result<Self, globset::Error> {
        Self::new(pattern, true)
    }

    /// Reach of an allow glob, which does not cover what is in a directory.
    pub(super) fn of_allowance(pattern: &str) -> Result<Self, globset::Error> {
        Self::new(pattern, false)
    }

    fn new(pattern: &str, is_denial: bool) -> Result<Self, globset::Error> {
        let mut steps = Vec::new();
        for name in trimmed(pattern).split('/') {
            if name == "**" || !is_one_name(name) {
                steps.push(Step::Anywhere);
            } else {
                steps.push(Step::Name(Box::new(glob(name, is_denial)?.compile_matcher())));
            }
            // Where such a step ends is not known, so that it is taken to reach everything.
            if !is_one_name(name) {
                break;
            }
        }
        Ok(Self {
            pattern: pattern.to_owned(),
            steps,
            is_inherited: is_denial,
        })
    }

    /// Returns whether something at or below the path could match; true where that is unknown.
    pub(super) fn could_match_below(&self, path: &DocPath) -> bool {
        let mut reached = vec![0];
        for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
            let mut next = Vec::new();
            for at in self.with_skipped(&reached) {
                match self.steps.get(at) {
                    // All of the glob matched a directory above, and with it what is in it.
                    None if self.is_inherited => return true,
                    Some(Step::Anywhere) => next.push(at),
                    Some(Step::Name(matcher)) if matcher.is_match(name) => next.push(at + 1),
                    None | Some(Step::Name(_)) => {}
                }
            }
            next.dedup();
            reached = next;
        }
        !reached.is_empty()
    }

    /// `**` stands for no directory too.
    fn with_skipped(&self, reached: &[usize]) -> Vec<usize> {
        let mut all = Vec::new();
        for &(mut at) in reached {
            while let Some(Step::Anywhere) = self.steps.get(at) {
                all.push(at);
                at += 1;
            }
            all.push(at);
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Returns whether a part of a glob between two slashes matches names and never parts of paths. Alternatives and
/// classes may contain a slash, at which the glob was split; those that plainly do not are taken as they are.
fn is_one_name(piece: &str) -> bool {
    let mut rest = piece;
    while let Some(begin) = rest.find(['{', '[', ']', '}', '\\']) {
        let (close, is_plain): (char, fn(&str) -> bool) = match rest.as_bytes()[begin] {
            b'{' => ('}', is_plain_alternatives),
            b'[' => (']', is_plain_class),
            _ => return false,
        };
        let Some((inside, after)) = rest[begin + 1..].split_once(close) else {
            return false;
        };
        if !is_plain(inside) {
            return false;
        }
        rest = after;
    }
    true
}

fn is_plain_alternatives(inside: &str) -> bool {
    !inside.contains(['{', '[', '\\']) && !inside.contains("**")
}

/// No range between letters and digits has the slash in it.
fn is_plain_class(inside: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !inside.is_empty() && !inside.starts_with('-') && !inside.contains("--") && inside.bytes().all(is_plain)
}
