//! A service whose answers a test chooses, and when they come.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;

use super::*;
use crate::{
    auth::{PathRules, method::Rejection, tenants::tenants},
    config::{Config, Env},
    types::{Permission, PermissionSet},
};

const HOUR: Freshness = Freshness {
    accepted: Duration::from_secs(3600),
    refused: Duration::from_secs(3600),
};
const STALE: Freshness = Freshness {
    accepted: Duration::ZERO,
    refused: Duration::ZERO,
};

struct Service {
    tenants: Arc<Tenants>,
    says: Mutex<Says>,
    asked: AtomicUsize,
    /// Answers that may be given.
    may_answer: Semaphore,
}

#[derive(Clone, Copy)]
enum Says {
    Accepted { expires_in: Option<Duration> },
    Rejected,
    Unavailable,
}

impl Verifier for Service {
    fn is_mine(&self, bearer: &str) -> bool {
        bearer.starts_with("mine")
    }

    async fn verify(&self, _: &Secret) -> Outcome {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.may_answer.acquire().await.expect("open").forget();
        let says = *self.says.lock();
        match says {
            Says::Accepted { expires_in } => {
                let tenant = self.tenants.get("t").expect("the tenant");
                let rules = PathRules::new(&["**".to_owned()]).expect("rules");
                let principal = Principal::new("x:ana", "ana", tenant, PermissionSet::all(), rules);
                Outcome::Accepted(Arc::new(match expires_in {
                    Some(span) => principal.expiring_at(SystemTime::now() + span),
                    None => principal,
                }))
            }
            Says::Rejected => Outcome::Rejected(Rejection::Invalid("it is wrong")),
            Says::Unavailable => Outcome::Unavailable,
        }
    }
}

fn method(freshness: Freshness, says: Says) -> Verified<Service> {
    let of_config = Arc::new(Tenants::default());
    of_config.replace(tenants(&config("")).expect("tenants"));
    let service = Service {
        tenants: Arc::clone(&of_config),
        says: Mutex::new(says),
        asked: AtomicUsize::default(),
        may_answer: Semaphore::new(1000),
    };
    Verified::new(service, freshness, of_config)
}

fn config(tenant: &str) -> Config {
    let text = format!("[[tenants]]\nname = \"t\"\n{tenant}");
    Config::from_toml(&text, "test", &Env::default()).expect("a config")
}

async fn ask(method: &Verified<Service>) -> Option<Arc<Principal>> {
    match method.authenticate(Credentials::new("mine-1")).await {
        Outcome::Accepted(principal) => Some(principal),
        _ => None,
    }
}

fn asked(method: &Verified<Service>) -> usize {
    method.verifier().asked.load(Ordering::Relaxed)
}

#[tokio::test]
async fn one_question_answers_all_who_ask_and_those_who_come_later() {
    let method = method(HOUR, Says::Accepted { expires_in: None });
    method.verifier().may_answer.forget_permits(1000);
    let all = futures::future::join_all((0..10).map(|_| ask(&method)));
    let answer = async { method.verifier().may_answer.add_permits(1) };
    let (found, ()) = tokio::join!(all, answer);
    assert!(found.iter().all(Option::is_some));
    assert!(ask(&method).await.is_some());
    assert_eq!(asked(&method), 1);
    let other = method.authenticate(Credentials::new("other")).await;
    assert!(matches!(other, Outcome::NotMine) && asked(&method) == 1);
}

#[tokio::test]
async fn refusals_are_remembered_and_outages_are_not() {
    let method = method(HOUR, Says::Unavailable);
    assert!(ask(&method).await.is_none() && ask(&method).await.is_none());
    assert_eq!(asked(&method), 2);
    *method.verifier().says.lock() = Says::Rejected;
    assert!(ask(&method).await.is_none() && ask(&method).await.is_none());
    assert_eq!(asked(&method), 3);
}

#[tokio::test]
async fn who_expires_is_revoked_and_does_not_come_back() {
    for is_swept in [true, false] {
        let expires_in = Some(Duration::from_millis(30));
        let method = method(STALE, Says::Accepted { expires_in });
        let principal = ask(&method).await.expect("accepted");
        assert!(!principal.revoked().is_cancelled());
        while !principal.is_expired(SystemTime::now()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!is_swept || method.sweep() && principal.revoked().is_cancelled());
        // Whoever checks it may let it pass for a while longer, for the sake of clocks that differ.
        *method.verifier().says.lock() = Says::Accepted { expires_in: None };
        assert!(ask(&method).await.is_none() && principal.revoked().is_cancelled());
        assert_eq!(asked(&method), 1);
    }
}

#[tokio::test]
async fn what_is_open_is_asked_about_again() {
    let method = method(STALE, Says::Accepted { expires_in: None });
    let principal = ask(&method).await.expect("accepted");
    // The same token again is the same principal, whose end ends both.
    let again = ask(&method).await.expect("accepted");
    drop(principal.clone());
    *method.verifier().says.lock() = Says::Rejected;
    while !again.revoked().is_cancelled() {
        method.sweep();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(principal.revoked().is_cancelled());
    let unused = asked(&method);
    method.sweep();
    assert_eq!(asked(&method), unused, "nobody is left to be asked about");
}

#[tokio::test]
async fn tenants_bound_those_who_are_known_already() {
    let method = method(HOUR, Says::Accepted { expires_in: None });
    let before = ask(&method).await.expect("accepted");
    let replace = |tenant: &str| {
        let tenants = tenants(&config(tenant)).expect("tenants");
        method.verifier().tenants.replace(tenants);
        method.on_tenants_replaced();
    };
    replace("max_open_rooms = 7");
    let now = ask(&method).await.expect("accepted");
    assert!(!before.revoked().is_cancelled() && now.tenant.max_open_rooms == 7);
    replace("permissions = [\"read\"]");
    assert!(before.revoked().is_cancelled() && now.revoked().is_cancelled());
    let narrowed = ask(&method).await.expect("accepted");
    assert!(narrowed.require(Permission::Write).is_err() && !narrowed.revoked().is_cancelled());
}
