//! Replacement of a part of a text that is found by its content. Pure; knows nothing of documents.

use super::{
    edit::EditError,
    splice::{self, Splice, utf16_len},
};

/// The splices that replace `old` in a text, from the end to the beginning: where it is found exactly once, or everywhere.
/// An empty `old` is found only in an empty text.
pub(crate) fn replacing(text: &str, old: &str, new: &str, all: bool) -> Result<Vec<Splice>, EditError> {
    let found = places(text, old, all);
    if found.is_empty() || found.len() > 1 && !all {
        return Err(EditError::Matches { found: found.len() });
    }
    // Each is done before those that come earlier in the text.
    let within = splice::between(old, new);
    let (mut byte, mut unit) = (0, 0);
    let starts: Vec<u32> = found
        .into_iter()
        .map(|place| {
            unit += utf16_len(&text[byte..place]);
            byte = place;
            unit
        })
        .collect();
    let shifted = |start: &u32| {
        let start = *start;
        within.iter().map(move |splice| Splice {
            at: splice.at + start,
            ..splice.clone()
        })
    };
    Ok(starts.iter().rev().flat_map(shifted).collect())
}

/// The bytes at which a text is found. Those that are all replaced do not overlap; of those among which one is meant,
/// each counts.
fn places(text: &str, old: &str, all: bool) -> Vec<usize> {
    let Some(first) = old.chars().next() else {
        return (0..usize::from(text.is_empty())).collect();
    };
    let step = if all { old.len() } else { first.len_utf8() };
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(old) {
        found.push(from + at);
        from += at + step;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{super::merge::apply, *};

    fn replaced(text: &str, old: &str, new: &str, all: bool) -> Result<String, usize> {
        match replacing(text, old, new, all) {
            Ok(splices) => Ok(apply(text, &splices)),
            Err(EditError::Matches { found }) => Err(found),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn one_occurrence_is_replaced_and_none_or_several_are_refused() {
        assert_eq!(
            replaced("x = 1\ny = 1", "x = 1", "x = 2", false).as_deref(),
            Ok("x = 2\ny = 1")
        );
        assert_eq!(replaced("x = 1\ny = 1", "1", "2", false), Err(2));
        assert_eq!(replaced("x = 1\ny = 1", "1", "2", true).as_deref(), Ok("x = 2\ny = 2"));
        assert_eq!(replaced("x", "y", "z", true), Err(0));
        assert_eq!(replaced("aaa", "aa", "b", false), Err(2), "either could be meant");
        assert_eq!(replaced("aaa", "aa", "b", true).as_deref(), Ok("ba"));
        assert_eq!(replaced("", "", "new", false).as_deref(), Ok("new"));
        assert_eq!(replaced("x", "", "new", false), Err(0));
    }

    #[test]
    fn what_is_beyond_ascii_is_replaced_whole() {
        let text = "🎉 = '🎊'\r\ne\u{301}t\u{e9} = '🎉'\r\n";
        assert_eq!(
            replaced(text, "'🎉'", "'漢'", false).as_deref(),
            Ok("🎉 = '🎊'\r\ne\u{301}t\u{e9} = '漢'\r\n")
        );
        assert_eq!(
            replaced(text, "🎉", "🎊🎊", true).as_deref(),
            Ok("🎊🎊 = '🎊'\r\ne\u{301}t\u{e9} = '🎊🎊'\r\n")
        );
        assert_eq!(
            replaced(text, "\u{e9}t\u{e9}", "x", false),
            Err(0),
            "composed is not decomposed"
        );
        assert_eq!(replaced(text, "'🎊'\ne", "x", false), Err(0));
    }

    #[test]
    fn only_what_differs_is_touched() {
        let splices = replacing("def f(x):\n    return x + 1\n", "return x + 1", "return x + 2", false);
        let splice = Splice {
            at: 25,
            delete: 1,
            insert: "2".to_owned(),
        };
        assert_eq!(splices, Ok(vec![splice]));
        assert_eq!(replacing("a", "a", "a", false), Ok(Vec::new()));
    }
}
