//! The kernel in which each principal last ran something, so that they are told when its variables are gone. Does no I/O.

use std::{num::NonZeroUsize, sync::Arc, time::SystemTime};

use lru::LruCache;
use parking_lot::Mutex;

use crate::{
    Owner,
    core::{actor::Reason, notebook::Notebook},
    driver::Place,
};

/// Runs beyond this are forgotten, and with them what could be told.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

pub(crate) struct KernelHistory(Mutex<LruCache<Key, LastKernel>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    server: Arc<str>,
    place: Place,
    principal: Arc<str>,
}

impl Key {
    fn new(server: &str, place: &Place, owner: &Owner) -> Self {
        Self {
            server: server.into(),
            place: place.clone(),
            principal: Arc::clone(&owner.principal),
        }
    }
}

struct LastKernel {
    kernel_id: String,
    /// The process that ran it, as it names itself. Kernels keep their ids when they are restarted; this changes.
    process: Option<String>,
    /// Time and reason of its end, or of its process.
    ended: Option<(SystemTime, Reason)>,
}

/// Time when each notebook's kernel process was last seen to end, whoever ended it.
pub(crate) struct ProcessEnds(Mutex<LruCache<Arc<Notebook>, SystemTime>>);

impl Default for ProcessEnds {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_KNOWN)))
    }
}

impl ProcessEnds {
    pub(crate) fn record(&self, notebook: &Arc<Notebook>) {
        self.0.lock().put(Arc::clone(notebook), SystemTime::now());
    }

    pub(crate) fn last(&self, notebook: &Arc<Notebook>) -> Option<SystemTime> {
        self.0.lock().peek(notebook).copied()
    }
}

impl Default for KernelHistory {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_KNOWN)))
    }
}

impl KernelHistory {
    /// Records that a kernel ended or was started anew. Who did so knows.
    pub(crate) fn on_ended(&self, kernel_id: &str, reason: &Reason) {
        self.mark_ended(reason, |_, last| last.kernel_id == kernel_id);
    }

    /// Records that somebody ends or restarts the kernel of a notebook, whichever that is.
    pub(crate) fn on_left(&self, notebook: &Arc<Notebook>, reason: &Reason) {
        let is_there = |key: &Key| matches!(&key.place, Place::Notebook(of) if of == notebook);
        self.mark_ended(reason, |key, last| is_there(key) && !last.kernel_id.is_empty());
    }

    fn mark_ended(&self, reason: &Reason, is_meant: impl Fn(&Key, &LastKernel) -> bool) {
        for (key, last) in self.0.lock().iter_mut() {
            if last.ended.is_none() && is_meant(key, last) {
                match reason.is_of(&key.principal) {
                    true => last.kernel_id.clear(),
                    false => last.ended = Some((SystemTime::now(), reason.clone())),
                }
            }
        }
    }

    /// Records that somebody runs something in a kernel. Returns what they must know if that has nothing of what they ran
    /// before.
    pub(crate) fn on_run(&self, server: &str, place: &Place, owner: &Owner, kernel_id: &str) -> Option<String> {
        if let Place::Copy { .. } = place {
            // Nobody ran anything in its kernel before.
            return None;
        }
        let key = Key::new(server, place, owner);
        let mut known = self.0.lock();
        let earlier = known.pop(&key);
        let is_same = |earlier: &&LastKernel| earlier.kernel_id == kernel_id && earlier.ended.is_none();
        let last = LastKernel {
            kernel_id: kernel_id.to_owned(),
            process: earlier.as_ref().filter(is_same).and_then(|last| last.process.clone()),
            ended: None,
        };
        known.put(key, last);
        drop(known);
        let earlier = earlier.filter(|earlier| !earlier.kernel_id.is_empty())?;
        let what = match place {
            Place::Notebook(_) => format!(
                "{} has a different kernel than at your last run: somebody chose another one, or shut the earlier one down",
                place.describe()
            ),
            Place::Scratch { .. } | Place::Copy { .. } => {
                "This is a different kernel than at your last run: the earlier one was shut down".to_owned()
            }
        };
        match earlier.ended {
            Some((at, reason)) => Some(format!(
                "{} at {}, after your last run in {}: the variables of that run are gone. Run the code that defines them again.",
                capitalized(&reason.told_to(owner)),
                humantime::format_rfc3339_seconds(at),
                place.describe(),
            )),
            None if earlier.kernel_id != kernel_id => Some(format!(
                "{what}. The variables of that run are gone. Run the code that defines them again."
            )),
            None => None,
        }
    }

