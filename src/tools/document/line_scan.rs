//! Lines of a file that is too large for memory: lines are counted as they are read, and only the wanted ones are kept. Does no I/O.

use std::ops::{ControlFlow, Range};

pub(super) struct LineScan {
    /// Lines that are kept, by number from 0.
    wanted: Range<usize>,
    /// Bytes that are kept at most.
    max_kept: usize,
    /// Bytes that are looked at at most.
    left: usize,
    kept: Vec<u8>,
    is_cut: bool,
    /// Lines that have ended.
    ended: usize,
    /// The last byte was a carriage return, which a line feed may follow.
    after_return: bool,
    /// There is something behind the last end of a line.
    is_open: bool,
}

impl LineScan {
    pub(super) fn new(wanted: Range<usize>, max_kept: usize, max_bytes: usize) -> Self {
        Self {
            wanted,
            max_kept,
            left: max_bytes,
            kept: Vec::new(),
            is_cut: false,
            ended: 0,
            after_return: false,
            is_open: false,
        }
    }

    /// Takes the next bytes; breaks when no more are to be looked at.
    pub(super) fn take(&mut self, chunk: &[u8]) -> ControlFlow<()> {
        for byte in chunk {
            self.take_byte(*byte);
        }
        self.left = self.left.saturating_sub(chunk.len());
        match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn take_byte(&mut self, byte: u8) {
        if std::mem::take(&mut self.after_return) && byte == b'\n' {
            self.keep(self.ended - 1, byte);
            return;
        }
        self.keep(self.ended, byte);
        let ends = byte == b'\n' || byte == b'\r';
        self.after_return = byte == b'\r';
        self.is_open = !ends;
        self.ended += usize::from(ends);
    }

    fn keep(&mut self, line: usize, byte: u8) {
        if self.wanted.contains(&line) {
            match self.kept.len() < self.max_kept {
                true => self.kept.push(byte),
                false => self.is_cut = true,
            }
        }
    }

    /// Number of lines that were seen.
    pub(super) fn lines(&self) -> usize {
        self.ended + usize::from(self.is_open)
    }

    /// Returns whether some of the wanted text seen so far was not kept.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) fn into_kept(self) -> Vec<u8> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str, wanted: Range<usize>, step: usize) -> (String, usize, bool) {
        let mut scan = LineScan::new(wanted, 100, usize::MAX);
        for chunk in text.as_bytes().chunks(step) {
            assert!(scan.take(chunk).is_continue());
        }
        let (lines, is_cut) = (scan.lines(), scan.is_cut());
        (String::from_utf8(scan.into_kept()).expect("text"), lines, is_cut)
    }

    #[test]
    fn lines_are_the_same_however_the_file_comes() {
        let text = "a\r\nbé\rc\n\nd";
        for step in 1..=text.len() {
            assert_eq!(scan(text, 1..3, step), ("bé\rc\n".to_owned(), 5, false));
            assert_eq!(scan(text, 0..1, step).0, "a\r\n");
            assert_eq!(scan(text, 4..9, step).0, "d");
        }
        assert_eq!(scan("", 0..1, 1), (String::new(), 0, false));
        assert_eq!(scan("a\n", 0..9, 1), ("a\n".to_owned(), 1, false));
    }

    #[test]
    fn limits_end_the_scan_and_cut_what_is_kept() {
        let mut scan = LineScan::new(0..5, 3, 10);
        assert!(scan.take(b"abcde\n").is_continue() && scan.take(b"fghi").is_break());
        assert_eq!(
            (scan.is_cut(), scan.lines(), scan.into_kept()),
            (true, 2, b"abc".to_vec())
        );
    }
}
