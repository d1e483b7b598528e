//! Makes text safe to show: the one place that knows what a reader must not be shown as it is.
//!
//! Names, descriptions, paths and messages come from strangers. On a terminal, in a log or in an editor's menu a control
//! character moves the cursor or rings, a bidirectional one reorders what stands around it, and one without width makes
//! two different names look alike. Whatever is printed or shown goes through here: [`shown`] for people, who should see
//! that something is there; [`sanitize`] where only clean text counts, such as names and catalogs.
//!
//! Joiners and variation selectors are parts of words and emoji where they belong, and hidden everywhere else: U+200C and
//! U+200D between letters of the scripts that need them, U+200D between two pictures, a selector behind what it selects.

use std::{
    borrow::Cow,
    path::{MAIN_SEPARATOR, Path},
};

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// `text` in one line: line breaks and tabs become spaces, and every other character that would not be seen, or that would
/// change how the rest is seen, becomes its escape, such as `\u{1b}`.
///
/// ```
/// use skills_core::text::shown;
///
/// assert_eq!(shown("code-review"), "code-review");
/// assert_eq!(shown("\u{1b}[2Jcode\nreview\u{202e}"), r"\u{1b}[2Jcode review\u{202e}");
/// assert_eq!(shown("نمی‌خواهم 👩‍💻"), "نمی‌خواهم 👩‍💻");
/// ```
pub fn shown(text: &str) -> Cow<'_, str> {
    replace(
        text,
        |c, replaced| if is_break(c) || c == '\t' { replaced.push(' ') } else { escape(c, replaced) },
    )
}

/// The same for a text of several lines: line breaks and tabs stay, and every kind of line break becomes `\n`.
///
/// ```
/// use skills_core::text::shown_lines;
///
/// assert_eq!(shown_lines("a\tb\r\nc\rd\u{7}"), "a\tb\nc\nd\\u{7}");
/// ```
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    replace(text, |c, replaced| match c {
        '\t' => replaced.push('\t'),
        c if is_break(c) => replaced.push('\n'),
        c => escape(c, replaced),
    })
}

/// A path in one line; what is not Unicode in it becomes U+FFFD.
pub fn shown_path(path: &Path) -> String {
    let path = one_separator(path.to_string_lossy(), MAIN_SEPARATOR);
    match shown(&path) {
        Cow::Borrowed(_) => path.into_owned(),
        Cow::Owned(shown) => shown,
    }
}

/// On Windows a path may have two kinds of separators, and has when what somebody wrote was joined to what the system says.
fn one_separator(path: Cow<'_, str>, main: char) -> Cow<'_, str> {
    if main == '\\' && path.contains('\\') && path.contains('/') {
        Cow::Owned(path.replace('/', "\\"))
    } else {
        path
    }
}

/// `text` in one line without what [`shown`] escapes.
pub fn sanitize(text: &str) -> String {
    let replaced = replace(text, |c, replaced| {
        if is_break(c) || c == '\t' {
            replaced.push(' ');
        }
    });
    replaced.into_owned()
}

/// Whether `text` has a character that is not seen, or that changes how others are, beside line breaks and tabs.
pub(crate) fn has_hidden(text: &str) -> bool {
    hidden(text).any(|(_, c)| !is_break(c) && c != '\t')
}

fn escape(c: char, replaced: &mut String) {
    replaced.extend(c.escape_unicode());
}

/// `text` with `with(c)` in place of each character that is hidden, a tab or a line break, of which `\r\n` is one.
fn replace(text: &str, mut with: impl FnMut(char, &mut String)) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        // Nearly every text.
        return Cow::Borrowed(text);
    }
    let mut replaced = String::new();
    let mut copied = 0;
    for (at, c) in hidden(text) {
        replaced.push_str(&text[copied..at]);
        copied = at + c.len_utf8();
        if c != '\r' || !text[copied..].starts_with('\n') {
            with(c, &mut replaced);
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    replaced.push_str(&text[copied..]);
    Cow::Owned(replaced)
}

/// The characters of `text` that must not be shown as they are, and where they are.
pub(crate) fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    // What is hidden itself does not make a joiner behind it part of a word.
    let mut before = None;
    text.char_indices().filter(move |&(at, c)| {
        let is_hidden = is_hidden(c, before, || text[at + c.len_utf8()..].chars().next());
        before = Some(c).filter(|_| !is_hidden);
        is_hidden
    })
}

