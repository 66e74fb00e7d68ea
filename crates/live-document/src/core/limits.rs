//! Limits of what is applied to a document at once, beside the limits of what is received.

/// The most blocks in one update of a document. In memory each takes some 200 bytes, on the wire two may do. A notebook
/// with 50,000 cells has half as many.
pub(crate) const MAX_BLOCKS: usize = 1_000_000;
/// The most values in one update; a plot of a million points has two million.
pub(crate) const MAX_VALUES: usize = 8_000_000;
/// The most subdocuments. Notebooks have none.
pub(crate) const MAX_SUBDOCUMENTS: usize = 100;
/// The most blocks that wait for others they depend on. Jupyter sends what it has in order, so that normally none does.
pub(crate) const MAX_WAITING_BLOCKS: usize = 10_000;

/// The longest presence of somebody in a room; a cursor takes some 500 bytes.
pub(crate) const MAX_PRESENCE_BYTES: usize = 64 * 1024;
/// The most presences in a room.
pub(crate) const MAX_PRESENCES: usize = 1_000;
