//! The next version of a document's log. Another gateway may have written to it, versions may have been given up, and the
//! document may have changed while nobody had it open: each delta in the log is made for the content before it.

use std::{sync::Arc, time::SystemTime};

use history::{Author, Blob, Content, Delta, Outputs, VersionId};
use jupyter_client::counted;
use store::{Appended, DocumentRow, NewVersion, Snapshot, StoreError, VersionFilter};

use super::{
    History,
    contents::{Loaded, load, shared},
    notices::{What, sudden_loss},
    track::{Entry, Since, Stored, Track},
    version::{Kind, Version, names, new_id},
};

/// Versions after which a snapshot is made, and bytes of deltas from which on one is, if it is not larger.
const SNAPSHOT_VERSIONS: i64 = 100;
const SNAPSHOT_BYTES: usize = 64 * 1024;
/// Attempts in a row that others may overtake.
const MAX_CONFLICTS: usize = 8;
/// Versions that are looked through for the one that a document was opened as.
const LOOK_BACK: i64 = 100;

/// A version and everything that is stored with it.
pub(super) struct Next<'a> {
    pub(super) version: &'a Version,
    pub(super) delta: &'a Delta,
    pub(super) after: Content,
    pub(super) blobs: &'a [Blob],
    /// It begins the log, or begins it anew.
    pub(super) is_beginning: bool,
}

/// The way from the end of the log to a version that was recorded.
enum Step {
    /// First, a version that makes up for what is missing.
    Repair(Delta),
    Append {
        delta: Delta,
        after: Content,
    },
    /// The log has it already.
    Nothing,
}

impl History {
    pub(super) async fn write_entry(&self, track: &Arc<Track>, entry: &Arc<Entry>) -> Result<(), StoreError> {
        let stored = match entry.is_opening() {
            _ if self.may_be_of_others(entry).await? => self.defer(track, entry).await?,
            true => self.begin(track, &entry.version, &entry.after, &entry.blobs).await?,
            false => self.write_version(track, entry).await?,
        };
        track.on_written(entry, stored);
        if entry.is_loss {
            self.tell_loss(track);
        }
        Ok(())
    }

    async fn write_version(&self, track: &Arc<Track>, entry: &Entry) -> Result<Stored, StoreError> {
        if entry.is_loss {
            // A lost content must be a version that can be restored.
            self.settle(track, &entry.before, true).await?;
        }
        let mut stored = self.end_of_log(track, &entry.before).await?;
        for _ in 0..MAX_CONFLICTS {
            let (is_shared, lost) = {
                let state = track.lock();
                (state.is_shared, state.lost)
            };
            let (version, delta, after, blobs) = match step(&stored.content, entry, is_shared) {
                Step::Nothing => return Ok(stored),
                Step::Append { delta, after } => (entry.version.clone(), delta, after, &entry.blobs[..]),
                Step::Repair(delta) => (
                    repairing(&delta, &entry.before, lost),
                    delta,
                    entry.before.clone(),
                    &[][..],
                ),
            };
            let is_it = version.id == entry.version.id;
            let next = Next {
                version: &version,
                delta: &delta,
                after,
                blobs,
                is_beginning: false,
            };
            match self.append(&stored, next).await? {
                Ok(appended) if is_it => return Ok(appended),
                Ok(repaired) => {
                    track.lock().lost = 0;
                    stored = repaired;
                }
                Err(latest) => {
                    stored = self
                        .after_conflict(track, stored.document, latest, &entry.before)
                        .await?;
                    // An attempt of which no answer came may have succeeded.
                    if self.store.version(entry.version.id.as_str()).await?.is_some() {
                        return Ok(stored);
                    }
                }
            }
        }
        Err(too_busy())
    }

    /// Makes up for versions that were given up, with one that ends with the content that there is.
    pub(super) async fn repair(&self, track: &Arc<Track>) -> Result<(), StoreError> {
        let (live, lost) = {
            let state = track.lock();
            (state.live.clone(), state.lost)
        };
        let Some(live) = live else {
            return Ok(());
        };
        let mut stored = self.end_of_log(track, &live).await?;
        for _ in 0..MAX_CONFLICTS {
            let delta = missing(&stored.content, &live);
            let appended = match delta.is_only_runs() {
                true => Ok(stored.clone()),
                false => {
                    let version = repairing(&delta, &live, lost);
                    let next = Next {
                        version: &version,
                        delta: &delta,
                        after: live.clone(),
                        blobs: &[],
                        is_beginning: false,
                    };
                    self.append(&stored, next).await?
                }
            };
            match appended {
                Ok(appended) => {
                    let mut state = track.lock();
                    state.stored = Some(appended);
                    state.lost = state.lost.saturating_sub(lost);
                    return Ok(());
                }
                Err(latest) => stored = self.after_conflict(track, stored.document, latest, &live).await?,
            }
        }
        Err(too_busy())
    }

