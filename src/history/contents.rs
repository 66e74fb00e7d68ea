//! Contents of stored versions: a snapshot, and the deltas since. What is stored may be damaged.

use std::collections::HashMap;

use history::{Blob, Content, Delta, Hash};
use serde_json::Value;
use store::{Store, StoreError, VersionRow};

use super::track::Since;

/// The content of a document after a version, and how far that is from its snapshot.
pub(super) struct Loaded {
    pub(super) content: Content,
    pub(super) since_snapshot: Since,
}

/// Reason why a content cannot be put together.
#[derive(Debug)]
pub(super) struct Damage(pub(super) String);

/// The content after a version, unless the store has it damaged.
pub(super) async fn load(store: &Store, document: i64, seq: i64) -> Result<Result<Loaded, Damage>, StoreError> {
    let (from, content, snapshot) = match nearest(store, document, seq).await? {
        Ok(found) => found,
        Err(damage) => return Ok(Err(damage)),
    };
    let loaded = replay(store, document, (from, seq), content).await?;
    Ok(loaded.map(|(content, bytes)| Loaded {
        content,
        since_snapshot: Since {
            versions: seq - from,
            bytes,
            snapshot,
        },
    }))
}

/// The newest snapshot up to a version that can be read.
async fn nearest(store: &Store, document: i64, seq: i64) -> Result<Result<(i64, Content, usize), Damage>, StoreError> {
    let (mut at, mut damage) = (seq, Damage("its beginning is not kept".to_owned()));
    while let Some((found, bytes)) = store.nearest_snapshot(document, at).await? {
        match Content::decode(&bytes) {
            Ok(content) => return Ok(Ok((found, content, bytes.len()))),
            Err(error) => {
                tracing::error!(document, seq = found, %error, "a snapshot of the history cannot be read");
                damage = Damage(error.to_string());
            }
        }
        at = found - 1;
    }
    Ok(Err(damage))
}

async fn replay(
    store: &Store,
    document: i64,
    (from, to): (i64, i64),
    mut content: Content,
) -> Result<Result<(Content, usize), Damage>, StoreError> {
    let (mut at, mut read) = (from, 0);
    while at < to {
        let page = store.deltas(document, at, to).await?;
        if page.is_empty() {
            return Ok(Err(Damage(format!("change {} is missing", at + 1))));
        }
        for (seq, row, bytes) in page {
            match next(&content, at, &row, &bytes) {
                Ok(after) => content = after,
                Err(damage) => {
                    tracing::error!(
                        document,
                        seq,
                        version = row.version_id,
                        why = damage.0,
                        "a version of the history cannot be read"
                    );
                    return Ok(Err(damage));
                }
            }
            (at, read) = (seq, read + bytes.len());
        }
    }
    Ok(Ok((content, read)))
}

fn next(content: &Content, at: i64, row: &VersionRow, bytes: &[u8]) -> Result<Content, Damage> {
    if row.seq != at + 1 {
        return Err(Damage(format!("change {} is missing", at + 1)));
    }
    let delta = Delta::decode(bytes).map_err(|error| Damage(error.to_string()))?;
    delta.apply(content).map_err(|error| Damage(error.to_string()))
}

/// The outputs that are kept of some hashes.
pub(super) async fn outputs(
    store: &Store,
    known: &HashMap<Hash, Blob>,
    hashes: &[Hash],
) -> Result<HashMap<Hash, Vec<Value>>, StoreError> {
    let mut found = HashMap::new();
    for hash in hashes {
        if found.contains_key(hash) {
            continue;
        }
        let blob = match known.get(hash) {
            Some(blob) => Some(blob.clone()),
            None => stored_blob(store, *hash).await?,
        };
        if let Some(blob) = blob {
            found.insert(*hash, blob.outputs());
        }
    }
    Ok(found)
}

async fn stored_blob(store: &Store, hash: Hash) -> Result<Option<Blob>, StoreError> {
    let Some(bytes) = store.blob(&hash.to_string()).await? else {
        return Ok(None);
    };
    let blob = Blob::decode(hash, &bytes);
    Ok(blob
        .inspect_err(|error| tracing::error!(%hash, %error, "outputs in the history cannot be read"))
        .ok())
}

/// A content with the cells of another one where they are equal, so that both take the memory of one.
pub(super) fn shared(content: Content, with: &Content) -> Content {
    match (content, with) {
        (content, with) if content == *with => with.clone(),
        (Content::Notebook(mut notebook), Content::Notebook(other)) => {
            let known: HashMap<&str, _> = other.cells.iter().map(|cell| (&*cell.id, cell)).collect();
            for cell in &mut notebook.cells {
                if let Some(same) = known.get(&*cell.id).filter(|other| ***other == *cell) {
                    *cell = (*same).clone();
                }
            }
            Content::Notebook(notebook)
        }
        (content, _) => content,
    }
}
