//! Reads an update of a document as far as is needed to know what it would cost to decode it: how deeply its values are
//! nested, how many there are, and where its blocks belong. yrs decodes, deletes and drops recursively, and reserves
//! memory for whatever number is declared, so that nothing may reach it that was not looked at here. Does not recurse.
//!
//! A deep value that was deleted is no obstacle: servers send some of those for as long as they keep a document, also
//! after its file was repaired. It is replaced by what Yjs itself puts in the place of deleted content.

mod deleted;

use std::borrow::Cow;

use jupyter_client::{MAX_NESTING, is_shallow_json, limits::MAX_FRAME_BYTES};

use self::deleted::{Deep, DeletedRanges};
use super::{
    limits::{MAX_BLOCKS, MAX_SUBDOCUMENTS, MAX_VALUES},
    reader::{Malformed, Reader},
};

const HAS_ORIGIN: u8 = 0b1000_0000;
const HAS_RIGHT_ORIGIN: u8 = 0b0100_0000;
const HAS_PARENT_SUB: u8 = 0b0010_0000;
const KIND: u8 = 0b0000_1111;

const GC: u8 = 0;
const DELETED: u8 = 1;
const JSON: u8 = 2;
const BINARY: u8 = 3;
const STRING: u8 = 4;
const EMBED: u8 = 5;
const FORMAT: u8 = 6;
const TYPE: u8 = 7;
const ANY: u8 = 8;
const DOC: u8 = 9;
const SKIP: u8 = 10;

/// The shared types that have a name behind their number, and those that have not. Weak links (7) are an optional
/// part of yrs: Yjs 13, as in JupyterLab 4, knows the types up to 6 and would fail on them.
const NAMED_TYPES: [u8; 1] = [3];
const PLAIN_TYPES: [u8; 8] = [0, 1, 2, 4, 5, 6, 9, 15];

/// Values that may be too deep, depending on where in the document they are.
const DEEP: usize = MAX_NESTING / 2;

/// Levels of a value that are followed at all. Deleted ones may have more than any document can have.
const MAX_LEVELS: usize = 1_000_000;

/// Clients have numbers that browsers can count to.
const CLIENT_BITS: u32 = 53;

/// Clients that contribute nothing to an update. yrs steps over them recursively.
const MAX_EMPTY_CLIENTS: usize = 100;

/// Reason why an update is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Excess {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("it is nested more than {MAX_NESTING} levels deep")]
    Nesting,
    #[error("an update of it has more than {MAX_BLOCKS} parts")]
    Blocks,
    #[error("an update of it has more than {MAX_VALUES} values")]
    Values,
    #[error("an update of it has more than {MAX_SUBDOCUMENTS} documents inside")]
    Subdocuments,
    #[error("too many updates of it build on others that never came")]
    Waiting,
    #[error("two updates of it contradict each other")]
    Contradiction,
    #[error("it has more than {} MB", MAX_FRAME_BYTES / 1024 / 1024)]
    Size,
}

/// Identifies a block, or a place in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    pub(crate) client: u64,
    pub(crate) clock: u32,
}

/// Place of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// It is garbage and belongs nowhere.
    Nowhere,
    /// In a type that the document itself has by name.
    Root,
    /// In a type that is a block of its own.
    In(Id),
    /// Beside other blocks, on its left, its right or both.
    Beside(Option<Id>, Option<Id>),
}

/// A block as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) id: Id,
    pub(crate) length: u32,
    pub(crate) place: Place,
    /// Nesting depth of its own values.
    pub(crate) nesting: usize,
}

/// An update that yrs can decode without harm.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scanned<'a> {
    /// The update, without deep values that it deletes.
    pub(crate) update: Cow<'a, [u8]>,
    /// Blocks of the update; their depth in the document is for `Depths` to know.
    pub(crate) blocks: Vec<Block>,
}

