//! Versions and contents as callers ask for them, those that are not written yet included.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use history::{Blob, Content, Hash, VersionId};
use jupyter_client::{DocPath, RoomKind};
use live_document::DocumentId;
use serde_json::Value;
use store::{Before, DocumentRow, StoreError, VersionFilter as Filter};
use tokio::time::timeout;

use super::{
    History, HistoryError,
    contents::{load, outputs},
    track::{FORK, Track},
    version::Version,
};

/// Longest wait of readers for a document that was opened just now to be found in the store.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait of those who need everything to be written.
pub(super) const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// Newest versions that an error names.
const NAMED: usize = 5;
/// Versions that are looked through for a revision.
const MAX_SEARCHED: usize = 10_000;

/// A document whose history is requested.
pub struct Subject {
    path: DocPath,
    track: Option<Arc<Track>>,
    /// Its number in the store.
    document: Option<i64>,
    /// Reason why the store cannot be asked.
    failure: Option<String>,
}

/// Versions of a document, the newest first.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    pub versions: Vec<Version>,
    /// True if there are older ones.
    pub has_more: bool,
    /// Start of its recording, as far as it is kept.
    pub since: Option<SystemTime>,
    /// Versions of all documents that were given up since the gateway began.
    pub lost: u64,
    /// Reason why older versions cannot be shown.
    pub failure: Option<String>,
}

impl History {
    /// The document at a path that has a history, open or not.
    pub async fn subject(&self, server: &str, path: &DocPath) -> Result<Subject, HistoryError> {
        let kind = RoomKind::of(path);
        let track = self.track_at(server, path, kind);
        let row = self.store.document_at(server, path.as_str(), kind.file_type());
        self.subject_of(path, track, row).await
    }

    /// A fork of the document at a path.
    pub async fn subject_fork(&self, server: &str, path: &DocPath, fork_id: &str) -> Result<Subject, HistoryError> {
        let document = DocumentId {
            server: server.into(),
            file_id: DocumentId::file_id_of_fork(fork_id).into(),
            kind: RoomKind::of(path),
        };
        let row = self.store.document_at(server, &document.file_id, FORK);
        self.subject_of(path, self.track(&document), row).await
    }

    async fn subject_of(
        &self,
        path: &DocPath,
        track: Option<Arc<Track>>,
        row: impl Future<Output = Result<Option<DocumentRow>, StoreError>>,
    ) -> Result<Subject, HistoryError> {
        if let Some(track) = &track {
            let is_unknown = || track.lock().stored.is_none();
            if is_unknown() && self.queue.failure().is_none() {
                let _ = timeout(TIMEOUT, self.wait_until_found(track)).await;
            }
        }
        let known = track
            .as_ref()
            .and_then(|track| Some(track.lock().stored.as_ref()?.document));
        let found = match known {
            Some(document) => Ok(Some(document)),
            None => row.await.map(|row| row.map(|row| row.document)),
        };
        let (document, failure) = match (found, &track) {
            (Ok(None), None) => return Err(HistoryError::Nothing { path: path.to_string() }),
            (Ok(document), _) => (document, None),
            (Err(error), Some(_)) => (None, Some(error.to_string())),
            (Err(error), None) => return Err(error.into()),
        };
        Ok(Subject {
            path: path.clone(),
            track,
            document,
            failure,
        })
    }

    fn track_at(&self, server: &str, path: &DocPath, kind: RoomKind) -> Option<Arc<Track>> {
        let is_it = |track: &Track| {
            let document = &track.document;
            *document.server == *server && document.kind == kind && !document.is_fork() && track.lock().path == *path
        };
        self.tracks
            .iter()
            .find(|track| is_it(track))
            .map(|track| Arc::clone(&track))
    }

    /// Records the path of a file; returns whether it has a history.
    pub async fn note_path(&self, server: &str, file_id: &str, path: &DocPath) -> Result<(), HistoryError> {
        Ok(self.store.note_document_path(server, file_id, path.as_str()).await?)
    }

    /// Waits until the log of an open document has all of its versions.
    pub async fn flush(&self, document: &DocumentId) -> Result<(), HistoryError> {
        if let Some(track) = self.track(document) {
            track.lock().hurry();
        }
        match timeout(FLUSH_TIMEOUT, self.wait_until_written(Some(document))).await {
            Ok(()) => Ok(()),
            Err(_) => Err(HistoryError::Store {
                why: self.queue.failure().unwrap_or_else(|| "the store is slow".to_owned()),
            }),
        }
    }

