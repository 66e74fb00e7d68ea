//! Calls that wait until a person allows them on the page, and what was decided: in memory, bounded for each principal and
//! tenant, and for a while only. What nobody decides expires, and a restart forgets it; then it is asked about anew. Knows
//! neither how a call is held up nor how people are shown it.

use std::{
    collections::HashMap,
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use jupyter_client::{DocPath, JupyterServer};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::Principal,
    config::token::{new_token, sha256_hex},
    types::Permission,
};

/// Calls that may wait at once.
const MAX_OF_PRINCIPAL: usize = 10;
const MAX_OF_TENANT: usize = 100;
/// Time in which a person can decide.
const WAITS_FOR: Duration = Duration::from_secs(30 * 60);
/// Time for which a decision holds. Whoever calls later wants something else by then.
const HOLDS_FOR: Duration = Duration::from_secs(10 * 60);

/// Names who calls which tool with which arguments, and what is asked about that.
pub type CallKey = [u8; 32];

/// A call as a person reads it who decides about it.
#[derive(Debug, Clone, Default)]
pub struct AskedCall {
    /// Issuer and subject of the caller, and the name that people see.
    pub principal: Arc<str>,
    pub name: String,
    pub tenant: String,
    pub tool: &'static str,
    pub server: Option<String>,
    pub paths: Vec<DocPath>,
    /// The rules that ask, by their names.
    pub rules: String,
    /// What each of them is about, in words.
    pub reasons: Vec<String>,
    pub code: Vec<Piece>,
    pub arguments: Vec<Piece>,
}

/// A text with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub place: String,
    pub text: String,
}

/// A call that waits.
#[derive(Debug, Clone)]
pub struct WaitingCall {
    pub id: String,
    pub asked: Arc<AskedCall>,
    pub since: SystemTime,
    pub until: SystemTime,
}

/// Decision of a person at the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub is_allowed: bool,
    /// Issuer and subject of who decided, and the name that people see.
    pub by: Arc<str>,
    pub by_name: String,
}

/// A decision that a call has taken.
#[derive(Debug)]
pub struct Decided {
    pub verdict: Verdict,
    /// What was allowed, which is good for one call.
    pub grant: Option<Grant>,
}

/// What one call was allowed, until it has made use of it.
#[derive(Debug)]
pub struct Grant {
    key: CallKey,
    entry: Entry,
}

/// What has become of a call.
#[derive(Debug)]
pub enum Standing {
    Decided(Decided),
    Waits {
        call: WaitingCall,
        /// It did so before.
        is_known: bool,
    },
    /// Nobody can decide about it here.
    Unkept(Unkept),
}

/// Reason why a call does not wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unkept {
    #[error("nobody can allow it on a page of the gateway, which is switched off")]
    NoPage,
    #[error("{MAX_OF_PRINCIPAL} calls of yours wait for a person already, and this one does not")]
    TooManyOfPrincipal,
    #[error("{MAX_OF_TENANT} calls of your tenant wait for a person already, and this one does not")]
    TooManyOfTenant,
}

/// Reason why a decision has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CannotDecide {
    #[error(
        "this call does not wait any more: somebody has decided, it has expired, or the gateway has restarted. Nothing was done"
    )]
    Gone,
    #[error(
        "whoever has the token of a caller cannot decide about its calls; somebody else of the tenant with permission `admin` can. Nothing was done"
    )]
    Own,
}

/// Somebody who looks at what waits.
pub struct Decider<'a> {
    pub principal: &'a Principal,
    /// Whether this is the person, who has logged in by means that the agents of that person do not have.
    pub is_in_person: bool,
    pub servers: &'a [Arc<JupyterServer>],
}

#[derive(Debug)]
struct Entry {
    call: WaitingCall,
    expires_at: Instant,
    verdict: Option<Verdict>,
    /// Cancelled when the caller may not call any more.
    revoked: CancellationToken,
}

/// The calls of all tenants that wait.
pub struct WaitingCalls {
    /// Where people decide; none if there is no page.
    page: Option<String>,
    entries: Mutex<HashMap<CallKey, Entry>>,
    /// Told of every decision.
    decided: Notify,
}

impl Decider<'_> {
    /// Returns whether they may know of a call: of their own, or as an admin of those of the tenant on documents and servers
    /// that they may see.
    pub fn sees(&self, asked: &AskedCall) -> bool {
        let is_server = |name: &String| self.servers.iter().any(|server| server.name() == name);
        self.principal.tenant.name == asked.tenant
            && (self.is_caller(asked) || self.is_admin())
            && asked.server.as_ref().is_none_or(is_server)
            && asked.paths.iter().all(|path| self.principal.may_touch(path))
    }

    /// Returns whether they may decide about a call that they see. A token decides nothing for itself: the agent has it.
    pub fn may_decide(&self, asked: &AskedCall) -> bool {
        self.sees(asked)
            && match self.is_caller(asked) {
                true => self.is_in_person,
                false => self.is_admin(),
            }
    }

    fn is_caller(&self, asked: &AskedCall) -> bool {
        self.principal.id == asked.principal
    }

    fn is_admin(&self) -> bool {
        self.principal.permissions().contains(Permission::Admin)
    }
}

impl WaitingCalls {
    /// With the address of the page, if there is one.
    pub fn new(page: Option<String>) -> Self {
        Self {
            page,
            entries: Mutex::default(),
            decided: Notify::new(),
        }
    }

