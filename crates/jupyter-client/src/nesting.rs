//! Nesting depth of JSON, found without recursion: parsers, `drop` and serialisers recurse, and a text of a few
//! kilobytes can be nested deeply enough to overflow any stack.

/// The most levels of arrays and objects that are taken, from Jupyter and from callers alike. Plots and widgets have
/// about ten. Answers and records wrap a few more around it, which stays below the 128 that JSON parsers accept.
pub const MAX_NESTING: usize = 100;

/// Returns whether a JSON text is nested no deeper than allowed. Looks only at brackets and strings; text that is not
/// JSON is left to its parser to refuse.
pub fn is_shallow_json(json: &[u8]) -> bool {
    let mut depth = 0_usize;
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in json {
        if in_string {
            (in_string, is_escaped) = match byte {
                _ if is_escaped => (true, false),
                b'\\' => (true, true),
                b'"' => (false, false),
                _ => (true, false),
            };
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn nesting_counts_and_brackets_in_strings_do_not() {
        assert!(is_shallow_json(nested(MAX_NESTING).as_bytes()));
        assert!(!is_shallow_json(nested(MAX_NESTING + 1).as_bytes()));
        assert!(!is_shallow_json(r#"{"a":"#.repeat(1_000_000).as_bytes()));
        let text = serde_json::to_string(&format!("\"{}\\", nested(1000))).expect("a text");
        assert!(is_shallow_json(text.as_bytes()));
        assert!(is_shallow_json("[1],".repeat(1000).as_bytes()), "beside each other");
    }
}
