//! Authentication and authorization: bearer tokens to principals, principals to rules. Knows nothing of HTTP: the
//! edge hands over the credential and maps refusals to statuses.

mod approvals;
mod authenticator;
mod hub_account;
mod jupyter;
mod jupyterhub;
mod jwt;
mod method;
pub mod oauth;
pub mod oidc;
pub mod outbound;
mod path_rules;
mod principal;
mod tenants;
mod tokens;
mod verified;

pub use approvals::{ApprovalError, ApprovalRule, ApprovalRules};
pub use authenticator::{AnyMethod, Authenticator};
pub use hub_account::{HubAccount, HubStates};
pub use jupyter::JupyterTokens;
pub use jupyterhub::{HubTokens, JupyterHub};
pub use jwt::{JwtTokens, scope_of};
pub use method::{AuthError, Credentials, Method, Outcome, Rejection, TokenDigest};
pub use path_rules::{NotFullyAllowed, PathRules};
pub use principal::{AccessError, Principal, Tenant, shown_name};
pub use tenants::Tenants;
pub use verified::{Freshness, Verified, Verifier};
