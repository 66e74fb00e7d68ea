//! Visibility of activities.

use jupyter_client::DocPath;

use super::Activity;
use crate::auth::Principal;

impl Activity {
    /// Returns whether a principal may know of it: of what was done to a document who may read that, of what concerns none who is
    /// of the same tenant.
    pub fn is_visible_to(&self, principal: &Principal, has_server: impl Fn(&str) -> bool) -> bool {
        if !has_server(&self.server) {
            return false;
        }
        let Some(path) = &self.path else {
            return self.tenant.as_deref() == Some(&principal.tenant.name);
        };
        // A former name may be one that the reader is not to know.
        let former = self.metadata.get("from").and_then(serde_json::Value::as_str);
        let is_former_seen = |former: &str| DocPath::parse(former).is_ok_and(|former| principal.may_touch(&former));
        principal.may_touch(path) && former.is_none_or(is_former_seen)
    }
}