    /// Notes which process picked up what somebody runs. Returns what they must know if it is another than at their last
    /// run: a restart that was not seen, because nothing of theirs ran and no connection was kept.
    pub(crate) fn on_picked_up(&self, server: &str, place: &Place, owner: &Owner, process: &str) -> Option<String> {
        let mut known = self.0.lock();
        let last = known.get_mut(&Key::new(server, place, owner))?;
        let earlier = last.process.replace(process.to_owned());
        earlier.filter(|earlier| earlier != process)?;
        Some(format!(
            "The kernel of {} was restarted, or died and was started again, after your last run there: the variables of that \
             time are gone. Run again what defines them.",
            place.describe(),
        ))
    }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

#[cfg(test)]
mod tests {
    use jupyter_client::DocPath;
    use tokio::time::Instant;

    use super::*;
    use crate::core::{actor::Actor, notebook::Notebooks};

    fn owner(name: &str) -> Owner {
        Owner {
            tenant: "t".into(),
            principal: name.into(),
            name: name.to_owned(),
            max_open_rooms: 1,
        }
    }

    fn place() -> Place {
        let path = DocPath::parse("a.ipynb").expect("a path");
        Place::Notebook(Notebooks::default().identify("lab", &path, None, Instant::now()))
    }

    #[test]
    fn who_ran_something_in_an_earlier_kernel_is_told_once() {
        let (history, place) = (KernelHistory::default(), place());
        let run = |name: &str, kernel: &str| history.on_run("lab", &place, &owner(name), kernel);
        assert_eq!(run("ana", "k1"), None, "the first");
        assert_eq!(run("ana", "k1"), None);
        assert_eq!(run("bo", "k2"), None, "of no concern to who ran nothing before");
        let told = run("ana", "k2").expect("a notice");
        assert!(
            told.contains("has a different kernel") && told.contains("variables"),
            "{told}"
        );
        assert_eq!(run("ana", "k2"), None, "once");
    }

    #[test]
    fn a_restart_is_told_to_everybody_but_who_did_it() {
        let (history, place) = (KernelHistory::default(), place());
        let run = |name: &str| history.on_run("lab", &place, &owner(name), "k1");
        assert_eq!((run("ana"), run("bo")), (None, None));
        let bo = Actor::Agent {
            principal: "bo".into(),
            name: "bo".to_owned(),
        };
        history.on_ended("k1", &Reason::by(bo, "restarted the kernel"));
        let told = run("ana").expect("a notice");
        assert!(told.starts_with("Agent `bo` restarted the kernel at "), "{told}");
        assert_eq!(run("bo"), None);
    }

    #[test]
    fn a_restart_that_nobody_saw_is_told_by_the_process_that_runs_the_next_code() {
        let (history, place) = (KernelHistory::default(), place());
        let run = |name: &str, process: &str| {
            let told = history.on_run("lab", &place, &owner(name), "k1");
            assert_eq!(told, None, "the kernel's id is the same");
            history.on_picked_up("lab", &place, &owner(name), process)
        };
        assert_eq!((run("ana", "p1"), run("ana", "p1")), (None, None));
        let told = run("ana", "p2").expect("a notice");
        assert!(told.contains("was restarted") && told.contains("variables"), "{told}");
        assert_eq!(run("ana", "p2"), None, "once");
        assert_eq!(run("bo", "p2"), None, "of no concern to who ran nothing before");
    }

    #[test]
    fn a_restart_that_was_told_is_not_told_again() {
        let (history, place) = (KernelHistory::default(), place());
        let run = |name: &str, process: &str| {
            let told = history.on_run("lab", &place, &owner(name), "k1");
            (
                told.is_some(),
                history.on_picked_up("lab", &place, &owner(name), process),
            )
        };
        assert_eq!((run("ana", "p1"), run("bo", "p1")), ((false, None), (false, None)));
        let bo = Actor::Agent {
            principal: "bo".into(),
            name: "bo".to_owned(),
        };
        let Place::Notebook(notebook) = &place else {
            panic!("a notebook")
        };
        history.on_left(notebook, &Reason::by(bo, "restarted the kernel"));
        assert_eq!(run("ana", "p2"), (true, None));
        assert_eq!(run("bo", "p2"), (false, None), "who did it knows");
    }
}