    /// Where people decide.
    pub fn page(&self) -> Option<&str> {
        self.page.as_deref()
    }

    /// What has become of a call, which waits from now on if nobody was asked about it before.
    pub fn ask(&self, key: CallKey, revoked: &CancellationToken, asked: impl FnOnce() -> AskedCall) -> Standing {
        if self.page.is_none() {
            return Standing::Unkept(Unkept::NoPage);
        }
        let mut entries = self.current();
        if let Some(entry) = entries.get(&key) {
            if entry.verdict.is_none() {
                return Standing::Waits {
                    call: entry.call.clone(),
                    is_known: true,
                };
            }
            if let Some(decided) = take(&mut entries, &key) {
                return Standing::Decided(decided);
            }
        }
        let asked = asked();
        let waiting = || entries.values().filter(|entry| entry.verdict.is_none());
        let is_of = |entry: &&Entry| entry.call.asked.tenant == asked.tenant;
        if waiting().filter(is_of).count() >= MAX_OF_TENANT {
            return Standing::Unkept(Unkept::TooManyOfTenant);
        }
        let is_own = |entry: &&Entry| entry.call.asked.principal == asked.principal;
        if waiting().filter(is_own).count() >= MAX_OF_PRINCIPAL {
            return Standing::Unkept(Unkept::TooManyOfPrincipal);
        }
        let since = SystemTime::now();
        let call = WaitingCall {
            id: sha256_hex(&new_token())[..10].to_owned(),
            asked: Arc::new(asked),
            since,
            until: since + WAITS_FOR,
        };
        let entry = Entry {
            call: call.clone(),
            expires_at: Instant::now() + WAITS_FOR,
            verdict: None,
            revoked: revoked.clone(),
        };
        entries.insert(key, entry);
        Standing::Waits { call, is_known: false }
    }

    /// Waits until a person has decided about a call; none if it does not wait any more.
    pub async fn decided(&self, key: &CallKey) -> Option<Decided> {
        loop {
            let mut changed = pin!(self.decided.notified());
            changed.as_mut().enable();
            let expires_at = {
                let mut entries = self.current();
                if let Some(decided) = take(&mut entries, key) {
                    return Some(decided);
                }
                entries.get(key)?.expires_at
            };
            let _ = timeout_at(expires_at, changed).await;
        }
    }

    /// Lets another call take what one was allowed that did nothing yet.
    pub fn give_back(&self, grants: impl IntoIterator<Item = Grant>) {
        let mut entries = self.current();
        for Grant { key, entry } in grants {
            entries.entry(key).or_insert(entry);
        }
    }

    /// Forgets a call about which somebody has decided elsewhere. What a person has refused here meanwhile stays so.
    pub fn withdraw(&self, key: &CallKey) -> Option<Verdict> {
        let mut entries = self.current();
        let refused = entries.get(key).and_then(|entry| entry.verdict.clone());
        let refused = refused.filter(|verdict| !verdict.is_allowed);
        if refused.is_none() {
            entries.remove(key);
        }
        refused
    }

    /// The calls that wait and that somebody may know of, the oldest first.
    pub fn seen_by(&self, decider: &Decider<'_>) -> Vec<WaitingCall> {
        let entries = self.current();
        let waiting = entries.values().filter(|entry| entry.verdict.is_none());
        let seen = waiting.filter(|entry| decider.sees(&entry.call.asked));
        let mut seen: Vec<WaitingCall> = seen.map(|entry| entry.call.clone()).collect();
        seen.sort_by(|one, other| (one.since, &one.id).cmp(&(other.since, &other.id)));
        seen
    }

    /// Decides about a call; what was asked.
    pub fn decide(&self, id: &str, decider: &Decider<'_>, is_allowed: bool) -> Result<Arc<AskedCall>, CannotDecide> {
        let mut entries = self.current();
        let mut waiting = entries.values_mut().filter(|entry| entry.verdict.is_none());
        let found = waiting.find(|entry| entry.call.id == id && decider.sees(&entry.call.asked));
        let entry = found.ok_or(CannotDecide::Gone)?;
        if !decider.may_decide(&entry.call.asked) {
            return Err(CannotDecide::Own);
        }
        entry.verdict = Some(Verdict {
            is_allowed,
            by: Arc::clone(&decider.principal.id),
            by_name: decider.principal.name.clone(),
        });
        entry.expires_at = Instant::now() + HOLDS_FOR;
        let asked = Arc::clone(&entry.call.asked);
        drop(entries);
        self.decided.notify_waiters();
        Ok(asked)
    }

    /// The entries without those that are over.
    fn current(&self) -> parking_lot::MutexGuard<'_, HashMap<CallKey, Entry>> {
        let (mut entries, now) = (self.entries.lock(), Instant::now());
        entries.retain(|_, entry| entry.expires_at > now && !entry.revoked.is_cancelled());
        entries
    }
}

/// The decision about a call, if there is one. What is allowed is so once; what is refused stays so, lest a person be asked
/// again and again.
fn take(entries: &mut HashMap<CallKey, Entry>, key: &CallKey) -> Option<Decided> {
    let verdict = entries.get(key)?.verdict.clone()?;
    let grant = match verdict.is_allowed {
        true => entries.remove(key).map(|entry| Grant { key: *key, entry }),
        false => None,
    };
    Some(Decided { verdict, grant })
}

#[cfg(test)]
mod tests;
