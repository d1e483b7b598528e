//! [`Agreement`]: how far two graders agree about the same sentences.

use serde::Serialize;

use super::{Grade, statistics::rounded};

/// The agreement of two graders.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Agreement {
    /// The number of sentences that both have graded.
    pub graded: u64,
    /// The number of sentences with the same verdict.
    pub agreed: u64,
    /// The share of sentences with the same verdict.
    pub share: f64,
    /// Cohen's kappa: the agreement beyond the one that is expected by chance. 1 is full agreement, and 0 is no more than chance.
    /// `None` if both graders have given only one verdict.
    pub kappa: Option<f64>,
}

impl Agreement {
    /// Computes the agreement. Returns `None` if there are no sentences with two verdicts.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    pub(super) fn of<'a>(grades: impl Iterator<Item = &'a Grade>) -> Option<Self> {
        let (mut graded, mut agreed, mut first, mut second) = (0, 0, 0, 0);
        for grade in grades.filter(|grade| !grade.ungraded) {
            let Some(other) = grade.second else { continue };
            graded += 1;
            agreed += u64::from(grade.passed == other);
            first += u64::from(grade.passed);
            second += u64::from(other);
        }
        if graded == 0 {
            return None;
        }
        let all = graded as f64;
        let share = agreed as f64 / all;
        let (first, second) = (first as f64 / all, second as f64 / all);
        let chance = first * second + (1.0 - first) * (1.0 - second);
        let kappa = (chance < 1.0).then(|| rounded((share - chance) / (1.0 - chance)));
        Some(Self { graded, agreed, share: rounded(share), kappa })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_beyond_chance() {
        let grades = |pairs: &[(bool, bool)]| -> Vec<Grade> {
            let grade = |&(passed, second): &(bool, bool)| Grade {
                second: Some(second),
                ..Grade::new("x".to_owned(), passed, "y")
            };
            pairs.iter().map(grade).collect()
        };
        for (pairs, share, kappa) in [
            (&[(true, true), (false, false)][..], 1.0, Some(1.0)),
            (&[(true, false), (false, true)], 0.0, Some(-1.0)),
            (&[(true, true), (true, true)], 1.0, None),
            (&[(true, true), (true, true), (false, false), (true, false)], 0.75, Some(0.5)),
        ] {
            let found = Agreement::of(grades(pairs).iter()).unwrap();
            assert_eq!((found.share.to_bits(), found.kappa), (f64::to_bits(share), kappa), "{pairs:?}");
        }
        assert_eq!(Agreement::of([Grade::new("x".to_owned(), true, "y")].iter()), None);
    }
}
