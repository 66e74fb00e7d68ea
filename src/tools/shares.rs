//! Fair shares of a limit.

/// Share of each in a total: all that it wants where that is little, and of what is left the same as the others.
pub(in crate::tools) fn shares(wanted: &[usize], total: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|index| wanted[*index]);
    let mut shares = vec![0; wanted.len()];
    let mut left = total;
    for (done, index) in order.iter().enumerate() {
        let share = wanted[*index].min(left / (order.len() - done));
        shares[*index] = share;
        left -= share;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_are_whole_and_the_large_share_the_rest() {
        for (wanted, total, shared) in [
            (&[][..], 10, &[][..]),
            (&[5, 5], 10, &[5, 5]),
            (&[100, 3, 100], 23, &[10, 3, 10]),
            (&[9, 2, 9], 10, &[4, 2, 4]),
            (&[1, 1, 1], 2, &[0, 1, 1]),
            (&[7], usize::MAX, &[7]),
            (&[7, 0], 0, &[0, 0]),
        ] {
            assert_eq!(shares(wanted, total), shared, "{wanted:?} of {total}");
        }
    }
}
