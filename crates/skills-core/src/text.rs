//! Makes untrusted text safe to display.
//!
//! Names, descriptions, paths and messages can contain characters that mislead a reader. On a terminal, in a log or in a menu
//! of an editor, a control character can move the cursor, a bidirectional character can reorder the text around it, and a
//! zero-width character can make two different names look the same. All output goes through this module: [`shown`] escapes
//! such characters, so that a person can see them, and [`sanitize`] removes them, for names and catalogs. Where text is
//! displayed as Markdown, [`markdown`] and the functions beside it also escape Markdown.
//!
//! Joiners and variation selectors are valid parts of words and emoji, so they are kept in the right context and treated as
//! hidden everywhere else. They are kept as follows: U+200C and U+200D between letters of scripts that use them, U+200D
//! between two pictographs, and a variation selector after a character that has variations.

mod markdown;

use std::{
    borrow::Cow,
    path::{MAIN_SEPARATOR, Path},
};

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

pub use self::markdown::{markdown, markdown_code, markdown_message, markdown_path};

/// Escapes `text` for display on one line.
///
/// Line breaks and tabs become spaces. Each other character that is invisible, or that changes how the rest is displayed, is
/// replaced by an escape such as `\u{1b}`.
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

/// Escapes `text` for display on several lines. Tabs are kept, each kind of line break becomes `\n`, and other characters are
/// escaped as in [`shown`].
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

/// Escapes a line of a file for review, without its line break. Only spaces and tabs are kept. Other kinds of line breaks and spaces are
/// escaped, because a program that runs the file may not treat them as such, and then a part of a comment would look like code, or the
/// reverse.
///
/// ```
/// use skills_core::text::shown_line;
///
/// assert_eq!(shown_line("# a\rb\u{2028}c\u{a0}d"), r"# a\u{d}b\u{2028}c\u{a0}d");
/// ```
pub fn shown_line(line: &str) -> Cow<'_, str> {
    let shown = replace(line, |c, replaced| if c == '\t' { replaced.push(c) } else { escape(c, replaced) });
    if !shown.contains(is_odd_space) {
        return shown;
    }
    let mut replaced = String::with_capacity(shown.len());
    for c in shown.chars() {
        if is_odd_space(c) { escape(c, &mut replaced) } else { replaced.push(c) }
    }
    Cow::Owned(replaced)
}

/// Returns true if a character looks like a space, but is none for a shell.
fn is_odd_space(c: char) -> bool {
    const BRAILLE_BLANK: char = '\u{2800}';
    c == BRAILLE_BLANK || c.is_whitespace() && !matches!(c, ' ' | '\t')
}

/// Replaces each character outside of ASCII that looks like a space by a space. The number of characters stays the same.
#[cfg(feature = "scan")]
pub(crate) fn plain_spaces(text: &str) -> Cow<'_, str> {
    let is_other = |c: char| !c.is_ascii() && is_odd_space(c);
    if text.is_ascii() || !text.contains(is_other) { text.into() } else { text.replace(is_other, " ").into() }
}

/// Escapes a path for display on one line, as in [`shown`]. White space other than a space is escaped as well, because a path with a space
/// instead can exist, too. The same goes for a backslash that is no separator. Invalid Unicode becomes U+FFFD.
pub fn shown_path(path: &Path) -> String {
    let path = one_separator(path.to_string_lossy(), MAIN_SEPARATOR);
    let is_unclear = |c: char| c.is_control() || is_odd_space(c) || c == '\\' && MAIN_SEPARATOR != c;
    let path = if path.contains(is_unclear) {
        let escaped = |c: char| if is_unclear(c) { c.escape_default().to_string() } else { c.to_string() };
        Cow::Owned(path.chars().map(escaped).collect())
    } else {
        path
    };
    match shown(&path) {
        Cow::Borrowed(_) => path.into_owned(),
        Cow::Owned(shown) => shown,
    }
}

/// Replaces `/` by `\` in a Windows path that contains both, for example after joining a path from a file to one from the
/// system.
fn one_separator(path: Cow<'_, str>, main: char) -> Cow<'_, str> {
    if main == '\\' && path.contains('\\') && path.contains('/') {
        Cow::Owned(path.replace('/', "\\"))
    } else {
        path
    }
}

/// Returns `text` on one line, without the characters that [`shown`] escapes. Line breaks and tabs become spaces.
pub fn sanitize(text: &str) -> String {
    let replaced = replace(text, |c, replaced| {
        if is_break(c) || c == '\t' {
            replaced.push(' ');
        }
    });
    replaced.into_owned()
}

/// Returns true if `text` contains a character that [`shown`] escapes.
pub(crate) fn has_hidden(text: &str) -> bool {
    hidden(text).any(|(_, c)| !is_break(c) && c != '\t')
}

fn escape(c: char, replaced: &mut String) {
    replaced.extend(c.escape_unicode());
}

/// Calls `with` for each hidden character, tab or line break of `text`, to append its replacement. `\r\n` counts as one line
/// break.
fn replace(text: &str, mut with: impl FnMut(char, &mut String)) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        // Nearly all texts are printable ASCII.
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

/// Iterates over the characters of `text` that must not be displayed unescaped, with their byte offsets. These include line
/// breaks and tabs.
pub(crate) fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    // A hidden character is not a valid context for a joiner after it.
    let mut before = None;
    text.char_indices().filter(move |&(at, c)| {
        let is_hidden = is_hidden(c, before, || text[at + c.len_utf8()..].chars().next());
        before = Some(c).filter(|_| !is_hidden);
        is_hidden
    })
}

