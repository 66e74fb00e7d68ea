//! Arrivals at an open document and departures from it, for those who follow them.

use std::{collections::HashMap, sync::Arc};

use jupyter_client::DocPath;

use super::shared::Shared;
use crate::{DocumentId, User, core::policy::AWARENESS_ROUND};

/// Somebody came to a document or left it.
#[derive(Debug, Clone)]
pub struct PresenceChange {
    pub document: DocumentId,
    pub path: DocPath,
    pub user: User,
    pub kind: PresenceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresenceKind {
    Joined,
    /// They may have been there before the document was opened here: Jupyter does not tell.
    Noticed,
    Left,
}

/// The users who were told of.
#[derive(Default)]
pub(crate) struct Roster {
    version: u64,
    known: HashMap<String, User>,
}

impl Shared {
    /// Tells who came and who left since the last time.
    pub(crate) fn tell_presences(&self) {
        self.roster_version.send_if_modified(|version| {
            let now = self.read().awareness.version();
            std::mem::replace(version, now) != now
        });
        let mut roster = self.roster.lock();
        let version = *self.roster_version.borrow();
        if roster.version == version || self.server.presences.receiver_count() == 0 {
            return;
        }
        roster.version = version;
        let (here, path, file_id, is_young) = {
            let state = self.read();
            let listened = state.now().saturating_duration_since(state.awareness.since());
            (
                state.users(),
                state.path.clone(),
                state.file_id.clone(),
                listened < AWARENESS_ROUND,
            )
        };
        let here: HashMap<String, User> = here.into_iter().map(|user| (user.id.clone(), user)).collect();
        let before = std::mem::replace(&mut roster.known, here.clone());
        let document = DocumentId {
            server: Arc::from(self.server.name()),
            file_id: file_id.into(),
            kind: self.kind,
        };
        let tell = |user: &User, kind: PresenceKind| {
            // Whoever followed may just have left.
            let _ = self.server.presences.send(PresenceChange {
                document: document.clone(),
                path: path.clone(),
                user: user.clone(),
                kind,
            });
        };
        for user in here.values().filter(|user| !before.contains_key(&user.id)) {
            let is_ours = user.activity.is_some();
            tell(
                user,
                if is_young && !is_ours {
                    PresenceKind::Noticed
                } else {
                    PresenceKind::Joined
                },
            );
        }
        for user in before.values().filter(|user| !here.contains_key(&user.id)) {
            tell(user, PresenceKind::Left);
        }
    }
}
