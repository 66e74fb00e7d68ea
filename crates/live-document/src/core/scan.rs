//! Reads an update of a document as far as is needed to know what it would cost to decode it: how deeply its values are
//! nested, how many there are, and where its blocks belong. yrs decodes, deletes and drops recursively, and reserves
//! memory for whatever number is declared, so that nothing may reach it that was not looked at here. Does not recurse.

use jupyter_client::{MAX_NESTING, is_shallow_json, limits::MAX_FRAME_BYTES};

use super::reader::{Malformed, Reader};

use super::limits::{MAX_BLOCKS, MAX_SUBDOCUMENTS, MAX_VALUES};

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

/// The shared types that have a name behind their number, and those that have not.
const NAMED_TYPES: [u8; 1] = [3];
const PLAIN_TYPES: [u8; 8] = [0, 1, 2, 4, 5, 6, 9, 15];

/// Clients that contribute nothing to an update. yrs steps over them recursively.
const MAX_EMPTY_CLIENTS: usize = 100;

/// Why an update is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Excess {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("it has values that are nested more than {MAX_NESTING} levels deep")]
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

/// Names a block, or what stands at a place in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    pub(crate) client: u64,
    pub(crate) clock: u32,
}

/// Where a block belongs.
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
    /// How deeply its own values are nested.
    pub(crate) nesting: usize,
}

/// The blocks of an update that yrs can decode without harm; how deep they are in the document is for `Depths` to know.
pub(crate) fn scan(update: &[u8]) -> Result<Vec<Block>, Excess> {
    let mut scanner = Scanner {
        reader: Reader::new(update),
        blocks: Vec::new(),
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
    scanner.delete_set()?;
    Ok(scanner.blocks)
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
    blocks: Vec<Block>,
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
        let client = self.reader.number()?;
        let mut clock = self.reader.number32()?;
        for _ in 0..count {
            let id = Id { client, clock };
            let (length, block) = self.block(id)?;
            clock = clock.checked_add(length).ok_or(Malformed("a clock is too large"))?;
            // yrs leaves out what has no length.
            if let Some(block) = block.filter(|_| length > 0) {
                self.blocks.push(block);
            }
            if self.blocks.len() > MAX_BLOCKS {
                return Err(Excess::Blocks);
            }
        }
        Ok(client)
    }

    /// One block and its length; no block if it only leaves a gap.
    fn block(&mut self, id: Id) -> Result<(u32, Option<Block>), Excess> {
        let info = self.reader.byte()?;
        if info == SKIP {
            return Ok((self.reader.number32()?, None));
        }
        let (length, place, nesting) = if info == GC {
            (self.reader.number32()?, Place::Nowhere, 0)
        } else {
            let place = self.place(info)?;
            let (length, nesting) = self.content(info & KIND)?;
            (length, place, nesting)
        };
        let block = Block {
            id,
            length,
            place,
            nesting,
        };
        Ok((length, Some(block)))
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

    fn id(&mut self) -> Result<Id, Malformed> {
        Ok(Id {
            client: self.reader.number()?,
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
            EMBED => self.json()?,
            FORMAT => {
                self.reader.str()?;
                self.json()?;
            }
            TYPE => self.shared_type()?,
            DOC => {
                self.subdocuments += 1;
                if self.subdocuments > MAX_SUBDOCUMENTS {
                    return Err(Excess::Subdocuments);
                }
                self.reader.str()?;
                self.any()?;
            }
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

    /// A value as a JSON text.
    fn json(&mut self) -> Result<(), Excess> {
        self.value()?;
        match is_shallow_json(self.reader.buffer()?) {
            true => Ok(()),
            false => Err(Excess::Nesting),
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
                    nesting = nesting.max(open.len());
                }
                _ => return Err(Malformed("a value is of an unknown kind").into()),
            }
            if nesting > MAX_NESTING {
                return Err(Excess::Nesting);
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

    /// What the update deletes.
    fn delete_set(&mut self) -> Result<(), Malformed> {
        for _ in 0..self.reader.count()? {
            self.reader.number()?;
            for _ in 0..self.reader.count()? {
                let (clock, length) = (self.reader.number32()?, self.reader.number32()?);
                clock.checked_add(length).ok_or(Malformed("a clock is too large"))?;
            }
        }
        Ok(())
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
