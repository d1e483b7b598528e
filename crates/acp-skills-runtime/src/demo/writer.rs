//! Lets the scripted agent act as a writer. It moves words of failed requests into a description or out of it, because it loads
//! skills by their words. Its cases are made of the words of a description.

use serde_json::{Value, json};

use super::catalog::words;
use super::wording::{DRAFT, EXTRA, IMPROVE, MISSED, NOW};

/// The maximum length of a description.
const MAX_CHARS: usize = 1024;

/// Returns the answer to a request for a description or for cases, or `None` if the request is not meant for a writer.
pub(super) fn answer(request: &str) -> Option<String> {
    let answer = if let Some(request) = request.strip_prefix(IMPROVE) {
        json!({ "description": improved(request) })
    } else {
        cases(request.strip_prefix(DRAFT)?)
    };
    Some(answer.to_string())
}

/// Returns the lines of a part of the request.
fn part<'a>(request: &'a str, title: &str) -> Vec<&'a str> {
    let Some((_, rest)) = request.split_once(title) else { return Vec::new() };
    let mut lines = rest.trim_start().lines();
    let mark = lines.next();
    lines.take_while(|line| Some(*line) != mark).collect()
}

fn improved(request: &str) -> String {
    let missed = words(&part(request, MISSED).join(" "));
    let extra = words(&part(request, EXTRA).join(" "));
    let now = part(request, NOW).join(" ");
    let is_kept = |word: &&str| words(word).iter().all(|word| !extra.contains(word));
    let mut description = now.split_whitespace().filter(is_kept).collect::<Vec<_>>().join(" ");
    if description.is_empty() {
        description.push_str("A skill.");
    }
    let known = words(&description);
    let mut added = Vec::new();
    for line in part(request, MISSED) {
        // One word of each request is enough.
        let has = |word: &String| known.contains(word) || added.contains(word);
        let of_line = words(line);
        if !of_line.iter().any(has) {
            added.extend(of_line.into_iter().find(|word| !extra.contains(word)));
        }
    }
    if !added.is_empty() && missed.len() >= added.len() {
        description.push_str(" Use it for: ");
        description.push_str(&added.join(", "));
        description.push('.');
    }
    description.chars().take(MAX_CHARS).collect()
}

fn cases(request: &str) -> Value {
    let description = part(request, NOW).join(" ");
    let words = words(&description);
    let load = words.iter().take(4).map(|word| format!("Please help me with this: {word}"));
    let load = load.map(|query| json!({ "query": query, "should_trigger": true }));
    let other = ["Tell me a joke", "How old is the moon?"];
    let other = other.map(|query| json!({ "query": query, "should_trigger": false }));
    let task = json!({
        "name": "first task",
        "prompt": format!("Please help me with this: {}", words.join(" ")),
        "expected_output": "The agent followed the instructions.",
        "assertions": ["The agent used the skill"],
    });
    json!({ "queries": load.chain(other).collect::<Vec<_>>(), "tasks": [task] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_failed_requests_move() {
        let request = format!(
            "{IMPROVE}\n\n{NOW}\n---\nReviews code and dinner.\n---\n\n{MISSED}\n---\n- Find bugs there\n---\n\n{EXTRA}\n---\n- \
             Cook dinner\n---\n"
        );
        let answer: Value = serde_json::from_str(&answer(&request).unwrap()).unwrap();
        assert_eq!(answer["description"], "Reviews code and Use it for: find.");
        assert_eq!(super::answer("Review this"), None);
    }
}