    /// The end of the log, which begins with this content if there is none.
    pub(super) async fn end_of_log(&self, track: &Arc<Track>, content: &Content) -> Result<Stored, StoreError> {
        let known = track.lock().stored.clone();
        match known {
            Some(stored) => Ok(stored),
            None => {
                let version = beginning(content);
                self.begin(track, &version, content, &[]).await
            }
        }
    }

    /// The end of the log of a document that was opened with this content.
    pub(super) async fn begin(
        &self,
        track: &Arc<Track>,
        opened: &Version,
        content: &Content,
        blobs: &[Blob],
    ) -> Result<Stored, StoreError> {
        for _ in 0..MAX_CONFLICTS {
            let row = self.store.document(&track.key()).await?;
            let stored = match self.loaded(&row).await? {
                None => self.append_beginning(&row, opened, content, blobs).await?.ok(),
                Some(loaded) => {
                    self.append_outside(track, &row, loaded, (opened, content, blobs))
                        .await?
                }
            };
            if let Some(stored) = stored {
                return Ok(stored);
            }
        }
        Err(too_busy())
    }

    /// The content after the newest version, unless there is none or it cannot be read.
    pub(super) async fn loaded(&self, row: &DocumentRow) -> Result<Option<Loaded>, StoreError> {
        if row.latest_seq == 0 {
            return Ok(None);
        }
        let loaded = load(&self.store, row.document, row.latest_seq).await?;
        Ok(loaded
            .inspect_err(|damage| {
                tracing::error!(
                    document = row.document,
                    why = damage.0,
                    "the history of a document is damaged, and begins anew"
                );
            })
            .ok())
    }

    async fn append_beginning(
        &self,
        row: &DocumentRow,
        opened: &Version,
        content: &Content,
        blobs: &[Blob],
    ) -> Result<Result<Stored, i64>, StoreError> {
        let end = Stored {
            document: row.document,
            seq: row.latest_seq,
            content: content.clone(),
            since_snapshot: Since::default(),
        };
        let version = Version {
            summary: beginning(content).summary,
            ..opened.clone()
        };
        let next = Next {
            version: &version,
            delta: &Delta::default(),
            after: content.clone(),
            blobs,
            is_beginning: true,
        };
        self.append(&end, next).await
    }

    /// Records the change of a document while it was not open; none, if somebody else wrote to its log meanwhile.
    async fn append_outside(
        &self,
        track: &Arc<Track>,
        row: &DocumentRow,
        loaded: Loaded,
        (opened, content, blobs): (&Version, &Content, &[Blob]),
    ) -> Result<Option<Stored>, StoreError> {
        let stored = stored(row, loaded, content);
        let delta = missing(&stored.content, content);
        let latest = self.latest_version(row.document).await?;
        if delta.is_only_runs() {
            if let Some(latest) = latest {
                self.on_same(track, &opened.id, latest);
            }
            return Ok(Some(stored));
        }
        if self.was_changed_since(row, &stored.content, (opened, content)).await? {
            track.lock().is_shared = true;
            return Ok(Some(stored));
        }
        let needed = delta.outputs();
        let blobs: Vec<Blob> = blobs
            .iter()
            .filter(|blob| needed.contains(&blob.hash))
            .cloned()
            .collect();
        let version = Version {
            kind: Kind::Outside,
            summary: delta.summary(),
            ..opened.clone()
        };
        let next = Next {
            version: &version,
            delta: &delta,
            after: content.clone(),
            blobs: &blobs,
            is_beginning: false,
        };
        let before = stored.content.clone();
        let appended = self.append(&stored, next).await?.ok();
        if let (Some(_), Some(latest)) = (&appended, latest) {
            self.notice_outside(track, row, (&before, content), latest).await?;
        }
        Ok(appended)
    }

    /// The newest version of a log.
    pub(super) async fn latest_version(&self, document: i64) -> Result<Option<VersionId>, StoreError> {
        let newest = VersionFilter {
            limit: 1,
            ..VersionFilter::default()
        };
        let latest = self.store.versions(document, &newest).await?.pop();
        Ok(latest.map(|latest| latest.version_id.into()))
    }

