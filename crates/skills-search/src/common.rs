//! [`is_common`]: words that are in prompts of all kinds, so a text doesn't fit a prompt because it has them.
//!
//! In a search over few texts, the frequency of a word in the texts doesn't tell if it is common.

/// Common words in lower case: words of general English, and words that are in most prompts about code.
const COMMON: &str = include_str!("common.txt");

/// Returns true if a word, in lower case, is a form of a common word, a number or a single letter.
pub fn is_common(word: &str) -> bool {
    word.len() < 2
        || word.bytes().all(|byte| byte.is_ascii_digit())
        || COMMON.split_ascii_whitespace().any(|common| is_form(word, common))
}

/// Returns true if `word` is a regular form of the common word, such as `files` of `file` or `running` of `run`.
fn is_form(word: &str, common: &str) -> bool {
    let Some(end) = word.strip_prefix(common) else {
        let rest = |last: char| common.strip_suffix(last).and_then(|begin| word.strip_prefix(begin));
        return rest('e') == Some("ing") || matches!(rest('y'), Some("ies" | "ied"));
    };
    let doubled = common.chars().next_back().and_then(|last| end.strip_prefix(last));
    matches!(end, "" | "s" | "es" | "d" | "ed" | "ing" | "ly" | "er" | "ers")
        || matches!(doubled, Some("ing" | "ed" | "er"))
}

#[cfg(test)]
mod tests {
    use super::is_common;

    #[test]
    fn forms_of_common_words_are_common() {
        for word in
            ["file", "files", "running", "creating", "created", "checks", "copies", "tried", "x", "42"]
        {
            assert!(is_common(word), "{word}");
        }
        for word in ["kubernetes", "review", "invoice", "pdf", "queries", "noise", "翻译", ""] {
            assert_eq!(is_common(word), word.is_empty(), "{word}");
        }
    }
}
