//! What expressions find in a text, in what of it is hidden, and in entries of `allowed-tools`.

use regex::bytes::{Match, Regex};

use super::rules::{Matcher, Place, Rule, Rules};

/// Findings of one rule in one text, at most: more say nothing new, and each costs a search.
const MAX_OF_A_KIND: usize = 10;

/// Innocent places of one kind in one text: what comes behind as many is none.
const MAX_INNOCENT: usize = 1_000;

/// Where in a text a rule finds something, in bytes; one a line.
pub(super) fn find<'r>(
    rules: &'r Rules,
    text: &str,
    is_instructions: bool,
    mut found: impl FnMut(&'r Rule, usize, usize),
) {
    let hidden = if is_instructions { hidden(rules, text) } else { Vec::new() };
    for rule in &rules.rules {
        let Matcher::Expression { place, pattern, except } = &rule.matcher else { continue };
        match place {
            Place::Text => {}
            Place::Instructions if is_instructions => {}
            Place::Hidden => {
                let places = hidden.iter().filter_map(|&(start, passage)| {
                    let at = first(pattern, except, passage)?;
                    Some((start + at.0, start + at.1))
                });
                places.take(MAX_OF_A_KIND).for_each(|(start, end)| found(rule, start, end));
                continue;
            }
            _ => continue,
        }
        // The end of the line of the last finding.
        let (mut from, mut left) = (0, MAX_OF_A_KIND);
        for place in guilty(pattern, except, text) {
            if place.start() < from {
                continue;
            }
            found(rule, place.start(), place.end());
            let rest = &text.as_bytes()[place.end()..];
            from = memchr::memchr(b'\n', rest).map_or(text.len(), |at| place.end() + at);
            left -= 1;
            if left == 0 || from == text.len() {
                break;
            }
        }
    }
}

/// Where a decoded text is a program, or speaks to the agent.
pub(super) fn find_decoded<'r>(rules: &'r Rules, decoded: &str, mut found: impl FnMut(&'r Rule)) {
    for rule in &rules.rules {
        if let Matcher::Expression { place: Place::Decoded, pattern, except } = &rule.matcher
            && first(pattern, except, decoded).is_some()
        {
            found(rule);
        }
    }
}

/// Which rules an entry of `allowed-tools` breaks, in a skill with this text.
pub(super) fn find_tools<'r>(rules: &'r Rules, entry: &str, skill: &str, mut found: impl FnMut(&'r Rule)) {
    for rule in &rules.rules {
        if let Matcher::Expression { place: Place::Tools, pattern, except } = &rule.matcher
            && first(pattern, except, entry).is_some()
            && !rule.unless.iter().any(|it| it.is_match(skill.as_bytes()))
        {
            found(rule);
        }
    }
}

/// Whether `rule` finds something in an example of its table.
pub(super) fn finds(rules: &Rules, rule: &Rule, example: &str) -> bool {
    let Matcher::Expression { place, pattern, except } = &rule.matcher else { return false };
    match place {
        Place::Hidden => {
            hidden(rules, example).iter().any(|(_, passage)| first(pattern, except, passage).is_some())
        }
        _ => first(pattern, except, example).is_some(),
    }
}

/// The passages that readers of a page do not see, and where they begin.
fn hidden<'t>(rules: &Rules, text: &'t str) -> Vec<(usize, &'t str)> {
    let passages = rules.hidden.iter().flat_map(|pattern| {
        let groups = pattern.captures_iter(text.as_bytes());
        groups.filter_map(|groups| groups.get(1)).map(|group| {
            let start = text.ceil_char_boundary(group.start());
            (start, &text[start..text.ceil_char_boundary(group.end())])
        })
    });
    passages.collect()
}

/// The first place that is not innocent.
fn first(pattern: &Regex, except: &[Regex], text: &str) -> Option<(usize, usize)> {
    guilty(pattern, except, text).next().map(|place| (place.start(), place.end()))
}

/// The places that are not innocent.
fn guilty<'t>(pattern: &Regex, except: &[Regex], text: &'t str) -> impl Iterator<Item = Match<'t>> {
    let mut innocent = 0;
    pattern.find_iter(text.as_bytes()).filter(move |place| {
        let is_innocent = innocent < MAX_INNOCENT && except.iter().any(|it| it.is_match(place.as_bytes()));
        innocent += usize::from(is_innocent);
        !is_innocent
    })
}
