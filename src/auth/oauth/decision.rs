//! The decision of a person: what a client may do for them. What is allowed becomes a grant, and a code for the client.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use store::{Grant, NewGrant};
use url::{Url, form_urlencoded};

use super::{
    ErrorCode, LoginRefusal, OAuth, OAuthError,
    login::{Login, lost},
    scopes,
    secrets::{digest, new_secret},
    upstream::{Identity, UpstreamTokens},
};
use crate::types::PermissionSet;

/// Time for a client to redeem a code.
const CODE_TTL: Duration = Duration::from_secs(60);
/// Grants of one person; beyond it the oldest are revoked.
const MAX_GRANTS: usize = 100;

/// Terms of a grant, with what is checked when its code is redeemed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Terms {
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    pub(super) scope: String,
}

/// A decision as the form of the consent page sends it.
struct Decision {
    ticket: String,
    is_allowed: bool,
    chosen: PermissionSet,
}

impl Decision {
    /// The permissions are boxes of the form, so that there are several of one name.
    fn parse(form: &str) -> Self {
        let mut decision = Self {
            ticket: String::new(),
            is_allowed: false,
            chosen: PermissionSet::default(),
        };
        let mut chosen = Vec::new();
        for (name, value) in form_urlencoded::parse(form.as_bytes()) {
            match &*name {
                "ticket" => decision.ticket = value.into_owned(),
                "decision" => decision.is_allowed = value == "allow",
                "scope" => chosen.push(value),
                _ => {}
            }
        }
        decision.chosen = scopes::permissions(&chosen.join(" "));
        decision
    }
}

impl OAuth {
    /// Carries out what a person has decided; the browser goes to the client with it.
    pub async fn decide(&self, form: &str, browser: Option<&str>) -> Result<Url, LoginRefusal> {
        let decision = Decision::parse(form);
        let Login::AtConsent {
            request,
            identity,
            tokens,
            offered,
            ..
        } = self.take(&decision.ticket, browser).await?
        else {
            return Err(lost().into());
        };
        let told = |error: OAuthError| self.tell(&request.redirect_uri, request.state.as_deref(), &error);
        let granted = scopes::permissions(&offered).intersection(decision.chosen);
        if !decision.is_allowed || granted == PermissionSet::default() {
            let description = "the person did not allow it";
            return Err(told(OAuthError::new(ErrorCode::AccessDenied, description)));
        }
        let terms = Terms {
            redirect_uri: request.redirect_uri.clone(),
            challenge: request.challenge.clone(),
            scope: scopes::scopes(granted),
        };
        let code = self.grant(&request.client.id, &terms, &identity, &tokens).await;
        let code = code.map_err(told)?;
        tracing::info!(
            subject = identity.subject,
            client = request.client.name,
            scope = terms.scope,
            "a person has allowed a client to act for them"
        );
        let answer = self.answer(&request.redirect_uri, request.state.as_deref(), &[("code", &code)]);
        Ok(answer.ok_or_else(OAuthError::internal)?)
    }

    /// Keeps a grant, and makes the code by which the client gets it.
    pub(super) async fn grant(
        &self,
        client_id: &str,
        terms: &Terms,
        identity: &Identity,
        tokens: &UpstreamTokens,
    ) -> Result<String, OAuthError> {
        let code = new_secret();
        let grant_id = new_secret();
        let json = |value: serde_json::Result<String>| value.map_err(|_| OAuthError::internal());
        let grant = NewGrant {
            issuer: identity.issuer.clone(),
            subject: identity.subject.clone(),
            client_id: client_id.to_owned(),
            identity: json(serde_json::to_string(identity))?,
            terms: json(serde_json::to_string(terms))?,
            upstream: self.seal_tokens(&grant_id, tokens),
            code: digest(&code),
            code_expires: SystemTime::now() + CODE_TTL,
            grant_id,
        };
        self.store.add_oauth_grant(&grant, MAX_GRANTS).await?;
        Ok(code)
    }

    /// Tokens of the upstream service as the store keeps them; they open for their grant alone.
    pub(super) fn seal_tokens(&self, grant_id: &str, tokens: &UpstreamTokens) -> Option<String> {
        let sealed = (!tokens.is_empty()).then(|| self.sealer.seal(grant_id, tokens));
        sealed.flatten()
    }

    /// The tokens of a grant; `None` if they were sealed under another key.
    pub(super) fn open_tokens(&self, grant: &Grant) -> Option<UpstreamTokens> {
        match grant.upstream.as_deref() {
            Some(sealed) => self.sealer.open(&grant.grant_id, sealed),
            None => Some(UpstreamTokens::default()),
        }
    }
}

/// Reads a form that anybody may have sent.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzz(form: &str) {
    let _ = Decision::parse(form);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allowed_that_was_not_said() {
        let parsed = Decision::parse("ticket=t&decision=allow&scope=jupyter%3Aread&scope=jupyter%3Aexecute");
        assert!(parsed.is_allowed && parsed.ticket == "t");
        assert_eq!(scopes::scopes(parsed.chosen), "jupyter:read jupyter:execute");
        for form in ["", "ticket=t&scope=jupyter%3Aread", "decision=deny", "decision=ALLOW"] {
            assert!(!Decision::parse(form).is_allowed, "{form}");
        }
    }
}