    /// A version that was recorded here is the newest one of the log, under the id that this has.
    pub(super) fn on_same(&self, track: &Arc<Track>, opened: &VersionId, latest: VersionId) {
        self.notices.rename_version(&track.document, opened, &latest);
        let mut state = track.lock();
        if state.latest.0 == *opened {
            state.latest.0 = latest;
        }
    }

    /// Detects that a document was opened without most of its content, or as it was before its last changes.
    pub(super) async fn notice_outside(
        &self,
        track: &Arc<Track>,
        row: &DocumentRow,
        (before, opened): (&Content, &Content),
        latest: VersionId,
    ) -> Result<(), StoreError> {
        let what = match sudden_loss(before, opened) {
            Some(loss) => Some(What::Loss(loss)),
            None => {
                let changes = self.changes_since(row, before, opened).await?;
                changes.map(|changes| What::SteppedBack { changes })
            }
        };
        if let Some(what) = what {
            let path = track.lock().path.clone();
            tracing::warn!(server = row.server, %path, version = %latest, "a document was opened without what was recorded of it");
            self.notices.add(&track.document, what, latest);
            self.tell_loss(track);
        }
        Ok(())
    }

    /// Returns whether others have changed a document since it was opened with this content, and written that down already:
    /// then nothing happened to it while it was not open.
    async fn was_changed_since(
        &self,
        row: &DocumentRow,
        latest: &Content,
        (opened, wanted): (&Version, &Content),
    ) -> Result<bool, StoreError> {
        let first = (row.latest_seq - LOOK_BACK).max(0);
        let deltas = self.store.deltas(row.document, first, row.latest_seq).await?;
        let mut content = latest.clone();
        for (_, version, delta) in deltas.iter().rev() {
            if version.time < opened.time {
                break;
            }
            let earlier = Delta::decode(delta)
                .ok()
                .and_then(|delta| delta.invert().apply(&content).ok());
            let Some(earlier) = earlier else { break };
            if earlier.is_same_but_for_runs(wanted) {
                return Ok(true);
            }
            content = earlier;
        }
        Ok(false)
    }

    /// The number of changes since the content was this; none if it never was, as far as is looked.
    async fn changes_since(
        &self,
        row: &DocumentRow,
        latest: &Content,
        wanted: &Content,
    ) -> Result<Option<usize>, StoreError> {
        let first = (row.latest_seq - LOOK_BACK).max(0);
        let deltas = self.store.deltas(row.document, first, row.latest_seq).await?;
        let mut content = latest.clone();
        for (count, (_, _, delta)) in deltas.iter().rev().enumerate() {
            let earlier = Delta::decode(delta)
                .ok()
                .and_then(|delta| delta.invert().apply(&content).ok());
            let Some(earlier) = earlier else { break };
            if earlier.is_same_but_for_runs(wanted) {
                return Ok(Some(count + 1));
            }
            content = earlier;
        }
        Ok(None)
    }

    /// The end of the log after somebody else wrote to it.
    pub(super) async fn after_conflict(
        &self,
        track: &Arc<Track>,
        document: i64,
        latest_seq: i64,
        content: &Content,
    ) -> Result<Stored, StoreError> {
        track.lock().is_shared = true;
        match load(&self.store, document, latest_seq).await? {
            Ok(loaded) => Ok(Stored {
                document,
                seq: latest_seq,
                content: shared(loaded.content, content),
                since_snapshot: loaded.since_snapshot,
            }),
            Err(_) => {
                track.lock().stored = None;
                let version = beginning(content);
                self.begin(track, &version, content, &[]).await
            }
        }
    }

    /// Appends a version to the log. If somebody else was faster, the number of their version.
    pub(super) async fn append(&self, end: &Stored, next: Next<'_>) -> Result<Result<Stored, i64>, StoreError> {
        let delta = next.delta.encode();
        let since = Since {
            versions: end.since_snapshot.versions + 1,
            bytes: end.since_snapshot.bytes + delta.len(),
            snapshot: end.since_snapshot.snapshot,
        };
        let is_due = since.versions >= SNAPSHOT_VERSIONS || since.bytes > since.snapshot.max(SNAPSHOT_BYTES);
        let snapshot = (is_due || next.is_beginning).then(|| snapshot(&next.after));
        let version = next.version;
        let since_snapshot = match &snapshot {
            Some(snapshot) => Since {
                snapshot: snapshot.bytes.len(),
                ..Since::default()
            },
            None => since,
        };
        let new = NewVersion {
            version_id: version.id.to_string(),
            time: version.time,
            kind: version.kind.as_str().to_owned(),
            principal: version.principal.clone(),
            authors: version.authors.clone(),
            tool: version.tool.clone(),
            revision: version.revision.clone(),
            summary: version.summary.clone(),
            size: version.size,
            undoes: version.undoes.iter().map(ToString::to_string).collect(),
            delta,
            snapshot,
            blobs: next
                .blobs
                .iter()
                .map(|blob| (blob.hash.to_string(), blob.encode()))
                .collect(),
        };
        Ok(match self.store.append_version(end.document, end.seq, &new).await? {
            Appended::Ok(seq) => Ok(Stored {
                document: end.document,
                seq,
                content: next.after,
                since_snapshot,
            }),
            Appended::Conflict { latest_seq } => Err(latest_seq),
        })
    }
}