/// Looks through an update before it is decoded.
pub(crate) fn scan(update: &[u8]) -> Result<Scanned<'_>, Excess> {
    let mut scanner = Scanner {
        reader: Reader::new(update),
        size: update.len(),
        blocks: Vec::new(),
        deep: Vec::new(),
        values: 0,
        subdocuments: 0,
    };
    let mut clients = std::collections::HashSet::new();
    let mut empty = 0;
    for _ in 0..scanner.reader.count()? {
        let before = scanner.blocks.len();
        let client = scanner.client()?;
        if !clients.insert(client) {
            return Err(Malformed("a client is named twice").into());
        }
        empty += usize::from(scanner.blocks.len() == before);
    }
    if empty > MAX_EMPTY_CLIENTS {
        return Err(Malformed("too many clients without a contribution").into());
    }
    let deleted = scanner.delete_set()?;
    let Scanner { mut blocks, deep, .. } = scanner;
    let (gone, left): (Vec<Deep>, Vec<Deep>) = deep.into_iter().partition(|deep| deleted.covers(deep, &blocks));
    if left.iter().any(|deep| deep.nesting > MAX_NESTING) {
        return Err(Excess::Nesting);
    }
    for deep in &gone {
        blocks[deep.block].nesting = 0;
    }
    Ok(Scanned {
        update: deleted::replace(update, &gone, &blocks),
        blocks,
    })
}

/// Refuses a state vector that declares more than it has.
pub(crate) fn check_vector(vector: &[u8]) -> Result<(), Malformed> {
    let mut reader = Reader::new(vector);
    for _ in 0..reader.count()? {
        reader.number()?;
        reader.number32()?;
    }
    Ok(())
}

struct Scanner<'a> {
    reader: Reader<'a>,
    /// Of the whole update.
    size: usize,
    blocks: Vec<Block>,
    /// In the order of the update.
    deep: Vec<Deep>,
    values: usize,
    subdocuments: usize,
}

