//! Simulates evaluations, and prints the share of confidence intervals that contain the true rate. It should be close to
//! 95 %, and the example fails if the share is outside of 93 to 97 % for queries. It runs in `nightly.yml`.
//!
//! ```sh
//! cargo run --release -p acp-skills-eval --example coverage
//! ```
//!
//! Some queries are easier than others, so each simulated query has its own probability that a run is right. The probabilities are
//! drawn from beta distributions with different means and spreads. The true rate is the mean of the distribution.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use acp_skills_eval::{Pair, clustered, paired, wilson};

/// The number of simulated evaluations for each distribution.
const EVALUATIONS: u32 = 2_000;
const MEANS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
/// The correlations of two runs of the same query.
const CORRELATIONS: [f64; 3] = [0.1, 0.3, 0.6];

fn main() -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut random = Random(1);
    let mut is_right = true;
    writeln!(out, "Queries: the share of intervals that contain the true rate, in percent")?;
    writeln!(out, "queries  runs  by query  (worst)  if runs were independent")?;
    for queries in [8, 20, 50] {
        for runs in [1, 3, 5, 10] {
            let [ours, worst, pooled] = rates(&mut random, queries, runs);
            is_right &= (93.0..=97.0).contains(&ours);
            writeln!(out, "{queries:7}  {runs:4}  {ours:8.1}  {worst:7.1}  {pooled:24.1}")?;
        }
    }
    writeln!(
        out,
        "\nTasks: intervals that contain the true difference, and differences that are shown, in percent"
    )?;
    writeln!(out, "tasks  runs  covered  shown if there is none  shown if it is 30 points")?;
    for tasks in [3, 5, 10, 20] {
        for runs in [1, 3, 10] {
            let (covered_without, false_alarms) = differences(&mut random, tasks, runs, 0.0);
            let (covered_with, found) = differences(&mut random, tasks, runs, 0.3);
            let covered = f64::midpoint(covered_without, covered_with);
            writeln!(out, "{tasks:5}  {runs:4}  {covered:7.1}  {false_alarms:22.1}  {found:24.1}")?;
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the coverage of the intervals by query, its minimum over all distributions, and the coverage of intervals that treat
/// runs as independent.
fn rates(random: &mut Random, queries: usize, runs: u64) -> [f64; 3] {
    let mut all = Vec::new();
    let mut pooled = 0;
    for mean in MEANS {
        for correlation in CORRELATIONS {
            let mut covered = 0;
            for _ in 0..EVALUATIONS {
                let cases: Vec<_> = (0..queries)
                    .map(|_| {
                        let chance = random.beta(mean, correlation);
                        (random.passes(chance, runs), runs)
                    })
                    .collect();
                let contains = |interval: Option<[f64; 2]>| {
                    interval.is_some_and(|[low, high]| (low..=high).contains(&mean))
                };
                covered += u32::from(contains(clustered(&cases)));
                let right = cases.iter().map(|(right, _)| right).sum();
                pooled += u32::from(contains(wilson(right, queries as u64 * runs)));
            }
            all.push(percent(covered, EVALUATIONS));
        }
    }
    let worst = all.iter().copied().fold(100.0, f64::min);
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let distributions = u32::try_from(all.len()).unwrap_or(u32::MAX);
    [mean, worst, percent(pooled, EVALUATIONS * distributions)]
}

/// Returns the share of intervals that contain the true difference, and the share that shows a difference.
fn differences(random: &mut Random, tasks: usize, runs: u64, lift: f64) -> (f64, f64) {
    let mut covered = 0;
    let mut shown = 0;
    let mut total = 0;
    for mean in [0.3, 0.5, 0.65] {
        for correlation in CORRELATIONS {
            for _ in 0..EVALUATIONS {
                let pairs: Vec<_> = (0..tasks)
                    .map(|_| {
                        let without = random.beta(mean, correlation);
                        // A hard task gains more, so that the mean rises by `lift` and no chance exceeds 1.
                        let with = without + (1.0 - without) * lift / (1.0 - mean);
                        Pair::new(random.series(with, runs), random.series(without, runs))
                    })
                    .collect();
                total += 1;
                let Some((_, [low, high])) = paired(&pairs) else { continue };
                covered += u32::from((low..=high).contains(&lift));
                shown += u32::from(low > 0.0 || high < 0.0);
            }
        }
    }
    (percent(covered, total), percent(shown, total))
}

fn percent(part: u32, whole: u32) -> f64 {
    100.0 * f64::from(part) / f64::from(whole)
}

/// A generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    /// Returns a number above 0 and at most 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let number = ((bits >> 11) + 1) as f64;
        number / 9_007_199_254_740_992.0
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Returns a number from a gamma distribution, with the method of Marsaglia and Tsang.
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            return self.gamma(shape + 1.0) * self.uniform().powf(1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let normal = self.normal();
            let v = (1.0 + c * normal).powi(3);
            if v > 0.0 && self.uniform().ln() < 0.5 * normal * normal + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// Returns a chance from a beta distribution, given its mean and the correlation of two runs with the same chance.
    fn beta(&mut self, mean: f64, correlation: f64) -> f64 {
        let size = 1.0 / correlation - 1.0;
        let one = self.gamma(mean * size);
        let other = self.gamma((1.0 - mean) * size);
        one / (one + other).max(f64::MIN_POSITIVE)
    }

    /// Returns the results of some runs: 1 if a run passes, and 0 otherwise.
    fn series(&mut self, chance: f64, runs: u64) -> Vec<f64> {
        (0..runs).map(|_| f64::from(u8::from(self.uniform() <= chance))).collect()
    }

    fn passes(&mut self, chance: f64, runs: u64) -> u64 {
        (0..runs).map(|_| u64::from(self.uniform() <= chance)).sum()
    }
}
