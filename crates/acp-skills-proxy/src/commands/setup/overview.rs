//! Lists the editors, agents and skills on this machine, and all known agents.

use acp_skills::{
    agents::{self, Agent, Means},
    config::{Discover, Settings, cache_dir},
};
use acp_skills_setup::{
    document::Start,
    editors::{self, Editor, Settings as EditorSettings},
    home::Home,
};
use skills_core::{Source, text::shown};

use super::{Document, SettingsFile, Way, is_there, skills};
use crate::{
    args::{ProxyArgs, SkillArgs},
    commands::table::{Align, Table, terminal_width},
    words::count,
};

/// Returns the overview of this machine.
///
/// # Errors
/// Returns an error if the user's configuration or skills cannot be read.
pub(super) fn of(home: &Home) -> anyhow::Result<String> {
    let mut editors =
        Table::new([("EDITOR", Align::Left), ("SETTINGS", Align::Path), ("AGENTS", Align::Wrapped)]);
    let mut first = None;
    for editor in editors::ALL {
        for row in rows(editor, home) {
            first.get_or_insert(editor.id);
            editors.row([editor.id.to_owned(), row.0, row.1]);
        }
    }
    let editors = match first {
        Some(_) => editors.render(terminal_width()),
        None => "No supported editor found.".to_owned(),
    };
    let mut agents = Table::new([("AGENT", Align::Left), ("NAME", Align::Left), ("PROGRAM", Align::Path)]);
    let mut has_agent = false;
    for agent in agents::all() {
        if let Ok(path) = which::which(agent.program[0]) {
            has_agent = true;
            agents.row([agent.id.to_owned(), agent.name.to_owned(), home.shown(&path)]);
        }
    }
    let agents = if has_agent {
        format!("{}\n\n", agents.render(terminal_width()))
    } else {
        "No known agents found in PATH.\n".to_owned()
    };
    let known = agents::all().len();
    let runners = format!("npx{} and uvx{}", missing("npx"), missing("uvx"));
    let skills = user_skills(home)?;
    let editor = first.unwrap_or("zed");
    Ok(format!(
        "{editors}\n\n{agents}To list all {known} known agents: acp-skills-proxy setup --agents\nAgents from npm and \
         PyPI are started using {runners}.\n\n{skills}\nTo use the proxy for an agent: acp-skills-proxy setup \
         {editor} --agent claude\n"
    ))
}

fn missing(runner: &str) -> &'static str {
    if which::which(runner).is_ok() { "" } else { " (not installed)" }
}

/// Returns the settings files of an editor with their agents. Empty if the editor is not installed.
fn rows(editor: &Editor, home: &Home) -> Vec<(String, String)> {
    let is_in_path = || editor.programs.iter().any(|program| which::which(program).is_ok());
    match &editor.way {
        Way::Settings(settings) => {
            let files = settings.files(home).into_iter().filter(|file| is_there(file));
            let rows: Vec<_> = files.map(|file| (home.shown(&file), agents_in(&file, settings))).collect();
            if rows.is_empty() && (settings.is_here(home) || is_in_path()) {
                return vec![(home.shown(&settings.files(home)[0]), "(no file yet)".to_owned())];
            }
            rows
        }
        Way::Paste(_) if is_in_path() => vec![("(prints text to paste)".to_owned(), String::new())],
        Way::Paste(_) => Vec::new(),
    }
}

fn agents_in(file: &std::path::Path, settings: &EditorSettings) -> String {
    let read = SettingsFile::read(file).map_err(|error| error.to_string()).and_then(|file| {
        let document = Document::new(file.bytes().unwrap_or_default());
        let agents = document.and_then(|document| document.agents(&settings.format));
        agents.map_err(|error| format!("error in line {}: {}", error.line, error.message))
    });
    match read {
        Err(message) => message,
        Ok(agents) if agents.is_empty() => "none".to_owned(),
        Ok(agents) => {
            let shown = agents.iter().map(|agent| match (&agent.start, agent.ours()) {
                (_, Some(_)) => format!("{} (through the proxy)", agent.name),
                (Start::Editor, _) => format!("{} (the editor's own)", agent.name),
                (Start::Unclear(_), _) => format!("{} (unreadable)", agent.name),
                _ => agent.name.clone(),
            });
            shown.collect::<Vec<_>>().join(", ")
        }
    }
}

