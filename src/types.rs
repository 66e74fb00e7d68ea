//! Plain values that every layer may speak of: parsed once, valid from then on.
//! Knows nothing of config, network or protocol.

mod doc_path;
mod execution;
mod permission;
mod recent_map;
mod text;
mod toolset;

pub use doc_path::{DocPath, PathError};
pub use execution::{ExecutionKind, ExecutionStatus, ExecutionWordError};
pub use permission::{Permission, PermissionSet};
pub use recent_map::RecentMap;
pub use text::{Truncated, truncate, without_ansi};
pub use toolset::{Toolset, ToolsetError};
