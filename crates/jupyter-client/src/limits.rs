//! Limits of the data taken from a Jupyter server at once. Whoever may write there decides what it sends, and only
//! this gateway counts what it costs to take in. Nesting has its limit in `nesting`.

/// The largest file that is opened as a live document. In memory one takes several times as much.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 64 * 1024 * 1024;
/// The largest message on a socket. A room sends a whole document in one, with what is left of its history.
pub const MAX_FRAME_BYTES: usize = 128 * 1024 * 1024;
/// The largest answer to a request that does not ask for the content of a file. A list of 10,000 files has 4 MB.
pub(super) const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// The largest answer with the content of a file: as JSON it is longer than the file, by a third if it is base64.
pub(super) const MAX_CONTENT_BYTES: usize = 96 * 1024 * 1024;
