//! Adds marks to text that is injected into prompts. This is used to remove the text later, and to restore the command if the
//! text represents a command.
//!
//! ```text
//! <acp-skills-proxy:0123abcd7f6e5d4c>
//! …
//! </acp-skills-proxy:0123abcd7f6e5d4c>
//! ```
//!
//! The first eight digits are derived from the text and a [secret](MarkKey), and the other eight are a checksum. The same text
//! always has the same marks, so that the provider of the model can reuse what it has cached in an earlier session. But a skill
//! can't guess the marks around its text. The checksum is used to verify marks from earlier versions, or from another proxy in the
//! chain. If it is wrong, the text belongs to the user. Marks contain no spaces, so they survive agents that merge, flatten or split
//! prompts.

mod key;

use std::ops::Range;

use serde_json::{Value, json};

pub use self::key::MarkKey;
use crate::slash_command::SlashCommand;

/// The name in every mark, after the angle bracket or the slash. No JSON serializer escapes any of its characters.
pub(crate) const NAME: &str = "acp-skills-proxy:";
/// The number of hexadecimal digits after the name.
pub(crate) const DIGITS: usize = 16;

const TYPED: &str = "<typed>";
const TYPED_END: &str = "</typed>";
const REST: &str = "<rest>";
const REST_END: &str = "</rest>";

/// The maximum length of the arguments that are repeated for truncated titles, in characters.
const MAX_REST_CHARS: usize = 200;
/// The maximum length of a command with the white space around it, in characters. The rest is dropped.
const MAX_HEAD_CHARS: usize = 300;

/// The marks around one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    number: u32,
}

impl Mark {
    /// Returns the mark with this number.
    pub fn new(number: u32) -> Self {
        Self { number }
    }

    /// Returns the opening mark.
    pub fn open(self) -> String {
        format!("<{NAME}{}>", self.id())
    }

    /// Returns the closing mark.
    pub fn close(self) -> String {
        format!("</{NAME}{}>", self.id())
    }

    /// Returns `text` between the marks. It ends with a newline, because some agents join the blocks of a prompt without a
    /// separator.
    pub fn wrap(self, text: &str) -> String {
        self.around(&without_marks(text))
    }

    /// Returns `text`, which contains no mark, between the marks.
    fn around(self, text: &str) -> String {
        format!("{}\n{text}\n{}\n", self.open(), self.close())
    }

    fn id(self) -> String {
        format!("{:08x}{:08x}", self.number, check(self.number))
    }

    /// Parses an id. Returns `None` if the checksum is wrong.
    fn read(id: &str) -> Option<Self> {
        let mark = Self { number: u32::from_str_radix(id.get(..DIGITS / 2)?, 16).ok()? };
        (mark.id() == id).then_some(mark)
    }
}

/// Changes everything in a text that looks like a mark.
fn without_marks(text: &str) -> String {
    let text = text.replace(&format!("<{NAME}"), "<acp-skills_proxy:");
    text.replace(&format!("</{NAME}"), "</acp-skills_proxy:")
}

/// Returns the checksum of a number. The algorithm should never be changed, because agents store marks in the history.
fn check(number: u32) -> u32 {
    // These are the last steps of SplitMix64. We use them to spread each bit of the number over all bits of the result.
    let mut bits = u64::from(number) ^ 0x0061_6370_2d73_6b69;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits >> 32) as u32
}

/// The next mark in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// An opening mark and its span.
    Open(Mark, Range<usize>),
    /// A closing mark and its span.
    Close(Mark, Range<usize>),
    /// The text ends within what may be a mark, which begins at this offset.
    Cut(usize),
    /// No mark was found.
    Nothing,
}

impl Next {
    /// Finds the next mark in `text` at or after `from`.
    pub(crate) fn find(text: &str, from: usize) -> Self {
        let bytes = text.as_bytes();
        memchr::memchr_iter(b'<', &bytes[from..])
            .find_map(|at| Self::read(text, from + at))
            .unwrap_or(Self::Nothing)
    }