fn user_skills(home: &Home) -> anyhow::Result<String> {
    let here = SkillArgs { discover: vec![Discover::User], ..SkillArgs::default() };
    let config = ProxyArgs { session: here.into(), ..ProxyArgs::default() }.config()?;
    let sources: Vec<_> = config.sources.iter().map(|entry| entry.source.clone()).collect();
    let loaded = skills::load(Settings::resolve(config)?.skills)?;
    let mut dirs = Vec::new();
    let cache = cache_dir();
    let is_fetched = |dir: &std::path::Path| cache.as_deref().is_some_and(|cache| dir.starts_with(cache));
    let mut has_fetched = false;
    for entry in loaded.here.entries() {
        if let Source::Stored(stored) = &entry.skill.source
            && !is_fetched(&stored.dir)
        {
            let dir = stored.dir.parent().map_or_else(String::new, |dir| home.shown(dir));
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        } else {
            has_fetched |= !matches!(entry.skill.source, Source::Virtual(_));
        }
    }
    if has_fetched {
        dirs.extend(sources.iter().map(|source| shown(source).into_owned()));
    }
    Ok(match loaded.here.len() {
        0 => {
            "No skills found: add skills to ~/.agents/skills, or use `--skills DIR` for another directory.\n"
                .to_owned()
        }
        number => format!(
            "Found {} in {}. To list all: acp-skills-proxy list --discover user\n",
            count(number, "skill"),
            dirs.join(", ")
        ),
    })
}

/// Returns the table of the known agents.
pub(super) fn agents() -> String {
    let width = terminal_width();
    let in_full = known(false);
    let table = if width.is_none_or(|width| in_full.width() <= width) { in_full } else { known(true) };
    format!(
        "{}\n\nVERSION is the tested version, and SKILLS shows how the model reads skills. To use another ACP agent, \
         add the command: `acp-skills-proxy … -- COMMAND`. To test an agent: acp-skills-proxy doctor --agent ID\n",
        table.render(width)
    )
}

/// Returns the table. If `is_short` is true, the arguments of commands are left out.
fn known(is_short: bool) -> Table<5> {
    let mut table = Table::new([
        ("AGENT", Align::Left),
        ("NAME", Align::Left),
        ("VERSION", Align::Left),
        ("SKILLS", Align::Left),
        ("STARTED BY", Align::Wrapped),
    ]);
    for agent in agents::all() {
        let [version, skills] = seen(agent);
        table.row([agent.id.to_owned(), agent.name.to_owned(), version, skills, command(agent, is_short)]);
        if !agent.notes.is_empty() {
            table.note(agent.notes);
        }
    }
    table
}

fn command(agent: &'static Agent, is_short: bool) -> String {
    match agents::words(agent, |program| which::which(program).ok()) {
        Ok(words) => words[..if is_short { 1 } else { words.len() }].join(" "),
        Err(_) => match (agent.npx, agent.uvx) {
            (Some(_), _) => "(needs npx)".to_owned(),
            (_, Some(_)) => "(needs uvx)".to_owned(),
            _ => format!("({})", agent.home),
        },
    }
}

/// Returns the version that was tested, and the way in which the model reads skills.
fn seen(agent: &Agent) -> [String; 2] {
    let Some(seen) = &agent.seen else { return ["–".to_owned(), "–".to_owned()] };
    let version = seen.version.unwrap_or("yes").to_owned();
    let means = match (seen.skills, seen.server) {
        (Some(Means::Tools), Some(server)) => format!("tools ({server})"),
        (Some(Means::Tools), None) => "tools".to_owned(),
        (Some(Means::Files), _) => "files".to_owned(),
        _ => "–".to_owned(),
    };
    [version, means]
}
