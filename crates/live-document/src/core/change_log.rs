//! Log of the authors and times of source changes, which tells whether somebody else changed something since a
//! caller read it, and who. Writes of runs into their cells do not count.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use super::{
    clock::Clock,
    policy::{JUST_TYPED, TYPING},
};

/// Author of a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Author {
    /// A principal of the gateway.
    Local(Arc<str>),
    /// Somebody else in the room, by the id of their Yjs client.
    Client(u64),
    /// Somebody else who cannot be told from others.
    Unknown,
}

impl Author {
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }
}

#[derive(Debug)]
pub(crate) struct ChangeLog {
    /// Distinguishes the revisions of this incarnation of the document from those of another.
    epoch: Arc<str>,
    clock: Clock,
    began: SystemTime,
    revision: u64,
    cells: HashMap<Arc<str>, History>,
    /// Moves of cells, or changes of the text of a plain document.
    whole: History,
    /// The latest moves: when, by whom, and the first position that means another cell since.
    moves: VecDeque<(u64, Author, usize)>,
    /// The revision up to which moves are forgotten.
    forgotten: u64,
}

/// A moment in the history of a document, as far as it is of the same incarnation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    epoch: Arc<str>,
    revision: u64,
}

/// The changes of one thing: the latest of each author.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    latest: Vec<(Author, u64)>,
    /// The latest change of those authors who are not remembered any more.
    forgotten: u64,
    /// Time and author of the last change by somebody who is no principal of the gateway.
    typed: Option<(Instant, Author)>,
    run: RunMark,
    /// The run has begun and not ended.
    is_running: bool,
}

/// The last run of a cell, as far as it was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunMark {
    /// Revision and time of its start, by which runs are ordered; `None` if that was not seen.
    pub began: Option<(u64, SystemTime)>,
    /// The source was changed since.
    pub is_edited: bool,
}

/// Number of moves that are remembered; a caller that knows an older order must read again.
const MAX_MOVES: usize = 256;
/// Number of authors per thing that are remembered. Every page that a person opens is another.
const MAX_AUTHORS: usize = 8;

impl History {
    fn record(&mut self, author: &Author, revision: u64) {
        self.latest.retain(|(known, _)| known != author);
        self.latest.push((author.clone(), revision));
        if self.latest.len() > MAX_AUTHORS {
            let (_, revision) = self.latest.remove(0);
            self.forgotten = self.forgotten.max(revision);
        }
    }

    fn record_typing(&mut self, author: &Author, now: Instant) {
        self.typed = Some((now, author.clone()));
    }

    /// Those other than `me` who changed it after a revision, the latest last.
    fn others_since(&self, since: u64, me: &Author) -> Vec<Author> {
        let is_other = |(author, revision): &&(Author, u64)| *revision > since && author != me;
        let others = self.latest.iter().filter(is_other).map(|(author, _)| author.clone());
        let forgotten = (self.forgotten > since).then_some(Author::Unknown);
        let mut found: Vec<Author> = forgotten.into_iter().chain(others).collect();
        found.dedup();
        found
    }

    fn typing(&self, clock: &Clock, within: Duration) -> Option<&Author> {
        let (at, author) = self.typed.as_ref()?;
        (clock.since(*at) < within).then_some(author)
    }
}

