//! Names of agents in a text: `@ana-agent`, in any case, not within a word or an e-mail address.

use live_document::CallingLine;

use super::agents::{AgentNames, KnownAgent, is_plain};

/// Characters of the line that a mention stands in.
const MAX_LINE: usize = 500;

/// A name of an agent in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) agent: KnownAgent,
    /// From 0.
    pub(super) line: usize,
    /// The line that it stands in.
    pub(super) text: String,
    /// Nothing stands after it, so that somebody may be typing a longer name.
    pub(super) is_last: bool,
}

/// All mentions in lines of a text.
pub(super) fn in_lines<'a>(lines: impl IntoIterator<Item = &'a CallingLine>, names: &AgentNames) -> Vec<Mention> {
    let of_line = |line: &CallingLine| {
        let (number, is_last) = (line.line, line.is_last);
        let found = mentions(&line.text, names).into_iter();
        found.map(move |mention| Mention {
            line: number + mention.line,
            is_last: is_last && mention.is_last,
            ..mention
        })
    };
    lines.into_iter().flat_map(of_line).collect()
}

/// All mentions in a text.
pub(super) fn mentions(text: &str, names: &AgentNames) -> Vec<Mention> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|character| is_plain(character) || matches!(character, '+' | '%' | '/' | '@')) {
            continue;
        }
        let rest = &text[at + 1..];
        if let Some((agent, length)) = named(rest, names) {
            let (line, text) = line_of(text, at);
            found.push(Mention {
                agent: agent.clone(),
                line,
                text,
                is_last: length == rest.len(),
            });
        }
    }
    found
}

/// The agent whose name a text begins with, and the length of the name there.
fn named<'a>(rest: &str, names: &'a AgentNames) -> Option<(&'a KnownAgent, usize)> {
    let run: usize = rest
        .chars()
        .take_while(|character| is_plain(*character))
        .map(char::len_utf8)
        .sum();
    let word = rest[..run].trim_end_matches(['.', '-', '_']);
    // A name may itself end with a sign that also ends a sentence.
    let plain = [&rest[..run], word].into_iter().find_map(|word| {
        let agent = names.plain.get(&word.to_lowercase())?;
        Some((agent, word.len()))
    });
    let odd = names.odd.iter().filter_map(|(name, agent)| {
        let length = prefix_length(rest, name)?;
        let next = rest[length..].chars().next();
        next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
            .then_some((agent, length))
    });
    plain.into_iter().chain(odd).max_by_key(|(_, length)| *length)
}

/// The length of the beginning of a text that is a name in small letters.
fn prefix_length(text: &str, name: &str) -> Option<usize> {
    let mut rest = name;
    for (at, character) in text.char_indices() {
        if rest.is_empty() {
            return Some(at);
        }
        for small in character.to_lowercase() {
            rest = rest.strip_prefix(small)?;
        }
    }
    rest.is_empty().then_some(text.len())
}

fn line_of(text: &str, at: usize) -> (usize, String) {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let number = text[..start].bytes().filter(|byte| *byte == b'\n').count();
    (number, text[start..end].trim().chars().take(MAX_LINE).collect())
}

#[cfg(test)]
mod tests {
    use super::super::agents::KnownAgents;
    use super::*;

    fn found(text: &str) -> Vec<(String, bool)> {
        let agent = |name: &str| KnownAgent {
            id: format!("token:{name}").into(),
            name: name.to_owned(),
            tenant: "t".into(),
        };
        let known = KnownAgents::new(["ana", "Ana-Agent", "b.c", "ana@example.org"].map(agent).to_vec());
        let found = mentions(text, &known.names());
        found
            .into_iter()
            .map(|mention| (mention.agent.name, mention.is_last))
            .collect()
    }

    #[test]
    fn names_stand_alone_in_any_case() {
        let whole = |name: &str| (name.to_owned(), false);
        assert_eq!(found("# @ANA-agent, look"), [whole("Ana-Agent")]);
        assert_eq!(
            found("(@ana) @Ana-Agent. @b.c\n"),
            ["ana", "Ana-Agent", "b.c"].map(whole)
        );
        assert_eq!(found("@ana"), [("ana".to_owned(), true)]);
        assert_eq!(found("@ana."), [whole("ana")], "a sentence ends");
        assert_eq!(
            found("@ana@example.org hello"),
            [whole("ana@example.org")],
            "the longest"
        );
        for text in [
            "x@ana.com y",
            "mail me@ana now",
            "@anastasia",
            "@ana-agents",
            "@ana_x",
            "ana",
            "@ ana",
            "@@ana",
            "https://h/@ana",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn lines_count_as_in_their_text() {
        let known = KnownAgents::new(vec![KnownAgent {
            id: "token:ana".into(),
            name: "ana".to_owned(),
            tenant: "t".into(),
        }]);
        let line = |line: usize, text: &str, is_last| CallingLine {
            cell: "c".into(),
            line,
            text: text.into(),
            is_last,
        };
        let found = in_lines(&[line(3, "  @ana", false), line(7, "@ana", true)], &known.names());
        let told: Vec<_> = found
            .iter()
            .map(|found| (found.line, &*found.text, found.is_last))
            .collect();
        assert_eq!(told, [(3, "@ana", false), (7, "@ana", true)]);
    }

    #[test]
    fn the_line_is_told() {
        let known = KnownAgents::new(vec![KnownAgent {
            id: "token:ana".into(),
            name: "ana".to_owned(),
            tenant: "t".into(),
        }]);
        let found = mentions("one\n  # @ana, please fix é\nthree", &known.names());
        assert_eq!((found[0].line, found[0].text.as_str()), (1, "# @ana, please fix é"));
    }
}