fn step(end: &Content, entry: &Entry, is_shared: bool) -> Step {
    let as_recorded = |delta: Delta| Step::Append {
        delta,
        after: entry.after.clone(),
    };
    if *end == entry.before {
        return as_recorded(entry.delta.clone());
    }
    let gap = missing(end, &entry.before);
    if gap.is_only_runs() {
        let mut delta = gap;
        delta.operations.extend(entry.delta.operations.iter().cloned());
        return as_recorded(delta);
    }
    match (is_shared, &entry.author) {
        (false, _) => Step::Repair(gap),
        (true, Author::Agent { .. }) => rebased(end, entry).unwrap_or_else(|| difference(end, &entry.after)),
        (true, _) => difference(end, &entry.after),
    }
}

/// An agent's change on top of what others have written. None if it does not fit there.
fn rebased(end: &Content, entry: &Entry) -> Option<Step> {
    let delta = entry.delta.rebase(&entry.before, end).ok()?.delta;
    let after = delta.apply(end).ok()?;
    Some(match delta.is_empty() {
        true => Step::Nothing,
        false => Step::Append { delta, after },
    })
}

fn difference(end: &Content, after: &Content) -> Step {
    let delta = missing(end, after);
    match delta.is_only_runs() {
        true => Step::Nothing,
        false => Step::Append {
            delta,
            after: after.clone(),
        },
    }
}

/// The end of a log whose newest content was loaded, for a document that says this.
pub(super) fn stored(row: &DocumentRow, loaded: Loaded, content: &Content) -> Stored {
    Stored {
        document: row.document,
        seq: row.latest_seq,
        content: shared(loaded.content, content),
        since_snapshot: loaded.since_snapshot,
    }
}

/// The delta that is missing at the end of a log. Outputs are those of runs, which are nobody's to undo.
pub(super) fn missing(end: &Content, content: &Content) -> Delta {
    Delta::between(end, content).with_outputs_by_runs(|_| false)
}

pub(super) fn snapshot(content: &Content) -> Snapshot {
    let kept = content.cells().iter().filter_map(|cell| match cell.outputs {
        Outputs::Kept(hash) => Some(hash.to_string()),
        Outputs::None | Outputs::Omitted => None,
    });
    Snapshot {
        bytes: content.encode(),
        blobs: kept.collect(),
    }
}

/// The version with which the log of a document begins.
fn beginning(content: &Content) -> Version {
    let summary = match content {
        Content::Notebook(notebook) => format!("recording began with {}", counted(notebook.cells.len(), "cell")),
        Content::Text(text) => format!("recording began with {}", counted(text.lines().count(), "line")),
    };
    by_nobody(Kind::Opened, summary, content)
}

/// The version that makes up for some that were given up.
fn repairing(delta: &Delta, after: &Content, lost: u64) -> Version {
    let summary = delta.summary();
    match lost {
        0 => by_nobody(Kind::Outside, summary, after),
        lost => {
            let versions = counted(usize::try_from(lost).unwrap_or(usize::MAX), "version");
            by_nobody(Kind::Lost, format!("{summary} ({versions} could not be kept)"), after)
        }
    }
}

fn by_nobody(kind: Kind, summary: String, content: &Content) -> Version {
    let time = SystemTime::now();
    Version {
        id: new_id(time),
        seq: None,
        time,
        kind,
        principal: None,
        authors: names(&Author::Outside).1,
        tool: None,
        revision: None,
        summary,
        size: i64::try_from(content.size()).unwrap_or(i64::MAX),
        undoes: Vec::new(),
        is_undone: false,
    }
}

fn too_busy() -> StoreError {
    StoreError::Writing {
        why: "others write versions of the same document all the time".to_owned(),
    }
}
