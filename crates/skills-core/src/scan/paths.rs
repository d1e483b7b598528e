//! Finds Markdown links that lead out of the skill.

use std::sync::LazyLock;

use regex::Regex;

/// The maximum number of findings in one text.
const MAX_FOUND: usize = 10;

/// Matches the target of an inline link or a link definition.
static TARGET: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\]\(\s*<?([^\s)>\n]+)|(?m:^ {0,3}\[[^\]\n]+\]:\s*<?([^\s>]+))")
        .expect("a regular expression")
});

/// Calls `found` with the start and end in bytes of each link target that leads out of the skill. `path` is the path of the
/// text in the skill.
pub(super) fn find(path: &str, text: &str, found: impl FnMut(usize, usize)) {
    let depth = path.matches('/').count();
    let mut found = found;
    let targets = TARGET.captures_iter(text).filter_map(|groups| groups.get(1).or_else(|| groups.get(2)));
    let outside = targets.filter(|target| leads_out(target.as_str(), depth)).take(MAX_FOUND);
    outside.for_each(|target| found(target.start(), target.end()));
}

/// Returns true if a target leads out of the skill. `depth` is the number of directories above the linking file.
fn leads_out(target: &str, depth: usize) -> bool {
    let target = target.split(['#', '?']).next().unwrap_or_default();
    if target.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")) || target.starts_with("~/")
    {
        return true;
    }
    if target.contains("://") || target.starts_with("//") || target.starts_with("mailto:") {
        return false;
    }
    let mut depth = depth;
    for part in target.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." | "%2e%2e" | "%2E%2E" => match depth.checked_sub(1) {
                Some(up) => depth = up,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_outside_of_the_skill_are_found() {
        for (path, target, expected) in [
            ("SKILL.md", "references/a.md", false),
            ("SKILL.md", "../other/SKILL.md", true),
            ("SKILL.md", "a/../../b", true),
            ("SKILL.md", "a/../b", false),
            ("references/a.md", "../scripts/a.py", false),
            ("references/a.md", "../../a.py", true),
            ("SKILL.md", "https://example.com/../a", false),
            ("SKILL.md", "#..", false),
            ("SKILL.md", "~/notes.md", true),
            ("SKILL.md", "file:///etc/passwd", true),
            ("SKILL.md", "é", false),
        ] {
            for text in [format!("see [it]({target})"), format!("[it]: {target}")] {
                let mut places = Vec::new();
                find(path, &text, |start, end| places.push(&text[start..end]));
                assert_eq!(places == [target], expected, "{path}: {text}");
            }
        }
    }
}
