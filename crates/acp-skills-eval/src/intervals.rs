//! Confidence intervals (95 %) for results over several cases.
//!
//! Runs of one query are not independent, because a query is easy or hard in all of its runs. An interval that counts each run
//! is therefore too narrow: with 10 runs of each query, it contains the true rate in about 70 % of evaluations instead of
//! 95 %. These intervals use the spread between cases instead. They need no random numbers, so the same results
//! always give the same interval. The example `coverage` shows how often they are right.

use serde::Serialize;

use super::statistics::{Z, rounded, score_interval};

/// The quantiles of Student's t distribution for an interval of 95 %, starting with one degree of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Returns the confidence interval of the share of right runs, as lower and upper bound. Each item is a case with its number
/// of right runs and its number of runs. Cases without runs are ignored.
///
/// This is the Wilson interval with an effective number of runs: the number of independent runs that would vary as much
/// as the cases do. It is at least the number of cases. Returns `None` for fewer than two cases, because one case shows
/// nothing about others.
#[expect(clippy::cast_precision_loss, reason = "run counts are small")]
pub fn clustered(cases: &[(u64, u64)]) -> Option<[f64; 2]> {
    let cases: Vec<_> = cases.iter().filter(|(_, runs)| *runs > 0).collect();
    if cases.len() < 2 {
        return None;
    }
    let count = cases.len() as f64;
    let runs = cases.iter().map(|(_, runs)| *runs).sum::<u64>() as f64;
    let rate = cases.iter().map(|(right, _)| *right).sum::<u64>() as f64 / runs;
    let squares: f64 = cases.iter().map(|(right, runs)| (*right as f64 - rate * *runs as f64).powi(2)).sum();
    let variance = count / (count - 1.0) * squares / (runs * runs);
    let of_one_run = rate * (1.0 - rate);
    // If all runs agree, there is no spread to compare, so assume that each query has only one result.
    let effective = if of_one_run > 0.0 { of_one_run / variance } else { count };
    let effective = effective.clamp(count.min(runs), runs);
    // With one run for each case, the spread between cases is known from the rate. Otherwise, it is an estimate.
    let factor = if runs > count { student(2 * (cases.len() - 1)) } else { Z };
    Some(score_interval(rate, effective, factor))
}

/// The pass rates of the runs of a case in two configurations.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Pair {
    /// The pass rates with the skill, from 0 to 1.
    pub with: Vec<f64>,
    /// The pass rates in the configuration that the skill is compared with.
    pub without: Vec<f64>,
}

impl Pair {
    /// Creates a pair from the pass rates with and without the skill.
    pub fn new(with: Vec<f64>, without: Vec<f64>) -> Self {
        Self { with, without }
    }
}

/// The effect of a skill, as far as the results show one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// Results are better with the skill.
    Better,
    /// Results are worse with the skill.
    Worse,
    /// No difference is shown: the interval contains 0, or there are too few tasks for an interval.
    #[default]
    NotShown,
}

impl Effect {
    /// Returns the effect that an interval shows.
    pub(super) fn of(interval: Option<[f64; 2]>) -> Self {
        match interval {
            Some([low, _]) if low > 0.0 => Self::Better,
            Some([_, high]) if high < 0.0 => Self::Worse,
            _ => Self::NotShown,
        }
    }
}

/// Returns the mean difference of the pass rates over the cases, with its confidence interval. Cases without runs in one of
/// the configurations are ignored. Returns `None` for fewer than two cases.
///
/// The interval is a paired t interval. If a few runs happen to agree, the variance would be too small, so it is at
/// least the variance of runs that pass or fail at random with a similar rate.
#[expect(clippy::cast_precision_loss, reason = "case counts are small")]
pub fn paired(cases: &[Pair]) -> Option<(f64, [f64; 2])> {
    let pairs: Vec<_> =
        cases.iter().filter(|pair| !pair.with.is_empty() && !pair.without.is_empty()).collect();
    if pairs.len() < 2 {
        return None;
    }
    let count = pairs.len() as f64;
    let differences: Vec<_> = pairs.iter().map(|pair| mean(&pair.with) - mean(&pair.without)).collect();
    let difference = mean(&differences);
    let squares: f64 = differences.iter().map(|one| (one - difference).powi(2)).sum();
    let chance: f64 = pairs.iter().map(|pair| by_chance(&pair.with) + by_chance(&pair.without)).sum();
    let variance = (squares / (count - 1.0)).max(chance / count);
    let margin = student(pairs.len() - 1) * (variance / count).sqrt();
    let bound = |value: f64| rounded(value.clamp(-1.0, 1.0));
    Some((rounded(difference), [bound(difference - margin), bound(difference + margin)]))
}

