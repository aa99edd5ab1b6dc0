//! What samples say: medians, how far they spread between placements and in time, and ratios of what was measured in the same round.
//!
//! Hides nothing and knows no clock: pure functions over numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The middle of some values, and how far most of them, or all of a few, are from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The 10th percentile, or the least value.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The 90th percentile, or the greatest value.
    pub high: f64,
}

impl Spread {
    /// Of these values; `None` where there are none, or where one is no number.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values)?;
        Some(Self {
            low: quantile(&sorted, 0.1),
            median: quantile(&sorted, 0.5),
            high: quantile(&sorted, 0.9),
        })
    }

    /// Of a few values, with the least and the greatest as its ends; `None` as above.
    #[must_use]
    pub fn of_all(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values)?;
        Some(Self {
            low: sorted[0],
            median: quantile(&sorted, 0.5),
            high: sorted[sorted.len() - 1],
        })
    }

    /// With four digits behind the point: more than a clock can tell, and a text keeps it as it is.
    #[must_use]
    pub fn rounded(self) -> Self {
        let rounded = |value: f64| (value * 1e4).round() / 1e4;
        Self {
            low: rounded(self.low),
            median: rounded(self.median),
            high: rounded(self.high),
        }
    }

    /// Both ends as a part of the median: 0.02 is 2 % off at the worse end.
    #[must_use]
    pub fn relative(self) -> f64 {
        (self.high - self.median).max(self.median - self.low) / self.median
    }

    /// Whether this can have come out of [`Spread::of`] times or ratios.
    #[must_use]
    pub fn is_sound(self) -> bool {
        let finite = [self.low, self.median, self.high]
            .iter()
            .all(|value| value.is_finite());
        finite && self.low > 0.0 && self.low <= self.median && self.median <= self.high
    }
}

/// A value of one round, and the placement of the code that the round is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// The number of the placement.
    pub placement: u32,
    /// What was measured.
    pub value: f64,
}

/// What rounds at several placements of the code say. Code that is the same but lies elsewhere may take several times as long, so the
/// spread between placements is kept apart from the spread in time: only the latter shrinks with more rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Of the medians of all placements, from the lowest to the highest.
    pub placements: Spread,
    /// Of each round's value as a part of its placement's median: 1 is exactly that.
    pub time: Spread,
}

impl Estimate {
    /// Of these measurements; `None` where there are none, or where one is no number.
    #[must_use]
    pub fn of(measurements: &[Measurement]) -> Option<Self> {
        let mut by_placement: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for measurement in measurements {
            let values = by_placement.entry(measurement.placement).or_default();
            values.push(measurement.value);
        }
        let (mut medians, mut parts) = (Vec::new(), Vec::new());
        for values in by_placement.values() {
            let median = Spread::of(values)?.median;
            medians.push(median);
            parts.extend(values.iter().map(|value| value / median));
        }
        Some(Self {
            placements: Spread::of_all(&medians)?,
            time: Spread::of(&parts)?,
        })
    }

    /// Of `above[i] / below[i]`: ratios of what was measured in the same round, so that what disturbs a whole round, or drifts from
    /// round to round, falls out. `None` also where the two are not of the same rounds.
    #[must_use]
    pub fn of_ratios(above: &[Measurement], below: &[Measurement]) -> Option<Self> {
        let same =
            |(above, below): (&Measurement, &Measurement)| above.placement == below.placement;
        if above.len() != below.len() || !above.iter().zip(below).all(same) {
            return None;
        }
        let ratio = |(above, below): (&Measurement, &Measurement)| Measurement {
            placement: above.placement,
            value: above.value / below.value,
        };
        let ratios: Vec<_> = above.iter().zip(below).map(ratio).collect();
        Self::of(&ratios)
    }

    /// The median over the placements.
    #[must_use]
    pub fn median(self) -> f64 {
        self.placements.median
    }

    /// With four digits behind the point: more than a clock can tell, and a text keeps it as it is.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self {
            placements: self.placements.rounded(),
            time: self.time.rounded(),
        }
    }

    /// For a person: the median with so many digits behind the point, the lowest and the highest placement, and the spread in time.
    #[must_use]
    pub fn shown(self, digits: usize) -> String {
        let Spread { low, median, high } = self.placements;
        let time = self.time.relative() * 100.0;
        format!("{median:.digits$} ({low:.2} to {high:.2}; {time:.0} %)")
    }

    /// The wider of the two spreads as a part of the median.
    #[must_use]
    pub fn relative(self) -> f64 {
        self.placements.relative().max(self.time.relative())
    }

    /// Whether this can have come out of [`Estimate::of`] times or ratios.
    #[must_use]
    pub fn is_sound(self) -> bool {
        self.placements.is_sound() && self.time.is_sound()
    }
}

/// In ascending order; `None` where there are none, or one is not a finite number.
fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    let usable = !values.is_empty() && values.iter().all(|value| value.is_finite());
    usable.then(|| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    })
}

