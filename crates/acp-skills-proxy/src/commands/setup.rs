//! `setup`: puts the proxy in front of agents in the settings of editors, and reverts that.
//!
//! | file | owns |
//! |---|---|
//! | `flags` | the flags of the proxy in the settings |
//! | `masked` | masks the values of other entries in a diff |
//! | `mcp` | sets up MCP clients |
//! | `overview` | lists the editors, agents and skills on this machine, and all known agents |
//! | `plan` | plans the changes for the arguments |
//! | `undo` | reverts a change |
//! | `show` | shows a change as a diff, and asks for confirmation |

mod flags;
mod masked;
mod mcp;
mod overview;
mod plan;
mod show;
mod undo;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use acp_skills::{
    agents::{self, Agent},
    config::expand_home,
};
use acp_skills_setup::{
    change_record::ChangeRecord,
    document::{Document, SettingsError},
    edit::{self, EditError},
    editors::{self, Editor, Settings as EditorSettings, Way, is_there},
    file::{FileError, SettingsFile},
    home::Home,
    paste::{self, Snippet},
    program,
};
use clap::Args;
use skills_core::text::shown_path;

use self::{
    flags::Flags,
    plan::{Plan, Request},
};
use super::skills;
use crate::{
    args::{SkillArgs, path},
    error::UsageError,
    output,
};

/// Flags of `setup`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "command line switches")]
#[command(after_help = "\
Editors: zed, jetbrains, vscode, vscode-insiders, vscodium, cursor (the last four with the extension ACP Client), acpx. For \
neovim, emacs, jupyter and toad, setup prints a text to paste. `setup mcp CLIENT` serves the skills to a program without ACP: claude-code, \
codex, gemini, qwen, cursor, vscode, opencode, goose.

Examples:
  acp-skills-proxy setup
      List your editors, agents and skills, and the agents that use the proxy already.
  acp-skills-proxy setup zed --agent claude
      Show the change as a diff, ask, and write it. Revert it with `setup zed --undo`.
  acp-skills-proxy setup zed
      Put the proxy in front of each agent in Zed's settings that has a command.
  acp-skills-proxy setup jetbrains --skills ~/skills -- my-agent --acp
      Add an agent by its command, with the skills in ~/skills.
  acp-skills-proxy setup mcp claude-code --skills ~/skills
      Serve the skills in ~/skills to Claude Code in the terminal, which does not use ACP.")]
pub(crate) struct SetupArgs {
    /// The editor to set up, or `mcp` and the name of an MCP client. Without it, setup lists your editors, agents and skills.
    #[arg(value_name = "EDITOR")]
    editor: Option<String>,
    /// The MCP client to set up. On the command line, it is the word after `mcp`.
    #[arg(long, value_name = "CLIENT", requires = "editor", hide = true)]
    client: Option<String>,
    /// Change the settings of the project in the working directory instead of your own. Only for MCP clients.
    #[arg(long, requires = "editor", conflicts_with = "file")]
    project: bool,
    /// An agent in the settings, or a known agent by its identifier (`claude-acp`) or name (`claude`). The default is all
    /// agents in the settings that have a command.
    #[arg(long, value_name = "NAME", requires = "editor", conflicts_with = "command")]
    agent: Option<String>,
    /// The name of the agent in the editor. With a name, setup adds a new agent instead of changing an existing one.
    #[arg(long, value_name = "NAME", requires = "editor")]
    name: Option<String>,
    /// The path of the settings file, if it is not the usual one.
    #[arg(long, value_name = "FILE", requires = "editor", value_parser = path())]
    file: Option<PathBuf>,
    /// Show the change without writing it.
    #[arg(long, requires = "editor", conflicts_with = "yes")]
    print: bool,
    /// Write without asking.
    #[arg(long, requires = "editor")]
    yes: bool,
    /// Revert the last change.
    #[arg(long, requires = "editor", conflicts_with_all = ["agent", "name", "command"])]
    undo: bool,
    /// List the agents that are known by name, and the results of testing each.
    #[arg(long, conflicts_with = "editor")]
    agents: bool,
    /// Let the proxy in the settings write its log messages to a file, because most editors discard them.
    #[arg(long, value_name = "FILE", requires = "editor", value_parser = path())]
    log_file: Option<PathBuf>,
    /// Let the proxy in the settings append events about skills to a file, for `report`.
    #[arg(long, value_name = "FILE", requires = "editor", value_parser = path())]
    events: Option<PathBuf>,
    #[command(flatten)]
    skills: SkillArgs,
    /// The command of the agent.
    #[arg(last = true, value_name = "AGENT", requires = "editor")]
    command: Vec<OsString>,
}