    /// Reads the mark at `start`, the offset of an angle bracket. Returns `None` if it is not a mark.
    fn read(text: &str, start: usize) -> Option<Self> {
        let rest = &text[start + 1..];
        let (is_close, name) = rest.strip_prefix('/').map_or((false, rest), |rest| (true, rest));
        let common = name.bytes().zip(NAME.bytes()).take_while(|(a, b)| a == b).count();
        if common < NAME.len() {
            return (common == name.len()).then_some(Self::Cut(start));
        }
        let id = &name[NAME.len()..];
        let digits =
            id.bytes().take(DIGITS).take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
        if digits < DIGITS {
            return (digits == id.len() && may_become_id(id)).then_some(Self::Cut(start));
        }
        let mark = Mark::read(&id[..DIGITS])?;
        match id.as_bytes().get(DIGITS) {
            None => Some(Self::Cut(start)),
            Some(b'>') => {
                let span = start..text.len() - id.len() + DIGITS + 1;
                Some(if is_close { Self::Close(mark, span) } else { Self::Open(mark, span) })
            }
            Some(_) => None,
        }
    }
}

/// Returns true if an id can begin with these digits.
fn may_become_id(digits: &str) -> bool {
    let Some((number, rest)) = digits.split_at_checked(DIGITS / 2) else { return true };
    let number = u32::from_str_radix(number, 16);
    number.is_ok_and(|number| format!("{:08x}", check(number)).starts_with(rest))
}

/// Returns true if a truncated mark has at least one digit of the checksum, and all of these digits are right.
pub(crate) fn is_verified(piece: &str) -> bool {
    piece.split_once(NAME).is_some_and(|(_, id)| id.len() > DIGITS / 2 && may_become_id(id))
}

/// Returns true if the text begins with a valid mark.
pub fn begins_with_ours(text: &str) -> bool {
    matches!(Next::find(text, 0), Next::Open(_, span) if span.start == 0)
}

/// Returns a content block of a prompt with the injected text.
pub(crate) fn block(text: &str) -> Value {
    // Agents ignore the audience for now, but we set it anyway, since this block is only for the model.
    json!({ "type": "text", "text": text, "annotations": { "audience": ["assistant"] } })
}

