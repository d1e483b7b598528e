//! [`named`]: the skills that `/skills trust` names.

use std::path::Path;

use skills_core::{
    SkillName,
    set::Unapproved,
    text::{markdown_code, shown_path},
};
use thiserror::Error;

use super::MAX_NAMED;
use crate::{
    menu::names::PREFIX,
    session::{Session, unique_name},
};

/// Returns the unapproved skills that the words after `/skills trust` name. Without words, returns those that the user has not declined.
///
/// # Errors
/// Returns [`TrustError::NothingPending`] if no skill is unapproved, [`TrustError::Declined`] if there are no words, and the user has
/// declined all skills, [`TrustError::Ambiguous`] if the words can be one name or
/// several, [`TrustError::Several`] if several skills have a name, and [`TrustError::Unknown`] if a word does not name an unapproved
/// skill.
pub(crate) fn named(session: &Session, words: &str) -> Result<Vec<Unapproved>, TrustError> {
    let unapproved = session.switches.all().unapproved();
    if unapproved.is_empty() {
        return Err(TrustError::NothingPending);
    }
    if words.is_empty() {
        let open: Vec<_> = unapproved.iter().filter(|entry| !entry.is_refused).cloned().collect();
        return if open.is_empty() { Err(TrustError::Declined) } else { Ok(open) };
    }
    let of = |word: &str| -> Vec<Unapproved> {
        let is_there = |entry: &&Unapproved| entry.skill.dir().is_some_and(|dir| dir == Path::new(word));
        if let Some(entry) = unapproved.iter().find(is_there) {
            return vec![entry.clone()];
        }
        // A path is not a name, even if a skill has the name `home/me/project/.skills/review`.
        let is_path = Path::new(word).has_root() && word[1..].contains(['/', '\\']);
        let word = word.trim_start_matches('/');
        if is_path && !word.starts_with(PREFIX) {
            return Vec::new();
        }
        let key = SkillName::key_of(word.strip_prefix(PREFIX).unwrap_or(word));
        let has_name = |entry: &&Unapproved| SkillName::key_of(&unique_name(entry, unapproved)) == key;
        unapproved.iter().filter(has_name).cloned().collect()
    };
    let one = |found: Vec<Unapproved>| match &*found {
        [first, _, ..] => Err(several(first, &found)),
        _ => Ok(found),
    };
    let quoted = unquoted(words);
    let whole =
        Some(of(quoted.unwrap_or(words))).filter(|found| !found.is_empty()).unwrap_or_else(|| of(words));
    let each: Vec<_> = words.split_whitespace().map(|word| (word, of(word))).collect();
    if quoted.is_none() && each.iter().all(|(_, found)| !found.is_empty()) {
        // A project can contain a skill whose name consists of the names of others.
        if each.len() > 1 && !whole.is_empty() {
            let command = markdown_code(&format!("/skills trust \"{words}\""));
            return Err(TrustError::Ambiguous { words: markdown_code(words), command });
        }
        let each: Result<Vec<_>, _> = each.into_iter().map(|(_, found)| one(found)).collect();
        return Ok(each?.concat());
    }
    if !whole.is_empty() {
        return one(whole);
    }
    let missing = each.iter().find(|(_, found)| found.is_empty()).map(|(word, _)| *word);
    let word = markdown_code(quoted.or(missing).unwrap_or(words));
    let shown = unapproved.iter().take(MAX_NAMED);
    let names = shown.map(|entry| markdown_code(&unique_name(entry, unapproved)));
    Err(TrustError::Unknown { word, names: names.collect::<Vec<_>>().join(", ") })
}

/// Returns the error for several skills with the name of `first`. They belong to different directories of the session, and approving one
/// must not approve another.
fn several(first: &Unapproved, found: &[Unapproved]) -> TrustError {
    let command = |entry: &Unapproved| {
        Some(markdown_code(&format!("/skills trust \"{}\"", shown_path(entry.skill.dir()?))))
    };
    let commands: Vec<_> = found.iter().take(MAX_NAMED).filter_map(command).collect();
    TrustError::Several { name: markdown_code(first.skill.name.as_str()), commands: commands.join(" or ") }
}

/// Returns the text between quotes, if all of `words` is in quotes.
pub(super) fn unquoted(words: &str) -> Option<&str> {
    ['"', '\'', '`'].into_iter().find_map(|quote| words.strip_prefix(quote)?.strip_suffix(quote))
}

/// The reason why a command cannot approve skills, as sentences for the user in Markdown.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum TrustError {
    /// All skills are approved.
    #[error("No skills from this project are waiting for approval.")]
    NothingPending,
    /// The command names no skill, and the user has declined all of them.
    #[error(
        "Nothing was trusted, because you have declined all of these skills. Use `/skills trust NAME` to trust one of them."
    )]
    Declined,
    /// The words are the name of a skill, and each word is the name of another one.
    #[error(
        "{words} is the name of a single skill, but also a list of several names. Use {command} for the single skill, or \
         trust the others one at a time."
    )]
    Ambiguous {
        /// The words in the command, as Markdown.
        words: String,
        /// The command for the single skill, as Markdown.
        command: String,
    },
    /// Several unapproved skills have the name.
    #[error("Nothing was trusted, because several skills are called {name}. Use {commands}.")]
    Several {
        /// The name, as Markdown.
        name: String,
        /// The commands for each of them, as Markdown.
        commands: String,
    },
    /// The prompt has other text, which may come from a file.
    #[error(
        "Nothing was trusted, because the message contains other text. Send `/skills trust` as a separate message."
    )]
    OtherText,
    /// No trusted skill of the project has this name.
    #[error(
        "Skill {word} is not a trusted skill of this project. Trusted: {names}. Use `/skills untrust NAME`."
    )]
    NotTrusted {
        /// The word in the command, as Markdown.
        word: String,
        /// The names of trusted skills, as Markdown.
        names: String,
    },
    /// No unapproved skill has this name.
    #[error("Skill {word} is not waiting for approval. Waiting for approval: {names}.")]
    Unknown {
        /// The word in the command, as Markdown.
        word: String,
        /// The names of unapproved skills, as Markdown.
        names: String,
    },
}
