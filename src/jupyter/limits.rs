//! How much is taken from a Jupyter server at once. What it sends was written by whoever may write there, and nobody
//! but this gateway counts what it costs to take it in. Nesting has its limit in `types`.

/// The largest file that is opened as a live document. In memory one takes several times as much.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 64 * 1024 * 1024;
/// The largest message on a socket. A room sends a whole document in one, with what is left of its history.
pub(crate) const MAX_FRAME_BYTES: usize = 128 * 1024 * 1024;
/// The largest answer to a request that does not ask for the content of a file. A list of 10,000 files has 4 MB.
pub(super) const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// The largest answer with the content of a file: as JSON it is longer than the file, by a third if it is base64.
pub(super) const MAX_CONTENT_BYTES: usize = 96 * 1024 * 1024;

/// The most blocks in one update of a document. In memory each takes some 200 bytes, on the wire two may do. A notebook
/// with 50,000 cells has half as many.
pub(super) const MAX_BLOCKS: usize = 1_000_000;
/// The most values in one update; a plot of a million points has two million.
pub(super) const MAX_VALUES: usize = 8_000_000;
/// The most documents inside of one. Notebooks have none.
pub(super) const MAX_SUBDOCUMENTS: usize = 100;
/// The most blocks that wait for others they depend on. Jupyter sends what it has in order, so that normally none does.
pub(super) const MAX_WAITING_BLOCKS: usize = 10_000;

/// The longest presence of somebody in a room; a cursor takes some 500 bytes.
pub(super) const MAX_PRESENCE_BYTES: usize = 64 * 1024;
/// The most presences in a room.
pub(super) const MAX_PRESENCES: usize = 1_000;
