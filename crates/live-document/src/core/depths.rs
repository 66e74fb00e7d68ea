//! Depth of each block in the document. A shared type in a shared type in a shared type may come in as many
//! small updates as there are levels; yrs deletes them recursively, and so does whatever reads them as JSON.
//!
//! Follows yrs in what can be placed when: a block whose neighbours or parent are missing waits for them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use jupyter_client::MAX_NESTING;

use super::limits::MAX_WAITING_BLOCKS;
use super::scan::{Block, Excess, Id, Place};

/// The depth of what is garbage, and of what is in it.
const GARBAGE: usize = 0;

/// The depths of all blocks of a document.
#[derive(Debug, Default, Clone)]
pub(crate) struct Depths {
    clients: HashMap<u64, Runs>,
    waiting: Vec<Block>,
}

/// Blocks of one client, by their first clock. Adjacent ones of the same depth are one run.
type Runs = BTreeMap<u32, Run>;

#[derive(Debug, Clone, Copy)]
struct Run {
    end: u32,
    depth: usize,
}

impl Depths {
    /// Takes in the blocks of an update, or refuses it. After a refusal the document is of no use any more.
    pub(crate) fn admit(&mut self, blocks: Vec<Block>) -> Result<(), Excess> {
        let new = blocks.len();
        let mut all = blocks;
        all.append(&mut self.waiting);
        self.waiting = self.place_all(all, new)?;
        match self.waiting.len() > MAX_WAITING_BLOCKS {
            true => Err(Excess::Waiting),
            false => Ok(()),
        }
    }

    /// Places what can be placed; the rest. Each block is looked at again only when what it waits for has come.
    fn place_all(&mut self, blocks: Vec<Block>, new: usize) -> Result<Vec<Block>, Excess> {
        // By what they wait for: a block may be one of many that wait for the same.
        let mut blocked: HashMap<u64, BTreeMap<u32, Vec<usize>>> = HashMap::new();
        let mut ready: VecDeque<usize> = (0..blocks.len()).collect();
        while let Some(index) = ready.pop_front() {
            let block = &blocks[index];
            match self.depth_at(block.place) {
                Err(missing) => blocked
                    .entry(missing.client)
                    .or_default()
                    .entry(missing.clock)
                    .or_default()
                    .push(index),
                Ok(depth) => {
                    self.note(block, depth)?;
                    let end = block.id.clock.saturating_add(block.length);
                    if let Some(waiting) = blocked.get_mut(&block.id.client) {
                        let freed: Vec<u32> = waiting.range(block.id.clock..end).map(|(clock, _)| *clock).collect();
                        ready.extend(freed.iter().filter_map(|clock| waiting.remove(clock)).flatten());
                    }
                }
            }
        }
        let mut rest: Vec<usize> = blocked
            .into_values()
            .flat_map(BTreeMap::into_values)
            .flatten()
            .collect();
        rest.sort_unstable_by_key(|index| (*index < new, *index));
        let mut rest: Vec<Block> = rest.into_iter().map(|index| blocks[index]).collect();
        // The same comes again with every synchronisation.
        let mut seen = std::collections::HashSet::new();
        rest.retain(|block| seen.insert((block.id, block.length, block.place)));
        Ok(rest)
    }

    /// Depth of a place, or the id that is missing to know it.
    fn depth_at(&self, place: Place) -> Result<usize, Id> {
        match place {
            Place::Nowhere => Ok(GARBAGE),
            Place::Root => Ok(1),
            Place::In(parent) => Ok(match self.depth_of(parent)? {
                GARBAGE => GARBAGE,
                depth => depth + 1,
            }),
            Place::Beside(left, right) => {
                let mut depth = GARBAGE;
                for neighbour in left.into_iter().chain(right) {
                    depth = depth.max(self.depth_of(neighbour)?);
                }
                Ok(depth)
            }
        }
    }

    fn depth_of(&self, id: Id) -> Result<usize, Id> {
        let runs = self.clients.get(&id.client).ok_or(id)?;
        let (_, run) = runs.range(..=id.clock).next_back().ok_or(id)?;
        match run.end > id.clock {
            true => Ok(run.depth),
            false => Err(id),
        }
    }

    /// Records a block. What is known already stays as it is, as it does for yrs.
    fn note(&mut self, block: &Block, depth: usize) -> Result<(), Excess> {
        if depth != GARBAGE && depth + block.nesting > MAX_NESTING {
            return Err(Excess::Nesting);
        }
        let runs = self.clients.entry(block.id.client).or_default();
        let (mut at, end) = (block.id.clock, block.id.clock.saturating_add(block.length));
        while at < end {
            let known = runs.range(..=at).next_back().filter(|(_, run)| run.end > at);
            if let Some((_, run)) = known {
                if depth != GARBAGE && run.depth != GARBAGE && run.depth != depth {
                    return Err(Excess::Contradiction);
                }
                at = run.end;
                continue;
            }
            let until = runs.range(at..end).next().map_or(end, |(next, _)| *next);
            match runs.range_mut(..at).next_back() {
                Some((_, before)) if before.end == at && before.depth == depth => before.end = until,
                _ => drop(runs.insert(at, Run { end: until, depth })),
            }
            at = until;
        }
        Ok(())
    }
}
