//! Records what calls do that no open document shows: files made, copied, renamed, deleted and saved, kernels, and code that is
//! in no cell.

use jupyter_client::DocPath;
use serde_json::{Map, Value};

use crate::{
    activity::{Activity, Actor, kinds},
    tools::Call,
};

/// Calls that are recorded: by tool the kind of activity and what was done.
const RECORDED: &[(&str, &str, &str)] = &[
    ("create_notebook", kinds::CREATE, "created"),
    ("create_document", kinds::CREATE, "created"),
    ("delete_document", kinds::DELETE, "deleted"),
    ("rename_document", kinds::RENAME, "renamed"),
    ("copy_document", kinds::COPY, "copied"),
    ("save_document", kinds::SAVE, "saved"),
    ("run_code", kinds::EXECUTE, "ran code in"),
    ("run_notebook", kinds::EXECUTE, "ran a copy of"),
    ("assign_nb_kernel", kinds::KERNEL, "assigned a kernel to"),
    ("restart_nb_kernel", kinds::KERNEL, "restarted the kernel of"),
    ("interrupt_nb_kernel", kinds::KERNEL, "interrupted the kernel of"),
    ("shutdown_kernel", kinds::KERNEL, "shut down the kernel of"),
];
/// Arguments in which calls name what a file becomes.
const TARGETS: &[&str] = &["newPath", "new_path", "copyPath", "copy_path"];

/// A call that is recorded if it succeeds.
pub(in crate::tools) struct CallNote {
    kind: &'static str,
    did: &'static str,
    tool: &'static str,
    server: Option<String>,
    path: Option<String>,
    target: Option<String>,
}

impl CallNote {
    /// The activity of a call, if there is any to record.
    pub(in crate::tools) fn of(tool: &str, arguments: &Map<String, Value>) -> Option<Self> {
        let (tool, kind, did) = RECORDED.iter().find(|(name, ..)| *name == tool)?;
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            kind,
            did,
            tool,
            server: text("server"),
            path: text("path"),
            target: TARGETS.iter().find_map(|name| text(name)),
        })
    }

    /// Records the call.
    pub(in crate::tools) fn record(self, call: &Call) {
        let Ok(server) = call.server(self.server.as_deref()) else {
            return;
        };
        let principal = call.principal();
        let parse = |path: &Option<String>| path.as_deref().and_then(|path| DocPath::parse(path).ok());
        let (path, target) = (parse(&self.path), parse(&self.target));
        let description = match (&path, &target) {
            (Some(path), Some(target)) => format!("{} {path} to {target}", self.did),
            (Some(path), None) => format!("{} {path}", self.did),
            (None, _) => self.did.trim_end_matches(" in").trim_end_matches(" of").to_owned(),
        };
        let actor = Actor::agent(&principal.id, &principal.name);
        let mut activity = Activity::new(self.kind, actor, server.name(), description).with("tools", vec![self.tool]);
        activity.tenant = Some(principal.tenant.name.as_str().into());
        if let (Some(path), Some(_)) = (&path, &target) {
            activity = activity.with("from", path.as_str());
        }
        activity.path = target.or(path);
        call.activity().record(activity);
    }
}
