//! [`FirstWords`]: how the user began, for titles of sessions.

/// How much of a prompt is kept for a title, in characters.
const FIRST_WORDS_CHARS: usize = 80;

/// The beginning of the message that our text was put in front of, for a title that would have been ours alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstWords {
    words: Option<String>,
    /// Our text was replayed; the words of its message come next.
    follow: bool,
}

impl FirstWords {
    /// Keeps the words of the message that our text stands in front of, unless there was one before.
    pub(crate) fn begin_with(&mut self, words: &str) {
        if self.words.is_none() {
            let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
            self.words = Some(line.chars().take(FIRST_WORDS_CHARS).collect());
        }
    }

    /// They, on one line.
    pub(crate) fn words(&self) -> Option<&str> {
        self.words.as_deref()
    }

    /// A part of a message is replayed, with text of ours in it or not; `clean` is what the client sees of it.
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