    /// Versions of a document, the newest first.
    pub async fn list(&self, subject: &Subject, filter: &Filter) -> Result<Listing, HistoryError> {
        let pending = subject
            .track
            .as_ref()
            .map(|track| track.pending_versions())
            .unwrap_or_default();
        let newest = pending.clone();
        let (pending, before) = unwritten(pending, filter);
        let wanted = filter.limit.saturating_add(1);
        let mut listing = Listing {
            versions: pending,
            lost: self.lost.load(Ordering::Relaxed),
            failure: subject.failure.clone(),
            ..Listing::default()
        };
        if let Some(document) = subject.document {
            let stored = Filter {
                limit: wanted.saturating_sub(listing.versions.len()),
                author: filter.author.clone(),
                before,
            };
            match self.stored(document, &stored).await {
                Ok((versions, since)) => {
                    // One may have been written meanwhile.
                    let known: HashSet<VersionId> = versions.iter().map(|version| version.id.clone()).collect();
                    listing.versions.retain(|version| !known.contains(&version.id));
                    listing.versions.extend(versions);
                    listing.since = since;
                }
                Err(StoreError::UnknownVersion { version }) => return Err(self.unknown(subject, &version).await),
                Err(error) if subject.track.is_some() => listing.failure = Some(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        listing.has_more = listing.versions.len() > filter.limit;
        listing.versions.truncate(filter.limit);
        self.mark_undone(subject, &newest, &mut listing).await?;
        Ok(listing)
    }

    async fn stored(&self, document: i64, filter: &Filter) -> Result<(Vec<Version>, Option<SystemTime>), StoreError> {
        let rows = self.store.versions(document, filter).await?;
        let oldest = self.store.oldest_version(document).await?;
        let versions = rows.into_iter().map(Version::of_row).collect();
        Ok((versions, oldest.map(|oldest| oldest.time)))
    }

    /// Marks the versions that are taken back by later ones.
    async fn mark_undone(
        &self,
        subject: &Subject,
        pending: &[Version],
        listing: &mut Listing,
    ) -> Result<(), HistoryError> {
        let Some(oldest) = listing.versions.last() else {
            return Ok(());
        };
        let mut undone = HashSet::new();
        for version in pending {
            take_back(&mut undone, &version.id, &version.undoes);
        }
        if let (Some(document), Some(seq)) = (subject.document, oldest.seq) {
            let undoing = self.store.undoing_since(document, seq).await?;
            for (id, undoes) in undoing {
                let undoes: Vec<VersionId> = undoes.into_iter().map(VersionId::from).collect();
                take_back(&mut undone, &id.into(), &undoes);
            }
        }
        for version in &mut listing.versions {
            version.is_undone = undone.contains(&version.id);
        }
        Ok(())
    }

    /// A version of a document with its content.
    pub async fn version(&self, subject: &Subject, id: &str) -> Result<(Version, Content), HistoryError> {
        if let Some(track) = &subject.track {
            let state = track.lock();
            let mut entries = state.pending.iter().filter(|entry| !entry.is_opening());
            if let Some(entry) = entries.find(|entry| entry.version.id.as_str() == id) {
                return Ok((entry.version.clone(), entry.after.clone()));
            }
        }
        let found = self.store.version(id).await?;
        let of_document = |document| subject.document == Some(document);
        let Some((row, version)) = found.filter(|(row, _)| of_document(row.document)) else {
            return Err(self.unknown(subject, id).await);
        };
        match load(&self.store, row.document, version.seq).await? {
            Ok(loaded) => Ok((Version::of_row(version), loaded.content)),
            Err(damage) => Err(HistoryError::Damaged {
                version: id.to_owned(),
                why: damage.0,
            }),
        }
    }

    /// A version by its id or its revision, with its content.
    pub async fn named(&self, subject: &Subject, name: &str) -> Result<(Version, Content), HistoryError> {
        let unknown = match self.version(subject, name).await {
            Err(unknown @ HistoryError::Unknown { .. }) => unknown,
            found => return found,
        };
        let all = Filter {
            limit: MAX_SEARCHED,
            ..Filter::default()
        };
        let listing = self.list(subject, &all).await?;
        let mut versions = listing.versions.iter();
        match versions.find(|version| version.revision.as_deref() == Some(name)) {
            Some(version) => self.version(subject, version.id.as_str()).await,
            None => Err(unknown),
        }
    }

    /// The outputs that are kept of some hashes.
    pub async fn outputs(&self, subject: &Subject, hashes: &[Hash]) -> Result<HashMap<Hash, Vec<Value>>, HistoryError> {
        let known: HashMap<Hash, Blob> = match &subject.track {
            Some(track) => {
                let state = track.lock();
                let blobs = state.pending.iter().flat_map(|entry| &entry.blobs);
                blobs.map(|blob| (blob.hash, blob.clone())).collect()
            }
            None => HashMap::new(),
        };
        Ok(outputs(&self.store, &known, hashes).await?)
    }

    /// The error about a version that a document does not have.
    async fn unknown(&self, subject: &Subject, name: &str) -> HistoryError {
        let newest = Filter {
            limit: NAMED,
            ..Filter::default()
        };
        let known = Box::pin(self.list(subject, &newest))
            .await
            .map(|listing| listing.versions);
        let known: Vec<String> = known
            .unwrap_or_default()
            .iter()
            .map(|version| version.id.to_string())
            .collect();
        HistoryError::Unknown {
            path: subject.path.to_string(),
            name: name.chars().take(100).collect(),
            known: match known.is_empty() {
                true => String::new(),
                false => format!("; the newest versions are {}", known.join(", ")),
            },
        }
    }
}

impl Subject {
    pub(super) fn document(&self) -> Option<i64> {
        self.document
    }
}

fn take_back(undone: &mut HashSet<VersionId>, id: &VersionId, undoes: &[VersionId]) {
    // What is taken back itself takes nothing back.
    if !undone.contains(id) {
        undone.extend(undoes.iter().cloned());
    }
}

/// The versions that are not written yet and that a filter wants, and the bound for those that are.
fn unwritten(pending: Vec<Version>, filter: &Filter) -> (Vec<Version>, Option<Before>) {
    let by_author = |version: &Version| filter.author.as_deref().is_none_or(|author| version.is_by(author));
    let is_in_time = |version: &Version| match filter.before {
        Some(Before::Time(before)) => version.time < before,
        _ => true,
    };
    let (newer, before) = match &filter.before {
        None => (0, None),
        Some(Before::Time(time)) => (0, Some(Before::Time(*time))),
        Some(Before::Version(id)) => match pending.iter().position(|version| version.id.as_str() == id) {
            Some(position) => (position + 1, None),
            None => (pending.len(), Some(Before::Version(id.clone()))),
        },
    };
    let wanted = pending.into_iter().skip(newer);
    let wanted = wanted.filter(|version| by_author(version) && is_in_time(version));
    (wanted.take(filter.limit + 1).collect(), before)
}
