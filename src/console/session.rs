//! Sessions of people who are logged in: in memory, each with the token that was given at login, or the login at another
//! service; that is asked about again with every request. A session ends when its principal is revoked, when the token no longer holds, when nobody
//! used it for long, or when the person logs out.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use jupyter_client::Secret;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use crate::{
    auth::{AuthError, Authenticator, Credentials, Principal, Rejection, oauth::PersonLogin},
    config::token::{new_token, sha256},
};

/// Sessions in all, and of one principal; beyond that the one goes that was not used for the longest time.
const MAX_SESSIONS: usize = 10_000;
const MAX_OF_PRINCIPAL: usize = 32;
/// However busy a session is, the person logs in again after this time.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The digest of a session's id: what is in memory opens nothing.
type Key = [u8; 32];

pub(super) struct Sessions {
    authenticator: Arc<Authenticator>,
    idle_timeout: Duration,
    open: Mutex<HashMap<Key, Arc<Session>>>,
}

/// One browser that is logged in.
pub(super) struct Session {
    /// The principal at login. If that is revoked the session is over, even if the token then stands for another one.
    principal: Arc<Principal>,
    credential: Credential,
    key: Key,
    /// The token that every form of the session's pages carries.
    pub(super) csrf: String,
    began: Instant,
    used: Mutex<Instant>,
    /// Message for the next page.
    told: Mutex<Option<Told>>,
}

/// Credential with which the person logged in.
enum Credential {
    Bearer(Secret),
    /// At another service, which is asked about them now and then.
    Login(PersonLogin),
}

/// Outcome of a form, for the page after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Done(String),
    Failed(String),
}

/// A session with the principal that its token stands for now.
#[derive(Clone)]
pub struct Visitor {
    pub(super) session: Arc<Session>,
    pub(super) principal: Arc<Principal>,
}

impl Sessions {
    pub(super) fn new(authenticator: Arc<Authenticator>, idle_timeout: Duration) -> Self {
        Self {
            authenticator,
            idle_timeout,
            open: Mutex::default(),
        }
    }

    /// Opens a session for whoever has a token; its id, which only the browser keeps.
    pub(super) async fn open(&self, token: &str) -> Result<String, AuthError> {
        self.begin(Credential::Bearer(Secret::new(token))).await
    }

    /// The same for whoever has logged in at another service.
    pub(super) async fn enter(&self, login: PersonLogin) -> Result<String, AuthError> {
        self.begin(Credential::Login(login)).await
    }

    async fn begin(&self, credential: Credential) -> Result<String, AuthError> {
        let principal = self.authenticate(&credential).await?;
        let (id, now) = (new_token(), Instant::now());
        let session = Session {
            principal,
            credential,
            key: sha256(&id),
            csrf: new_token(),
            began: now,
            used: Mutex::new(now),
            told: Mutex::default(),
        };
        let mut open = self.open.lock();
        open.retain(|_, session| !session.is_over(self.idle_timeout, now));
        make_room(&mut open, &session.principal);
        open.insert(session.key, Arc::new(session));
        Ok(id)
    }

    /// The visitor of a session, if it goes on.
    pub(super) async fn visitor(&self, id: &str) -> Option<Visitor> {
        let (key, now) = (sha256(id), Instant::now());
        let session = Arc::clone(self.open.lock().get(&key)?);
        if session.is_over(self.idle_timeout, now) {
            self.open.lock().remove(&key);
            return None;
        }
        match self.authenticate(&session.credential).await {
            Ok(principal) if principal.id == session.principal.id => {
                *session.used.lock() = now;
                Some(Visitor { session, principal })
            }
            // A session must not end because of a service that does not answer for a moment.
            Err(AuthError::Unavailable) => None,
            Ok(_) | Err(_) => {
                self.open.lock().remove(&key);
                None
            }
        }
    }

    /// Returns whether a session goes on. To ask is not to use it.
    pub(super) async fn goes_on(&self, session: &Session) -> bool {
        let is_open = self.open.lock().contains_key(&session.key);
        if !is_open || session.is_over(self.idle_timeout, Instant::now()) {
            return false;
        }
        match self.authenticate(&session.credential).await {
            Ok(principal) => principal.id == session.principal.id,
            Err(error) => error == AuthError::Unavailable,
        }
    }

    pub(super) async fn close(&self, id: &str) {
        let closed = self.open.lock().remove(&sha256(id));
        if let Some(Credential::Login(login)) = closed.as_deref().map(|session| &session.credential) {
            login.end().await;
        }
    }

    async fn authenticate(&self, credential: &Credential) -> Result<Arc<Principal>, AuthError> {
        match credential {
            Credential::Bearer(token) => self.authenticator.authenticate(Credentials::new(token.expose())).await,
            Credential::Login(login) => {
                let ended = || AuthError::Rejected(Rejection::Invalid("the login is over"));
                let token = login.access_token().await.ok_or_else(ended)?;
                self.authenticator.authenticate(Credentials::new(token.expose())).await
            }
        }
    }
}

/// Ends the sessions that were not used for the longest time, where there are too many.
fn make_room(open: &mut HashMap<Key, Arc<Session>>, principal: &Principal) {
    let oldest = |open: &HashMap<Key, Arc<Session>>, is_meant: &dyn Fn(&Session) -> bool| {
        let meant = open.iter().filter(|(_, session)| is_meant(session));
        meant
            .min_by_key(|(_, session)| *session.used.lock())
            .map(|(key, _)| *key)
    };
    let is_own = |session: &Session| session.principal.id == principal.id;
    if open.values().filter(|session| is_own(session)).count() >= MAX_OF_PRINCIPAL {
        oldest(open, &is_own).and_then(|key| open.remove(&key));
    }
    if open.len() >= MAX_SESSIONS {
        oldest(open, &|_| true).and_then(|key| open.remove(&key));
    }
}

impl Session {
    fn is_over(&self, idle_timeout: Duration, now: Instant) -> bool {
        let idle = now.saturating_duration_since(*self.used.lock());
        // A login has one token after the other, and is asked about.
        let is_revoked = matches!(self.credential, Credential::Bearer(_)) && self.principal.revoked().is_cancelled();
        is_revoked || idle >= idle_timeout || now.saturating_duration_since(self.began) >= MAX_AGE
    }

    /// Returns whether a form is from a page of this session.
    pub(super) fn has_sent(&self, csrf: &str) -> bool {
        self.csrf.as_bytes().ct_eq(csrf.as_bytes()).into()
    }

    pub(super) fn tell(&self, told: Told) {
        *self.told.lock() = Some(told);
    }

    pub(super) fn take_told(&self) -> Option<Told> {
        self.told.lock().take()
    }
}

impl Visitor {
    /// Returns whether this is the person, by a login that the agents of that person cannot have made. A bearer token is what
    /// agents have.
    pub(super) fn is_in_person(&self) -> bool {
        match self.session.credential {
            Credential::Bearer(_) => false,
            Credential::Login(_) => true,
        }
    }

    /// The visitor as a principal, for all tools and limits.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.principal
    }
}
