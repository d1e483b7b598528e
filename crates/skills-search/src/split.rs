//! [`split`]: splits text in any script into words.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// The class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of a word, like the letters and digits of most scripts.
    Letter,
    /// A character of a script without spaces between words. A word is a sequence of this many characters.
    Unspaced(usize),
    /// Everything else.
    Separator,
}

/// Calls `found` with each word in lower case.
///
/// A word is a run of letters and digits. Chinese, Japanese and Korean text is split into overlapping pairs of characters. For
/// Thai, Lao, Burmese and Khmer, it is split into groups of three, because their vowels are separate characters. This finds words
/// without a dictionary. Different encodings of the same character are normalized first.
///
/// ```
/// let mut words = Vec::new();
/// skills_search::split("Fills in C++ forms, 東京都", |word| words.push(word.to_owned()));
/// assert_eq!(words, ["fills", "in", "c++", "forms", "東京", "京都"]);
/// ```
pub fn split(text: &str, mut found: impl FnMut(&str)) {
    split_each(text, &mut found);
}

/// Splits a text. This is compiled once in this crate, with its optimizations.
fn split_each(text: &str, found: &mut dyn FnMut(&str)) {
    if text.is_ascii() {
        return split_ascii(text, found);
    }
    let text = match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        _ => Cow::Owned(text.nfkc().collect()),
    };
    let mut word = String::new();
    let mut unspaced: Option<usize> = None;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() && unspaced.is_none() {
            word.push(c.to_ascii_lowercase());
            continue;
        }
        // Keep `C#`, `C++` and `F#` as words.
        if matches!(c, '#' | '+') && word.chars().next_back().is_some_and(|c| c.is_alphabetic() || c == '+') {
            word.push(c);
            continue;
        }
        let class = class(c);
        let group = match class {
            Class::Unspaced(size) => Some(size),
            _ => None,
        };
        if group != unspaced || class == Class::Separator {
            flush(&mut word, unspaced, found);
            unspaced = group;
        }
        match class {
            // Most Russian texts have е instead of ё.
            Class::Letter if matches!(c, 'ё' | 'Ё') => word.push('е'),
            Class::Letter => word.extend(c.to_lowercase()),
            Class::Unspaced(_) => word.push(c),
            Class::Separator => {}
        }
    }
    flush(&mut word, unspaced, found);
}

/// Splits text that is mostly found in instructions, without decoding it.
fn split_ascii(text: &str, found: &mut dyn FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut lower = String::new();
    let mut start = 0;
    let mut end = 0;
    while start < bytes.len() {
        let mut has_upper_case = false;
        while let Some(&byte) = bytes.get(end) {
            let before = (end > start).then(|| bytes[end - 1]);
            let is_sign = matches!(byte, b'#' | b'+')
                && before.is_some_and(|before| before.is_ascii_alphabetic() || before == b'+');
            if !byte.is_ascii_alphanumeric() && !is_sign {
                break;
            }
            has_upper_case |= byte.is_ascii_uppercase();
            end += 1;
        }
        if has_upper_case {
            lower.clear();
            lower.push_str(&text[start..end]);
            lower.make_ascii_lowercase();
            found(&lower);
        } else if end > start {
            found(&text[start..end]);
        }
        start = end + 1;
        end = start;
    }
}

fn class(c: char) -> Class {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { Class::Letter } else { Class::Separator };
    }
    let is_letter =
        c.is_alphanumeric() || c.general_category_group() == GeneralCategoryGroup::Mark || c == '\u{30FC}';
    match c {
        _ if !is_letter => Class::Separator,
        '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30FF}'
        | '\u{3400}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => Class::Unspaced(2),
        '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' => Class::Unspaced(3),
        _ => Class::Letter,
    }
}

/// Reports the current run of characters and clears it.
fn flush(word: &mut String, unspaced: Option<usize>, found: &mut dyn FnMut(&str)) {
    if word.is_empty() {
        return;
    }
    let starts: Vec<usize> = match unspaced {
        None => Vec::new(),
        Some(_) => word.char_indices().map(|(at, _)| at).chain([word.len()]).collect(),
    };
    match unspaced {
        Some(size) if starts.len() > size + 1 => {
            for group in starts.windows(size + 1) {
                found(&word[group[0]..group[size]]);
            }
        }
        _ => found(word),
    }
    word.clear();
}

/// Returns true if `word` is a single character of a script whose words are indexed as pairs.
pub(crate) fn is_half_of_a_pair(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|c| class(c) == Class::Unspaced(2)) && chars.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_words() {
        for (text, expected) in [
            ("Code-Review, v2.1!", &["code", "review", "v2", "1"][..]),
            ("C++ and C#; a + b # c", &["c++", "and", "c#", "a", "b", "c"]),
            ("Größe ÉTÉ", &["größe", "été"]),
            ("代码ab审查。文", &["代码", "ab", "审查", "文"]),
            ("翻译文档", &["翻译", "译文", "文档"]),
            ("データ ﾃﾞｰﾀ", &["デー", "ータ", "デー", "ータ"]),
            ("코드 검토하기", &["코드", "검토", "토하", "하기"]),
            ("แปลภาษา", &["แปล", "ปลภ", "ลภา", "ภาษ", "าษา"]),
            ("ＰＤＦ e\u{301}te\u{301}", &["pdf", "été"]),
            ("हिन्दी में", &["हिन्दी", "में"]),
            ("", &[]),
        ] {
            let mut words = Vec::new();
            split(text, |word| words.push(word.to_owned()));
            assert_eq!(words, expected, "{text}");
        }
    }
}
