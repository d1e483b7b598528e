//! Shows a change as a diff, and asks for confirmation.

use std::io::IsTerminal;

use acp_skills_setup::shell::shell_word;
use acp_skills_setup::{document::Entry, edit::Change};

use super::{How, Place, masked::Mask};
use crate::{error::UsageError, output};

/// Returns a change as a diff, in color if stdout is a terminal. The values of other entries are masked. `words` are the words of the
/// entries that change.
pub(super) fn diff(file: &str, before: &str, after: &str, words: &[String]) -> String {
    let mask = Mask { before, after, words };
    let patch = diffy::create_patch(before, after).to_string();
    // The first two lines from the library don't include the name of the file, so replace them.
    let mut lines = vec![format!("--- {file}"), format!("+++ {file}")];
    let mut region = Region::default();
    for line in patch.lines().skip(2) {
        match line.as_bytes().first() {
            Some(b'-') => region.removed.push(&line[1..]),
            Some(b'+') => region.added.push(&line[1..]),
            // A note about a missing line break.
            Some(b'\\') => {}
            Some(b' ') => {
                region.end(&mask, &mut lines);
                lines.push(format!(" {}", mask.unchanged(&line[1..])));
            }
            _ => {
                region.end(&mask, &mut lines);
                lines.push(line.to_owned());
            }
        }
    }
    region.end(&mask, &mut lines);
    let has_colors = output::has_colors();
    let lines = lines.into_iter().map(|line| {
        let color = match line.as_bytes().first() {
            Some(b'+') => "32",
            Some(b'-') => "31",
            Some(b'@') => "36",
            _ => "",
        };
        if has_colors && !color.is_empty() {
            format!("\u{1b}[{color}m{line}\u{1b}[0m\n")
        } else {
            line + "\n"
        }
    });
    lines.collect()
}

/// Returns the words of the commands in changes and in the entries that they change.
pub(super) fn words(changes: &[Change], entries: &[Entry]) -> Vec<String> {
    let mut words = Change::words(changes);
    let changed = entries.iter().filter(|entry| changes.iter().any(|change| change.name() == entry.name));
    words.extend(changed.filter_map(Entry::command).flatten().cloned());
    words
}

/// Lines of a diff that replace each other.
#[derive(Default)]
struct Region<'a> {
    removed: Vec<&'a str>,
    added: Vec<&'a str>,
}

impl Region<'_> {
    /// Adds the lines of the region, and starts the next one.
    fn end(&mut self, mask: &Mask<'_>, lines: &mut Vec<String>) {
        let [removed, added] = mask.changed(&self.removed.join("\n"), &self.added.join("\n"));
        let sides = [("-", &removed, &mut self.removed), ("+", &added, &mut self.added)];
        for (sign, text, original) in sides {
            if !original.is_empty() {
                lines.extend(text.split('\n').map(|line| format!("{sign}{line}")));
                original.clear();
            }
        }
    }
}

/// Returns true if the change that was shown should be written.
///
/// # Errors
/// Returns an error if the user has to be asked and stdin is not a terminal.
pub(super) fn confirmed(how: How, question: &str) -> Result<bool, UsageError> {
    match how {
        How::Show => Ok(false),
        How::Write => Ok(true),
        How::Ask if !std::io::stdin().is_terminal() => Err(UsageError::new(
            "cannot ask for confirmation, because stdin is not a terminal; no settings were changed",
        )
        .hint("use `--yes` to write without asking, or `--print` to show the change")),
        How::Ask => {
            let is_wanted = output::ask(question);
            if !is_wanted {
                output::note("Nothing was written.");
            }
            Ok(is_wanted)
        }
    }
}

/// Returns a sentence: `A uses the proxy`, `A and B use the proxy`.
pub(super) fn through(names: &[String]) -> String {
    let verb = if names.len() == 1 { "uses" } else { "use" };
    format!("{} {verb} the proxy", names.join(" and "))
}

/// Returns a command line of `setup` with `flag` for the same settings.
pub(super) fn command_line(place: &Place<'_>, flag: &str) -> String {
    let mut words = vec!["acp-skills-proxy".to_owned(), "setup".to_owned(), place.editor.id.to_owned()];
    if !place.settings.files(place.home).contains(&place.path) {
        words.extend(["--file".to_owned(), shell_word(&place.path.to_string_lossy())]);
    }
    words.push(flag.to_owned());
    words.join(" ")
}
