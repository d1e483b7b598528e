//! Statistics for reports: means, rates with confidence intervals, pass@k, and the split of cases.

use serde::{Deserialize, Serialize};
use skills_core::order;

/// The factor of an interval with a confidence of 95 %, from the normal distribution.
pub(super) const Z: f64 = 1.959_964;

/// The mean and the spread of a series of figures, rounded to four decimal places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spread {
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation. It is 0 for a single figure.
    pub stddev: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// Computes the spread of some figures. Returns `None` if there are none.
    #[expect(clippy::cast_precision_loss, reason = "run counts are small")]
    pub fn of(figures: &[f64]) -> Option<Self> {
        let min = figures.iter().copied().reduce(f64::min)?;
        let max = figures.iter().copied().reduce(f64::max)?;
        let count = figures.len() as f64;
        let mean = figures.iter().sum::<f64>() / count;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        let stddev = if figures.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Some(Self { mean: rounded(mean), stddev: rounded(stddev), min: rounded(min), max: rounded(max) })
    }
}

/// Rounds to four decimal places. More digits would be noise.
pub(super) fn rounded(figure: f64) -> f64 {
    (figure * 10_000.0).round() / 10_000.0
}

/// Returns `part` divided by `whole`, or `None` if `whole` is 0.
pub(super) fn rate(part: u64, whole: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "run counts are small")]
    (whole > 0).then(|| rounded(part as f64 / whole as f64))
}

/// Returns the Wilson score interval of a rate with a confidence of 95 %, as lower and upper bound. It is valid for small
/// samples too, but only for independent runs, such as runs of one query. For several queries, use
/// [`clustered`](crate::clustered). Returns `None` if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "run counts are small")]
pub fn wilson(part: u64, whole: u64) -> Option<[f64; 2]> {
    (whole > 0).then(|| score_interval(part as f64 / whole as f64, whole as f64, Z))
}

/// Returns the Wilson score interval of the rate `p` over `n` independent runs. `factor` sets the confidence.
pub(super) fn score_interval(p: f64, n: f64, factor: f64) -> [f64; 2] {
    let square = factor * factor;
    let center = p + square / (2.0 * n);
    let margin = factor * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt();
    let scale = 1.0 + square / n;
    let bound = |value: f64| rounded(value.clamp(0.0, 1.0));
    [bound((center - margin) / scale), bound((center + margin) / scale)]
}

/// Estimates pass@k: the probability that at least one of `k` runs is right, if `right` of `runs` were. Returns `None` if `k`
/// is 0 or larger than `runs`.
pub fn pass_at(k: u64, right: u64, runs: u64) -> Option<f64> {
    (k <= runs && k > 0).then(|| rounded(1.0 - chosen(k, runs - right.min(runs), runs)))
}

/// Estimates pass^k: the probability that all of `k` runs are right, if `right` of `runs` were. Returns `None` if `k` is 0 or
/// larger than `runs`.
pub fn pass_all(k: u64, right: u64, runs: u64) -> Option<f64> {
    (k <= runs && k > 0).then(|| rounded(chosen(k, right, runs)))
}

/// Returns the probability that `k` runs, drawn without replacement from `runs` with `good` good ones, are all good.
#[expect(clippy::cast_precision_loss, reason = "run counts are small")]
fn chosen(k: u64, good: u64, runs: u64) -> f64 {
    if k > good {
        return 0.0;
    }
    (0..k).map(|drawn| (good - drawn) as f64 / (runs - drawn) as f64).product()
}

/// A confusion matrix: the number of runs by the expected and the actual result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Confusion {
    /// Runs that should load the skill, and did.
    pub true_positives: u64,
    /// Runs that should not load the skill, and did.
    pub false_positives: u64,
    /// Runs that should not load the skill, and did not.
    pub true_negatives: u64,
    /// Runs that should load the skill, and did not.
    pub false_negatives: u64,
}

impl Confusion {
    /// Counts one run.
    pub(super) fn add(&mut self, should: bool, is: bool) {
        let count = match (should, is) {
            (true, true) => &mut self.true_positives,
            (true, false) => &mut self.false_negatives,
            (false, true) => &mut self.false_positives,
            (false, false) => &mut self.true_negatives,
        };
        *count += 1;
    }

    /// Returns the share of correct runs among those that loaded the skill, or `None` if there are none.
    pub fn precision(&self) -> Option<f64> {
        rate(self.true_positives, self.true_positives + self.false_positives)
    }

