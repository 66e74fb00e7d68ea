//! Orders of the same things: as few as possible are moved to get from one to another.

/// The longest rising part of a sequence: its members in their places, and none in all others.
pub fn longest_rising(sequence: &[Option<usize>]) -> Vec<Option<usize>> {
    // Of the rising parts of each length, where the one ends that ends lowest, and what came before each member.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; sequence.len()];
    for (index, value) in sequence.iter().enumerate().filter(|(_, value)| value.is_some()) {
        let length = ends.partition_point(|end| sequence[*end] < *value);
        before[index] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut kept = vec![None; sequence.len()];
    let mut next = ends.last().copied();
    while let Some(index) = next {
        kept[index] = sequence[index];
        next = before[index];
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_can_stay_in_order_are_kept() {
        let kept = |places: &[usize]| {
            let sequence: Vec<Option<usize>> = places.iter().copied().map(Some).collect();
            longest_rising(&sequence).into_iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(kept(&[0, 1, 2]), [0, 1, 2]);
        assert_eq!(kept(&[3, 0, 1, 2]), [0, 1, 2]);
        assert_eq!(kept(&[1, 0]), [0]);
        assert_eq!(longest_rising(&[None, Some(4), None]), [None, Some(4), None]);
        assert!(kept(&[]).is_empty());
    }
}
