//! [`displayed`]: text as it is printed, and commands that CI services recognize in it.
//!
//! Azure Pipelines, GitHub Actions and TeamCity run commands in the output of a step: `##vso[…]`, `##[…]` and `##teamcity[…]` anywhere in a
//! line, and `::NAME` at its start. They can set variables such as `PATH` for later steps, or hide lines. A skill must not be able to do
//! this when it is shown before its approval.

use std::{borrow::Cow, env, sync::LazyLock};

use skills_core::text::shown_lines;

/// The variables that CI services set.
const VARIABLES: [&str; 4] = ["CI", "TF_BUILD", "GITHUB_ACTIONS", "TEAMCITY_VERSION"];

static IS_CI: LazyLock<bool> =
    LazyLock::new(|| VARIABLES.iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty())));

/// Escapes unsafe characters, and commands of CI services if one of them runs this program.
pub(super) fn displayed(text: &str) -> Cow<'_, str> {
    let shown = shown_lines(text);
    if *IS_CI && let Some(broken) = without_commands(&shown) { Cow::Owned(broken) } else { shown }
}

/// Escapes commands of CI services in JSON, where they can only occur in strings, if one of them runs this program.
pub(super) fn json_displayed(json: Cow<'_, str>) -> Cow<'_, str> {
    if *IS_CI && json.contains("##") { Cow::Owned(json.replace("##", "#\\u0023")) } else { json }
}

/// Escapes the second character of each command. Returns `None` if there is none.
fn without_commands(text: &str) -> Option<String> {
    if !text.contains("##") && !text.contains("::") {
        return None;
    }
    let mut broken = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        let start = line.trim_start();
        let (indent, mut rest) = line.split_at(line.len() - start.len());
        broken.push_str(indent);
        if let Some(command) = rest.strip_prefix("::").filter(|after| starts_with_letter(after)) {
            broken.push_str(":\\u{3a}");
            rest = command;
        }
        while let Some(at) = rest.find("##") {
            // The second `#` can be the first one of a command.
            let (before, after) = rest.split_at(at + 1);
            broken.push_str(before);
            let word = &after[1..];
            if word.starts_with('[') || starts_with_letter(word) {
                broken.push_str("\\u{23}");
                rest = word;
            } else {
                rest = after;
            }
        }
        broken.push_str(rest);
    }
    Some(broken)
}

fn starts_with_letter(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_ci_services_are_broken() {
        for (text, expected) in [
            ("a ##vso[task.prependpath]/x", "a #\\u{23}vso[task.prependpath]/x"),
            ("##[debug]a ##[b]", "#\\u{23}[debug]a #\\u{23}[b]"),
            ("###vso[x]", "##\\u{23}vso[x]"),
            ("##teamcity[x]\n", "#\\u{23}teamcity[x]\n"),
            ("a\n  ::add-mask::b\n::x", "a\n  :\\u{3a}add-mask::b\n:\\u{3a}x"),
            ("+## Heading\n", "+## Heading\n"),
            ("#### x ## y", "#### x ## y"),
            ("a::b :: c\n:: d", "a::b :: c\n:: d"),
            ("##", "##"),
        ] {
            assert_eq!(without_commands(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(without_commands("# a: b"), None);
    }
}
