//! Estimates of the memory that messages take.

use std::io;

/// Memory of an object beyond its bytes on the wire: it has room for eleven members.
const OBJECT: usize = 640;

/// About what a message takes in memory, found by counting the JSON that it would make.
pub(super) fn memory_size(message: &impl serde::Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Punctuation comes by itself; a brace in a text comes with the rest of it.
            let object = if bytes == b"{" { OBJECT } else { 0 };
            self.0 += bytes.len() + object;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // A counter never fails, and messages always serialise; an undercount would do no harm.
    let _ = serde_json::to_writer(&mut counter, message);
    counter.0
}
