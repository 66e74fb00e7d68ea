//! Deep values that an update deletes, and the update without them.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use super::{Block, DELETED, KIND};

/// A block whose value is nested deeply, by its place among the blocks and in the bytes of the update.
#[derive(Debug)]
pub(super) struct Deep {
    pub(super) block: usize,
    pub(super) nesting: usize,
    /// Offset of the block, at the byte that tells the kind of its content.
    pub(super) info: usize,
    pub(super) content: Range<usize>,
}

/// Deleted ranges of the clients that have deep values.
#[derive(Debug, Default)]
pub(super) struct DeletedRanges(HashMap<u64, Vec<Range<u32>>>);

impl DeletedRanges {
    pub(super) fn of_interest(deep: &[Deep], blocks: &[Block]) -> Self {
        let clients = deep.iter().map(|deep| blocks[deep.block].id.client);
        Self(clients.map(|client| (client, Vec::new())).collect())
    }

    pub(super) fn add(&mut self, client: u64, clocks: Range<u32>) {
        if let Some(ranges) = self.0.get_mut(&client) {
            ranges.push(clocks);
        }
    }

    /// Makes ranges that touch each other one.
    pub(super) fn merge(&mut self) {
        for ranges in self.0.values_mut() {
            ranges.sort_unstable_by_key(|range| range.start);
            ranges.dedup_by(|next, before| {
                let touches = next.start <= before.end;
                if touches {
                    before.end = before.end.max(next.end);
                }
                touches
            });
        }
    }

    /// Returns whether the whole of a block is deleted.
    pub(super) fn covers(&self, deep: &Deep, blocks: &[Block]) -> bool {
        let Block { id, length, .. } = blocks[deep.block];
        let Some(ranges) = self.0.get(&id.client) else {
            return false;
        };
        let after = ranges.partition_point(|range| range.start <= id.clock);
        let range = after.checked_sub(1).and_then(|index| ranges.get(index));
        range.is_some_and(|range| range.end >= id.clock.saturating_add(length))
    }
}

/// The update with the content of these blocks, which are in its order, replaced by as much deleted content.
pub(super) fn replace<'a>(update: &'a [u8], gone: &[Deep], blocks: &[Block]) -> Cow<'a, [u8]> {
    if gone.is_empty() {
        return Cow::Borrowed(update);
    }
    let mut replaced = Vec::with_capacity(update.len());
    let mut taken = 0;
    for deep in gone {
        replaced.extend_from_slice(&update[taken..deep.info]);
        replaced.push(update[deep.info] & !KIND | DELETED);
        replaced.extend_from_slice(&update[deep.info + 1..deep.content.start]);
        put(&mut replaced, blocks[deep.block].length);
        taken = deep.content.end;
    }
    replaced.extend_from_slice(&update[taken..]);
    Cow::Owned(replaced)
}

fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}
