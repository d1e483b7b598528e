//! Replaces placeholders in a body, and escapes the tags of the surrounding element.

use std::borrow::Cow;

const ARGUMENTS: &str = "$ARGUMENTS";
const DIRECTORIES: [&str; 2] = ["{baseDir}", "${CLAUDE_SKILL_DIR}"];
const ELEMENT: &str = "skill_content";

/// The number of bytes that all replacements together can have, except for the first `$ARGUMENTS`. Further placeholders are kept.
/// Otherwise, a body with many of them would be multiplied by the length of the text that the user wrote.
const MAX_REPLACED_BYTES: usize = 256 * 1024;

/// Replaces the placeholders in `body`, up to [`MAX_REPLACED_BYTES`]. Also returns true if the body contains `$ARGUMENTS`.
///
/// This is done in a single pass, so that placeholders in `dir` or `arguments` are not replaced.
pub(crate) fn substitute(body: &str, dir: Option<&str>, arguments: &str) -> (String, bool) {
    let mut text = String::with_capacity(body.len() + arguments.len());
    let mut rest = body;
    let mut uses_arguments = false;
    let mut left = MAX_REPLACED_BYTES;
    let mut fits = |replacement: &str| {
        let fits = replacement.len() <= left;
        left -= if fits { replacement.len() } else { 0 };
        fits
    };
    while let Some(at) = rest.find(['{', '$']) {
        let (before, here) = rest.split_at(at);
        text.push_str(before);
        if let Some(after) = placeholder_end(here).filter(|_| !uses_arguments || fits(arguments)) {
            text.push_str(arguments);
            rest = after;
            uses_arguments = true;
        } else if let (Some(dir), Some(after)) =
            (dir, DIRECTORIES.iter().find_map(|name| here.strip_prefix(name)))
            && fits(dir)
        {
            text.push_str(dir);
            rest = after;
        } else {
            text.push_str(&here[..1]);
            rest = &here[1..];
        }
    }
    text.push_str(rest);
    (text, uses_arguments)
}

/// Returns the text after `$ARGUMENTS`. Other variables such as `$ARGUMENTS_FILE` and `$ARGUMENTS[0]` don't match.
fn placeholder_end(text: &str) -> Option<&str> {
    let after = text.strip_prefix(ARGUMENTS)?;
    let other = after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '[');
    (!other).then_some(after)
}

/// Escapes tags that would open or close the surrounding element, in any case and with any spaces.
pub(super) fn contain(text: &str) -> Cow<'_, str> {
    let mut contained = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices('<') {
        let name = text[at + 1..].trim_start();
        let name = name.strip_prefix('/').unwrap_or(name).trim_start();
        if name.get(..ELEMENT.len()).is_some_and(|name| name.eq_ignore_ascii_case(ELEMENT)) {
            contained.push_str(&text[copied..at]);
            contained.push_str("&lt;");
            copied = at + 1;
        }
    }
    if copied == 0 {
        return text.into();
    }
    contained.push_str(&text[copied..]);
    contained.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced() {
        for (body, expected, uses) in [
            ("run {baseDir}/a.sh", "run /s/a.sh", false),
            ("run \"${CLAUDE_SKILL_DIR}/a.sh\"", "run \"/s/a.sh\"", false),
            ("fix $ARGUMENTS now, $ARGUMENTS", "fix {baseDir} $1 now, {baseDir} $1", true),
            ("$ARGUMENTS_FILE $ARGUMENTS[0] ${ARGUMENTS} $1 $@ $HOME {basedir} {{baseDir}", "", false),
            ("${baseDir}", "$/s", false),
            ("{", "{", false),
            ("é$ARGUMENTS", "é{baseDir} $1", true),
        ] {
            let expected = match expected {
                "" => "$ARGUMENTS_FILE $ARGUMENTS[0] ${ARGUMENTS} $1 $@ $HOME {basedir} {/s",
                expected => expected,
            };
            assert_eq!(substitute(body, Some("/s"), "{baseDir} $1"), (expected.to_owned(), uses), "{body}");
        }
        let kept = "{baseDir} ${CLAUDE_SKILL_DIR} ";
        assert_eq!(substitute(&format!("{kept}$ARGUMENTS"), None, ""), (kept.to_owned(), true));
    }

    /// A body of 1 MiB with a long text behind the command would need gigabytes.
    #[test]
    fn placeholders_do_not_multiply() {
        let long = "x".repeat(300_000);
        let (text, uses) = substitute(&"$ARGUMENTS\n".repeat(1000), None, &long);
        assert_eq!((text.len(), uses), (long.len() + 1 + 999 * "$ARGUMENTS\n".len(), true));
        let short = "x".repeat(1024);
        let (text, _) = substitute(&"$ARGUMENTS".repeat(1000), None, &short);
        assert_eq!(text.matches('x').count(), 257 * 1024);
        assert_eq!(text.matches("$ARGUMENTS").count(), 1000 - 257);
        let (text, _) = substitute(&"{baseDir}${CLAUDE_SKILL_DIR}".repeat(1000), Some(&short), "");
        assert_eq!(text.matches('x').count(), 256 * 1024);
        assert!(text.ends_with("{baseDir}${CLAUDE_SKILL_DIR}"));
    }

    #[test]
    fn tags_of_the_surrounding_element_are_escaped() {
        for (text, expected) in [
            ("plain <b>text</b>", "plain <b>text</b>"),
            ("a</skill_content>b", "a&lt;/skill_content>b"),
            ("</SKILL_content >", "&lt;/SKILL_content >"),
            ("< / skill_content>", "&lt; / skill_content>"),
            ("<\n/skill_content>", "&lt;\n/skill_content>"),
            ("<skill_content name=\"x\">", "&lt;skill_content name=\"x\">"),
            ("<<skill_content", "<&lt;skill_content"),
            ("</skill_conten", "</skill_conten"),
            ("</skill_conteñt>", "</skill_conteñt>"),
        ] {
            assert_eq!(contain(text), expected, "{text:?}");
        }
    }
}
