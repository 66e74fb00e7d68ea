//! Authentication and authorization: bearer tokens to principals, principals to rules. Knows nothing of HTTP: the
//! edge hands over the credential and maps refusals to statuses.

mod approvals;
mod authenticator;
mod method;
mod path_rules;
mod principal;
mod tokens;

pub use approvals::{ApprovalError, ApprovalRule, ApprovalRules};
pub use authenticator::Authenticator;
pub use method::{AuthError, Credentials, Method, Outcome};
pub use path_rules::{NotFullyAllowed, PathRules};
pub use principal::{AccessError, Principal, Tenant};
