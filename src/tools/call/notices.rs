//! Notices of an answer beside its own text, each delivered once.

use executor::Execution;
use jupyter_client::DocPath;
use live_document::DocumentId;

use super::{Call, Reader};

/// Number of lost edits a notice names.
const MAX_LOST: usize = 20;

impl Call {
    pub(in crate::tools) fn add_notice(&self, notice: String) {
        self.notices.lock().push(notice);
    }

    /// Adds the notices of an execution that were not delivered yet.
    pub(in crate::tools) fn add_notices_of(&self, execution: &Execution) {
        self.notices.lock().extend(execution.take_notices());
    }

    /// Takes the notices of earlier calls that the caller must know of, in the words of an answer. They are told once.
    pub(in crate::tools) fn take_notices(&self) -> Vec<String> {
        if self.reader != Reader::Agent {
            return std::mem::take(&mut *self.notices.lock());
        }
        let rooms = std::mem::take(&mut *self.discarding.lock());
        let told = rooms.iter().filter_map(|room| {
            let lost = room.take_discarded(&self.principal.id);
            (!lost.is_empty()).then(|| notice(&room.info().path, &lost))
        });
        let used = std::mem::take(&mut *self.used.lock());
        let history = self.services.history.iter();
        let of_history = history.flat_map(|history| {
            let tell = |document: &DocumentId| history.take_notice(document, &self.principal.id);
            used.iter().filter_map(tell).collect::<Vec<_>>()
        });
        let mut notices = std::mem::take(&mut *self.notices.lock());
        notices.extend(told);
        notices.extend(of_history);
        notices
    }
}

fn notice(path: &DocPath, lost: &[String]) -> String {
    let more = match lost.len().saturating_sub(MAX_LOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "An earlier edit of yours in {path} was lost ({}{more}): the file was overwritten on disk before Jupyter had saved \
         the edit. Read it again, and repeat the edit if it is still wanted.",
        lost[..lost.len().min(MAX_LOST)].join(", ")
    )
}
