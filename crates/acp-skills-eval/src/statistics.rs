//! The figures of a report: means, rates with their intervals, and what a rate over several runs promises.

use serde::{Deserialize, Serialize};

/// The mean of some figures, and how far they are from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spread {
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation; 0 for a single figure.
    pub stddev: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of these figures; `None` without any.
    #[expect(clippy::cast_precision_loss, reason = "there are never that many runs")]
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

/// To four places: more is noise.
pub(super) fn rounded(figure: f64) -> f64 {
    (figure * 10_000.0).round() / 10_000.0
}

/// `part` of `whole`; `None` of nothing.
pub(super) fn rate(part: u64, whole: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "there are never that many runs")]
    (whole > 0).then(|| rounded(part as f64 / whole as f64))
}

/// Between which rates the true one lies, with a confidence of 95 %: the interval of Wilson, which holds for few runs too.
#[expect(clippy::cast_precision_loss, reason = "there are never that many runs")]
pub fn wilson(part: u64, whole: u64) -> Option<[f64; 2]> {
    const Z: f64 = 1.959_964;
    if whole == 0 {
        return None;
    }
    let (n, p) = (whole as f64, part as f64 / whole as f64);
    let center = p + Z * Z / (2.0 * n);
    let margin = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    let bound = |value: f64| rounded(value.clamp(0.0, 1.0));
    Some([bound((center - margin) / scale), bound((center + margin) / scale)])
}

/// The chance that at least one of `k` runs is right, from `right` of `runs`; `None` when there are fewer runs.
pub fn pass_at(k: u64, right: u64, runs: u64) -> Option<f64> {
    (k <= runs && k > 0).then(|| rounded(1.0 - chosen(k, runs - right.min(runs), runs)))
}

/// The chance that all of `k` runs are right, from `right` of `runs`; `None` when there are fewer runs.
pub fn pass_all(k: u64, right: u64, runs: u64) -> Option<f64> {
    (k <= runs && k > 0).then(|| rounded(chosen(k, right, runs)))
}

/// The chance that `k` runs, drawn from `runs` of which `good` are good, are all good.
#[expect(clippy::cast_precision_loss, reason = "there are never that many runs")]
fn chosen(k: u64, good: u64, runs: u64) -> f64 {
    if k > good {
        return 0.0;
    }
    (0..k).map(|drawn| (good - drawn) as f64 / (runs - drawn) as f64).product()
}

/// How well a yes or no was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Confusion {
    /// Loaded, and should be.
    pub true_positives: u64,
    /// Loaded, and should not be.
    pub false_positives: u64,
    /// Not loaded, and should not be.
    pub true_negatives: u64,
    /// Not loaded, and should be.
    pub false_negatives: u64,
}

impl Confusion {
    /// Counts one more.
    pub(super) fn add(&mut self, should: bool, is: bool) {
        let count = match (should, is) {
            (true, true) => &mut self.true_positives,
            (true, false) => &mut self.false_negatives,
            (false, true) => &mut self.false_positives,
            (false, false) => &mut self.true_negatives,
        };
        *count += 1;
    }

    /// Of those that were loaded, how many should be; `None` when nothing was loaded.
    pub fn precision(&self) -> Option<f64> {
        rate(self.true_positives, self.true_positives + self.false_positives)
    }

    /// Of those that should be loaded, how many were; `None` when none should be.
    pub fn recall(&self) -> Option<f64> {
        rate(self.true_positives, self.true_positives + self.false_negatives)
    }

    /// The harmonic mean of both; `None` when none should be loaded and none was.
    pub fn f1(&self) -> Option<f64> {
        let wrong = self.false_positives + self.false_negatives;
        rate(2 * self.true_positives, 2 * self.true_positives + wrong)
    }
}

/// Which of two parts a case belongs to, so that what was tuned on one is judged on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// To tune with.
    Train,
    /// To judge with.
    Validation,
}

/// Splits texts of two classes: `share` of each class is to train with. Which ones depends on `seed` and on the texts, and
/// hardly on what else is there, so that a new query moves at most one other.
pub fn split(cases: &[(&str, bool)], share: f64, seed: u64) -> Vec<Part> {
    let mut parts = vec![Part::Validation; cases.len()];
    for class in [true, false] {
        let mut order: Vec<_> = (0..cases.len()).filter(|&place| cases[place].1 == class).collect();
        order.sort_by_key(|&place| (mixed(seed, cases[place].0), place));
        #[expect(clippy::cast_precision_loss, reason = "there are never that many cases")]
        let wanted = (order.len() as f64 * share).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a count")]
        for &place in order.iter().take(wanted as usize) {
            parts[place] = Part::Train;
        }
    }
    parts
}

/// A number that depends on both, the same on every machine (FNV-1a, and the last step of SplitMix64).
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
    fn spreads() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[3.0]), Some(Spread { mean: 3.0, stddev: 0.0, min: 3.0, max: 3.0 }));
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((spread.mean, spread.stddev, spread.min, spread.max), (5.0, 2.1381, 2.0, 9.0));
    }

    /// From a published table, and what must hold at the ends.
    #[test]
    fn wilson_intervals() {
        assert_eq!(wilson(0, 0), None);
        assert_eq!(wilson(0, 10).unwrap(), [0.0, 0.2775]);
        assert_eq!(wilson(10, 10).unwrap(), [0.7225, 1.0]);
        assert_eq!(wilson(5, 10).unwrap(), [0.2366, 0.7634]);
        assert_eq!(wilson(81, 263).unwrap(), [0.2553, 0.3662]);
    }

    #[test]
    fn passes() {
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
    fn confusions() {
        let mut told = Confusion::default();
        assert_eq!((told.precision(), told.recall(), told.f1()), (None, None, None));
        for (should, is) in [(true, true), (true, true), (true, false), (false, true), (false, false)] {
            told.add(should, is);
        }
        assert_eq!((told.precision(), told.recall(), told.f1()), (Some(0.6667), Some(0.6667), Some(0.6667)));
    }

    #[test]
    fn splits_are_proportional_and_kept() {
        let texts: Vec<_> = (0..20).map(|number| format!("query {number}")).collect();
        let cases: Vec<_> = texts.iter().enumerate().map(|(n, text)| (text.as_str(), n < 10)).collect();
        let parts = split(&cases, 0.6, 1);
        let train =
            |range: std::ops::Range<usize>| parts[range].iter().filter(|it| **it == Part::Train).count();
        assert_eq!((train(0..10), train(10..20)), (6, 6));
        assert_eq!(parts, split(&cases, 0.6, 1));
        assert_ne!(parts, split(&cases, 0.6, 2));
        // One query less, and at most two others change sides.
        let fewer = split(&cases[1..], 0.6, 1);
        let moved = fewer.iter().zip(&parts[1..]).filter(|(a, b)| a != b).count();
        assert!(moved <= 1, "{moved}");
    }
}
