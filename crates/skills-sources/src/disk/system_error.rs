//! The text of a system's error.

use std::fmt::Display;

/// Returns the text of a system's error as the start or the middle of a sentence: without its number, and in lower case.
///
/// ```
/// use skills_sources::disk::error_text;
///
/// assert_eq!(error_text(&"No such file or directory (os error 2)"), "no such file or directory");
/// ```
pub fn error_text(error: &impl Display) -> String {
    let text = error.to_string();
    let text = match text.rsplit_once(" (os error ") {
        // On Windows, the text is a sentence.
        Some((text, number)) if number.ends_with(')') => text.trim_end_matches('.'),
        _ => &text,
    };
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}
