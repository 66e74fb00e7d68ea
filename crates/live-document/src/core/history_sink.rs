//! The interface to whoever keeps the history of documents.

use std::{sync::Arc, time::SystemTime};

use history::{Author, Blob, Content, Delta, VersionId};
use jupyter_client::DocPath;

use super::DocumentId;

/// Takes the versions of all open documents. It is called while the document is locked: it must neither wait nor ask anything of
/// the document. The calls for one document come one after another, in the order of what happened.
pub trait HistorySink: Send + Sync {
    /// A document was opened, with this content. `blobs` are all outputs that the content mentions.
    fn opened(&self, document: &Arc<DocumentId>, path: &DocPath, content: &Content, blobs: Vec<Blob>);

    /// An open document has another version.
    fn record(&self, recorded: Recorded);

    /// An open document is somewhere else.
    fn renamed(&self, document: &Arc<DocumentId>, from: &DocPath, to: &DocPath);

    /// A document was closed; everything that happened to it was recorded before.
    fn closed(&self, document: &Arc<DocumentId>);
}

/// A version of an open document.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    pub document: Arc<DocumentId>,
    pub path: DocPath,
    pub time: SystemTime,
    pub author: Author,
    /// The tool by which an agent made it.
    pub tool: Option<Arc<str>>,
    /// The revision that it led to.
    pub revision: String,
    /// The versions that it takes back.
    pub undoes: Vec<VersionId>,
    /// Difference from the version before, or from the content that the document was opened with.
    pub delta: Delta,
    /// The document after it, which shares with the contents told before whatever is the same.
    pub content: Content,
    /// Bytes of the document's texts after it.
    pub size: usize,
    /// Outputs that its delta mentions and that no earlier call had.
    pub blobs: Vec<Blob>,
    /// Set if it removed most of the document, and nobody is known to have wanted that.
    pub loss: Option<Loss>,
}

/// A sudden loss of most of a document's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    pub cells_before: usize,
    pub cells_after: usize,
    pub characters_before: usize,
    pub characters_after: usize,
}
