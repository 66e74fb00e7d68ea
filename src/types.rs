//! Plain values that every layer may speak of: parsed once, valid from then on.
//! Knows nothing of config, network or protocol.

mod active_content;
mod client_address;
mod code_pattern;
mod notebook_uri;
mod permission;
mod toolset;

pub use active_content::{MimeKind, is_active_data, is_active_markup, is_text, joined_text};
pub use client_address::ClientAddress;
pub use code_pattern::code_pattern;
pub use notebook_uri::{
    DOCUMENTS, MAX_DOCUMENT_BYTES, NOTEBOOK_SCHEME, document_uri, encoded, notebook_uri, output_uri,
};
pub use permission::{Permission, PermissionSet};
pub use toolset::{Toolset, ToolsetError};