/// The value below which the part `part` (0 to 1) of sorted values lies, between neighbours where it falls between them.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "few values, and a part of 0 to 1"
)]
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = at.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (at - at.floor())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values).expect("values")
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert!(close(spread(&[5.0, 1.0, 3.0]).median, 3.0));
        assert!(close(spread(&[4.0, 1.0, 3.0, 2.0]).median, 2.5));
        assert!(close(spread(&[7.0]).median, 7.0));
    }

    #[test]
    fn one_wild_value_moves_a_mean_but_not_the_median() {
        assert!(close(spread(&[3.0, 3.1, 2.9, 3.0, 900.0]).median, 3.0));
    }

    #[test]
    fn the_spread_is_from_the_10th_to_the_90th_percentile() {
        let values: Vec<f64> = (0..=10).rev().map(f64::from).collect();
        let Spread { low, median, high } = spread(&values);
        assert!(close(low, 1.0) && close(median, 5.0) && close(high, 9.0));
        let between = spread(&[0.0, 1.0, 2.0, 3.0]);
        assert!(
            close(between.low, 0.3) && close(between.high, 2.7),
            "{between:?}"
        );
        assert!(close(
            spread(&[8.0, 10.0, 10.0, 10.0, 14.0]).relative(),
            (12.4 - 10.0) / 10.0
        ));
    }

    /// Values of rounds that take turns among `placements`.
    fn rounds(placements: u32, values: &[f64]) -> Vec<Measurement> {
        let placements = (0..placements).cycle();
        let one = |(placement, value): (u32, &f64)| Measurement {
            placement,
            value: *value,
        };
        placements.zip(values).map(one).collect()
    }

    fn ratio(above: &[f64], below: &[f64]) -> Option<Estimate> {
        Estimate::of_ratios(&rounds(1, above), &rounds(1, below))
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_not_of_medians() {
        // The machine slows down from round to round; the code is twice as fast in every one of them.
        let same = ratio(&[2.0, 4.0, 8.0, 16.0, 32.0], &[1.0, 2.0, 4.0, 8.0, 16.0]);
        let same = same.expect("ratios");
        assert!(
            close(same.median(), 2.0) && close(same.time.low, 1.0) && close(same.time.high, 1.0)
        );
        // Here the medians are 3 and 2, which is 1.5; in most rounds it is 3.
        let most = ratio(&[3.0, 3.0, 9.0, 1.0, 6.0], &[1.0, 1.0, 3.0, 2.0, 2.0]);
        assert!(close(most.expect("ratios").median(), 3.0));
    }

    #[test]
    fn above_and_below_are_not_exchanged() {
        assert!(close(ratio(&[6.0], &[2.0]).expect("a ratio").median(), 3.0));
    }

    #[test]
    fn a_spread_between_placements_is_none_in_time_and_the_other_way_round() {
        let placed = Estimate::of(&rounds(2, &[1.0, 3.0, 1.0, 3.0])).expect("values");
        assert!(close(placed.placements.low, 1.0) && close(placed.placements.high, 3.0));
        assert!(
            close(placed.median(), 2.0) && close(placed.time.relative(), 0.0),
            "{placed:?}"
        );
        let timed = Estimate::of(&rounds(2, &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0])).expect("values");
        assert!(close(timed.placements.relative(), 0.0), "{timed:?}");
        assert!(
            close(timed.time.low, 0.5) && close(timed.time.high, 1.5),
            "{timed:?}"
        );
    }

    #[test]
    fn what_is_no_number_gives_no_figure() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(ratio(&[1.0], &[0.0]), None);
        assert_eq!(ratio(&[1.0, 2.0], &[1.0]), None);
        let elsewhere = Estimate::of_ratios(&rounds(2, &[1.0, 2.0]), &rounds(1, &[1.0, 2.0]));
        assert_eq!(elsewhere, None);
    }

    #[test]
    fn a_spread_that_cannot_have_been_measured_is_not_sound() {
        let sound = Spread {
            low: 1.0,
            median: 2.0,
            high: 3.0,
        };
        assert!(sound.is_sound());
        for unsound in [
            Spread { low: 0.0, ..sound },
            Spread { low: 2.5, ..sound },
            Spread { high: 1.5, ..sound },
            Spread {
                median: f64::NAN,
                ..sound
            },
            Spread {
                high: f64::INFINITY,
                ..sound
            },
        ] {
            assert!(!unsound.is_sound(), "{unsound:?}");
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_as_a_count_of_the_values_says(mut values in prop::collection::vec(0.1f64..1e6, 1..60)) {
            let Spread { low, median, high } = spread(&values);
            prop_assert!(low <= median && median <= high);
            values.sort_by(f64::total_cmp);
            // In tenths, so that the place of a quantile is counted in whole numbers.
            let last = values.len() - 1;
            for (tenths, value) in [(1, low), (5, median), (9, high)] {
                let not_above = values.iter().filter(|one| **one <= value + 1e-9).count();
                let not_below = values.iter().filter(|one| **one >= value - 1e-9).count();
                let least = tenths * last / 10 + 1;
                let rest = values.len() - (tenths * last).div_ceil(10);
                prop_assert!(not_above >= least && not_below >= rest);
            }
        }
    }
}
