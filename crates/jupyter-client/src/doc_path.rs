//! The path of a document inside a Jupyter server, normalised so that one file has one spelling.
//! Access rules and rooms are keyed by it, so two spellings of a file must never both be accepted.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters that stay unencoded in one segment of a URL path (RFC 3986 `unreserved`).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Longer paths than this exist on no file system that Jupyter serves from.
const MAX_BYTES: usize = 4096;

/// A path relative to the root of a Jupyter server: no leading or trailing slash, no `.` or `..`.
/// The empty path is the root directory.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocPath(String);

/// Reason why a path was refused, in words that tell the caller what to send instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error(
        "path {0:?} leaves the server's root: `..` is not allowed; give the path from the root, e.g. `folder/name.ipynb`"
    )]
    Parent(String),
    #[error("path {0:?} hides a separator or `..` behind percent-encoding; give the plain, decoded path")]
    Encoded(String),
    #[error("path {0:?} is absolute; give the path relative to the Jupyter root, e.g. `folder/name.ipynb`")]
    Absolute(String),
    #[error("path {0:?} has a backslash; separate folders with `/`")]
    Backslash(String),
    #[error("path {0:?} has a control character; remove it")]
    Control(String),
    #[error("path is {0} bytes long; at most {MAX_BYTES} are allowed")]
    TooLong(usize),
    #[error("path is empty; name a file, e.g. `folder/name.ipynb`")]
    Empty,
}

impl DocPath {
    /// The root directory of a server.
    pub fn root() -> Self {
        Self(String::new())
    }

    /// Parses what a caller sent. One leading `/` means the Jupyter root, as Jupyter itself prints it.
    pub fn parse(raw: &str) -> Result<Self, PathError> {
        let shown = || raw.chars().take(200).collect::<String>();
        if raw.len() > MAX_BYTES {
            return Err(PathError::TooLong(raw.len()));
        }
        if raw.chars().any(char::is_control) {
            return Err(PathError::Control(shown()));
        }
        if raw.contains('\\') {
            return Err(PathError::Backslash(shown()));
        }
        if raw.starts_with("//") || has_scheme(raw) {
            return Err(PathError::Absolute(shown()));
        }
        if raw.split('/').any(|segment| segment == "..") {
            return Err(PathError::Parent(shown()));
        }
        if hides_structure(raw) {
            return Err(PathError::Encoded(shown()));
        }
        let segments: Vec<&str> = raw
            .split('/')
            .filter(|segment| !segment.is_empty() && *segment != ".")
            .collect();
        let path = segments.join("/");
        // Also behind a slash or a dot that is left out.
        match has_drive_letter(&path) {
            true => Err(PathError::Absolute(shown())),
            false => Ok(Self(path)),
        }
    }

    /// Parses the path of a file; the root directory is not one.
    pub fn parse_file(raw: &str) -> Result<Self, PathError> {
        let path = Self::parse(raw)?;
        if path.is_root() {
            return Err(PathError::Empty);
        }
        Ok(path)
    }

    /// This path after `from` became `to`, if it was there or below.
    pub fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        let rest = self.as_str().strip_prefix(from.as_str())?;
        let below = rest.is_empty() || rest.starts_with('/');
        below.then(|| Self::parse(&format!("{to}{rest}")).ok())?
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub fn is_notebook(&self) -> bool {
        self.0.ends_with(".ipynb")
    }

    /// The last segment; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The directory that holds this path; the root is its own parent.
    pub fn parent(&self) -> Self {
        match self.0.rsplit_once('/') {
            Some((directory, _)) => Self(directory.to_owned()),
            None => Self::root(),
        }
    }

    /// The path with its percent-encoding undone, if it has any.
    pub fn decoded(&self) -> Option<Self> {
        if !self.0.contains('%') {
            return None;
        }
        let mut current = self.clone();
        while let Ok(decoded) = percent_decode_str(&current.0).decode_utf8()
            && decoded != current.0
        {
            current = Self(decoded.into_owned());
        }
        (current != *self).then_some(current)
    }

    /// The path as it stands in a URL: every segment percent-encoded, the separators kept.
    pub fn to_url_path(&self) -> String {
        let encoded: Vec<String> = self
            .0
            .split('/')
            .map(|segment| utf8_percent_encode(segment, SEGMENT).to_string())
            .collect();
        encoded.join("/")
    }
}

impl fmt::Display for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

fn has_drive_letter(raw: &str) -> bool {
    let mut chars = raw.chars();
    matches!((chars.next(), chars.next(), chars.next()), (Some(letter), Some(':'), Some('/') | None) if letter.is_ascii_alphabetic())
}

