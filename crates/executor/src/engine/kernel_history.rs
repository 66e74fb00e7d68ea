//! Which kernel each principal last ran something in, so that they are told when its variables are gone. Does no I/O.

use std::{num::NonZeroUsize, sync::Arc, time::SystemTime};

use lru::LruCache;
use parking_lot::Mutex;

use crate::{Owner, core::actor::Reason, driver::Place};

/// Runs beyond this are forgotten, and with them what could be told.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

pub(crate) struct KernelHistory(Mutex<LruCache<Key, LastKernel>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    server: Arc<str>,
    place: Place,
    principal: Arc<str>,
}

struct LastKernel {
    kernel_id: String,
    /// When and why it, or its process, ended.
    ended: Option<(SystemTime, Reason)>,
}

impl Default for KernelHistory {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_KNOWN)))
    }
}

impl KernelHistory {
    /// Notes that a kernel ended or was started anew. Who did so knows.
    pub(crate) fn on_ended(&self, kernel_id: &str, reason: &Reason) {
        for (key, last) in self.0.lock().iter_mut() {
            if last.kernel_id == kernel_id && last.ended.is_none() {
                match reason.is_of(&key.principal) {
                    true => last.kernel_id.clear(),
                    false => last.ended = Some((SystemTime::now(), reason.clone())),
                }
            }
        }
    }

    /// Notes that somebody runs something in a kernel. Returns what they must know if that has nothing of what they ran
    /// before.
    pub(crate) fn on_run(&self, server: &str, place: &Place, owner: &Owner, kernel_id: &str) -> Option<String> {
        let key = Key {
            server: server.into(),
            place: place.clone(),
            principal: Arc::clone(&owner.principal),
        };
        let last = LastKernel {
            kernel_id: kernel_id.to_owned(),
            ended: None,
        };
        let earlier = self.0.lock().put(key, last);
        let earlier = earlier.filter(|earlier| !earlier.kernel_id.is_empty())?;
        let what = match place {
            Place::Notebook(path) => format!(
                "'{path}' has another kernel than at your last run: a person chose another one, or shut the earlier one down"
            ),
            Place::Scratch { .. } => {
                "This is another kernel than at your last run: the earlier one was shut down".to_owned()
            }
        };
        match earlier.ended {
            Some((at, reason)) => Some(format!(
                "{} at {}, after your last run in {}: the variables of that time are gone. Run again what defines them.",
                capitalized(&reason.told_to(owner)),
                humantime::format_rfc3339_seconds(at),
                place.describe(),
            )),
            None if earlier.kernel_id != kernel_id => Some(format!(
                "{what}. The variables of that time are gone. Run again what defines them."
            )),
            None => None,
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::actor::Actor;
    use jupyter_client::DocPath;

    fn owner(name: &str) -> Owner {
        Owner {
            tenant: "t".into(),
            principal: name.into(),
            name: name.to_owned(),
            max_open_rooms: 1,
        }
    }

    fn place() -> Place {
        Place::Notebook(DocPath::parse("a.ipynb").expect("a path"))
    }

    #[test]
    fn who_ran_something_in_an_earlier_kernel_is_told_once() {
        let history = KernelHistory::default();
        let run = |name: &str, kernel: &str| history.on_run("lab", &place(), &owner(name), kernel);
        assert_eq!(run("ana", "k1"), None, "the first");
        assert_eq!(run("ana", "k1"), None);
        assert_eq!(run("bo", "k2"), None, "of no concern to who ran nothing before");
        let told = run("ana", "k2").expect("a notice");
        assert!(
            told.contains("has another kernel") && told.contains("variables"),
            "{told}"
        );
        assert_eq!(run("ana", "k2"), None, "once");
    }

    #[test]
    fn a_restart_is_told_to_everybody_but_who_did_it() {
        let history = KernelHistory::default();
        let run = |name: &str| history.on_run("lab", &place(), &owner(name), "k1");
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
}