/// Whether `c` breaks a line, anywhere.
fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_hidden(c: char, before: Option<char>, after: impl FnOnce() -> Option<char>) -> bool {
    match c {
        ' '..='~' => false,
        '\u{200C}' => !is_word_joiner(before, after()),
        '\u{200D}' => {
            let after = after();
            !(is_word_joiner(before, after) || is_picture_joiner(before, after))
        }
        '\u{FE00}'..='\u{FE0F}' => !before.is_some_and(has_variations),
        '\u{E0100}'..='\u{E01EF}' => !before.is_some_and(is_ideograph),
        c => is_invisible(c),
    }
}

/// Whether `c` is invisible wherever it stands.
fn is_invisible(c: char) -> bool {
    match c.general_category() {
        GeneralCategory::Control | GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator => {
            true
        }
        // But for the signs around numbers in Arabic, Syriac and Kaithi.
        GeneralCategory::Format => !matches!(
            c,
            '\u{600}'
                ..='\u{605}'
                    | '\u{6DD}'
                    | '\u{70F}'
                    | '\u{890}'
                    | '\u{891}'
                    | '\u{8E2}'
                    | '\u{110BD}'
                    | '\u{110CD}'
        ),
        // Letters and marks without a form, and what is reserved for more of them.
        _ => matches!(c,
            '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{2065}' | '\u{3164}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}' | '\u{E0000}'..='\u{E0FFF}'),
    }
}

/// Whether a joiner between these is part of a word: between letters, or behind a mark (a virama), where it also ends one.
fn is_word_joiner(before: Option<char>, after: Option<char>) -> bool {
    let joins = |c: char| {
        let group = c.general_category_group();
        has_joiners(c)
            .then_some(group)
            .filter(|group| matches!(group, GeneralCategoryGroup::Letter | GeneralCategoryGroup::Mark))
    };
    match before.and_then(joins) {
        Some(GeneralCategoryGroup::Mark) => true,
        Some(_) => after.and_then(joins).is_some(),
        None => false,
    }
}

