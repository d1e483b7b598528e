//! `setup`: puts the proxy in front of agents in the settings of editors, and takes it back.
//!
//! | file | owns |
//! |---|---|
//! | `overview` | what is here, and which agents are known |
//! | `plan` | what is to be changed for what was asked |
//! | `undo` | taking a change back |
//! | `show` | changes as people read them, and the question whether to make them |

mod overview;
mod plan;
mod show;
mod undo;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use acp_skills::{
    agents::{self, Agent},
    config::{Discover, Settings},
};
use clap::Args;
use skills_core::text::shown_path;

use self::plan::{Plan, Request};
use super::skills;
use crate::{
    args::{ConfigArgs, ProxyArgs, SkillArgs, path},
    error::UsageError,
    output,
    setup::{
        document::{Document, SettingsError},
        edit::{self, EditError},
        editors::{self, Editor, Settings as EditorSettings, Way, is_there},
        file::{FileError, SettingsFile},
        home::Home,
        paste::{self, Snippet},
        program,
        record::Record,
    },
};

/// Flags of `setup`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
#[command(after_help = "\
Editors: zed, jetbrains, vscode, vscode-insiders, vscodium, cursor (with the extension ACP Client), acpx; for neovim, emacs and \
toad it prints what to paste.

Examples:
  acp-skills-proxy setup
      What is here: editors, agents, skills, and what goes through the proxy already.
  acp-skills-proxy setup zed --agent claude
      Shows the change as a diff, asks, and writes it; `setup zed --undo` takes it back.
  acp-skills-proxy setup zed
      Every agent of your own in Zed's settings.
  acp-skills-proxy setup jetbrains --skills ~/skills -- my-agent --acp
      An agent by its command, with the skills below ~/skills.")]
pub(crate) struct SetupArgs {
    /// Which editor; without one, tells what is here.
    #[arg(value_name = "EDITOR")]
    editor: Option<String>,
    /// An agent that the settings have, or one by its identifier (`claude-acp`) or a name like `claude`. Without it, all
    /// agents that the settings have a command of.
    #[arg(long, value_name = "NAME", requires = "editor", conflicts_with = "command")]
    agent: Option<String>,
    /// What the agent is called in the editor; an agent that is there already is then kept as it is.
    #[arg(long, value_name = "NAME", requires = "editor")]
    name: Option<String>,
    /// The settings file, where it is not in the usual place.
    #[arg(long, value_name = "FILE", requires = "editor", value_parser = path())]
    file: Option<PathBuf>,
    /// Only show the change.
    #[arg(long, requires = "editor", conflicts_with = "yes")]
    print: bool,
    /// Write without asking.
    #[arg(long, requires = "editor")]
    yes: bool,
    /// Take the last change back.
    #[arg(long, requires = "editor", conflicts_with_all = ["agent", "name", "command"])]
    undo: bool,
    /// List the agents that are known by name, and what was seen of each.
    #[arg(long, conflicts_with = "editor")]
    agents: bool,
    #[command(flatten)]
    skills: SkillArgs,
    /// The agent's command.
    #[arg(last = true, value_name = "AGENT", requires = "editor")]
    command: Vec<OsString>,
}

/// Sets up an editor, or tells what is here.
///
/// # Errors
/// The editor or the agent is not known, or its settings are broken or cannot be written.
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
    let editor = editors::find(editor)?;
    match editor.way {
        Way::Paste(_) if args.undo || args.file.is_some() => {
            let message = format!("setup changes no settings of {}", editor.name);
            Err(UsageError::new(message).hint("what you pasted is yours to take out").into())
        }
        Way::Paste(snippets) => paste(editor, snippets, &args),
        Way::Settings(settings) => {
            let path = match &args.file {
                Some(path) => std::path::absolute(path)?,
                None => settings.file(&home)?,
            };
            let place = Place { home: &home, editor, settings: &settings, path };
            let how = if args.print {
                How::Show
            } else if args.yes {
                How::Write
            } else {
                How::Ask
            };
            if args.undo { undo::undo(&place, how) } else { change(&place, how, args) }
        }
    }
}

