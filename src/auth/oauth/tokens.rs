//! The token endpoint and revocation. A refresh token is good for once: it names its grant, so that one that is not the
//! grant's current one was used before, by its client or by a thief, and ends the grant.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use store::{Grant, NewTokens, Redeemed};

use super::{
    ErrorCode, OAuth, OAuthError,
    decision::Terms,
    parameters::Parameters,
    pkce, scopes,
    secrets::{digest, is_same, new_secret},
    upstream::{Identity, UpstreamError, UpstreamTokens},
};
use crate::types::PermissionSet;

/// Prefix of access tokens issued here; tokens of the config have another.
pub(super) const ACCESS_PREFIX: &str = "jmga_";
const REFRESH_PREFIX: &str = "jmgr_";

/// Tokens as a client gets them.
#[derive(Serialize)]
pub struct IssuedTokens {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
    refresh_token: String,
    scope: String,
    /// The person who has just logged in; none for a refresh.
    #[serde(skip)]
    login: Option<NewLogin>,
}

/// A person for whom a client gets its first tokens.
pub struct NewLogin {
    /// Id of the principal.
    pub principal: String,
    pub tenant: String,
}

impl IssuedTokens {
    pub(super) fn access_token(&self) -> &str {
        &self.access_token
    }

    pub(super) fn refresh_token(&self) -> &str {
        &self.refresh_token
    }

    /// Seconds for which the access token holds.
    pub(super) fn expires_in(&self) -> u64 {
        self.expires_in
    }

    pub fn login(&self) -> Option<&NewLogin> {
        self.login.as_ref()
    }
}

/// A refresh token as it was sent.
struct RefreshToken<'a> {
    grant_id: &'a str,
    whole: &'a str,
}

impl<'a> RefreshToken<'a> {
    fn parse(whole: &'a str) -> Option<Self> {
        let (grant_id, _) = whole.strip_prefix(REFRESH_PREFIX)?.split_once('.')?;
        Some(Self { grant_id, whole })
    }
}

impl OAuth {
    /// Gives a client tokens for a code, or for a refresh token.
    pub async fn token(&self, form: &str) -> Result<IssuedTokens, OAuthError> {
        let parameters = Parameters::parse(form)?;
        if !self.settings.is_resource(parameters.get("resource")) {
            let description = format!("`resource` must be {}", self.settings.resource());
            return Err(OAuthError::new(ErrorCode::InvalidTarget, description));
        }
        match parameters.require("grant_type")? {
            "authorization_code" => self.redeem(&parameters).await,
            "refresh_token" => {
                let client_id = parameters.require("client_id")?;
                let refresh_token = parameters.require("refresh_token")?;
                self.refresh(client_id, refresh_token, parameters.get("scope")).await
            }
            _ => {
                let description = "`grant_type` must be authorization_code or refresh_token";
                Err(OAuthError::new(ErrorCode::UnsupportedGrantType, description))
            }
        }
    }

    async fn redeem(&self, parameters: &Parameters) -> Result<IssuedTokens, OAuthError> {
        let client_id = parameters.require("client_id")?;
        let verifier = parameters.require("code_verifier")?;
        let redirect_uri = parameters.require("redirect_uri")?;
        let code = digest(parameters.require("code")?);
        let grant = match self.store.redeem_oauth_code(&code).await? {
            Redeemed::Granted(grant) => grant,
            Redeemed::Unknown => {
                return Err(OAuthError::grant("the code is unknown or has expired; log in again"));
            }
            Redeemed::Reused => {
                tracing::warn!(client_id, "a code was used twice; what it granted is revoked");
                return Err(OAuthError::grant("the code was used before; log in again"));
            }
        };
        let terms = terms(&grant)?;
        let is_its_own = is_same(&grant.client_id, client_id)
            && is_same(&terms.redirect_uri, redirect_uri)
            && pkce::is_verified(verifier, &terms.challenge);
        if !is_its_own {
            // Whoever has the code is not the client that asked for it.
            self.store.revoke_oauth_grant(&grant.grant_id).await?;
            let description = "the code was not issued to this client, redirect URI and `code_verifier`; log in again";
            return Err(OAuthError::grant(description));
        }
        self.issue_first(&grant, terms.scope).await
    }

