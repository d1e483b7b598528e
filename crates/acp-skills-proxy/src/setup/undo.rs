//! The text without a change that was made: byte for byte what was there before, as long as nobody has edited it since; else
//! only what is ours goes.

use super::{
    document::{self, Document, SettingsError},
    edit::{self, Change, EditError},
    editors::Format,
};

/// What is to be in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// This; `None` for no file.
    Bytes(Option<Vec<u8>>),
    /// What is there: the change is not in it any more.
    Nothing,
}

/// Takes `changes`, which made `after` of `before`, out of what the file says now.
///
/// # Errors
/// The text is broken.
pub(crate) fn undo(
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
            let is =
                agents.iter().find(|agent| agent.name == change.name()).and_then(|agent| agent.command());
            let was =
                before_entries.iter().find(|entry| entry.0 == change.name()).and_then(|it| it.1.as_deref());
            is == was
        }))
    };
    // First as texts are merged, which keeps each comma and each line where it was.
    if let (Ok(ours), Ok(ancestor)) = (Document::new(before.unwrap_or_default()), Document::new(after))
        && let Ok(text) = diffy::merge(ancestor.text(), ours.text(), document.text())
    {
        let merged = document.with(text);
        if is_undone(&merged).unwrap_or(false) {
            return Ok(Undone::Bytes(Some(merged.bytes())));
        }
    }
    // Then as what they mean.
    let mut is_changed = false;
    for change in changes.iter().rev() {
        if let Some(inverse) = inverse(&document, change, format)? {
            document = edit::edit(&document, format, &inverse)?;
            is_changed = true;
        }
    }
    Ok(if is_changed { Undone::Bytes(Some(document.bytes())) } else { Undone::Nothing })
}

/// What takes the change back; `None` when it is not there any more.
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
        // Somebody has given us other flags: all before `--` goes, and the agent's program is what it was.
        Change::Splice { before, .. } if document::ours(before).is_none() => {
            let agent = ours.agent.filter(|&agent| agent < words.len());
            agent.map(|agent| Change::Splice {
                name,
                before: words[..=agent].to_vec(),
                after: before.clone(),
            })
        }
        // Of a renewal there is nothing left that could be told from what somebody wrote since.
        Change::Splice { .. } | Change::Remove { .. } => None,
    })
}

/// The agents by name, with their commands; a text that is broken has none.
fn agents_of(bytes: &[u8], format: &Format) -> Vec<(String, Option<Vec<String>>)> {
    let agents = Document::new(bytes).and_then(|document| document.agents(format)).unwrap_or_default();
    agents.into_iter().map(|agent| (agent.name.clone(), agent.command().map(<[String]>::to_vec))).collect()
}
