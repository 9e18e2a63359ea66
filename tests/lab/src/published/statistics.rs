//! What is said of several runs at once.

/// The middle one, or the lower of the two in the middle: a figure that was measured. 0 of none.
pub fn median<T: Copy + Default + PartialOrd>(of: impl IntoIterator<Item = T>) -> T {
    let mut sorted: Vec<_> = of.into_iter().collect();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let middle = sorted.len().saturating_sub(1) / 2;
    sorted.get(middle).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_the_figures() {
        assert_eq!(median([5, 1, 9]), 5);
        assert_eq!(median(['d', 'a', 'b', 'e']), 'b');
        assert_eq!(median([0_u64; 0]), 0);
    }
}
