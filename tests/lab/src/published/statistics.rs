//! What is said of several runs at once.

/// The middle one, or the lower of the two in the middle: a figure that was measured. 0 of none.
pub fn median<T: Copy + Default + PartialOrd>(of: impl IntoIterator<Item = T>) -> T {
    let mut sorted: Vec<_> = of.into_iter().collect();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let middle = sorted.len().saturating_sub(1) / 2;
    sorted.get(middle).copied().unwrap_or_default()
}

/// The figure below which so many of a thousand are, or the highest; 0 of none.
pub fn per_mille(of: &mut [u64], rank: usize) -> u64 {
    of.sort_unstable();
    let index = (of.len() * rank).div_ceil(1_000).clamp(1, of.len().max(1)) - 1;
    of.get(index).copied().unwrap_or_default()
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

    #[test]
    fn percentiles_are_figures_that_were_measured() {
        let mut figures: Vec<u64> = (1..=1_000).rev().collect();
        assert_eq!([500, 990, 999, 1_000].map(|rank| per_mille(&mut figures, rank)), [500, 990, 999, 1_000]);
        assert_eq!(per_mille(&mut [7], 999), 7);
        assert_eq!(per_mille(&mut [], 999), 0);
    }
}
