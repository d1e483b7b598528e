//! `setup mcp`: adds the server for clients without ACP to the settings of an MCP client, and reverts that.

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use acp_skills_setup::shell::shell_word;
use acp_skills_setup::{
    NAME,
    change_record::ChangeRecord,
    document::{self, Document, SettingsError},
    edit::Change,
    file::SettingsFile,
    home::Home,
    mcp::{self, ConfigurableClient, SERVER},
    program,
};
use skills_core::text::shown_path;

use super::{Flags, How, SetupArgs, flags, show, unusable, write};
use crate::{
    commands::table::{Align, Table, terminal_width},
    error::UsageError,
    output,
};

/// The word that selects MCP clients instead of an editor.
pub(super) const WORD: &str = "mcp";

/// The settings of one client.
struct Place<'a> {
    home: &'a Home,
    client: &'static ConfigurableClient,
    path: PathBuf,
    /// The name of the server.
    name: String,
    /// True if these are the settings of a project.
    is_project: bool,
}

/// Sets up a client. Without one, lists the clients on this machine.
pub(super) fn run(args: SetupArgs, home: &Home, how: How) -> anyhow::Result<ExitCode> {
    let Some(client) = &args.client else {
        output::print(&overview(home))?;
        return Ok(ExitCode::SUCCESS);
    };
    let client = mcp::find(client)?;
    if args.agent.is_some() || !args.command.is_empty() {
        return Err(UsageError::new("an MCP client has no agent to set up")
            .hint(format!("use `{NAME} setup {WORD} {}` without an agent", client.id))
            .into());
    }
    let path = match (&args.file, args.project) {
        (Some(path), _) => std::path::absolute(path)?,
        (None, false) => client.user_file(home),
        (None, true) => client.project_file(&env::current_dir()?).ok_or_else(|| {
            UsageError::new(format!(
                "{} has no settings for a project that `setup` could change",
                client.name
            ))
            .hint("leave out `--project`")
        })?,
    };
    let name = args.name.clone().unwrap_or_else(|| SERVER.to_owned());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(UsageError::new(format!("`{name}` is not a valid name for a server"))
            .hint("use letters, digits, `-` and `_`")
            .into());
    }
    let place = Place { home, client, path, name, is_project: args.project };
    if args.undo { undo(&place, how) } else { change(&place, how, args) }
}

impl Place<'_> {
    /// Returns the path of the file for messages.
    fn shown(&self) -> String {
        self.home.shown(&self.path)
    }

    fn read(&self) -> Result<(SettingsFile, Document), UsageError> {
        let file = SettingsFile::read(&self.path).map_err(unusable)?;
        let bytes = file.bytes().unwrap_or_default();
        let document = Document::new(bytes).map_err(|error| self.broken(&error))?;
        Ok((file, document))
    }

    /// Returns the error for settings that cannot be changed.
    fn broken(&self, error: &SettingsError) -> UsageError {
        UsageError::new(format!("{}:{error}", shown_path(&self.path)))
            .hint("no settings were changed; fix the file and retry, or edit it by hand")
    }

    /// Returns the command line that reverts the change.
    fn undo_line(&self) -> String {
        let mut words = vec![NAME.to_owned(), "setup".to_owned(), WORD.to_owned(), self.client.id.to_owned()];
        if self.is_project {
            words.push("--project".to_owned());
        } else if self.path != self.client.user_file(self.home) {
            words.extend(["--file".to_owned(), shell_word(&self.path.to_string_lossy())]);
        }
        words.push("--undo".to_owned());
        words.join(" ")
    }
}

/// Returns the command of the server, with notes for the user.
fn command(place: &Place<'_>, args: SetupArgs) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let flags = Flags::new(args.skills, args.log_file.as_deref(), args.events.as_deref())?;
    let mut own = program::our_own(place.client.is_desktop)?;
    // The settings of a project are often shared, so a path of this machine is of no use there.
    if place.is_project && which::which(NAME).is_ok() {
        own.words = vec![NAME.to_owned()];
    }
    let mut words = own.words;
    words.push(WORD.to_owned());
    words.extend(flags.words.unwrap_or_else(flags::default));
    if place.client.has_own_skills {
        words.push("--hide-native".to_owned());
    }
    Ok((words, [own.notes, flags.notes].concat()))
}

