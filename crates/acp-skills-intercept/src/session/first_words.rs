//! [`FirstWords`]: how the user began, for titles of sessions.

/// How much of a prompt is kept, in characters: to tell what in a title is the user's.
const KEPT_CHARS: usize = 500;
/// How much of it makes a title, in characters.
const TITLE_CHARS: usize = 80;

/// The beginning of the message that our text was added to, for a title that would have been ours alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstWords {
    words: Option<String>,
    /// Our text was replayed; the words of its message come next.
    follow: bool,
}

impl FirstWords {
    /// Keeps the words of the message that our text is added to, unless there was one before.
    pub(crate) fn begin_with(&mut self, words: &str) {
        if self.words.is_none() {
            self.words = Some(line(words));
        }
    }

    /// They, on one line.
    pub(crate) fn words(&self) -> Option<&str> {
        self.words.as_deref()
    }

    /// A title made of the user's words.
    pub(crate) fn title(words: &str) -> String {
        words.chars().take(TITLE_CHARS).collect()
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

fn line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(KEPT_CHARS).collect()
}