    /// The first tokens of a grant.
    pub(super) async fn issue_first(&self, grant: &Grant, scope: String) -> Result<IssuedTokens, OAuthError> {
        let issued = self.issue(grant, scope, None).await?;
        let identity = identity(grant)?;
        let tenant = identity.tenant(&self.tenants);
        let login = tenant.map(|tenant| NewLogin {
            principal: identity.principal_id(),
            tenant: tenant.name.clone(),
        });
        Ok(IssuedTokens { login, ..issued })
    }

    /// The next tokens of a grant, for its current refresh token.
    pub(super) async fn refresh(
        &self,
        client_id: &str,
        refresh_token: &str,
        scope: Option<&str>,
    ) -> Result<IssuedTokens, OAuthError> {
        let ended = || OAuthError::grant("the refresh token has expired or was revoked; log in again");
        let sent = RefreshToken::parse(refresh_token).ok_or_else(ended)?;
        let grant = self.store.oauth_grant(sent.grant_id).await?.ok_or_else(ended)?;
        if !is_same(&grant.client_id, client_id) {
            return Err(OAuthError::grant("the refresh token was issued to another client"));
        }
        let scope = narrowed(&terms(&grant)?.scope, scope)?;
        let current = digest(sent.whole);
        if !grant
            .refresh
            .as_deref()
            .is_some_and(|refresh| is_same(refresh, &current))
        {
            return Err(self.end_reused(&grant).await?);
        }
        let (identity, tokens) = self.renew_upstream(&grant).await?;
        // What the person may now, of what they allowed.
        let granted = match self.offer(scopes::permissions(&scope), &identity) {
            Ok((_, granted)) => granted,
            Err(refused) => {
                self.store.revoke_oauth_grant(&grant.grant_id).await?;
                return Err(OAuthError::grant(refused.description));
            }
        };
        let renewed = Renewed {
            before: &current,
            identity,
            tokens,
        };
        self.issue(&grant, scopes::scopes(granted), Some(renewed)).await
    }

    /// Ends a grant of which a refresh token was used twice.
    async fn end_reused(&self, grant: &Grant) -> Result<OAuthError, OAuthError> {
        self.store.revoke_oauth_grant(&grant.grant_id).await?;
        tracing::warn!(
            subject = grant.subject,
            client_id = grant.client_id,
            "a refresh token was used twice; its grant is revoked"
        );
        Ok(OAuthError::grant("the refresh token was used before; log in again"))
    }