    /// Returns the share of runs that loaded the skill among those that should, or `None` if there are none.
    pub fn recall(&self) -> Option<f64> {
        rate(self.true_positives, self.true_positives + self.false_negatives)
    }

    /// Returns the harmonic mean of precision and recall, or `None` if no run should load the skill and none did.
    pub fn f1(&self) -> Option<f64> {
        let wrong = self.false_positives + self.false_negatives;
        rate(2 * self.true_positives, 2 * self.true_positives + wrong)
    }
}

/// The part of the cases to which a case belongs. A description that was tuned on one part is validated on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// A case for tuning the description.
    Train,
    /// A case for validating it.
    Validation,
}

/// Splits the texts of two classes into two parts. The given `share` of each class, from 0 to 1, becomes
/// [`Part::Train`].
///
/// The selection depends on `seed` and on each text, but hardly on the other texts: a new query moves at most one other query
/// to the other part.
pub fn split(cases: &[(&str, bool)], share: f64, seed: u64) -> Vec<Part> {
    let mut parts = vec![Part::Validation; cases.len()];
    for class in [true, false] {
        let mut order: Vec<_> = (0..cases.len()).filter(|&place| cases[place].1 == class).collect();
        order::sort_by_key(&mut order, |&place| (mixed(seed, cases[place].0), place));
        #[expect(clippy::cast_precision_loss, reason = "case counts are small")]
        let wanted = (order.len() as f64 * share).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small count")]
        for &place in order.iter().take(wanted as usize) {
            parts[place] = Part::Train;
        }
    }
    parts
}

/// Returns a hash of both values that is the same on all machines: FNV-1a with the last step of SplitMix64.
fn mixed(seed: u64, text: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the figures are rounded")]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[3.0]), Some(Spread { mean: 3.0, stddev: 0.0, min: 3.0, max: 3.0 }));
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((spread.mean, spread.stddev, spread.min, spread.max), (5.0, 2.1381, 2.0, 9.0));
    }

    /// The values are from a published table, and from both ends of the range.
    #[test]
    fn wilson_intervals() {
        assert_eq!(wilson(0, 0), None);
        assert_eq!(wilson(0, 10).unwrap(), [0.0, 0.2775]);
        assert_eq!(wilson(10, 10).unwrap(), [0.7225, 1.0]);
        assert_eq!(wilson(5, 10).unwrap(), [0.2366, 0.7634]);
        assert_eq!(wilson(81, 263).unwrap(), [0.2553, 0.3662]);
    }

    #[test]
    fn pass_at_k_and_pass_all_k() {
        for (k, right, runs, any, all) in [
            (1, 1, 3, Some(0.3333), Some(0.3333)),
            (3, 1, 3, Some(1.0), Some(0.0)),
            (2, 2, 3, Some(1.0), Some(0.3333)),
            (2, 0, 3, Some(0.0), Some(0.0)),
            (3, 3, 3, Some(1.0), Some(1.0)),
            (4, 3, 3, None, None),
        ] {
            assert_eq!((pass_at(k, right, runs), pass_all(k, right, runs)), (any, all), "{k} {right} {runs}");
        }
    }

    #[test]
    fn precision_recall_and_f1() {
        let mut confusion = Confusion::default();
        assert_eq!((confusion.precision(), confusion.recall(), confusion.f1()), (None, None, None));
        for (should, is) in [(true, true), (true, true), (true, false), (false, true), (false, false)] {
            confusion.add(should, is);
        }
        assert_eq!(
            (confusion.precision(), confusion.recall(), confusion.f1()),
            (Some(0.6667), Some(0.6667), Some(0.6667))
        );
    }

    #[test]
    fn splits_are_proportional_and_stable() {
        let texts: Vec<_> = (0..20).map(|number| format!("query {number}")).collect();
        let cases: Vec<_> = texts.iter().enumerate().map(|(n, text)| (text.as_str(), n < 10)).collect();
        let parts = split(&cases, 0.6, 1);
        let train =
            |range: std::ops::Range<usize>| parts[range].iter().filter(|part| **part == Part::Train).count();
        assert_eq!((train(0..10), train(10..20)), (6, 6));
        assert_eq!(parts, split(&cases, 0.6, 1));
        assert_ne!(parts, split(&cases, 0.6, 2));
        // If a query is removed, at most one of the others should move to a different part.
        let fewer = split(&cases[1..], 0.6, 1);
        let moved = fewer.iter().zip(&parts[1..]).filter(|(a, b)| a != b).count();
        assert!(moved <= 1, "{moved}");
    }
}
