//! Small phrases of the lines about figures: names, numbers, lists.

use jupyter_client::as_shown;

use super::html;

/// Bytes of a name in a line.
const MAX_NAME: usize = 80;
/// Members of a list that are told.
const MAX_LISTED: usize = 6;

/// Text on one line, cut to a number of bytes.
pub(super) fn one_line(text: &str, max: usize) -> String {
    // Only as much as can be shown is looked at.
    let beginning = &text[..text.floor_char_boundary(max.saturating_mul(4).saturating_add(256))];
    let mut line = String::new();
    for word in as_shown(beginning).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > max {
            break;
        }
    }
    if line.len() <= max && (beginning.len() == text.len() || text[beginning.len()..].trim().is_empty()) {
        return line;
    }
    line.truncate(line.floor_char_boundary(max.saturating_sub(3)));
    line.push_str("...");
    line
}

/// A title or name as a reader sees it: in quotes, without markup.
pub(super) fn quoted(name: &str) -> String {
    let beginning = &name[..name.floor_char_boundary(MAX_NAME * 8)];
    let plain = if beginning.contains('<') {
        html::to_text(beginning)
    } else {
        beginning.to_owned()
    };
    format!("\"{}\"", one_line(&plain, MAX_NAME))
}

/// A name without quotes.
pub(super) fn name(name: &str) -> String {
    one_line(name, MAX_NAME)
}

/// The first of some phrases, and how many more there are.
pub(super) fn listed(mut phrases: Vec<String>, separator: &str) -> String {
    let more = phrases.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        phrases.truncate(MAX_LISTED);
        phrases.push(format!("{more} more"));
    }
    phrases.join(separator)
}

/// Number to about four digits.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if value == 0.0 => return "0".to_owned(),
        _ if size < 1e15 && value.fract() == 0.0 => return format!("{value:.0}"),
        _ if !(1e-4..1e6).contains(&size) => return format!("{value:.3e}"),
        _ if size >= 100.0 => 1,
        _ if size >= 10.0 => 2,
        _ if size >= 1.0 => 3,
        _ if size >= 0.01 => 4,
        _ => 6,
    };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (99.0, "99"),
            (9.7, "9.7"),
            (1.0 / 3.0, "0.3333"),
            (123.456, "123.5"),
            (1e300, "1.000e300"),
            (-2.5e-7, "-2.500e-7"),
            (1_700_000_000.5, "1.700e9"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn lines_are_cut_between_characters() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line(&"ä".repeat(100), 10), "äää...");
        assert_eq!(one_line("abc def", 6), "abc...");
        assert_eq!(quoted("<b>Sales</b><br>2024"), "\"Sales 2024\"");
    }
}
