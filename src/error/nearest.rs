//! The known word that a misspelt one was meant to be.

/// The nearest of the known words, if it is near enough to be meant.
pub(crate) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const CLOSE: usize = 2;
    // A longer word cannot be a slip of the pen, and comparing it would take time for nothing.
    if given.len() > 64 {
        return None;
    }
    let measured = known.into_iter().map(|word| (strsim::osa_distance(given, word), word));
    let (distance, word) = measured.min_by_key(|(distance, _)| *distance)?;
    (distance <= CLOSE.min(word.len() / 2)).then_some(word)
}