impl Scanner<'_> {
    /// The blocks of one client, which follow upon each other.
    fn client(&mut self) -> Result<u64, Excess> {
        let count = self.reader.count()?;
        if count > MAX_BLOCKS {
            return Err(Excess::Blocks);
        }
        let client = self.client_id()?;
        let mut clock = self.reader.number32()?;
        for _ in 0..count {
            let id = Id { client, clock };
            let begin = self.offset();
            let (length, block) = self.block(id)?;
            clock = clock.checked_add(length).ok_or(Malformed("a clock is too large"))?;
            // yrs leaves out what has no length.
            if let Some((block, content)) = block.filter(|_| length > 0) {
                if block.nesting > DEEP {
                    self.deep.push(Deep {
                        block: self.blocks.len(),
                        nesting: block.nesting,
                        info: begin,
                        content: content..self.offset(),
                    });
                }
                self.blocks.push(block);
            }
            if self.blocks.len() > MAX_BLOCKS {
                return Err(Excess::Blocks);
            }
        }
        Ok(client)
    }

    /// Number of bytes read.
    fn offset(&self) -> usize {
        self.size - self.reader.left()
    }

    /// One block with where its content begins, and its length; no block if it only leaves a gap.
    fn block(&mut self, id: Id) -> Result<(u32, Option<(Block, usize)>), Excess> {
        let info = self.reader.byte()?;
        if info == SKIP {
            return Ok((self.reader.number32()?, None));
        }
        let mut content = self.offset();
        let (length, place, nesting) = if info == GC {
            (self.reader.number32()?, Place::Nowhere, 0)
        } else {
            let place = self.place(info)?;
            content = self.offset();
            let (length, nesting) = self.content(info & KIND)?;
            (length, place, nesting)
        };
        let block = Block {
            id,
            length,
            place,
            nesting,
        };
        Ok((length, Some((block, content))))
    }

    fn place(&mut self, info: u8) -> Result<Place, Excess> {
        let (has_left, has_right) = (info & HAS_ORIGIN != 0, info & HAS_RIGHT_ORIGIN != 0);
        if has_left || has_right {
            let left = has_left.then(|| self.id()).transpose()?;
            let right = has_right.then(|| self.id()).transpose()?;
            return Ok(Place::Beside(left, right));
        }
        let place = match self.reader.number32()? {
            1 => {
                self.reader.str()?;
                Place::Root
            }
            _ => Place::In(self.id()?),
        };
        if info & HAS_PARENT_SUB != 0 {
            self.reader.str()?;
        }
        Ok(place)
    }

    /// The number of a client, of which yrs would cut off what is too much and so take two for one.
    fn client_id(&mut self) -> Result<u64, Malformed> {
        let client = self.reader.number()?;
        match client >> CLIENT_BITS {
            0 => Ok(client),
            _ => Err(Malformed("the number of a client is too large")),
        }
    }

    fn id(&mut self) -> Result<Id, Malformed> {
        Ok(Id {
            client: self.client_id()?,
            clock: self.reader.number32()?,
        })
    }

    /// Steps over the content of a block; its length and how deeply it is nested.
    fn content(&mut self, kind: u8) -> Result<(u32, usize), Excess> {
        match kind {
            DELETED => return Ok((self.reader.number32()?, 0)),
            STRING => return Ok((utf16_length(self.reader.str()?)?, 0)),
            JSON => {
                // yrs reads one more than is declared.
                let count = self.reader.count()? + 1;
                for _ in 0..count {
                    self.value()?;
                    self.reader.str()?;
                }
                return Ok((length(count)?, 0));
            }
            ANY => {
                let count = self.reader.count()?;
                let mut nesting = 0;
                for _ in 0..count {
                    nesting = nesting.max(self.any()?);
                }
                return Ok((length(count)?, nesting));
            }
            BINARY => drop(self.reader.buffer()?),
            EMBED => return Ok((1, self.json()?)),
            FORMAT => {
                self.reader.str()?;
                return Ok((1, self.json()?));
            }
            TYPE => self.shared_type()?,
            DOC => {
                self.subdocuments += 1;
                if self.subdocuments > MAX_SUBDOCUMENTS {
                    return Err(Excess::Subdocuments);
                }
                self.reader.str()?;
                return Ok((1, self.any()?));
            }
            // Moves (11) can be read by neither Yjs 13 nor yrs since 0.28: JupyterLab makes none, and Jupyter's server
            // deletes and inserts a cell that is elsewhere in its file.
            _ => return Err(Malformed("a block has a content of an unknown kind").into()),
        }
        Ok((1, 0))
    }

    fn shared_type(&mut self) -> Result<(), Excess> {
        match self.reader.byte()? {
            kind if NAMED_TYPES.contains(&kind) => drop(self.reader.str()?),
            kind if PLAIN_TYPES.contains(&kind) => {}
            _ => return Err(Malformed("a block has a shared type of an unknown kind").into()),
        }
        Ok(())
    }

    /// Steps over a value as a JSON text; how deeply it is nested, if that is too deep.
    fn json(&mut self) -> Result<usize, Excess> {
        self.value()?;
        match is_shallow_json(self.reader.buffer()?) {
            true => Ok(0),
            false => Ok(MAX_NESTING + 1),
        }
    }

    /// Counts one value.
    fn value(&mut self) -> Result<(), Excess> {
        self.values += 1;
        match self.values > MAX_VALUES {
            true => Err(Excess::Values),
            false => Ok(()),
        }
    }

    /// Steps over a value in the binary form; how deeply it is nested.
    fn any(&mut self) -> Result<usize, Excess> {
        /// A list or a map of which so many members are still to come.
        struct Open {
            left: usize,
            is_map: bool,
        }
        let mut open: Vec<Open> = Vec::new();
        let mut nesting = 0;
        loop {
            self.value()?;
            match self.reader.byte()? {
                120 | 121 | 126 | 127 => {}
                125 => drop(self.reader.number()?),
                124 => self.reader.skip(4)?,
                122 | 123 => self.reader.skip(8)?,
                119 => drop(self.reader.str()?),
                116 => drop(self.reader.buffer()?),
                kind @ (117 | 118) => {
                    let left = self.reader.count()?;
                    let is_map = kind == 118;
                    open.push(Open { left, is_map });
                    if open.len() > MAX_LEVELS {
                        return Err(Excess::Nesting);
                    }
                    nesting = nesting.max(open.len());
                }
                _ => return Err(Malformed("a value is of an unknown kind").into()),
            }
            while open.pop_if(|innermost| innermost.left == 0).is_some() {}
            let Some(innermost) = open.last_mut() else {
                return Ok(nesting);
            };
            innermost.left -= 1;
            if innermost.is_map {
                self.reader.str()?;
            }
        }
    }

    /// Reads the delete set of the update, as far as it matters.
    fn delete_set(&mut self) -> Result<DeletedRanges, Malformed> {
        let mut deleted = DeletedRanges::of_interest(&self.deep, &self.blocks);
        for _ in 0..self.reader.count()? {
            let client = self.client_id()?;
            for _ in 0..self.reader.count()? {
                let (clock, length) = (self.reader.number32()?, self.reader.number32()?);
                let end = clock.checked_add(length).ok_or(Malformed("a clock is too large"))?;
                deleted.add(client, clock..end);
            }
        }
        deleted.merge();
        Ok(deleted)
    }
}

fn length(count: usize) -> Result<u32, Malformed> {
    u32::try_from(count).map_err(|_| Malformed("a block is too long"))
}

fn utf16_length(text: &str) -> Result<u32, Malformed> {
    length(match text.is_ascii() {
        true => text.len(),
        false => text.encode_utf16().count(),
    })
}

#[cfg(test)]
mod tests;
