//! Reverts a change. If the settings were not edited since, this restores the previous bytes. Otherwise, only our change is
//! removed.

use super::{
    document::{self, Document, SettingsError},
    edit::{self, Change, EditError},
    editors::Format,
};

/// The result of reverting a change.
#[derive(Debug, PartialEq, Eq)]
pub enum Undone {
    /// The new content of the file. `None` if the file should be removed.
    Bytes(Option<Vec<u8>>),
    /// The settings do not contain the change any more, so nothing has to be done.
    Nothing,
}

/// Reverts `changes`, which turned `before` into `after`, in the current content `now`.
///
/// # Errors
/// Returns [`EditError::Settings`] if `now` cannot be parsed.
pub fn undo(
    now: &[u8],
    before: Option<&[u8]>,
    after: &[u8],
    changes: &[Change],
    format: &Format,
) -> Result<Undone, EditError> {
    if now == after {
        return Ok(Undone::Bytes(before.map(<[u8]>::to_vec)));
    }
    let mut document = Document::new(now)?;
    let before_entries = agents_of(before.unwrap_or_default(), format);
    let is_undone = |document: &Document| -> Result<bool, SettingsError> {
        let agents = document.agents(format)?;
        Ok(changes.iter().all(|change| {
            let is = agents.iter().find(|agent| agent.name == change.name());
            let was = before_entries.iter().find(|entry| entry.0 == change.name());
            is.and_then(|agent| agent.command()) == was.and_then(|entry| entry.1.as_deref())
        }))
    };
    // First try a three-way merge of the texts, because this keeps all commas and line breaks as they are.
    if let (Ok(ours), Ok(ancestor)) = (Document::new(before.unwrap_or_default()), Document::new(after))
        && let Ok(text) = diffy::merge(ancestor.text(), ours.text(), document.text())
    {
        let merged = without_empty(&document.with(text), before, format);
        if is_undone(&merged).unwrap_or(false) {
            return Ok(Undone::Bytes(Some(merged.bytes())));
        }
    }
    // If the texts cannot be merged, edit the parsed settings instead, in reverse order.
    let mut is_changed = false;
    for change in changes.iter().rev() {
        if let Some(inverse) = inverse(&document, change, format)? {
            document = edit::edit(&document, format, &inverse)?;
            is_changed = true;
        }
    }
    Ok(if is_changed {
        Undone::Bytes(Some(without_empty(&document, before, format).bytes()))
    } else {
        Undone::Nothing
    })
}

/// Returns the document without an empty list of agents, if there was no list before the change.
fn without_empty(document: &Document, before: Option<&[u8]>, format: &Format) -> Document {
    let had_list =
        Document::new(before.unwrap_or_default()).is_ok_and(|before| edit::has_list(&before, format));
    if had_list { document.clone() } else { edit::without_empty_list(document, format) }
}

/// Returns the change that reverts `change`. `None` if the settings do not contain `change` any more.
fn inverse(document: &Document, change: &Change, format: &Format) -> Result<Option<Change>, SettingsError> {
    let agents = document.agents(format)?;
    let Some(agent) = agents.into_iter().find(|agent| agent.name == change.name()) else { return Ok(None) };
    let Some(ours) = agent.ours() else { return Ok(None) };
    let words = agent.command().unwrap_or_default();
    let name = agent.name.clone();
    Ok(match change {
        Change::Add { .. } => Some(Change::Remove { name }),
        Change::Splice { before, after, .. } if words.starts_with(after) => {
            Some(Change::Splice { name, before: after.clone(), after: before.clone() })
        }
        // If the user changed the flags of the proxy, remove all words up to `--`, and then restore the program of
        // the agent.
        Change::Splice { before, .. } if document::ours(before).is_none() => {
            let agent = ours.agent.filter(|&agent| agent < words.len());
            agent.map(|agent| Change::Splice {
                name,
                before: words[..=agent].to_vec(),
                after: before.clone(),
            })
        }
        // The proxy was already used before the change, so we can't tell whether a word is from us or was edited by
        // the user later.
        Change::Splice { .. } | Change::Remove { .. } => None,
    })
}

/// Returns the agents with their commands. Empty if the text cannot be parsed.
fn agents_of(bytes: &[u8], format: &Format) -> Vec<(String, Option<Vec<String>>)> {
    let agents = Document::new(bytes).and_then(|document| document.agents(format)).unwrap_or_default();
    agents.into_iter().map(|agent| (agent.name.clone(), agent.command().map(<[String]>::to_vec))).collect()
}