/// Returns the element used to store the typed command, so that the command can be restored later.
pub(crate) fn element(command: &SlashCommand) -> String {
    let mut text =
        format!("{TYPED}{}", escape(&command.head.chars().take(MAX_HEAD_CHARS).collect::<String>()));
    if !command.rest.is_empty() {
        let rest: String = command.rest.chars().take(MAX_REST_CHARS).collect();
        text += REST;
        text += &escape(&rest);
        text += REST_END;
    }
    text + TYPED_END
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Returns the content of the element at the start of the injected text. The text may be truncated.
fn typed(ours: &str) -> Option<&str> {
    let typed = ours.trim_start().strip_prefix(TYPED)?;
    Some(typed.split_once(TYPED_END).map_or(typed, |(typed, _)| typed))
}

/// Returns the command that the injected text represents, without the arguments, which follow in the user's own text. Returns an
/// empty string if the text represents no command.
pub(crate) fn command(ours: &str) -> String {
    typed(ours)
        .map(|typed| unescape(typed.split_once(REST).map_or(typed, |(head, _)| head)))
        .unwrap_or_default()
}

/// Returns true if the injected text represents a command with arguments.
pub(crate) fn has_arguments(ours: &str) -> bool {
    typed(ours).is_some_and(|typed| typed.contains(REST))
}

/// Returns the command stored in a truncated text from the proxy, including the arguments.
pub(crate) fn cut_off(ours: &str) -> String {
    let Some(typed) = typed(ours) else { return String::new() };
    let text = typed.replacen(REST, "", 1).replacen(REST_END, "", 1);
    // The text may end in the middle of a tag or an entity, so we drop anything that is incomplete.
    let text = text.split_once('<').map_or(text.as_str(), |(whole, _)| whole);
    let text = match text.rsplit_once('&') {
        Some((whole, entity)) if !entity.contains(';') => whole,
        _ => text,
    };
    unescape(text)
}

#[cfg(test)]
mod tests {
    use acp_skills_wire::Node;

    use super::*;

    #[test]
    fn marks_are_found_by_their_checksum() {
        let mark = Mark::new(0x0123_abcd);
        // This should never change, since agents store these marks in their sessions.
        assert_eq!(mark.open(), "<acp-skills-proxy:0123abcd07757998>");
        let open = mark.open();
        let close = mark.close();
        let other = Mark::new(7).open();
        for (text, expected) in [
            (open.clone(), Next::Open(mark, 0..35)),
            (format!("ä<{open}>"), Next::Open(mark, 3..38)),
            (format!("{close}{open}"), Next::Close(mark, 0..36)),
            (format!("<acp-skills-proxy:{other}"), Next::Open(Mark::new(7), 18..53)),
            // A user could have written these, so they are not marks.
            ("<acp-skills-proxy>".to_owned(), Next::Nothing),
            ("a < b".to_owned(), Next::Nothing),
            (open.to_uppercase(), Next::Nothing),
            (open.replace("abcd", "abcc"), Next::Nothing),
            (open.replace("abcd", "abCd"), Next::Nothing),
            (open.replace('>', " >"), Next::Nothing),
            (format!("<acp-skills-proxy:{}>", "0".repeat(16)), Next::Nothing),
            (format!("<acp-skills-proxy:{}", "0123abcd00"), Next::Nothing),
            (format!("<acp-skills-proxy:{}", "0123abcg"), Next::Nothing),
            (format!("{open}x").replace('>', ""), Next::Nothing),
            (String::new(), Next::Nothing),
        ] {
            assert_eq!(Next::find(&text, 0), expected, "{text}");
        }
        for end in 1..open.len() {
            assert_eq!(Next::find(&format!("x{}", &open[..end]), 0), Next::Cut(1), "{end}");
        }
        for end in 1..close.len() {
            assert_eq!(Next::find(&close[..end], 0), Next::Cut(0), "{end}");
        }
        assert!(begins_with_ours(&mark.wrap("x")) && !begins_with_ours(" <acp-skills-proxy>"));
    }

    #[test]
    fn text_between_marks_contains_no_mark() {
        let mark = Mark::new(1);
        let inside = format!("{}{}<acp-skills-proxy>", mark.open(), Mark::new(2).close());
        let wrapped = mark.wrap(&inside);
        let open = mark.open().len();
        let close = mark.close().len();
        assert_eq!(
            Next::find(&wrapped, open),
            Next::Close(mark, wrapped.len() - 1 - close..wrapped.len() - 1)
        );
        assert!(wrapped.contains("<acp-skills-proxy>"), "{wrapped}");
    }

    #[test]
    fn commands_survive_truncation() {
        let blocks = br#"[{"text":"/a <b> & \"c\""}]"#;
        let typed = SlashCommand::read(Node::parse(blocks).unwrap()).unwrap();
        let text = element(&typed);
        assert_eq!(text, "<typed>/a <rest>&lt;b&gt; &amp; \"c\"</rest></typed>");
        assert_eq!((command(&text).as_str(), cut_off(&text).as_str()), ("/a ", "/a <b> & \"c\""));
        for end in 0..text.len() {
            let whole = cut_off(&text[..end]);
            assert!("/a <b> & \"c\"".starts_with(&whole), "{whole}");
        }
        assert_eq!(cut_off(" <typed>/a <rest>&lt;b…"), "/a <b…");
        assert_eq!(command("\n<available_skills>"), "");
    }
}