fn has_scheme(raw: &str) -> bool {
    raw.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// Returns whether decoding the path, once or several times as a proxy may do, yields another directory structure. A
/// literal `%` in a name stays allowed: `100%.ipynb` decodes to itself.
fn hides_structure(raw: &str) -> bool {
    let mut current = raw.to_owned();
    for _ in 0..4 {
        let Ok(decoded) = percent_decode_str(&current).decode_utf8() else {
            return true;
        };
        if decoded == current {
            return false;
        }
        let same_shape = decoded.matches('/').count() == raw.matches('/').count();
        let dotted = decoded.split('/').any(|segment| segment == "..");
        if !same_shape || dotted || decoded.contains('\\') || decoded.chars().any(char::is_control) {
            return true;
        }
        current = decoded.into_owned();
    }
    // Five layers of encoding are nobody's file name.
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(raw: &str) -> String {
        DocPath::parse(raw).expect(raw).to_string()
    }

    #[test]
    fn spellings_of_one_file_become_one() {
        for raw in [
            "a/b.ipynb",
            "/a/b.ipynb",
            "./a/b.ipynb",
            "a//b.ipynb",
            "a/./b.ipynb",
            "a/b.ipynb/",
        ] {
            assert_eq!(parsed(raw), "a/b.ipynb", "{raw}");
        }
        for raw in ["", "/", ".", "./"] {
            assert!(DocPath::parse(raw).expect(raw).is_root(), "{raw}");
        }
    }

    #[test]
    fn what_could_leave_the_root_is_refused() {
        use PathError as E;
        type Kind = fn(String) -> PathError;
        let cases: &[(&str, Kind)] = &[
            ("..", E::Parent),
            ("../x", E::Parent),
            ("a/../../x", E::Parent),
            ("a/..", E::Parent),
            ("%2e%2e/x", E::Encoded),
            ("%2e./x", E::Encoded),
            ("%252e%252e/x", E::Encoded),
            ("%25252e%25252e/x", E::Encoded),
            ("a%2fb", E::Encoded),
            ("a%5cb", E::Encoded),
            ("a%00b", E::Encoded),
            ("a%ffb", E::Encoded),
            ("a\\..\\b", E::Backslash),
            ("a\0b", E::Control),
            ("a\nb", E::Control),
            ("//host/share", E::Absolute),
            ("C:/Windows", E::Absolute),
            ("/C:/Windows", E::Absolute),
            ("./C:/Windows", E::Absolute),
            ("file:///etc/passwd", E::Absolute),
        ];
        for (raw, kind) in cases {
            assert_eq!(DocPath::parse(raw), Err(kind((*raw).to_owned())), "{raw:?}");
        }
        assert!(matches!(
            DocPath::parse(&"x".repeat(5000)),
            Err(PathError::TooLong(5000))
        ));
        assert_eq!(DocPath::parse_file("/"), Err(PathError::Empty));
    }

    #[test]
    fn unusual_but_honest_names_are_kept() {
        for raw in [
            "100%.ipynb",
            "a%20b.ipynb",
            "a b/ü 漢字 🎉.ipynb",
            "..a/b...ipynb",
            "a:b.txt",
            "~x",
            "%zz",
        ] {
            assert_eq!(parsed(raw), raw);
        }
    }

    #[test]
    fn names_and_parents() {
        let path = DocPath::parse("a/b/c.ipynb").expect("valid");
        assert_eq!((path.name(), path.parent().as_str()), ("c.ipynb", "a/b"));
        assert!(path.is_notebook());
        assert!(path.parent().parent().parent().is_root());
        assert_eq!(
            DocPath::parse("a b/ü%.txt").expect("valid").to_url_path(),
            "a%20b/%C3%BC%25.txt"
        );
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_is_idempotent(raw in ".{0,80}") {
            if let Ok(path) = DocPath::parse(&raw) {
                prop_assert_eq!(DocPath::parse(path.as_str()), Ok(path.clone()));
                prop_assert!(!path.as_str().starts_with('/') && !path.as_str().ends_with('/'));
                prop_assert!(path.as_str().split('/').all(|s| s != ".." && s != "."));
                prop_assert!(path.is_root() || !path.as_str().split('/').any(str::is_empty));
            }
        }

        #[test]
        fn dotted_and_encoded_mixtures_never_escape(raw in r"(\.|%2e|%2E|%252e|/|%2f|%2F|%5c|\\|a){1,14}") {
            if let Ok(path) = DocPath::parse(&raw) {
                let mut decoded = path.to_string();
                for _ in 0..5 {
                    prop_assert!(decoded.split('/').all(|s| s != ".."), "{} -> {}", raw, decoded);
                    prop_assert!(!decoded.contains('\\'));
                    decoded = percent_decode_str(&decoded).decode_utf8_lossy().into_owned();
                }
            }
        }

        #[test]
        fn the_url_form_decodes_to_the_path(raw in "[a-zA-Z0-9 %äß漢🎉._-]{1,20}(/[a-zA-Z0-9 %äß漢🎉_-]{1,20}){0,3}") {
            if let Ok(path) = DocPath::parse(&raw) {
                let decoded = percent_decode_str(&path.to_url_path()).decode_utf8().expect("utf-8").into_owned();
                prop_assert_eq!(decoded, path.to_string());
            }
        }
    }
}