/// Adds the server, or changes its command.
fn change(place: &Place<'_>, how: How, args: SetupArgs) -> anyhow::Result<ExitCode> {
    let (file, document) = place.read()?;
    let Place { home, client, name, .. } = place;
    let broken = |error| place.broken(&error);
    let (words, notes) = command(place, args)?;
    let existing = client.server(document.text(), name).map_err(broken)?;
    if existing.as_ref() == Some(&words) {
        output::print(&format!("No changes to {}: the server is there already.\n", place.shown()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if existing.as_ref().is_some_and(|words| document::ours(words).is_none()) {
        let message = format!("{} already contains another server `{name}`", place.shown());
        return Err(UsageError::new(message).hint("use `--name` to select another name").into());
    }
    let text = client.with_server(document.text(), name, &words).map_err(broken)?;
    let result = document.with(text);
    let shown = [words.clone(), existing.unwrap_or_default()].concat();
    output::print_colored(&show::diff(&place.shown(), document.text(), result.text(), &shown))?;
    for note in &notes {
        output::note(&format!("note: {note}"));
    }
    if !show::confirmed(how, "Write this change?")? {
        return Ok(ExitCode::SUCCESS);
    }
    let added = Change::Add { name: name.clone(), words, env: Vec::new() };
    let record = ChangeRecord::new(client.id, file.target(), vec![added]);
    let saved = write(home, &file, &result.bytes(), record)?;
    output::print(&format!("Written. {}\n{saved}To revert: {}\n", client.then, place.undo_line()))?;
    Ok(ExitCode::SUCCESS)
}

/// Reverts the last change of these settings.
fn undo(place: &Place<'_>, how: How) -> anyhow::Result<ExitCode> {
    let (file, document) = place.read()?;
    let dir = &place.home.changes;
    let failed = |error: std::io::Error| {
        UsageError::failed(format_args!("cannot read change record from {}", place.home.shown(dir)), error)
    };
    let Some(record) = ChangeRecord::last(dir, file.target()).map_err(failed)? else {
        output::print(&format!("No change to revert in {}.\n", place.shown()))?;
        return Ok(ExitCode::SUCCESS);
    };
    if file.bytes().is_none() {
        if how != How::Show {
            record.undone()?;
        }
        output::print(&format!("No change to revert: {} does not exist any more.\n", place.shown()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let before = record.before().map_err(failed)?;
    let after = record.after().map_err(failed)?;
    let name = record.changes.first().map_or(SERVER, Change::name);
    let reverted = reverted(place, name, &file, &document, before.as_deref(), &after)?;
    let text = reverted.as_ref().map_or("", Document::text);
    let words = Change::words(&record.changes);
    output::print_colored(&show::diff(&place.shown(), document.text(), text, &words))?;
    if reverted.is_none() {
        output::note("note: removing the file, because `setup` created it");
    }
    if !show::confirmed(how, "Revert this change?")? {
        return Ok(ExitCode::SUCCESS);
    }
    let bytes = reverted.as_ref().map(Document::bytes);
    file.replace(bytes.as_deref(), dir).map_err(unusable)?;
    record.undone()?;
    output::print("Reverted.\n")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the settings without the change. `None` if the file did not exist before. Later edits of the settings are kept.
fn reverted(
    place: &Place<'_>,
    name: &str,
    file: &SettingsFile,
    now: &Document,
    before: Option<&[u8]>,
    after: &[u8],
) -> Result<Option<Document>, UsageError> {
    let broken = |error| place.broken(&error);
    if file.bytes().unwrap_or_default() == after {
        return before.map(|bytes| Document::new(bytes).map_err(broken)).transpose();
    }
    let client = place.client;
    let before = Document::new(before.unwrap_or_default()).map_err(broken)?;
    let was = client.server(before.text(), name).map_err(broken)?;
    let after = Document::new(after).map_err(broken)?;
    if let Ok(merged) = diffy::merge(after.text(), before.text(), now.text())
        && client.server(&merged, name).ok() == Some(was.clone())
    {
        return Ok(Some(now.with(merged)));
    }
    let text = match (was, client.server(now.text(), name).map_err(broken)?) {
        (_, None) => now.text().to_owned(),
        (Some(words), Some(_)) => client.with_server(now.text(), name, &words).map_err(broken)?,
        (None, Some(_)) => client.without_server(now.text(), name).map_err(broken)?,
    };
    Ok(Some(now.with(text)))
}

/// Returns the table of the clients, with their settings and the server in them.
fn overview(home: &Home) -> String {
    let mut table = Table::new([("CLIENT", Align::Left), ("SETTINGS", Align::Path), ("SKILLS", Align::Left)]);
    for client in mcp::ALL {
        let path = client.user_file(home);
        table.row([client.id.to_owned(), home.shown(&path), state(client, &path)]);
    }
    format!(
        "{}\n\nTo serve your skills to a client: {NAME} setup {WORD} claude-code\n",
        table.render(terminal_width())
    )
}

/// Returns the state of our server in the settings of a client.
fn state(client: &ConfigurableClient, path: &Path) -> String {
    let read =
        SettingsFile::read(path).map_err(|error| error.to_string()).and_then(|file| match file.bytes() {
            None => Ok("(no file yet)".to_owned()),
            Some(bytes) => {
                let document = Document::new(bytes).map_err(|error| error.to_string())?;
                let server = client.server(document.text(), SERVER).map_err(|error| error.to_string())?;
                Ok(if server.is_some() { "yes" } else { "no" }.to_owned())
            }
        });
    read.unwrap_or_else(|message| message)
}
