//! How much is kept in memory of what has ended, by principal: outputs that the kernel may still change.

use std::sync::Arc;

use dashmap::DashMap;

/// Bytes that may be kept of one principal's runs, in all notebooks together.
pub(super) const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;

#[derive(Clone, Default)]
pub(super) struct KeptBytes(Arc<DashMap<Arc<str>, usize>>);

/// Some bytes of a principal's, given back when it is dropped.
pub(super) struct Kept {
    ledger: KeptBytes,
    principal: Arc<str>,
    bytes: usize,
}

impl KeptBytes {
    pub(super) fn keep(&self, principal: &Arc<str>, bytes: usize) -> Kept {
        *self.0.entry(Arc::clone(principal)).or_default() += bytes;
        Kept {
            ledger: self.clone(),
            principal: Arc::clone(principal),
            bytes,
        }
    }

    pub(super) fn is_too_much_of(&self, principal: &str) -> bool {
        self.0.get(principal).is_some_and(|bytes| *bytes > MAX_KEPT_BYTES)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let KeptBytes(ledger) = &self.ledger;
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
        let (kept, ana): (_, Arc<str>) = (KeptBytes::default(), "ana".into());
        let first = kept.keep(&ana, MAX_KEPT_BYTES);
        assert!(!kept.is_too_much_of(&ana));
        let second = kept.keep(&ana, 1);
        assert!(kept.is_too_much_of(&ana) && !kept.is_too_much_of("ben"));
        drop(first);
        assert!(!kept.is_too_much_of(&ana));
        drop(second);
        assert!(kept.0.is_empty());
    }
}
