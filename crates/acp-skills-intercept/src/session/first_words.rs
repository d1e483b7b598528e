//! [`FirstWords`]: the beginning of the user's first message, for titles of sessions.

/// The maximum length of the words that are kept, in characters. They are compared with titles of the agent.
const KEPT_CHARS: usize = 500;
/// The maximum length of a title, in characters.
const TITLE_CHARS: usize = 80;

/// The beginning of the message that our text was added to. It replaces titles that have only our text.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstWords {
    words: Option<String>,
    /// True if our text was replayed, and the user's words in the same message come next.
    follow: bool,
}

impl FirstWords {
    /// Keeps the user's words in the first message that our text is added to.
    pub(crate) fn begin_with(&mut self, words: &str) {
        if self.words.is_none() {
            self.words = Some(line(words));
        }
    }

    /// Returns the words on one line.
    pub(crate) fn words(&self) -> Option<&str> {
        self.words.as_deref()
    }

    /// Makes a title of the user's words.
    pub(crate) fn title(words: &str) -> String {
        words.chars().take(TITLE_CHARS).collect()
    }

    /// Remembers that a part of a message was replayed. `clean` is the part without our text.
    pub(crate) fn replayed(&mut self, has_our_text: bool, clean: &str) {
        if has_our_text {
            self.follow = self.words.is_none();
        }
        if self.follow && !clean.trim().is_empty() {
            self.follow = false;
            self.begin_with(clean);
        }
    }
}

fn line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(KEPT_CHARS).collect()
}