    /// Asks the upstream service what is true of the person now. Who is nobody there loses the grant.
    async fn renew_upstream(&self, grant: &Grant) -> Result<(Identity, UpstreamTokens), OAuthError> {
        let renewed = match self.open_tokens(grant) {
            Some(tokens) => self.upstream.renew(&self.settings, &identity(grant)?, &tokens).await,
            // Under another key they cannot be opened, and nobody can be asked.
            None => Err(UpstreamError::Denied("no token".to_owned())),
        };
        match renewed {
            Ok(renewed) => Ok(renewed),
            Err(error @ (UpstreamError::Denied(_) | UpstreamError::Forbidden(_))) => {
                self.store.revoke_oauth_grant(&grant.grant_id).await?;
                Err(OAuthError::grant(match error {
                    UpstreamError::Forbidden(sentence) => sentence,
                    _ => "the login service does not know this login any more; log in again".to_owned(),
                }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Issues the next tokens of a grant: the first ones, or those after a refresh token.
    async fn issue(
        &self,
        grant: &Grant,
        scope: String,
        renewed: Option<Renewed<'_>>,
    ) -> Result<IssuedTokens, OAuthError> {
        let (access_ttl, refresh_ttl) = (self.settings.access_ttl, self.settings.refresh_ttl);
        let access_token = format!("{ACCESS_PREFIX}{}", new_secret());
        let refresh_token = format!("{REFRESH_PREFIX}{}.{}", grant.grant_id, new_secret());
        let now = SystemTime::now();
        let before = renewed.as_ref().map(|renewed| renewed.before);
        let upstream = renewed.as_ref().map(|renewed| {
            let sealed = self.seal_tokens(&grant.grant_id, &renewed.tokens);
            let identity = serde_json::to_string(&renewed.identity).map_err(|_| OAuthError::internal())?;
            Ok::<_, OAuthError>((sealed, identity))
        });
        let tokens = NewTokens {
            access: digest(&access_token),
            scope: scope.clone(),
            access_expires: now + access_ttl,
            refresh: digest(&refresh_token),
            // An access token ends with its grant.
            refresh_expires: now + refresh_ttl.max(access_ttl),
            upstream: upstream.transpose()?,
        };
        if !self.store.rotate_oauth_tokens(&grant.grant_id, before, &tokens).await? {
            // Somebody was faster with the same token.
            return Err(self.end_reused(grant).await?);
        }
        let keep = now + refresh_ttl + Duration::from_secs(24 * 60 * 60);
        self.store.keep_oauth_client(&grant.client_id, keep).await?;
        Ok(IssuedTokens {
            access_token,
            token_type: "Bearer",
            expires_in: access_ttl.as_secs(),
            refresh_token,
            scope,
            login: None,
        })
    }

    /// Revokes what a token was issued for (RFC 7009). A token that is not known is none that holds.
    pub async fn revoke(&self, form: &str) -> Result<(), OAuthError> {
        let parameters = Parameters::parse(form)?;
        self.revoke_token(parameters.require("token")?, parameters.get("client_id"))
            .await
    }

    pub(super) async fn revoke_token(&self, token: &str, client_id: Option<&str>) -> Result<(), OAuthError> {
        let grant = match RefreshToken::parse(token) {
            Some(refresh) => {
                let grant = self.store.oauth_grant(refresh.grant_id).await?;
                let sent = digest(token);
                grant.filter(|grant| grant.refresh.as_deref().is_some_and(|refresh| is_same(refresh, &sent)))
            }
            None => {
                let found = self.store.oauth_access_token(&digest(token)).await?;
                found.map(|found| found.grant)
            }
        };
        let Some(grant) = grant else { return Ok(()) };
        if client_id.is_some_and(|client_id| !is_same(&grant.client_id, client_id)) {
            let description = "the token was issued to another client";
            return Err(OAuthError::new(ErrorCode::InvalidClient, description));
        }
        self.store.revoke_oauth_grant(&grant.grant_id).await?;
        Ok(())
    }
}

/// What a refresh brought along.
struct Renewed<'a> {
    /// Digest of the refresh token that was sent.
    before: &'a str,
    identity: Identity,
    tokens: UpstreamTokens,
}

fn identity(grant: &Grant) -> Result<Identity, OAuthError> {
    serde_json::from_str(&grant.identity).map_err(|_| OAuthError::internal())
}

fn terms(grant: &Grant) -> Result<Terms, OAuthError> {
    serde_json::from_str(&grant.terms).map_err(|_| OAuthError::internal())
}

/// The scope that a client asks for when it refreshes, within the one it was granted.
fn narrowed(granted: &str, asked: Option<&str>) -> Result<String, OAuthError> {
    let Some(asked) = asked else {
        return Ok(granted.to_owned());
    };
    let asked = scopes::permissions(asked);
    let both = asked.intersection(scopes::permissions(granted));
    match both == asked && both != PermissionSet::default() {
        true => Ok(scopes::scopes(both)),
        false => {
            let description = format!("only {granted} was granted");
            Err(OAuthError::new(ErrorCode::InvalidScope, description))
        }
    }
}

/// Reads a refresh token and a scope that anybody may have sent.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzz(token: &str, scope: Option<&str>) {
    let _ = RefreshToken::parse(token);
    let granted = "jupyter:read jupyter:write";
    if let Ok(scope) = narrowed(granted, scope) {
        let granted = scopes::permissions(granted);
        assert_eq!(
            scopes::permissions(&scope).intersection(granted),
            scopes::permissions(&scope)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_narrowed_and_never_widened() {
        let granted = "jupyter:read jupyter:write";
        assert_eq!(narrowed(granted, None).as_deref(), Ok(granted));
        assert_eq!(narrowed(granted, Some("jupyter:read")).as_deref(), Ok("jupyter:read"));
        assert!(narrowed(granted, Some("jupyter:read jupyter:execute")).is_err());
        assert!(narrowed(granted, Some("openid")).is_err());
    }

    #[test]
    fn a_refresh_token_names_its_grant() {
        let token = RefreshToken::parse("jmgr_grant.secret").expect("a token");
        assert_eq!(token.grant_id, "grant");
        for other in ["", "jmga_grant.secret", "jmgr_grant", "grant.secret"] {
            assert!(RefreshToken::parse(other).is_none(), "{other}");
        }
    }
}