impl ChangeLog {
    pub(crate) fn new(clock: Clock) -> Self {
        let epoch = uuid::Uuid::new_v4().simple().to_string()[..8].into();
        Self {
            epoch,
            began: clock.wall(),
            clock,
            revision: 0,
            cells: HashMap::new(),
            whole: History::default(),
            moves: VecDeque::new(),
            forgotten: 0,
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn set_now(&mut self, now: Instant) {
        self.clock.advance(now);
    }

    /// The revision as callers see it.
    pub(crate) fn revision(&self) -> String {
        format!("{}-{}", self.epoch, self.revision)
    }

    pub(crate) fn parse(&self, given: &str) -> Option<u64> {
        let (epoch, number) = given.split_once('-')?;
        number
            .parse()
            .ok()
            .filter(|number| epoch == &*self.epoch && *number <= self.revision)
    }

    pub(crate) fn now(&self) -> Moment {
        Moment {
            epoch: Arc::clone(&self.epoch),
            revision: self.revision,
        }
    }

    /// The moment of a revision; now, if it is of another incarnation of the document.
    pub(crate) fn moment(&self, revision: &str) -> Moment {
        Moment {
            revision: self.parse(revision).unwrap_or(self.revision),
            ..self.now()
        }
    }

    /// The revision of a moment; none if it was in another incarnation of the document.
    pub(crate) fn revision_of(&self, moment: &Moment) -> Option<u64> {
        (moment.epoch == self.epoch).then_some(moment.revision)
    }

    /// Starts a new revision, to which the following records belong.
    pub(crate) fn advance(&mut self) {
        self.revision += 1;
    }

    /// Records that the source of a cell was changed, or the cell inserted.
    pub(crate) fn cell_changed(&mut self, cell: &Arc<str>, author: &Author, is_typing: bool) {
        let history = self.cells.entry(Arc::clone(cell)).or_default();
        history.record(author, self.revision);
        if is_typing {
            history.record_typing(author, self.clock.now());
        }
    }

    /// Records that the content of a cell was changed, and not only its place.
    pub(crate) fn mark_edited(&mut self, cell: &Arc<str>) {
        self.cells.entry(Arc::clone(cell)).or_default().run.is_edited = true;
    }

    /// Records the start of a cell's run.
    pub(crate) fn mark_run(&mut self, cell: &Arc<str>) {
        let began = Some((self.revision, self.clock.wall()));
        let history = self.cells.entry(Arc::clone(cell)).or_default();
        history.is_running = true;
        history.run = RunMark {
            began,
            is_edited: false,
        };
    }

    /// Records the end of a cell's run. JupyterLab does not show the start of the first one.
    pub(crate) fn mark_run_ended(&mut self, cell: &Arc<str>) {
        if !self.cells.get(cell).is_some_and(|history| history.is_running) {
            self.mark_run(cell);
        }
        if let Some(history) = self.cells.get_mut(cell) {
            history.is_running = false;
        }
    }

    /// The last run of a cell.
    pub(crate) fn run_of(&self, cell: &str) -> RunMark {
        self.cells.get(cell).map(|history| history.run).unwrap_or_default()
    }

    /// Start of the log; nothing before is known.
    pub(crate) fn began(&self) -> SystemTime {
        self.began
    }

    pub(crate) fn cell_removed(&mut self, cell: &str) -> Option<History> {
        self.cells.remove(cell)
    }

    /// A cell that was removed stands somewhere else, or is another one with the same id.
    pub(crate) fn cell_replaced(&mut self, cell: &Arc<str>, history: History) {
        self.cells.insert(Arc::clone(cell), history);
    }

    pub(crate) fn whole_changed(&mut self, author: &Author, is_typing: bool) {
        self.whole.record(author, self.revision);
        if is_typing {
            self.whole.record_typing(author, self.clock.now());
        }
    }

    /// Records that positions from this one on mean other cells now.
    pub(crate) fn moved(&mut self, author: &Author, first: usize) {
        self.moves.push_back((self.revision, author.clone(), first));
        if self.moves.len() > MAX_MOVES
            && let Some((revision, ..)) = self.moves.pop_front()
        {
            self.forgotten = revision;
        }
    }

    /// The first position that means another cell after `since`, because of somebody other than `me`.
    pub(crate) fn moved_by_others(&self, since: u64, me: &Author) -> Option<usize> {
        if since < self.forgotten && !self.whole_changed_by_others(since, me).is_empty() {
            return Some(0);
        }
        let by_others = |(revision, author, _): &&(u64, Author, usize)| *revision > since && author != me;
        self.moves.iter().filter(by_others).map(|(.., first)| *first).min()
    }

    /// Those other than `me` who changed the cell after `since`.
    pub(crate) fn cell_changed_by_others(&self, cell: &str, since: u64, me: &Author) -> Vec<Author> {
        let history = self.cells.get(cell);
        history.map_or_else(Vec::new, |history| history.others_since(since, me))
    }

    /// Those other than `me` who moved cells, or changed the text, after `since`.
    pub(crate) fn whole_changed_by_others(&self, since: u64, me: &Author) -> Vec<Author> {
        self.whole.others_since(since, me)
    }

    /// Author who may be about to go on typing in a cell.
    pub(crate) fn typing_in(&self, cell: &str) -> Option<&Author> {
        self.cells.get(cell)?.typing(&self.clock, TYPING)
    }

    /// Author who typed in a cell a moment ago.
    pub(crate) fn just_typed_in(&self, cell: &str) -> Option<&Author> {
        self.cells.get(cell)?.typing(&self.clock, JUST_TYPED)
    }

    /// Author who may be about to go on typing in a text.
    pub(crate) fn typing_in_text(&self) -> Option<&Author> {
        self.whole.typing(&self.clock, TYPING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_author_since_counts_and_not_only_the_last() {
        let mut log = ChangeLog::new(Clock::default());
        let (cell, me, bob) = ("c".into(), Author::Local("me".into()), Author::Local("bob".into()));
        for author in [&bob, &me, &Author::Client(1), &me] {
            log.advance();
            log.cell_changed(&cell, author, false);
        }
        assert_eq!(
            log.cell_changed_by_others("c", 0, &me),
            [bob.clone(), Author::Client(1)]
        );
        assert_eq!(log.cell_changed_by_others("c", 1, &me), [Author::Client(1)]);
        assert!(log.cell_changed_by_others("c", 3, &me).is_empty());
        assert_eq!(log.cell_changed_by_others("c", 3, &bob), [me]);
    }

    #[test]
    fn authors_that_are_forgotten_still_count() {
        let mut log = ChangeLog::new(Clock::default());
        let (cell, me) = ("c".into(), Author::Local("me".into()));
        for client in 0..100 {
            log.advance();
            log.cell_changed(&cell, &Author::Client(client), true);
        }
        let others = log.cell_changed_by_others("c", 0, &me);
        assert_eq!((others.len(), &others[0]), (MAX_AUTHORS + 1, &Author::Unknown));
        assert_eq!(log.cell_changed_by_others("c", 99, &me), [Author::Client(99)]);
        assert_eq!(log.typing_in("c"), Some(&Author::Client(99)));
    }

    #[test]
    fn a_run_makes_earlier_edits_forgotten_and_a_move_is_no_edit() {
        let mut log = ChangeLog::new(Clock::default());
        let (cell, me) = ("c".into(), Author::Local("me".into()));
        log.cell_changed(&cell, &me, false);
        assert_eq!(log.run_of("c"), RunMark::default());
        log.mark_edited(&cell);
        assert!(log.run_of("c").is_edited && log.run_of("c").began.is_none());
        log.advance();
        log.mark_run(&cell);
        assert!(!log.run_of("c").is_edited && log.run_of("c").began.is_some_and(|(revision, _)| revision == 1));
        let history = log.cell_removed("c").expect("known");
        log.cell_replaced(&cell, history);
        log.cell_changed(&cell, &me, false);
        assert!(!log.run_of("c").is_edited && log.run_of("c").began.is_some());
    }

    #[test]
    fn moments_of_another_incarnation_have_no_revision() {
        let (mut log, other) = (ChangeLog::new(Clock::default()), ChangeLog::new(Clock::default()));
        let before = log.now();
        log.advance();
        assert_eq!(
            (log.revision_of(&before), log.revision_of(&other.now())),
            (Some(0), None)
        );
    }
}
