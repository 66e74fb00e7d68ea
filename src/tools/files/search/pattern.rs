//! Search pattern, and its matches in a text. Does no I/O.

use regex::{Regex, RegexBuilder};

use crate::tools::{
    ToolError,
    lines::{count_lines, lines},
};

/// Characters of a line that are shown, around what was found.
const MAX_SHOWN: usize = 200;
/// Characters before what was found.
const BEFORE: usize = 60;
/// The longest query.
const MAX_QUERY: usize = 10_000;
/// Bytes that a compiled expression may take.
const MAX_COMPILED: usize = 4 * 1024 * 1024;

/// An expression that lines match.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// It goes over the ends of lines.
    has_lines: bool,
}

/// A line with something that was searched for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// From 1.
    pub(super) line: usize,
    pub(super) text: String,
}

impl Pattern {
    /// A query without capital letters ignores case.
    pub(super) fn new(query: &str, is_regex: bool) -> Result<Self, ToolError> {
        let refused = |why: String| ToolError::argument("query", why);
        if query.is_empty() {
            return Err(refused("empty; give the text to search for".to_owned()));
        }
        if query.len() > MAX_QUERY {
            return Err(refused(format!(
                "longer than {MAX_QUERY} bytes; search for a part of it"
            )));
        }
        let expression = match is_regex {
            true => query.to_owned(),
            false => {
                let escaped: Vec<String> = lines(query).map(|line| regex::escape(line.text)).collect();
                escaped.join(r"(?:\r\n|\r|\n)")
            }
        };
        let built = RegexBuilder::new(&expression)
            .case_insensitive(!has_capitals(query, is_regex))
            .size_limit(MAX_COMPILED)
            .build();
        let regex = built.map_err(|error| refused(explain(&error)))?;
        Ok(Self {
            regex,
            has_lines: !is_regex && count_lines(query) > 1,
        })
    }

    /// The first lines of a text that match, at most so many.
    pub(super) fn find(&self, text: &str, max: usize) -> Vec<Hit> {
        if self.has_lines {
            return self.find_across(text, max);
        }
        let found = lines(text).enumerate().filter_map(|(index, line)| {
            let found = self.regex.find(line.text)?;
            Some(hit(index + 1, line.text, found.start()))
        });
        found.take(max).collect()
    }

    /// The lines in which something begins that goes over their ends.
    fn find_across(&self, text: &str, max: usize) -> Vec<Hit> {
        let found = self.regex.find_iter(text).take(max).filter_map(|found| {
            let before = &text[..found.start()];
            let start = before.rfind(['\n', '\r']).map_or(0, |end| end + 1);
            let line = lines(&text[start..]).next()?;
            Some(hit(count_lines(&text[..start]) + 1, line.text, found.start() - start))
        });
        found.collect()
    }
}

fn hit(line: usize, text: &str, at: usize) -> Hit {
    let before = text[..at].chars().count();
    let skipped = match text.chars().count() > MAX_SHOWN {
        true => before.saturating_sub(BEFORE),
        false => 0,
    };
    let mut shown: String = text.chars().skip(skipped).take(MAX_SHOWN).collect();
    if skipped > 0 {
        shown.insert_str(0, "...");
    }
    if text.chars().count() > skipped + MAX_SHOWN {
        shown.push_str("...");
    }
    Hit { line, text: shown }
}

/// Returns whether a query has capital letters, not counting those of classes such as `\S`.
fn has_capitals(query: &str, is_regex: bool) -> bool {
    let mut escaped = false;
    query.chars().any(|character| {
        let is_class = is_regex && escaped;
        escaped = character == '\\' && !escaped;
        character.is_uppercase() && !is_class
    })
}

/// The last line of an error, which says what is wrong.
fn explain(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "too large an expression; search for something simpler".to_owned(),
        error => {
            let text = error.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("no valid regular expression: {why}; regex=false searches for the text as it is")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(query: &str, is_regex: bool, text: &str) -> Vec<(usize, String)> {
        let pattern = Pattern::new(query, is_regex).expect("valid");
        let hits = pattern.find(text, 10).into_iter();
        hits.map(|hit| (hit.line, hit.text)).collect()
    }

    fn numbers(query: &str, is_regex: bool, text: &str) -> Vec<usize> {
        found(query, is_regex, text).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_query_without_capitals_ignores_case() {
        let text = "KeyError\r\nkeyerror\rÉtude a.b";
        assert_eq!(numbers("keyerror", false, text), [1, 2]);
        assert_eq!(numbers("KeyError", false, text), [1]);
        assert_eq!(numbers("étude", false, text), [3]);
        assert_eq!(numbers("a.b", false, "a.b\nacb"), [1], "a text is taken as it is");
        assert_eq!(numbers(r"^key\S+$", true, text), [1, 2]);
        assert_eq!(numbers(r"a.b", true, "a.b\nacb"), [1, 2]);
    }

    #[test]
    fn a_text_of_several_lines_is_found_where_it_begins() {
        assert_eq!(found("b\nc", false, "a\nab\r\ncd\n"), [(2, "ab".to_owned())]);
        assert_eq!(
            numbers("x\n", false, "x"),
            [1],
            "the end of the last line is not searched for"
        );
    }

    #[test]
    fn long_lines_are_shown_around_what_was_found() {
        let line = format!("{}needle{}", "é".repeat(500), "x".repeat(500));
        let (_, text) = found("needle", false, &line).remove(0);
        assert!(text.starts_with("...éé") && text.ends_with("x...") && text.contains("needle"));
        assert_eq!(text.chars().count(), MAX_SHOWN + 6);
    }

    #[test]
    fn bad_queries_are_refused() {
        for (query, why) in [
            ("", "empty"),
            ("a(", "unclosed group"),
            (r"(\w{1000}){1000}", "simpler"),
        ] {
            let error = Pattern::new(query, true).expect_err(query).to_string();
            assert!(error.contains("`query`") && error.contains(why), "{error}");
        }
        assert!(Pattern::new(&"a".repeat(20_000), false).is_err());
    }
}
