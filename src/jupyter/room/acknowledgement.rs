//! What the server has shown to have. It broadcasts every update it integrates, to the sender as
//! well, so an echo is the acknowledgement.

use tokio::sync::oneshot;
use yrs::{IdSet, StateVector, Update};

/// Resolves when the server has the edit, or fails if it was lost with the server's document.
pub(super) type Ticket = oneshot::Receiver<Result<(), Lost>>;

/// An edit that could not be done again in the document that the server came back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost;

#[derive(Default)]
pub(super) struct Acknowledgements {
    acked: StateVector,
    pending: Vec<Pending>,
}

struct Pending {
    insertions: IdSet,
    deletions: IdSet,
    waiting: oneshot::Sender<Result<(), Lost>>,
}

impl Acknowledgements {
    /// Notes what the server sent, which it therefore has.
    pub(super) fn received(&mut self, update: &Update) {
        let insertions = update.insertions(true);
        self.raise(&insertions);
        let deletions = update.delete_set();
        for pending in &mut self.pending {
            pending.insertions.diff_with(&insertions);
            pending.deletions.diff_with(deletions);
        }
        self.settle();
    }

    /// Notes the state vector by which the server says what it has.
    pub(super) fn server_has(&mut self, vector: &StateVector) {
        for (client, clock) in vector.iter() {
            self.acked.set_max(*client, *clock);
        }
    }

    /// Registers an edit that is on its way.
    pub(super) fn expect(&mut self, insertions: IdSet, deletions: IdSet) -> Ticket {
        let (sender, ticket) = oneshot::channel();
        self.pending.push(Pending {
            insertions,
            deletions,
            waiting: sender,
        });
        self.settle();
        ticket
    }

    /// Whether nothing is on its way.
    pub(super) fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether a document has all that the server ever acknowledged. If not, the server has made a
    /// new document, and merging the old one into it would duplicate cells.
    pub(super) fn covered_by(&self, vector: &StateVector) -> bool {
        self.acked.iter().all(|(client, clock)| vector.get(client) >= *clock)
    }

    /// Takes everybody who still waits, for a document that is being given up.
    pub(super) fn take_waiting(&mut self) -> Vec<oneshot::Sender<Result<(), Lost>>> {
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
