//! Applies regular expressions to texts, to hidden passages, to decoded texts, and to entries of `allowed-tools`.

use indexmap::IndexSet;
use regex::bytes::Regex;

use super::{
    expression::Expressions,
    rules::{Matcher, Place, Rule, Rules},
};
use crate::text::plain_spaces;

/// The maximum number of findings of one rule in one text. More findings add no information, and each costs a search.
const MAX_OF_A_KIND: usize = 10;

/// The maximum number of exempt matches of one rule in one text. Any match after that is reported. Each search can read the rest of the
/// text: an alternative of the expression can still match there, although a shorter one has matched.
const MAX_EXEMPT: usize = 200;

/// Calls `found` for each match of each rule in a text, with its start and end in bytes. Reports one match per rule and line.
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
        let bytes = text.as_bytes();
        let mut search = pattern.search(bytes);
        let (mut at, mut number, mut exempt) = (0, 0, 0);
        while number < MAX_OF_A_KIND
            && let Some((start, end)) = search.next(at)
        {
            if is_exempt(except, &bytes[start..end], &mut exempt) {
                at = end.max(start + 1);
            } else {
                found(rule, start, end);
                number += 1;
                // Continue in the next line.
                at = memchr::memchr(b'\n', &bytes[end..]).map_or(text.len(), |line| end + line);
            }
        }
    }
}

/// Calls `found` for each rule that matches a decoded text.
pub(super) fn find_decoded<'r>(rules: &'r Rules, decoded: &str, mut found: impl FnMut(&'r Rule)) {
    for rule in &rules.rules {
        if let Matcher::Expression { place: Place::Decoded, pattern, except } = &rule.matcher
            && first(pattern, except, &plain_spaces(decoded)).is_some()
        {
            found(rule);
        }
    }
}

/// Calls `found` for each rule that matches an entry of `allowed-tools`, unless the text of the skill justifies the entry.
pub(super) fn find_tools<'r, 'e>(
    rules: &'r Rules,
    entries: &IndexSet<&'e str>,
    skill: &str,
    mut found: impl FnMut(&'r Rule, &'e str),
) {
    for rule in &rules.rules {
        let Matcher::Expression { place: Place::Tools, pattern, except } = &rule.matcher else { continue };
        let mut matches =
            entries.iter().filter(|entry| first(pattern, except, &plain_spaces(entry)).is_some()).peekable();
        // The text can be long, so search it only once for all entries.
        let is_justified = || rule.unless.iter().any(|pattern| pattern.is_match(skill.as_bytes()));
        if matches.peek().is_some() && !is_justified() {
            matches.for_each(|entry| found(rule, entry));
        }
    }
}

/// Returns true if `rule` matches an example.
pub(super) fn finds(rules: &Rules, rule: &Rule, example: &str) -> bool {
    let Matcher::Expression { place, pattern, except } = &rule.matcher else { return false };
    match place {
        Place::Hidden => {
            hidden(rules, example).iter().any(|(_, passage)| first(pattern, except, passage).is_some())
        }
        _ => first(pattern, except, example).is_some(),
    }
}

/// Returns the passages that are invisible on a rendered page, with their byte offsets.
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

/// Returns the start and end of the first match that is not exempt.
fn first(pattern: &Expressions, except: &[Regex], text: &str) -> Option<(usize, usize)> {
    let mut search = pattern.search(text.as_bytes());
    let (mut at, mut exempt) = (0, 0);
    loop {
        let (start, end) = search.next(at)?;
        if !is_exempt(except, &text.as_bytes()[start..end], &mut exempt) {
            return Some((start, end));
        }
        at = end.max(start + 1);
    }
}

/// Returns true if a match is an exception. `exempt` counts those of one rule in one text.
fn is_exempt(except: &[Regex], found: &[u8], exempt: &mut usize) -> bool {
    let is_exempt = *exempt < MAX_EXEMPT && except.iter().any(|pattern| pattern.is_match(found));
    *exempt += usize::from(is_exempt);
    is_exempt
}