/// Whether `c` is in a block of a script in which joiners make a difference: Arabic and its relatives, those of India and
/// of its neighbours, Mongolian.
fn has_joiners(c: char) -> bool {
    matches!(c,
        '\u{600}'..='\u{109F}' | '\u{1700}'..='\u{18AF}' | '\u{1900}'..='\u{1CFF}' | '\u{A800}'..='\u{ABFF}'
        | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' | '\u{10A00}'..='\u{11FFF}' | '\u{1E900}'..='\u{1E95F}')
}

/// Whether a joiner between these makes one picture of two; a modifier or selector may end the first.
fn is_picture_joiner(before: Option<char>, after: Option<char>) -> bool {
    let is_picture = |c| matches!(c, '\u{2190}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}');
    before.is_some_and(|c| is_picture(c) || c == '\u{FE0F}') && after.is_some_and(is_picture)
}

/// Whether a variation selector behind `c` selects something.
fn has_variations(c: char) -> bool {
    match c {
        '0'..='9' | '#' | '*' => true,
        c if c.is_ascii() || matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}') => false,
        c => !matches!(
            c.general_category_group(),
            GeneralCategoryGroup::Other | GeneralCategoryGroup::Separator | GeneralCategoryGroup::Mark
        ),
    }
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn separators_of_paths() {
        for (path, windows) in [
            (r"C:\a/b\c.md", r"C:\a\b\c.md"),
            (r"\\?\C:\a/b", r"\\?\C:\a\b"),
            // As it was written.
            ("C:/a/b", "C:/a/b"),
            (r"C:\a\b", r"C:\a\b"),
            ("a", "a"),
        ] {
            assert_eq!(one_separator(path.into(), '\\'), windows);
            assert_eq!(one_separator(path.into(), '/'), path);
        }
    }

    #[test]
    fn what_is_shown() {
        for (text, one_line, lines) in [
            ("", "", ""),
            ("plain ASCII: ~!", "plain ASCII: ~!", "plain ASCII: ~!"),
            ("Größe, 漢字, ÉTÉ, हिन्दी", "Größe, 漢字, ÉTÉ, हिन्दी", "Größe, 漢字, ÉTÉ, हिन्दी"),
            ("two\nlines", "two lines", "two\nlines"),
            ("two\r\nlines\r\n", "two lines ", "two\nlines\n"),
            ("over\rwritten", "over written", "over\nwritten"),
            ("a\u{B}b\u{C}c\u{85}d\u{2028}e\u{2029}f", "a b c d e f", "a\nb\nc\nd\ne\nf"),
            ("a\tb", "a b", "a\tb"),
            ("\u{1b}[31mred\u{7}", r"\u{1b}[31mred\u{7}", r"\u{1b}[31mred\u{7}"),
            ("\u{1b}]0;title\u{9c}", r"\u{1b}]0;title\u{9c}", r"\u{1b}]0;title\u{9c}"),
            ("\u{9b}31m\0\u{8}\u{7f}", r"\u{9b}31m\u{0}\u{8}\u{7f}", r"\u{9b}31m\u{0}\u{8}\u{7f}"),
            ("user\u{202e}txt.exe", r"user\u{202e}txt.exe", r"user\u{202e}txt.exe"),
            (
                "\u{2066}a\u{2069}\u{200e}\u{61c}",
                r"\u{2066}a\u{2069}\u{200e}\u{61c}",
                r"\u{2066}a\u{2069}\u{200e}\u{61c}",
            ),
            (
                "re\u{200b}view\u{feff}\u{2060}",
                r"re\u{200b}view\u{feff}\u{2060}",
                r"re\u{200b}view\u{feff}\u{2060}",
            ),
            (
                "a\u{ad}b\u{34f}c\u{3164}\u{115f}",
                r"a\u{ad}b\u{34f}c\u{3164}\u{115f}",
                r"a\u{ad}b\u{34f}c\u{3164}\u{115f}",
            ),
            ("a\u{e0041}\u{e007f}", r"a\u{e0041}\u{e007f}", r"a\u{e0041}\u{e007f}"),
            // Joiners are part of these words and pictures …
            ("می\u{200c}خواهم", "می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("क्\u{200d}ष", "क्\u{200d}ष", "क्\u{200d}ष"),
            ("അവന്\u{200d} വന്നു", "അവന്\u{200d} വന്നു", "അവന്\u{200d} വന്നു"),
            (
                "👩\u{200d}💻 🏳\u{fe0f}\u{200d}🌈 👨🏽\u{200d}⚕\u{fe0f}",
                "👩\u{200d}💻 🏳\u{fe0f}\u{200d}🌈 👨🏽\u{200d}⚕\u{fe0f}",
                "👩\u{200d}💻 🏳\u{fe0f}\u{200d}🌈 👨🏽\u{200d}⚕\u{fe0f}",
            ),
            (
                "❤\u{fe0f} 1\u{fe0f}\u{20e3} 葛\u{e0100}",
                "❤\u{fe0f} 1\u{fe0f}\u{20e3} 葛\u{e0100}",
                "❤\u{fe0f} 1\u{fe0f}\u{20e3} 葛\u{e0100}",
            ),
            // … and of no other.
            ("re\u{200d}view\u{200c}", r"re\u{200d}view\u{200c}", r"re\u{200d}view\u{200c}"),
            ("می\u{200c}", r"می\u{200c}", r"می\u{200c}"),
            ("می\u{200c}\u{200c}خ", r"می\u{200c}\u{200c}خ", r"می\u{200c}\u{200c}خ"),
            ("👩\u{200c}💻 👩\u{200d}x", r"👩\u{200c}💻 👩\u{200d}x", r"👩\u{200c}💻 👩\u{200d}x"),
            (
                "a\u{fe0f} ❤\u{fe0f}\u{fe0e}\u{fe01}",
                "a\\u{fe0f} ❤\u{fe0f}\\u{fe0e}\\u{fe01}",
                "a\\u{fe0f} ❤\u{fe0f}\\u{fe0e}\\u{fe01}",
            ),
            (
                "x\u{e0100}葛\u{e0100}\u{e0101}",
                "x\\u{e0100}葛\u{e0100}\\u{e0101}",
                "x\\u{e0100}葛\u{e0100}\\u{e0101}",
            ),
        ] {
            assert_eq!(shown(text), one_line, "{text:?}");
            assert_eq!(shown_lines(text), lines, "{text:?}");
        }
    }

    #[test]
    fn what_is_left() {
        for (text, clean) in [
            ("code-review", "code-review"),
            ("a\nb\tc\u{85}d", "a b c d"),
            ("\u{1b}[1mre\u{200b}vi\u{200d}ew\u{202e}", "[1mreview"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        ] {
            assert_eq!(sanitize(text), clean, "{text:?}");
        }
        assert!(!has_hidden("a\nb\tc ü 👩\u{200d}💻"));
        assert!(has_hidden("a\u{200b}") && has_hidden("a\u{7}") && has_hidden("a\u{200d}b"));
        assert_eq!(shown_path(Path::new("/a\u{1b}b/c\nd")), r"/a\u{1b}b/c d");
    }

    /// What stands in files that are made to hide something, and what stands beside it in others.
    fn nasty() -> impl Strategy<Value = String> {
        let c = prop_oneof![
            4 => prop::char::range('\0', '\u{A0}'),
            4 => prop::char::range('\u{200A}', '\u{206F}'),
            2 => prop::char::range('\u{E0000}', '\u{E01EF}'),
            4 => prop::sample::select(vec![
                '\u{200C}', '\u{200D}', '\u{FE0F}', '\u{FE0E}', 'ی', 'خ', 'क', '्', '👩', '💻', '❤', '葛', '\u{FEFF}',
                '\u{61C}', '\u{AD}', '\u{34F}', '\u{3164}', '\u{180E}', '\u{FFF9}', '\u{1D173}', '\r', '\n', '🏽',
            ]),
            1 => any::<char>(),
        ];
        prop::collection::vec(c, 0..20).prop_map(|chars| chars.into_iter().collect())
    }

    /// By name and not by the rules above.
    fn is_bad(c: char) -> bool {
        c.is_control()
            || matches!(c,
                '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}'
                | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
                | '\u{E0000}'..='\u{E00FF}')
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in nasty()) {
            let (one_line, lines, clean) = (shown(&text), shown_lines(&text), sanitize(&text));
            prop_assert!(!one_line.contains(is_bad), "{:?}", one_line);
            prop_assert!(!lines.contains(|c| is_bad(c) && !matches!(c, '\n' | '\t')), "{:?}", lines);
            prop_assert!(!clean.contains(is_bad), "{:?}", clean);
            // A joiner or selector is never the first or the last thing, nor beside ASCII letters.
            for text in [&*one_line, &clean] {
                prop_assert!(!text.starts_with(['\u{200C}', '\u{200D}', '\u{FE0F}']), "{:?}", text);
                for (at, _) in text.match_indices(['\u{200C}', '\u{200D}']) {
                    prop_assert!(!text[..at].ends_with(|c: char| c.is_ascii()), "{:?}", text);
                }
            }
            prop_assert_eq!(shown(&one_line), &*one_line);
            prop_assert_eq!(shown_lines(&lines), &*lines);
            prop_assert_eq!(sanitize(&clean), &*clean);
            prop_assert_eq!(has_hidden(&one_line), false);
        }

        #[test]
        fn visible_text_is_kept(text in "[ -~À-ÿ一-龥ぁ-ん가-힣]{0,30}") {
            prop_assert_eq!(shown(&text), &*text);
            prop_assert!(matches!(shown(&text), Cow::Borrowed(_)));
        }
    }
}
