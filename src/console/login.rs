//! Logging in and out. The form of those who are not logged in carries a token too, so that no other page can log somebody
//! in as somebody else: the signature of a cookie, so that nothing is kept for whoever only looks.

use http::StatusCode;
use ring::hmac;
use subtle::ConstantTimeEq;

use super::{Console, Fields, Reply, Visit, connect, cookie::Cookie, reply};
use crate::{auth::AuthError, config::token::new_token};

/// Signs the forms that were shown to those who are not logged in.
pub(super) struct LoginForms {
    key: hmac::Key,
}

impl LoginForms {
    /// # Panics
    /// If the operating system supplies no randomness.
    #[expect(clippy::expect_used, reason = "a guessable key would be worse than none")]
    pub(super) fn new() -> Self {
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key).expect("the operating system supplies randomness");
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
        }
    }

    /// The token of a form in a browser that has this cookie.
    fn token(&self, cookie: &str) -> String {
        let signature = hmac::sign(&self.key, cookie.as_bytes());
        signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn is_ours(&self, token: &str, visit: &Visit) -> bool {
        let cookie = Cookie::LoginForm.find(&visit.cookies, &visit.site);
        cookie.is_some_and(|cookie| self.token(cookie).as_bytes().ct_eq(token.as_bytes()).into())
    }
}

impl Visit {
    /// Returns whether a form may be from a page of the gateway, as far as the browser tells.
    pub(super) fn is_same_origin(&self) -> bool {
        matches!(self.fetch_site.as_deref(), None | Some("same-origin" | "none"))
    }
}

impl Console {
    /// The first page of those who are not logged in.
    pub(super) fn front(&self, visit: &Visit, status: StatusCode, problem: Option<&str>) -> Reply {
        let page = |cookie: &str| {
            let token = self.login_forms.token(cookie);
            connect::front(visit, &token, problem, self.has_browser_login)
        };
        match Cookie::LoginForm.find(&visit.cookies, &visit.site) {
            Some(cookie) => reply::page(status, page(cookie)),
            None => {
                let cookie = new_token();
                let page = page(&cookie);
                let kept = Cookie::LoginForm.keep(&cookie, &visit.site);
                reply::with_cookie(reply::page(status, page), &kept)
            }
        }
    }

    pub(super) async fn login(&self, visit: &Visit, form: &Fields) -> Reply {
        if !self.login_forms.is_ours(form.get("csrf"), visit) {
            let problem = "This form is not from this page, or from before a restart. Nobody was logged in; try again.";
            return self.front(visit, StatusCode::FORBIDDEN, Some(problem));
        }
        match self.sessions.open(form.get("token").trim()).await {
            Ok(id) => reply::with_cookie(reply::see_other("../console"), &Cookie::Session.keep(&id, &visit.site)),
            Err(error) => self.refuse_login(visit, &error),
        }
    }

    fn refuse_login(&self, visit: &Visit, error: &AuthError) -> Reply {
        match error {
            AuthError::Missing => self.front(visit, StatusCode::UNPROCESSABLE_ENTITY, Some("Enter your token.")),
            AuthError::Unavailable => {
                let problem = "Whether the token holds cannot be told at this moment. Try again in a minute.";
                self.front(visit, StatusCode::SERVICE_UNAVAILABLE, Some(problem))
            }
            AuthError::Unknown | AuthError::Rejected(_) => {
                let counted = visit.origin.address.map(|address| self.limits.on_failed_login(address));
                match counted {
                    Some(Err(refusal)) => {
                        let mut reply = self.front(visit, StatusCode::TOO_MANY_REQUESTS, Some(&sentence(&refusal)));
                        refusal.describe(reply.headers_mut());
                        reply
                    }
                    _ => {
                        let problem = match error {
                            AuthError::Rejected(_) => sentence(error),
                            _ => "This token is not known here. Ask an operator for one.".to_owned(),
                        };
                        self.front(visit, StatusCode::UNAUTHORIZED, Some(&problem))
                    }
                }
            }
        }
    }

    pub(super) fn logout(&self, visit: &Visit) -> Reply {
        if let Some(id) = Cookie::Session.find(&visit.cookies, &visit.site) {
            self.sessions.close(id);
        }
        reply::with_cookie(reply::see_other("../"), &Cookie::Session.forget(&visit.site))
    }
}

/// What went wrong, as a sentence.
fn sentence(error: &impl ToString) -> String {
    let message = error.to_string();
    let mut rest = message.chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest).chain(['.']).collect()
}
