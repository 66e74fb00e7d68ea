//! Actors on a kernel or its runs, as the owners of executions are told of them.

use std::sync::Arc;

use super::execution::Owner;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// Somebody who does not come through this gateway: people in JupyterLab.
    Person,
    Agent {
        principal: Arc<str>,
        name: String,
    },
}

/// Reason why something ended, worded for the one who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    actor: Option<Actor>,
    words: String,
}

impl Actor {
    pub(crate) fn is(&self, owner: &str) -> bool {
        matches!(self, Self::Agent { principal, .. } if **principal == *owner)
    }
}

impl Reason {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self {
            actor: None,
            words: words.into(),
        }
    }

    /// Reason of what somebody did, beginning with the verb.
    pub(crate) fn by(actor: Actor, words: impl Into<String>) -> Self {
        Self {
            actor: Some(actor),
            words: words.into(),
        }
    }

    /// Returns whether the owner did it.
    pub(crate) fn is_of(&self, owner: &str) -> bool {
        self.actor.as_ref().is_some_and(|actor| actor.is(owner))
    }

    pub(crate) fn told_to(&self, owner: &Owner) -> String {
        let words = &self.words;
        match &self.actor {
            None => words.clone(),
            Some(actor) if actor.is(&owner.principal) => format!("you {words}"),
            Some(Actor::Person) => format!("a person {words}"),
            Some(Actor::Agent { name, .. }) => format!("agent `{name}` {words}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_told_who_it_was_in_relation_to_them() {
        let owner = |principal: &str| Owner {
            tenant: "t".into(),
            principal: principal.into(),
            name: principal.to_owned(),
            max_open_rooms: 1,
        };
        let bo = Actor::Agent {
            principal: "token:bo".into(),
            name: "bo".to_owned(),
        };
        let restarted = Reason::by(bo, "restarted the kernel");
        assert_eq!(
            restarted.told_to(&owner("token:ana")),
            "agent `bo` restarted the kernel"
        );
        assert_eq!(restarted.told_to(&owner("token:bo")), "you restarted the kernel");
        let person = Reason::by(Actor::Person, "interrupted the kernel");
        assert_eq!(person.told_to(&owner("token:bo")), "a person interrupted the kernel");
    }
}
