//! The addresses of open notebooks and of files, which resources are read by and answers refer to.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The scheme of open notebooks.
pub const NOTEBOOK_SCHEME: &str = "notebook://";
/// The beginning of the addresses of files.
pub const DOCUMENTS: &str = "file:///documents/";
/// Bytes of the largest file that can be read by its address.
pub const MAX_DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;
/// Characters to encode in one part of an address: all but RFC 3986 `unreserved`.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of a notebook.
pub fn notebook_uri(session: &str, notebook: &str) -> String {
    format!("{NOTEBOOK_SCHEME}{}/{}", encoded(session), encoded(notebook))
}

/// The address of an output of a cell, whose notebook has this address.
pub fn output_uri(notebook_uri: &str, cell: &str, output: usize) -> String {
    format!("{notebook_uri}/cells/{}/outputs/{output}", encoded(cell))
}

/// The address of a file on a server.
pub fn document_uri(server: &str, path: &str) -> String {
    let parts: Vec<String> = path.split('/').map(encoded).collect();
    format!("{DOCUMENTS}{}/{}", encoded(server), parts.join("/"))
}

/// One part of an address.
pub fn encoded(part: &str) -> String {
    utf8_percent_encode(part, PART).to_string()
}
