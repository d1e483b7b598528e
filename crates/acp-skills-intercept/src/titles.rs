//! Removes the injected text from titles of sessions and subagents, which agents derive from the first prompt.

use acp_skills_wire::{Edit, Message, Node};

use crate::{
    Interceptor,
    commands::agents,
    outputs::Pass,
    session::{Session, first_words::FirstWords},
    strip,
};

impl Interceptor {
    /// Cleans the title in an update of a session's information.
    pub(crate) fn session_info(&mut self, message: &Message<'_>, update: Node<'_>) -> Pass {
        let session = message.session_id().and_then(|id| self.sessions.find(&id));
        let words = first_words(session.as_deref());
        let Some((title, text)) = polluted_title(update, session.as_deref(), words.as_deref()) else {
            return Pass::Untouched;
        };
        let mut edit = Edit::new();
        if !clean_title(&mut edit, update, title, text, words) && update.members().count() == 2 {
            // The update only contained the title, so we can drop it.
            return Pass::Consumed;
        }
        Pass::Edited(edit.apply(message.line))
    }

    /// Cleans the title of a subagent, which may be the start of what it was told.
    pub(crate) fn subagent(&mut self, message: &Message<'_>, update: Node<'_>) -> Pass {
        let Some(title) = update.get("title") else { return Pass::Untouched };
        let session = message.session_id().and_then(|id| self.sessions.find(&id));
        let words = first_words(session.as_deref());
        let clean = title.as_text().and_then(|said| strip::title(&said, words.as_deref()));
        let Some(clean) = clean else { return Pass::Untouched };
        let mut edit = Edit::new();
        if clean.is_empty() {
            edit.remove(update, "title");
        } else {
            edit.set(title, &clean.into());
        }
        Pass::Edited(edit.apply(message.line))
    }

    /// Cleans the titles in a list of sessions.
    pub(crate) fn session_list(&mut self, message: &Message<'_>, result: Node<'_>) -> Pass {
        let mut edit = Edit::new();
        for entry in result.get("sessions").into_iter().flat_map(|sessions| sessions.elements()) {
            let session = entry.str("sessionId").and_then(|id| self.sessions.find(&id));
            let words = first_words(session.as_deref());
            if let Some((title, text)) = polluted_title(entry, session.as_deref(), words.as_deref()) {
                clean_title(&mut edit, entry, title, text, words);
            }
        }
        if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
    }
}

fn first_words(session: Option<&Session>) -> Option<String> {
    session?.first_words.words().map(str::to_owned)
}

/// Returns the title of `object`, and the title without the injected text. Returns `None` if the title can stay. `words` is the
/// start of the user's first prompt.
fn polluted_title<'a>(
    object: Node<'a>,
    session: Option<&Session>,
    words: Option<&str>,
) -> Option<(Node<'a>, String)> {
    let title = object.get("title")?;
    let said = title.as_text()?;
    let with_prefix = || agents::with_prefix(session?, &said);
    let text = strip::title(&said, words).or_else(with_prefix).or_else(|| {
        // An agent that skips the injected text will only use the arguments for the title.
        let (command, arguments) =
            words?.split_once(' ').filter(|(command, _)| command.starts_with(['/', '$']))?;
        let title = said.trim_end().trim_end_matches(['…', '.']).trim_end();
        let is_arguments = !title.is_empty() && arguments.starts_with(title);
        is_arguments.then(|| format!("{command} {said}"))
    })?;
    Some((title, text))
}

/// Replaces the title by the clean title, or removes it if nothing is left of it. Returns true if there is a title.
fn clean_title(
    edit: &mut Edit,
    object: Node<'_>,
    title: Node<'_>,
    text: String,
    words: Option<String>,
) -> bool {
    let clean = if text.is_empty() { words.as_deref().map(FirstWords::title) } else { Some(text) };
    if let Some(clean) = clean {
        edit.set(title, &clean.into());
        true
    } else {
        edit.remove(object, "title");
        false
    }
}
