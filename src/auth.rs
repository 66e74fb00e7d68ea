//! Who is calling and what they may touch: bearer tokens to principals, principals to rules.
//! Knows nothing of HTTP: the edge hands over the credential and maps refusals to statuses.

mod authenticator;
mod path_rules;
mod principal;

pub use authenticator::{AuthError, Authenticator};
pub use path_rules::{PathRules, Uncovered};
pub use principal::{AccessError, Principal, Tenant};
