//! Acknowledgements of edits. The server broadcasts every update it integrates, to the sender as well, so an echo is
//! the acknowledgement.

use tokio::sync::oneshot;
use yrs::{IdSet, StateVector, Update};

/// Resolves when the server has the edit, or fails if it was lost with the server's document.
pub(crate) type Ticket = oneshot::Receiver<Result<(), Lost>>;

/// An edit that could not be done again in the document that the server came back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost;

#[derive(Default)]
pub(crate) struct Acknowledgements {
    acked: StateVector,
    pending: Vec<Pending>,
    /// Number of edits ever registered.
    registered: u64,
}

struct Pending {
    number: u64,
    insertions: IdSet,
    deletions: IdSet,
    waiting: oneshot::Sender<Result<(), Lost>>,
}

impl Acknowledgements {
    /// Records an update from the server, which it therefore has.
    pub(crate) fn received(&mut self, update: &Update) {
        let insertions = update.insertions(true);
        self.raise(&insertions);
        let deletions = update.delete_set();
        for pending in &mut self.pending {
            pending.insertions.diff_with(&insertions);
            pending.deletions.diff_with(deletions);
        }
        self.settle();
    }

    /// Records the state vector of the server.
    pub(crate) fn server_has(&mut self, vector: &StateVector) {
        for (client, clock) in vector.iter() {
            self.acked.set_max(*client, *clock);
        }
    }

    /// Registers an edit that is on its way.
    pub(crate) fn expect(&mut self, insertions: IdSet, deletions: IdSet) -> Ticket {
        let (sender, ticket) = oneshot::channel();
        self.registered += 1;
        self.pending.push(Pending {
            number: self.registered,
            insertions,
            deletions,
            waiting: sender,
        });
        self.settle();
        ticket
    }

    /// The last edit that was registered.
    pub(crate) fn latest(&self) -> u64 {
        self.registered
    }

    /// Returns whether the server has all edits up to one.
    pub(crate) fn has_all_to(&self, number: u64) -> bool {
        self.pending.first().is_none_or(|first| first.number > number)
    }

    /// Returns whether no edit is pending.
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// State vector that the server has acknowledged.
    pub(crate) fn acknowledged(&self) -> &StateVector {
        &self.acked
    }

    /// Takes all pending acknowledgements of a document that is given up.
    pub(crate) fn take_waiting(&mut self) -> Vec<oneshot::Sender<Result<(), Lost>>> {
        self.pending.drain(..).map(|pending| pending.waiting).collect()
    }

    fn raise(&mut self, insertions: &IdSet) {
        for client in insertions.client_ids() {
            let Some(ranges) = insertions.get(&client) else {
                continue;
            };
            if let Some(end) = ranges.iter().map(|(range, ())| range.end).max() {
                self.acked.set_max(client, end);
            }
        }
    }

    fn settle(&mut self) {
        let settled = |pending: &mut Pending| pending.insertions.is_empty() && pending.deletions.is_empty();
        for done in self.pending.extract_if(.., settled) {
            // A caller that no longer waits has been answered already.
            let _ = done.waiting.send(Ok(()));
        }
    }
}
