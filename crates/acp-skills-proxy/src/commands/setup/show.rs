//! Shows a change as a diff, and asks for confirmation.

use std::io::IsTerminal;

use super::{How, Place};
use crate::{error::UsageError, output, words::shell_word};

/// Returns a change as a diff, in color if stdout is a terminal.
pub(super) fn diff(file: &str, before: &str, after: &str) -> String {
    let patch = diffy::create_patch(before, after).to_string();
    // The first two lines from the library don't include the name of the file, so replace them.
    let mut lines = vec![format!("--- {file}"), format!("+++ {file}")];
    lines.extend(patch.lines().skip(2).map(str::to_owned));
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