/// Sets up an editor. Without one, lists the editors, agents and skills on this machine.
///
/// # Errors
/// Returns an error if the editor or the agent is unknown, or if the settings cannot be parsed or written.
pub(crate) fn run(args: SetupArgs) -> anyhow::Result<ExitCode> {
    if args.agents {
        output::print(&overview::agents())?;
        return Ok(ExitCode::SUCCESS);
    }
    let home = Home::find()?;
    let Some(editor) = &args.editor else {
        output::print(&overview::of(&home)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let how = if args.print {
        How::Show
    } else if args.yes {
        How::Write
    } else {
        How::Ask
    };
    if editor == mcp::WORD {
        return mcp::run(args, &home, how);
    }
    if args.project {
        let message = format!("`--project` is only for MCP clients, not for the editor `{editor}`");
        return Err(UsageError::new(message)
            .hint("use `acp-skills-proxy setup mcp CLIENT --project`")
            .into());
    }
    let editor = editors::find(editor)?;
    match editor.way {
        Way::Paste(_) if args.undo || args.file.is_some() => {
            let message = format!("setup does not edit settings for {}", editor.name);
            Err(UsageError::new(message).hint("remove the pasted text by hand").into())
        }
        Way::Paste(snippets) => paste(editor, snippets, &args),
        Way::Settings(settings) => {
            let path = match &args.file {
                Some(path) => std::path::absolute(path)?,
                None => settings.file(&home)?,
            };
            let place = Place { home: &home, editor, settings: &settings, path };
            if args.undo { undo::undo(&place, how) } else { change(&place, how, args) }
        }
    }
}

/// The settings file of an editor.
struct Place<'a> {
    home: &'a Home,
    editor: &'static Editor,
    settings: &'a EditorSettings,
    path: PathBuf,
}

/// The handling of a change: show it, ask before writing it, or write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Show,
    Ask,
    Write,
}

impl Place<'_> {
    /// Returns the path of the file for messages.
    fn shown(&self) -> String {
        self.home.shown(&self.path)
    }

    fn read(&self) -> Result<(SettingsFile, Document), UsageError> {
        let file = SettingsFile::read(&self.path).map_err(unusable)?;
        let document =
            Document::new(file.bytes().unwrap_or_default()).map_err(|error| self.broken(&error))?;
        Ok((file, document))
    }

    /// Returns the error for settings that cannot be parsed.
    fn broken(&self, error: &SettingsError) -> UsageError {
        UsageError::new(format!("{}:{error}", shown_path(&self.path)))
            .hint("no settings were changed; fix the error in the editor and retry")
    }

    fn not_edited(&self, error: &EditError) -> UsageError {
        match error {
            EditError::Settings(error) => self.broken(error),
            other => UsageError::new(format!("{}: {other}", shown_path(&self.path)))
                .hint("no settings were changed; see the manual to edit the file by hand"),
        }
    }
}

