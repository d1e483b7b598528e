//! [`Expressions`]: the regular expressions of a rule, and a search for them that is fast in any text.

use std::{collections::VecDeque, sync::LazyLock};

use regex::bytes::Regex;

/// The start and end of a match in bytes.
type Place = (usize, usize);

/// The expressions of a rule. If several match at one place, the first one wins.
#[derive(Debug, Clone)]
pub(super) struct Expressions(Vec<Part>);

#[derive(Debug, Clone)]
enum Part {
    /// One or more expressions, joined to one.
    Whole(Regex),
    /// Parts of an expression, each after the gap between it and the previous one, such as `send[^\n]{0,80}secret`. The automaton of the
    /// whole expression would need a state for each set of distances to earlier matches of the parts. In a text with many of them, a
    /// search would be slow, because each byte needs a new state.
    Gapped(Vec<(Gap, Regex)>),
}

/// A gap between two parts of an expression: any bytes except for line breaks.
#[derive(Debug, Clone, Copy, Default)]
struct Gap {
    max_bytes: usize,
    /// True if the gap can't contain full stops.
    in_sentence: bool,
}

impl Gap {
    /// Returns the last byte offset at which the next part can start if the previous part ends at `start`.
    fn end(self, text: &[u8], start: usize) -> usize {
        let end = text.len().min(start + self.max_bytes);
        let stop = if self.in_sentence { b'.' } else { b'\n' };
        memchr::memchr2(b'\n', stop, &text[start..end]).map_or(end, |at| start + at)
    }
}

impl Expressions {
    /// Compiles expressions. With `with_gaps`, an expression with a bounded gap is searched in parts. This requires that its gaps are
    /// not in a group, and that a part that starts at some byte always ends at the same byte.
    ///
    /// # Errors
    /// Returns the error of `compile` for an invalid expression.
    pub(super) fn new<E>(
        patterns: &[String],
        with_gaps: bool,
        compile: impl Fn(&str) -> Result<Regex, E>,
    ) -> Result<Self, E> {
        static GAP: LazyLock<regex::Regex> =
            LazyLock::new(|| regex::Regex::new(r"\[\^\\n(\.?)\]\{0,(\d+)\}").expect("a regular expression"));
        let mut parts = Vec::new();
        for group in patterns.chunk_by(|a, b| !with_gaps || GAP.is_match(a) == GAP.is_match(b)) {
            if !with_gaps || !GAP.is_match(&group[0]) {
                parts.push(Part::Whole(compile(&format!("(?:{})", group.join(")|(?:")))?));
                continue;
            }
            for pattern in group {
                let mut gapped = Vec::new();
                let mut gap = Gap::default();
                let mut start = 0;
                for found in GAP.captures_iter(pattern) {
                    let (whole, [stop, max]) = (found.get_match(), found.extract().1);
                    gapped.push((gap, compile(&pattern[start..whole.start()])?));
                    gap = Gap { max_bytes: max.parse().unwrap_or(0), in_sentence: !stop.is_empty() };
                    start = whole.end();
                }
                gapped.push((gap, compile(&pattern[start..])?));
                parts.push(Part::Gapped(gapped));
            }
        }
        Ok(Self(parts))
    }

    /// Starts a search.
    pub(super) fn search<'e, 't>(&'e self, text: &'t [u8]) -> Search<'e, 't> {
        let ahead = self.0.iter().map(|part| match part {
            Part::Whole(regex) => (Some(regex), next(regex, text, 0).into_iter().collect()),
            Part::Gapped(parts) => (None, gapped(parts, text)),
        });
        Search { text, ahead: ahead.collect() }
    }
}

/// A search for the expressions of a rule in a text.
pub(super) struct Search<'e, 't> {
    text: &'t [u8],
    /// The matches that are known for each part. If there is an expression, these are only its next match.
    ahead: Vec<(Option<&'e Regex>, VecDeque<Place>)>,
}

impl Search<'_, '_> {
    /// Returns the first match that starts at `at` or later. `at` must not decrease.
    pub(super) fn next(&mut self, at: usize) -> Option<Place> {
        for (regex, places) in &mut self.ahead {
            while places.pop_front_if(|place| place.0 < at).is_some() {
                places.extend(regex.and_then(|regex| next(regex, self.text, at)));
            }
        }
        self.ahead.iter().filter_map(|(_, places)| places.front().copied()).min_by_key(|place| place.0)
    }
}

fn next(regex: &Regex, text: &[u8], at: usize) -> Option<Place> {
    regex.find_at(text, at).map(|found| (found.start(), found.end()))
}

/// Finds the matches of an expression with gaps in linear time. Like a search for the whole expression, this takes the longest gaps that
/// lead to a match.
fn gapped(parts: &[(Gap, Regex)], text: &[u8]) -> VecDeque<Place> {
    // From the last part to the first: the places where a part starts, and where the last one ends.
    let mut after: Option<(Gap, Vec<Place>)> = None;
    for (gap, regex) in parts.iter().rev() {
        let mut places = Vec::new();
        let mut at = 0;
        while let Some((start, end)) = next(regex, text, at) {
            // Matches can overlap.
            at = start + 1;
            let Some((gap, after)) = &after else {
                places.push((start, end));
                continue;
            };
            let last = after.partition_point(|place| place.0 <= gap.end(text, end));
            places.extend(after[..last].last().filter(|place| place.0 >= end).map(|place| (start, place.1)));
        }
        if places.is_empty() {
            return VecDeque::new();
        }
        after = Some((*gap, places));
    }
    after.map(|(_, places)| places.into()).unwrap_or_default()
}
