//! The users of a server that a caller may know of: each once, with the documents that the caller may read.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use jupyter_client::{DocPath, JupyterServer};
use live_document::{OnlineUser, Status, User};

use crate::tools::Call;

/// Kinds of widgets whose names are no paths.
const NO_DOCUMENTS: &[&str] = &["launcher", "terminal", "console", "help-doc", "hub"];
/// A person whose cursor, selection and current document stay the same for so long is not at the screen.
const AWAY_AFTER: Duration = Duration::from_secs(5 * 60);
/// The drive of shared documents, which JupyterLab puts before their paths.
const DRIVE: &str = "RTC:";

/// Somebody who is online.
pub(super) struct KnownUser {
    pub(super) user: User,
    /// Those that the caller may read.
    pub(super) documents: BTreeSet<DocPath>,
    pub(super) current: Option<DocPath>,
    /// They are in a document that the caller may not know of.
    is_elsewhere: bool,
}

/// Everybody on a server who is online.
pub(super) struct KnownUsers {
    pub(super) users: Vec<KnownUser>,
    /// Time since which it is known who is online; none if the server does not tell.
    pub(super) since: Option<SystemTime>,
    pub(super) is_partial: bool,
}

impl KnownUser {
    fn new(user: User) -> Self {
        Self {
            user,
            documents: BTreeSet::new(),
            current: None,
            is_elsewhere: false,
        }
    }

    /// The status that they declare; without one, people who have moved nothing for a while are away.
    pub(super) fn status(&self) -> Status {
        let is_away = || self.user.last_activity.elapsed().is_ok_and(|idle| idle >= AWAY_AFTER);
        match &self.user.availability {
            Some(declared) => declared.status,
            None if !self.user.is_agent && is_away() => Status::Away,
            None => Status::Online,
        }
    }

    pub(super) fn message(&self) -> Option<&str> {
        self.user.availability.as_ref()?.message.as_deref()
    }

    pub(super) fn is_in(&self, path: &DocPath) -> bool {
        self.documents.contains(path)
    }

    /// Merges another presence of the same user. The state of an agent of this gateway counts before that which an
    /// agent of the same name has elsewhere.
    fn meet(&mut self, other: &User) {
        let last_activity = self.user.last_activity.max(other.last_activity);
        let is_agent = self.user.is_agent || other.is_agent;
        if self.user.activity.is_none() && other.activity.is_some() {
            self.user = other.clone();
        }
        (self.user.last_activity, self.user.is_agent) = (last_activity, is_agent);
    }

    /// Adds a document that they have open.
    fn add(&mut self, call: &Call, path: DocPath) -> bool {
        let is_seen = call.principal().may_touch(&path);
        match is_seen {
            true => drop(self.documents.insert(path)),
            false => self.is_elsewhere = true,
        }
        is_seen
    }

    fn add_online(&mut self, call: &Call, online: &OnlineUser) {
        let documents = online.documents.iter().filter_map(|path| document_path(path));
        for path in documents {
            self.add(call, path);
        }
        if let Some(path) = online.current.as_deref().and_then(current_path)
            && self.add(call, path.clone())
        {
            self.current = Some(path);
        }
    }

    /// Returns whether the caller may know of them: not, if all there is of them is in documents that the caller may not read.
    fn is_visible_to(&self, call: &Call) -> bool {
        !self.is_elsewhere || !self.documents.is_empty() || *self.user.id == *call.principal().id
    }
}

impl KnownUsers {
    /// Collects who is online on a server and in its open documents.
    pub(super) async fn of(call: &Call, server: &Arc<JupyterServer>) -> Self {
        let online = call.pool().online(server).await;
        let mut users: BTreeMap<String, KnownUser> = BTreeMap::new();
        for known in &online.users {
            let user = users.entry(known.user.id.clone());
            let user = user.or_insert_with(|| KnownUser::new(known.user.clone()));
            user.meet(&known.user);
            user.add_online(call, known);
        }
        for open in call.pool().open_rooms() {
            if *open.server != *server.name() {
                continue;
            }
            for user in open.room.users() {
                let known = users
                    .entry(user.id.clone())
                    .or_insert_with(|| KnownUser::new(user.clone()));
                known.meet(&user);
                let path = open.info.path.clone();
                if known.add(call, path.clone()) && known.current.is_none() {
                    known.current = Some(path);
                }
            }
        }
        let mut users: Vec<KnownUser> = users.into_values().filter(|user| user.is_visible_to(call)).collect();
        users.sort_by(|one, other| (one.user.is_agent, &one.user.name).cmp(&(other.user.is_agent, &other.user.name)));
        Self {
            users,
            since: online.since,
            is_partial: online.is_partial,
        }
    }

    /// The user that a caller names, by id or by a name that only one has.
    pub(super) fn find(&self, named: &str) -> Option<&KnownUser> {
        let by_id = self.users.iter().find(|user| user.user.id == named);
        by_id.or_else(|| {
            let is_it = |user: &&KnownUser| {
                let names = [&user.user.name, &user.user.display_name];
                names.iter().any(|name| is_same_name(name, named))
            };
            let mut found = self.users.iter().filter(is_it);
            found.next().filter(|_| found.next().is_none())
        })
    }
}

/// Returns whether two names differ in nothing but how they are written.
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    let other = other.strip_prefix('@').unwrap_or(other);
    one.to_lowercase() == other.to_lowercase()
}

/// The path of a document as JupyterLab tells it.
fn document_path(told: &str) -> Option<DocPath> {
    DocPath::parse_file(told.strip_prefix(DRIVE).unwrap_or(told)).ok()
}

/// The path of the document that somebody looks at; none if they look at something else.
fn current_path(current: &str) -> Option<DocPath> {
    let (kind, path) = current.split_once(':')?;
    document_path(path).filter(|_| !NO_DOCUMENTS.contains(&kind))
}

#[cfg(test)]
mod tests {
    use live_document::Availability;

    use super::*;

    #[test]
    fn people_who_do_nothing_are_away_unless_they_say_otherwise() {
        let known = |is_agent: bool, idle: Duration, declared: Option<Status>| {
            KnownUser::new(User {
                id: "h".to_owned(),
                name: "Hanna".to_owned(),
                display_name: "Hanna".to_owned(),
                initials: String::new(),
                color: String::new(),
                is_agent,
                activity: None,
                availability: declared.map(|status| Availability { status, message: None }),
                last_activity: SystemTime::now() - idle,
            })
        };
        let short = AWAY_AFTER / 2;
        assert_eq!(known(false, short, None).status(), Status::Online);
        assert_eq!(known(false, AWAY_AFTER, None).status(), Status::Away);
        assert_eq!(known(true, AWAY_AFTER, None).status(), Status::Online);
        assert_eq!(known(false, AWAY_AFTER, Some(Status::Busy)).status(), Status::Busy);
    }

    #[test]
    fn paths_are_read_as_jupyterlab_tells_them() {
        let path = |told: &str| current_path(told).map(|path| path.to_string());
        assert_eq!(path("notebook:a/b.ipynb").as_deref(), Some("a/b.ipynb"));
        assert_eq!(path("notebook:RTC:a/b.ipynb").as_deref(), Some("a/b.ipynb"));
        assert_eq!(path("editor:x.py").as_deref(), Some("x.py"));
        assert_eq!(
            [
                path("launcher-1"),
                path("terminal:1"),
                path("notebook:"),
                path("notebook:../x")
            ],
            [None, None, None, None]
        );
        assert!(is_same_name("Ana-Agent", "@ana-agent"));
    }
}
