//! New mentions of agents in a document. A mention counts once, when its name is complete, and again only if it
//! was removed meanwhile.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::mention::Mention;

/// A name at the end of a text is taken to be complete when nothing was typed for so long.
pub(super) const COMPLETE_AFTER: Duration = Duration::from_millis(150);
/// Cells of a document whose mentions are remembered.
const MAX_CELLS: usize = 10_000;

/// The mentions that a document has, by cell; that of a text document is empty.
#[derive(Debug, Default)]
pub(super) struct MentionWatch {
    cells: HashMap<Arc<str>, Known>,
    /// Cells whose last name may not be complete.
    pending: HashMap<Arc<str>, Pending>,
}

/// The mentions of a cell, the last of which counts if nothing more is typed.
#[derive(Debug)]
struct Pending {
    found: Vec<Mention>,
    due: Instant,
}

/// Mentions of a cell that were told, or were there before: by agent the lines that they stand in.
type Known = HashMap<Arc<str>, Vec<String>>;

impl MentionWatch {
    /// Takes the mentions of a cell as they are, none of which is new.
    pub(super) fn take(&mut self, cell: &Arc<str>, found: &[Mention]) {
        self.set(cell, by_agent(found));
    }

    /// The mentions of a cell that are new now that it was changed.
    pub(super) fn changed(&mut self, cell: &Arc<str>, found: Vec<Mention>, now: Instant) -> Vec<Mention> {
        let known = self.cells.get(cell);
        let count = |agent: &str| known.and_then(|known| known.get(agent)).map_or(0, Vec::len);
        let last = found.last().filter(|mention| mention.is_last);
        let is_new = last.is_some_and(|last| {
            let same = found.iter().filter(|mention| mention.agent.id == last.agent.id);
            same.count() > count(&last.agent.id)
        });
        match is_new {
            true => {
                let complete = found[..found.len() - 1].to_vec();
                let due = now + COMPLETE_AFTER;
                self.pending.insert(Arc::clone(cell), Pending { found, due });
                self.settle(cell, complete)
            }
            false => {
                self.pending.remove(cell);
                self.settle(cell, found)
            }
        }
    }

    /// Cells of which all names are complete by now, and the mentions that they have.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(Arc<str>, Vec<Mention>)> {
        let due = self.pending.extract_if(|_, pending| pending.due <= now);
        due.map(|(cell, pending)| (cell, pending.found)).collect()
    }

    /// The next time at which names are complete.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.pending.values().map(|pending| pending.due).min()
    }

    /// The mentions of a cell that are new, all names in it being complete.
    pub(super) fn settle(&mut self, cell: &Arc<str>, found: Vec<Mention>) -> Vec<Mention> {
        let none = Known::new();
        let known = self.cells.get(cell).unwrap_or(&none);
        let lines = by_agent(&found);
        let mut new = Vec::new();
        for (agent, lines) in &lines {
            let before = known.get(agent).map_or(&[][..], Vec::as_slice);
            let added = lines.len().saturating_sub(before.len());
            if added > 0 {
                let mut of_agent: Vec<Mention> = found
                    .iter()
                    .filter(|mention| mention.agent.id == *agent)
                    .cloned()
                    .collect();
                remove_known(&mut of_agent, before);
                new.extend(of_agent.split_off(of_agent.len().saturating_sub(added)));
            }
        }
        self.set(cell, lines);
        new
    }

    fn set(&mut self, cell: &Arc<str>, lines: Known) {
        match lines.is_empty() {
            true => drop(self.cells.remove(cell)),
            false if self.cells.len() >= MAX_CELLS && !self.cells.contains_key(cell) => {}
            false => drop(self.cells.insert(Arc::clone(cell), lines)),
        }
    }
}

/// Leaves out mentions that stand in lines as they were before.
fn remove_known(mentions: &mut Vec<Mention>, before: &[String]) {
    let most = mentions.len().saturating_sub(before.len());
    for line in before {
        if mentions.len() <= most.max(1) {
            break;
        }
        if let Some(at) = mentions.iter().position(|mention| mention.text == *line) {
            mentions.remove(at);
        }
    }
}

fn by_agent(found: &[Mention]) -> Known {
    let mut lines = Known::new();
    for mention in found {
        lines
            .entry(Arc::clone(&mention.agent.id))
            .or_default()
            .push(mention.text.clone());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::{
        agents::{KnownAgent, KnownAgents},
        mention::mentions,
    };
    use super::*;

    struct Typing {
        watch: MentionWatch,
        known: KnownAgents,
        now: Instant,
    }

    impl Typing {
        fn new() -> Self {
            let known = KnownAgents::new(vec![KnownAgent {
                id: "token:ana".into(),
                name: "ana".to_owned(),
                tenant: "t".into(),
            }]);
            Self {
                watch: MentionWatch::default(),
                known,
                now: Instant::now(),
            }
        }

        fn types(&mut self, text: &str) -> Vec<String> {
            let found = mentions(text, &self.known.names());
            let new = self.watch.changed(&"c".into(), found, self.now);
            new.into_iter().map(|mention| mention.text).collect()
        }

        fn pauses(&mut self) -> Vec<String> {
            self.now += COMPLETE_AFTER;
            let due = self.watch.due(self.now).into_iter();
            let new = due.flat_map(|(cell, found)| self.watch.settle(&cell, found));
            new.map(|mention| mention.text).collect()
        }
    }

    #[test]
    fn a_mention_counts_once_however_it_is_typed() {
        let mut typing = Typing::new();
        let told: Vec<String> = ["@", "@a", "@an", "@ana", "@ana ", "@ana f", "@ana fix"]
            .into_iter()
            .flat_map(|text| typing.types(text))
            .collect();
        assert_eq!(told, ["@ana"]);
        assert!(typing.pauses().is_empty());
        assert!(typing.types("@an fix").is_empty(), "removed");
        assert_eq!(typing.types("@ana fix"), ["@ana fix"], "typed anew");
        assert_eq!(typing.types("@ana fix\n@ana and\n"), ["@ana and"], "a second one");
        assert!(typing.types("@ana fix").is_empty());
    }

    #[test]
    fn a_name_at_the_end_counts_when_typing_pauses() {
        let mut typing = Typing::new();
        assert!(typing.types("see @ana").is_empty());
        assert_eq!(typing.pauses(), ["see @ana"]);
        assert!(typing.types("see @ana ").is_empty() && typing.types("see @ana now").is_empty());
        assert!(typing.types("see @anas").is_empty() && typing.pauses().is_empty());
        assert!(typing.types("see @ana").is_empty() && typing.types("see ana").is_empty());
        assert!(typing.pauses().is_empty(), "typed away at once");
        assert!(typing.types("see @ana").is_empty());
        assert_eq!(typing.pauses(), ["see @ana"], "and back");
    }

    #[test]
    fn what_was_there_before_is_not_new() {
        let mut typing = Typing::new();
        let before = mentions("@ana old\n", &typing.known.names());
        typing.watch.take(&"c".into(), &before);
        assert!(typing.types("@ana old\nmore").is_empty());
        assert_eq!(typing.types("@ana old\n@ana new\n"), ["@ana new"]);
    }
}