/// Returns the error for a file that cannot be read or written, with its hint.
fn unusable(error: FileError) -> UsageError {
    let hint = error.hint();
    let error = UsageError::of(error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Changes settings according to the arguments.
fn change(place: &Place<'_>, how: How, args: SetupArgs) -> anyhow::Result<ExitCode> {
    let Place { home, editor, settings, .. } = place;
    let (file, document) = place.read()?;
    let format = &settings.format;
    let entries = document.agents(format).map_err(|error| place.broken(&error))?;
    let flags = Flags::new(args.skills, args.log_file.as_deref(), args.events.as_deref())?;
    let own = program::our_own(editor.is_desktop)?;
    let request = Request {
        editor,
        format,
        entries: &entries,
        own: &own.words,
        flags: flags.words.as_deref(),
        agent: args.agent.as_deref(),
        name: args.name.as_deref(),
        command: texts(&args.command)?,
    };
    let Plan { changes, notes } = plan::plan(&request).map_err(|refused| refused.into_error(place))?;
    let mut result = document.clone();
    for change in &changes {
        result = edit::edit(&result, format, change).map_err(|error| place.not_edited(&error))?;
    }
    if result == document {
        let names: Vec<_> =
            entries.iter().filter(|entry| entry.ours().is_some()).map(|entry| entry.name.clone()).collect();
        if names.is_empty() {
            return Err(UsageError::new(format!("no agent to change in {}", place.shown()))
                .hint(notes.join("\n"))
                .into());
        }
        output::print(&format!("No changes to {}: {} already.\n", place.shown(), show::through(&names)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let words = show::words(&changes, &entries);
    output::print_colored(&show::diff(&place.shown(), document.text(), result.text(), &words))?;
    for note in own.notes.iter().chain(&notes).chain(&flags.notes) {
        output::note(&format!("note: {note}"));
    }
    if !editor.note.is_empty() {
        output::note(&format!("note: {}", editor.note));
    }
    if let Some(extension) = settings.missing_extension(home) {
        output::note(&format!("note: extension `{extension}` for {} is not installed", editor.name));
    }
    if !show::confirmed(how, "Write this change?")? {
        return Ok(ExitCode::SUCCESS);
    }
    let record = ChangeRecord::new(editor.id, file.target(), changes);
    let saved = write(home, &file, &result.bytes(), record)?;
    let back = show::command_line(place, "--undo");
    output::print(&format!("Written. {}\n{saved}To revert: {back}\n", editor.then))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the new content of a settings file after a backup of the previous content. Returns the sentence that says where the backup is,
/// which is empty for a new file.
fn write(home: &Home, file: &SettingsFile, bytes: &[u8], record: ChangeRecord) -> Result<String, UsageError> {
    let record = record.keep(&home.changes, file.bytes(), bytes).map_err(|error| {
        let dir = shown_path(&home.changes);
        let what = format_args!("cannot back up settings to {dir}; no settings were changed");
        UsageError::failed(what, error)
    })?;
    if let Err(error) = file.replace(Some(bytes), &home.changes) {
        record.forget();
        return Err(unusable(error));
    }
    Ok(file.bytes().map_or_else(String::new, |_| {
        format!("Previous settings are saved to {}. ", home.shown(&record.before_path()))
    }))
}

/// Prints the texts to paste.
fn paste(editor: &Editor, snippets: &[Snippet], args: &SetupArgs) -> anyhow::Result<ExitCode> {
    let flags = Flags::new(args.skills.clone(), args.log_file.as_deref(), args.events.as_deref())?;
    let own = program::our_own(editor.is_desktop)?;
    let (agent, words): (Option<&Agent>, Vec<String>) = match (&args.agent, args.command.is_empty()) {
        (Some(name), _) => {
            let agent = agents::find(name)?;
            (Some(agent), agents::words(agent, |program| which::which(program).ok())?)
        }
        (None, false) => (None, texts(&args.command)?),
        (None, true) => return Err(no_agent(editor, "claude").into()),
    };
    let is_shim = snippets.contains(&Snippet::Jupyter);
    let reached = if is_shim {
        program::outside_of(&words[0], &expand_home(Path::new(paste::SCRIPTS)))?
    } else {
        program::reachable(&words[0], editor.is_desktop)?
    };
    let chosen = flags::without_doubles(flags.words.unwrap_or_else(flags::default), &words)?;
    let command = [&own.words[..], &chosen.words, &["--".to_owned()], &reached.words, &words[1..]].concat();
    let wanted = args.editor.as_deref().unwrap_or_default();
    let mut texts = Vec::new();
    for snippet in snippets.iter().filter(|snippet| is_wanted(**snippet, wanted)) {
        if let Some(text) = snippet.text(agent, &command) {
            texts.push(format!("{}\n\n{text}", snippet.title()));
        }
    }
    if texts.is_empty() {
        let known = snippets.first().map(|snippet| paste::known(*snippet)).unwrap_or_default();
        let message = format!("{} does not support this agent command", editor.name);
        return Err(UsageError::new(message).hint(format!("it supports {}", known.join(", "))).into());
    }
    output::print(&texts.join("\n"))?;
    for note in own.notes.iter().chain(&reached.notes).chain(&chosen.notes).chain(&flags.notes) {
        output::note(&format!("note: {note}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns true if the snippet is for the plug-in with this name. All other names of the editor select the snippets of
/// all its plug-ins.
fn is_wanted(snippet: Snippet, name: &str) -> bool {
    match name.to_lowercase().as_str() {
        "codecompanion" => snippet == Snippet::CodeCompanion,
        "avante" => snippet == Snippet::Avante,
        _ => true,
    }
}

fn no_agent(editor: &Editor, example: &str) -> UsageError {
    UsageError::new("no agent given").hint(format!(
        "use `acp-skills-proxy setup {} --agent {example}`, or put the agent command after `--`; use \
         `acp-skills-proxy setup --agents` to list known agents",
        editor.id
    ))
}

fn texts(words: &[OsString]) -> Result<Vec<String>, UsageError> {
    let text = |word: &OsString| {
        word.to_str().map(str::to_owned).ok_or_else(|| {
            UsageError::new(format!("cannot write `{}` to settings: not valid UTF-8", word.display()))
        })
    };
    words.iter().map(text).collect()
}