/// Returns true if `c` is a line break.
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

/// Returns true if `c` is invisible in every context.
fn is_invisible(c: char) -> bool {
    match c.general_category() {
        GeneralCategory::Control | GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator => {
            true
        }
        // Format characters are invisible, except for the signs around numbers in Arabic, Syriac and Kaithi.
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
        // These are invisible letters and marks, and code points that are reserved for such characters.
        _ => matches!(c,
            '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{2065}' | '\u{3164}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}' | '\u{E0000}'..='\u{E0FFF}'),
    }
}

/// Returns true if a joiner between these characters is part of a word: between two letters, or after a mark such as a
/// virama. After a mark, it may also be at the end of the word.
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

/// Returns true if `c` is in a block of a script that uses joiners: Arabic and related scripts, the scripts of South and
/// Southeast Asia, and Mongolian.
fn has_joiners(c: char) -> bool {
    matches!(c,
        '\u{600}'..='\u{109F}' | '\u{1700}'..='\u{18AF}' | '\u{1900}'..='\u{1CFF}' | '\u{A800}'..='\u{ABFF}'
        | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' | '\u{10A00}'..='\u{11FFF}' | '\u{1E900}'..='\u{1E95F}')
}

/// Returns true if a joiner between these characters combines two pictographs. The first one may end with a modifier or a
/// variation selector.
fn is_picture_joiner(before: Option<char>, after: Option<char>) -> bool {
    let is_picture = |c| matches!(c, '\u{2190}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}');
    before.is_some_and(|c| is_picture(c) || c == '\u{FE0F}') && after.is_some_and(is_picture)
}

/// Returns true if `c` can have a variation selector after it.
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

/// Cuts `text` to at most `cap` characters including a final `…`, at the end of a word if possible. A word of ASCII letters and digits is
/// only cut if it is longer than half of `cap`, because a short part of it can have another meaning, such as a command.
pub fn shorten(text: &str, cap: usize) -> Cow<'_, str> {
    if text.chars().count() <= cap {
        return text.into();
    }
    let end = text.char_indices().nth(cap.saturating_sub(1)).map_or(text.len(), |(index, _)| index);
    let (mut head, rest) = text.split_at(end);
    if !rest.starts_with(char::is_whitespace) {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // Text without spaces, such as Chinese, can be cut between any two characters.
        let space = head.rfind(char::is_whitespace).filter(|space| *space >= head.len() / 2);
        let word = if rest.starts_with(is_word) { head.trim_end_matches(is_word).len() } else { head.len() };
        let end = Some(space.unwrap_or(word)).filter(|end| *end >= head.len() / 2);
        head = &head[..end.unwrap_or(head.len())];
    }
    format!("{}…", head.trim_end_matches(|c: char| c.is_whitespace() || ",;:.-–—(".contains(c))).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_windows_path_gets_one_kind_of_separator() {
        for (path, windows) in [
            (r"C:\a/b\c.md", r"C:\a\b\c.md"),
            (r"\\?\C:\a/b", r"\\?\C:\a\b"),
            // A path with just one kind of separator should be unchanged.
            ("C:/a/b", "C:/a/b"),
            (r"C:\a\b", r"C:\a\b"),
            ("a", "a"),
        ] {
            assert_eq!(one_separator(path.into(), '\\'), windows);
            assert_eq!(one_separator(path.into(), '/'), path);
        }
    }

    #[test]
    fn hidden_characters_are_escaped() {
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
            // Joiners are part of these words and pictographs.
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
            // Joiners are not part of these texts.
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
    fn hidden_characters_are_removed() {
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
        for (path, expected) in
            [("/a\u{1b}b/c\nd e", r"/a\u{1b}b/c\nd e"), ("/a\tb\u{2028}c\u{a0}d", r"/a\tb\u{2028}c\u{a0}d")]
        {
            assert_eq!(shown_path(Path::new(path)), expected);
        }
        if MAIN_SEPARATOR == '/' {
            assert_eq!(shown_path(Path::new(r"/a\tb")), r"/a\\tb");
        }
    }

    /// Generates texts with many hidden characters, and with characters next to which some of them are valid.
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

    /// Lists characters that must never be displayed, independently of the implementation.
    fn is_bad(c: char) -> bool {
        c.is_control()
            || matches!(c,
                '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}'
                | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
                | '\u{E0000}'..='\u{E00FF}')
    }

    proptest! {
        #[test]
        fn no_hidden_character_is_left(text in nasty()) {
            let one_line = shown(&text);
            let lines = shown_lines(&text);
            let clean = sanitize(&text);
            prop_assert!(!one_line.contains(is_bad), "{:?}", one_line);
            prop_assert!(!lines.contains(|c| is_bad(c) && !matches!(c, '\n' | '\t')), "{:?}", lines);
            prop_assert!(!clean.contains(is_bad), "{:?}", clean);
            // A joiner or selector must not be at the beginning of the text, or after an ASCII character.
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
