//! A vertical axis that starts at zero.

/// From 0 to a round number, in round steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    step: f64,
    steps: u32,
}

/// Fewer lines than these are hard to read values from.
const FEWEST_STEPS: f64 = 3.0;

impl Axis {
    /// The smallest that has room for this value and something above it.
    pub fn up_to(highest: f64) -> Self {
        if highest <= 0.0 {
            return Self { step: 1.0, steps: 3 };
        }
        let magnitude = 10_f64.powf((highest / FEWEST_STEPS).log10().floor());
        let step = [5.0, 2.0, 1.0]
            .map(|round| round * magnitude)
            .into_iter()
            .find(|step| highest / step >= FEWEST_STEPS)
            .unwrap_or(magnitude);
        let mut steps = 1;
        while f64::from(steps) * step < highest * 1.05 {
            steps += 1;
        }
        Self { step, steps }
    }

    /// Where lines are drawn, from 0 up.
    pub fn lines(self) -> impl Iterator<Item = f64> {
        (0..=self.steps).map(move |line| f64::from(line) * self.step)
    }

    /// How high a value stands, where the top is 1.
    pub fn height(self, value: f64) -> f64 {
        value / (self.step * f64::from(self.steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(highest: f64) -> Vec<f64> {
        Axis::up_to(highest).lines().collect()
    }

    #[test]
    fn every_axis_starts_at_zero_and_ends_above_the_highest_value() {
        for highest in [0.0, 0.4, 1.0, 5.0, 63.0, 194.5, 447.5, 3_648.0, 99_999.0] {
            let lines = lines(highest);
            assert!(lines[0] == 0.0 && lines[lines.len() - 1] > highest, "{highest}: {lines:?}");
            assert!((4..=12).contains(&lines.len()), "{highest}: {lines:?}");
        }
    }

    #[test]
    fn steps_are_round_numbers() {
        assert_eq!(lines(3_648.0), [0.0, 1_000.0, 2_000.0, 3_000.0, 4_000.0]);
        assert_eq!(lines(63.0), [0.0, 20.0, 40.0, 60.0, 80.0]);
    }

    #[test]
    fn twice_the_value_stands_twice_as_high() {
        let axis = Axis::up_to(50.0);
        assert!((axis.height(40.0) - 2.0 * axis.height(20.0)).abs() < 1e-9);
        assert!(axis.height(0.0).abs() < 1e-9);
    }
}
