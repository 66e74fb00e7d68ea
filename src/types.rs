//! Plain values that every layer may speak of: parsed once, valid from then on.
//! Knows nothing of config, network or protocol.

mod active_content;
mod doc_path;
mod execution;
mod nesting;
mod permission;
mod recent_map;
mod text;
mod toolset;

pub use active_content::{MimeKind, is_active_data, is_active_markup, is_text, joined_text};
pub use doc_path::{DocPath, PathError};
pub use execution::{ExecutionKind, ExecutionStatus, ExecutionWordError};
pub use nesting::{MAX_NESTING, is_shallow_json, is_shallow_value};
pub use permission::{Permission, PermissionSet};
pub use recent_map::RecentMap;
pub use text::{Truncated, counted, cut_middle, truncate, without_ansi};
pub use toolset::{Toolset, ToolsetError};
