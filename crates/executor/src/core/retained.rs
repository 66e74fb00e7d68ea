//! Bytes that are retained of runs that have ended, by principal: outputs that the kernel may still change.

use std::sync::Arc;

use dashmap::DashMap;

use crate::policy::MAX_RETAINED_BYTES;

/// The ledger that all notebooks share.
#[derive(Clone, Default)]
pub(crate) struct RetainedBytes(Arc<DashMap<Arc<str>, usize>>);

/// Share of a principal's bytes, given back when it is dropped.
pub(crate) struct Retained {
    ledger: RetainedBytes,
    principal: Arc<str>,
    bytes: usize,
}

impl RetainedBytes {
    pub(crate) fn retain(&self, principal: &Arc<str>, bytes: usize) -> Retained {
        *self.0.entry(Arc::clone(principal)).or_default() += bytes;
        Retained {
            ledger: self.clone(),
            principal: Arc::clone(principal),
            bytes,
        }
    }

    pub(crate) fn is_too_much_of(&self, principal: &str) -> bool {
        self.0.get(principal).is_some_and(|bytes| *bytes > MAX_RETAINED_BYTES)
    }
}

impl Retained {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        let RetainedBytes(ledger) = &self.ledger;
        if let Some(mut bytes) = ledger.get_mut(&self.principal) {
            *bytes = bytes.saturating_sub(self.bytes);
        }
        ledger.remove_if(&self.principal, |_, bytes| *bytes == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_does_not_count() {
        let (kept, ana): (_, Arc<str>) = (RetainedBytes::default(), "ana".into());
        let first = kept.retain(&ana, MAX_RETAINED_BYTES);
        assert!(!kept.is_too_much_of(&ana));
        let second = kept.retain(&ana, 1);
        assert!(kept.is_too_much_of(&ana) && !kept.is_too_much_of("ben"));
        drop(first);
        assert!(!kept.is_too_much_of(&ana));
        drop(second);
        assert!(kept.0.is_empty());
    }
}