/// Returns the variance of the mean of these runs if each of them passes or fails at random. One passed and one failed run
/// are added, so that it is never 0.
#[expect(clippy::cast_precision_loss, reason = "run counts are small")]
fn by_chance(rates: &[f64]) -> f64 {
    let runs = rates.len() as f64;
    let rate = (rates.iter().sum::<f64>() + 1.0) / (runs + 2.0);
    rate * (1.0 - rate) / runs
}

#[expect(clippy::cast_precision_loss, reason = "run counts are small")]
fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// Returns the factor of an interval of 95 % with these degrees of freedom.
#[expect(clippy::cast_precision_loss, reason = "case counts are small")]
fn student(freedom: usize) -> f64 {
    if let Some(quantile) = STUDENT.get(freedom.saturating_sub(1)) {
        return *quantile;
    }
    // The first terms of the Cornish-Fisher expansion, which is exact to three decimal places here.
    let n = freedom as f64;
    let first = (Z.powi(3) + Z) / (4.0 * n);
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / (96.0 * n * n);
    Z + first + second
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the figures are rounded")]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_query_are_no_evidence_about_others() {
        assert_eq!(clustered(&[]), None);
        assert_eq!(clustered(&[(10, 10), (0, 0)]), None);
        // If all runs of a query agree, more runs say nothing more about other queries.
        let [low, high] = clustered(&[(1, 1), (1, 1), (0, 1), (0, 1)]).unwrap();
        let [low_of_many, high_of_many] = clustered(&[(100, 100), (100, 100), (0, 100), (0, 100)]).unwrap();
        assert!(low_of_many <= low && high <= high_of_many, "{low_of_many} {low} {high} {high_of_many}");
        // If runs differ as much within queries as between them, they all count.
        let [low, high] = clustered(&[(50, 100); 4]).unwrap();
        assert!(high - low < 0.15, "{low} {high}");
        assert_eq!(clustered(&[(3, 3); 8]).unwrap()[1], 1.0);
        assert!(clustered(&[(3, 3); 8]).unwrap()[0] < 0.7);
    }

    #[test]
    fn one_run_for_each_query_gives_the_wilson_interval() {
        let cases: Vec<_> = (0..10).map(|number| (u64::from(number < 5), 1)).collect();
        assert_eq!(clustered(&cases), crate::wilson(5, 10));
    }

    #[test]
    fn differences_are_paired_by_case() {
        let pair = |with: f64, without: f64, runs| Pair::new(vec![with; runs], vec![without; runs]);
        assert_eq!(paired(&[pair(1.0, 0.0, 10)]), None);
        assert_eq!(paired(&[pair(1.0, 0.0, 3), Pair::new(vec![1.0], Vec::new())]), None);
        // Two tasks are never enough.
        assert!(paired(&[pair(1.0, 0.0, 3), pair(1.0, 0.0, 3)]).unwrap().1[0] < 0.0);
        let (difference, [low, high]) = paired(&vec![pair(1.0, 0.0, 3); 4]).unwrap();
        assert!(difference == 1.0 && low > 0.0 && high == 1.0, "{difference} {low} {high}");
        // The tasks differ a lot, but the skill helps each of them a little.
        let cases: Vec<_> =
            (0..8).map(|number| pair(0.3 + f64::from(number) / 12.0, f64::from(number) / 12.0, 30)).collect();
        assert!(paired(&cases).unwrap().1[0] > 0.0);
        let (_, [low, high]) = paired(&[pair(1.0, 0.0, 9), pair(0.0, 1.0, 9), pair(1.0, 0.5, 9)]).unwrap();
        assert!(low < 0.0 && high > 0.0);
    }

    #[test]
    fn quantiles_meet_at_the_end_of_the_table() {
        assert!((student(30) - student(31)).abs() < 0.004);
        assert!((student(100) - 1.984).abs() < 0.002);
    }
}
