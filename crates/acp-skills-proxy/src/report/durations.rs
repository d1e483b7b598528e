//! [`Durations`]: the durations of calls and their percentiles.

use acp_skills::events::Millis;

/// A list of durations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Durations(Vec<Millis>);

impl Durations {
    /// Adds a duration.
    pub(crate) fn add(&mut self, one: Millis) {
        self.0.push(one);
    }

    /// Returns a percentile by the nearest-rank method: the shortest duration that is at least as long as
    /// `percent` percent of all durations. `None` if there are no durations.
    pub(crate) fn percentile(&self, percent: usize) -> Option<Millis> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied()
    }

    /// Returns the sum of all durations, in milliseconds.
    pub(crate) fn total(&self) -> f64 {
        self.0.iter().map(|one| one.as_f64()).sum()
    }
}

/// Formats a duration in milliseconds: `0.4 ms`, `120 ms`, `3.4 s`, `12 min`.
pub(super) fn shown(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 100_000.0 => format!("{:.1} s", ms / 1000.0),
        ms => format!("{:.0} min", ms / 60_000.0),
    }
}

impl Durations {
    /// Formats a percentile. Returns a dash if there are no durations.
    pub(crate) fn shown(&self, percent: usize) -> String {
        self.percentile(percent).map_or_else(|| "–".to_owned(), |ms| shown(ms.as_f64()))
    }

    /// Formats the sum of all durations.
    pub(crate) fn total_shown(&self) -> String {
        shown(self.total())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        let mut durations = Durations::default();
        assert_eq!((durations.percentile(50), durations.shown(50)), (None, "–".to_owned()));
        let ms = |ms| Millis::from(Duration::from_millis(ms));
        for number in (1..=20).rev() {
            durations.add(ms(number));
        }
        let of = |percent| durations.percentile(percent).unwrap();
        assert_eq!((of(0), of(50), of(95), of(100)), (ms(1), ms(10), ms(19), ms(20)));
        assert_eq!(durations.total_shown(), "210 ms");
        let all = [0.04, 9.94, 120.4, 3400.0, 720_000.0].map(shown);
        assert_eq!(all, ["0.0 ms", "9.9 ms", "120 ms", "3.4 s", "12 min"]);
    }
}
