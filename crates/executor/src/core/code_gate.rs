//! The final check of code before it is sent to a kernel. What is queued can be changed until then, so that a check when it
//! was queued is not enough.

use std::{fmt, sync::Arc};

use jupyter_client::DocPath;

type Check = dyn Fn(Option<&DocPath>, &str) -> bool + Send + Sync;

/// Decides by the path of the notebook, if there is one, and by the code.
#[derive(Clone)]
pub struct CodeGate(Arc<Check>);

impl CodeGate {
    pub fn new(allows: impl Fn(Option<&DocPath>, &str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(allows))
    }

    pub(crate) fn allows(&self, path: Option<&DocPath>, code: &str) -> bool {
        (self.0)(path, code)
    }
}

impl fmt::Debug for CodeGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeGate")
    }
}
