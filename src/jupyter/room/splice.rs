//! The smallest replacement that turns one text into another. Other people's cursors and the edits
//! they make at the same moment survive outside of it.

/// Replace `delete` units at `at` by `insert`. Units are UTF-16 code units, as the shared text counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Splice {
    pub(super) at: u32,
    pub(super) delete: u32,
    pub(super) insert: String,
}

impl Splice {
    /// Where the inserted text ends.
    pub(super) fn end(&self) -> u32 {
        self.at + utf16_len(&self.insert)
    }
}

/// `None` if the texts are equal. Never splits a code point.
pub(super) fn between(old: &str, new: &str) -> Option<Splice> {
    if old == new {
        return None;
    }
    let prefix = common_prefix(old, new);
    let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
    let suffix = common_suffix(old_rest, new_rest);
    Some(Splice {
        at: utf16_len(&old[..prefix]),
        delete: utf16_len(&old_rest[..old_rest.len() - suffix]),
        insert: new_rest[..new_rest.len() - suffix].to_owned(),
    })
}

/// A splice at positions that count code points; `None` if they are outside of the text.
pub(super) fn at_code_points(text: &str, position: usize, delete: usize, insert: &str) -> Option<Splice> {
    let start = byte_of(text, position)?;
    let removed = &text[start..];
    let end = byte_of(removed, delete)?;
    Some(Splice {
        at: utf16_len(&text[..start]),
        delete: utf16_len(&removed[..end]),
        insert: insert.to_owned(),
    })
}

/// The byte at which a code point starts; the end of the text is a valid position too.
pub(super) fn byte_of(text: &str, position: usize) -> Option<usize> {
    let mut starts = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    starts.nth(position)
}

pub(super) fn utf16_len(text: &str) -> u32 {
    u32::try_from(text.chars().map(char::len_utf16).sum::<usize>()).unwrap_or(u32::MAX)
}

fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (0..=same)
        .rev()
        .find(|at| a.is_char_boundary(*at) && b.is_char_boundary(*at))
        .unwrap_or(0)
}

fn common_suffix(a: &str, b: &str) -> usize {
    let same = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let fits = |length: &usize| a.is_char_boundary(a.len() - length) && b.is_char_boundary(b.len() - length);
    (0..=same).rev().find(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn apply(old: &str, splice: &Splice) -> String {
        let mut units: Vec<u16> = old.encode_utf16().collect();
        let (at, delete) = (splice.at as usize, splice.delete as usize);
        units.splice(at..at + delete, splice.insert.encode_utf16());
        String::from_utf16(&units).expect("no code point is split")
    }

    #[test]
    fn only_what_differs_is_touched() {
        let splice = between("print('a')\nx = 1\n", "print('a')\nx = 12\n").expect("differs");
        assert_eq!(
            splice,
            Splice {
                at: 16,
                delete: 0,
                insert: "2".to_owned()
            }
        );
        assert_eq!(between("same", "same"), None);
        assert_eq!(between("aa", "aaa").expect("differs").insert, "a");
    }

    #[test]
    fn positions_outside_are_none() {
        assert!(at_code_points("🎉b", 3, 0, "x").is_none());
        assert!(at_code_points("🎉b", 1, 2, "x").is_none());
        assert_eq!(
            at_code_points("🎉b", 1, 1, "x"),
            Some(Splice {
                at: 2,
                delete: 1,
                insert: "x".to_owned()
            })
        );
        assert_eq!(at_code_points("🎉b", 2, 0, "x").map(|splice| splice.at), Some(3));
    }

    proptest! {
        #[test]
        fn a_splice_turns_old_into_new(old in "[aé漢🎉👩‍💻\u{301}\n]{0,30}", new in "[aé漢🎉👩‍💻\u{301}\n]{0,30}") {
            match between(&old, &new) {
                None => prop_assert_eq!(old, new),
                Some(splice) => prop_assert_eq!(apply(&old, &splice), new),
            }
        }

        #[test]
        fn code_point_positions_do_what_they_say(text in "[aé漢🎉\u{301}]{0,20}", position in 0_usize..25, delete in 0_usize..25, insert in "[x🎉]{0,3}") {
            let characters: Vec<char> = text.chars().collect();
            let splice = at_code_points(&text, position, delete, &insert);
            prop_assert_eq!(splice.is_some(), position + delete <= characters.len());
            if let Some(splice) = splice {
                let mut expected = characters;
                expected.splice(position..position + delete, insert.chars());
                prop_assert_eq!(apply(&text, &splice), expected.into_iter().collect::<String>());
            }
        }
    }
}
