//! Owns the gateway's settings: what they are, their defaults, how a file and the environment fill
//! them, and what is refused. Knows nothing of what the settings are used for.

mod access;
mod changes;
mod env;
mod error;
mod load;
mod model;
mod net;
mod node;
mod oauth;
mod parse;
mod reader;
mod section;
#[cfg(test)]
mod tests;
pub mod token;
mod validate;

pub use access::{
    ApprovalBy, ApprovalConfig, ApprovalWhen, AuthConfig, JupyterAuthConfig, JupyterHubConfig, JwtConfig, OAuthConfig,
    Review, ServerConfig, TenantConfig, TokenConfig,
};
pub use error::{ConfigError, Problem, Why};
pub use jupyter_client::Secret;
pub use load::{Env, environment};
pub use model::{
    AuditConfig, Config, ConsoleConfig, EventsConfig, ExecutionConfig, HttpConfig, ImagesConfig, LogFormat, McpConfig,
    OtlpProtocol, SessionsConfig, StoreConfig, TelemetryConfig,
};
pub use net::base_url;
pub use oauth::OAuthSecrets;
pub use validate::{validate_exposure, warnings};