/// Which settings, of whom.
struct Place<'a> {
    home: &'a Home,
    editor: &'static Editor,
    settings: &'a EditorSettings,
    path: PathBuf,
}

/// What becomes of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Show,
    Ask,
    Write,
}

impl Place<'_> {
    /// The file as people know it.
    fn shown(&self) -> String {
        self.home.shown(&self.path)
    }

    fn read(&self) -> Result<(SettingsFile, Document), UsageError> {
        let file = SettingsFile::read(&self.path).map_err(unusable)?;
        let document =
            Document::new(file.bytes().unwrap_or_default()).map_err(|error| self.broken(&error))?;
        Ok((file, document))
    }

    /// Settings that nobody can change but their owner.
    fn broken(&self, error: &SettingsError) -> UsageError {
        UsageError::new(format!("{}:{error}", shown_path(&self.path)))
            .hint("nothing was changed; correct it in the editor, then run this again")
    }

    fn not_edited(&self, error: &EditError) -> UsageError {
        match error {
            EditError::Settings(error) => self.broken(error),
            other => UsageError::new(format!("{}: {other}", shown_path(&self.path)))
                .hint("nothing was changed; the README shows what to write by hand"),
        }
    }
}

/// A file that cannot be read or written.
fn unusable(error: FileError) -> UsageError {
    let hint = error.hint();
    let told = UsageError::of(error);
    match hint {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

/// Changes settings as was asked.
fn change(place: &Place<'_>, how: How, args: SetupArgs) -> anyhow::Result<ExitCode> {
    let Place { home, editor, settings, .. } = place;
    let (file, document) = place.read()?;
    let format = &settings.format;
    let entries = document.agents(format).map_err(|error| place.broken(&error))?;
    let flags = flags(args.skills)?;
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
    let Plan { changes, notes } = plan::plan(&request).map_err(|refused| refused.told(place))?;
    let mut result = document.clone();
    for change in &changes {
        result = edit::edit(&result, format, change).map_err(|error| place.not_edited(&error))?;
    }
    if result == document {
        let names: Vec<_> =
            entries.iter().filter(|entry| entry.ours().is_some()).map(|it| it.name.clone()).collect();
        output::print(&format!(
            "Nothing to change in {}: {} already.\n",
            place.shown(),
            show::through(&names)
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::print_colored(&show::diff(&place.shown(), document.text(), result.text()))?;
    for note in own.notes.iter().chain(&notes).chain(&flags.notes) {
        output::note(&format!("note: {note}"));
    }
    if let Some(extension) = settings.missing_extension(home) {
        output::note(&format!(
            "note: {} needs the extension `{extension}` for it, which is not here",
            editor.name
        ));
    }
    if !show::confirmed(how, "Write this?")? {
        return Ok(ExitCode::SUCCESS);
    }
    let bytes = result.bytes();
    let record = Record::new(editor.id, file.target(), changes)
        .keep(&home.changes, file.bytes(), &bytes)
        .map_err(|error| {
            let dir = shown_path(&home.changes);
            let what = format_args!("cannot keep what is there in {dir}, so nothing was changed");
            UsageError::failed(what, error)
        })?;
    if let Err(error) = file.replace(Some(&bytes)) {
        record.forget();
        return Err(unusable(error).into());
    }
    let before = file.bytes().map_or_else(String::new, |_| {
        format!("What was there before is in {}. ", home.shown(&record.before_path()))
    });
    let back = show::command_line(place, "--undo");
    output::print(&format!("Written. {}\n{before}To take it back: {back}\n", editor.then))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what to paste.
fn paste(editor: &Editor, snippets: &[Snippet], args: &SetupArgs) -> anyhow::Result<ExitCode> {
    let flags = flags(args.skills.clone())?;
    let own = program::our_own(editor.is_desktop)?;
    let (agent, words): (Option<&Agent>, Vec<String>) = match (&args.agent, args.command.is_empty()) {
        (Some(name), _) => {
            let agent = agents::find(name)?;
            (Some(agent), agents::words(agent, |program| which::which(program).ok())?)
        }
        (None, false) => (None, texts(&args.command)?),
        (None, true) => return Err(no_agent(editor, "claude").into()),
    };
    let reached = program::reachable(&words[0], editor.is_desktop)?;
    let flag_words = flags.words.unwrap_or_else(default_flags);
    let command = [&own.words[..], &flag_words, &["--".to_owned()], &reached.words, &words[1..]].concat();
    let wanted = args.editor.as_deref().unwrap_or_default();
    let mut texts = Vec::new();
    for snippet in snippets.iter().filter(|snippet| is_wanted(**snippet, wanted)) {
        if let Some(text) = snippet.text(agent, &command) {
            texts.push(format!("{}\n\n{text}", snippet.title()));
        }
    }
    if texts.is_empty() {
        let known = snippets.first().map(|snippet| paste::known(*snippet)).unwrap_or_default();
        let message = format!("{} has no place for the command of this agent", editor.name);
        return Err(UsageError::new(message).hint(format!("it has one for {}", known.join(", "))).into());
    }
    output::print(&texts.join("\n"))?;
    for note in own.notes.iter().chain(&reached.notes).chain(&flags.notes) {
        output::note(&format!("note: {note}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether somebody who asks by this name wants the snippet: that of one plug-in, or of all.
fn is_wanted(snippet: Snippet, name: &str) -> bool {
    match name.to_lowercase().as_str() {
        "codecompanion" => snippet == Snippet::CodeCompanion,
        "avante" => snippet == Snippet::Avante,
        _ => true,
    }
}

fn no_agent(editor: &Editor, example: &str) -> UsageError {
    UsageError::new("which agent?").hint(format!(
        "`acp-skills-proxy setup {} --agent {example}`, for example; `acp-skills-proxy setup --agents` lists those that are known, \
         and the command of any other goes after `--`",
        editor.id
    ))
}

/// Flags that say which skills, as they are written into settings.
struct Flags {
    /// `None` when none were given.
    words: Option<Vec<String>>,
    notes: Vec<String>,
}

/// What is written when nobody says which skills: the user's own, unless there is a configuration that says it.
fn default_flags() -> Vec<String> {
    match ConfigArgs::default().path_to_read() {
        Some(_) => Vec::new(),
        None => ["--discover", "user"].map(str::to_owned).to_vec(),
    }
}

/// Reads the flags, and looks whether the proxy would start with them. Those that name no skills mean the user's own.
fn flags(mut args: SkillArgs) -> anyhow::Result<Flags> {
    let has_flags = !args.words()?.is_empty();
    let is_named = args.names_skills();
    if !is_named {
        args.discover = vec![Discover::User];
    }
    let words = if has_flags { Some(texts(&args.words()?)?) } else { None };
    // What a site has to say changes, and the network may be away now.
    let here = SkillArgs { sources: Vec::new(), ..args.clone() };
    let config = ProxyArgs { skills: here, ..ProxyArgs::default() }.config()?;
    let loaded = skills::load(Settings::resolve(config)?.skills)?;
    let notes = match loaded.here.is_empty() && args.sources.is_empty() {
        true if !is_named => vec![
            "you have no skills yet: put them into ~/.agents/skills, or name a directory with `--skills DIR`"
                .to_owned(),
        ],
        true => loaded.why_none(),
        false => Vec::new(),
    };
    Ok(Flags { words, notes })
}

fn texts(words: &[OsString]) -> Result<Vec<String>, UsageError> {
    let text = |word: &OsString| {
        word.to_str().map(str::to_owned).ok_or_else(|| {
            UsageError::new(format!("`{}` cannot be written into settings: it is no text", word.display()))
        })
    };
    words.iter().map(text).collect()
}
