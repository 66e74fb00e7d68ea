//! Reads numbers and buffers from bytes as Yjs writes them. Does no I/O.

/// Error for malformed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a malformed message: {0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

const TOO_SHORT: Malformed = Malformed("it ends too early");

pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Number of bytes left.
    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.0 = self.0.get(count..).ok_or(TOO_SHORT)?;
        Ok(())
    }

    /// Numbers are LEB128.
    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed("a number is too long"))
    }

    /// A clock or a length, which have 32 bits.
    pub(crate) fn number32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed("a number is too large"))
    }

    /// Reads a count of items, each of which takes a byte at least.
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::try_from(self.number()?).ok();
        let possible = count.filter(|count| *count <= self.left());
        possible.ok_or(Malformed("a length exceeds the message"))
    }

    pub(crate) fn buffer(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count()?;
        let (buffer, rest) = self.0.split_at_checked(length).ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(buffer)
    }

    pub(crate) fn str(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.buffer()?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        self.str().map(str::to_owned)
    }
}
