//! What `/skills` answers: Markdown for the user.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use skills_core::{
    Difference, Scope, Skill, SkillName, SkillSet,
    search::Query,
    text::{shown, shown_path},
};

use crate::{
    active_skills::ActivatedBy,
    menu::{self, spelling},
    queries::{HostError, TrustOutcome},
    session::Session,
};

/// What to type.
pub(crate) const USAGE: &str = "`/skills` lists the skills, `/skills reload` looks for new ones, `/skills search WORDS` finds those that fit, `/skills off NAME` and `/skills on NAME` turn one off and on (with `--here` in new sessions of this directory, too).";

/// How many skills are shown at most.
const MAX_SHOWN: usize = 100;
/// How many decisions are shown at most, the last ones.
const MAX_DECISIONS: usize = 10;
/// How many problems are shown at most.
const MAX_PROBLEMS: usize = 20;

/// The skills of a session, what is wrong with them, and what was decided for the user.
pub(crate) fn session(session: &Session) -> String {
    let mut text = String::new();
    let skills = &session.skills;
    let _ = match skills.len() {
        0 if !session.switches.all().unapproved().is_empty() && session.switches.all().is_empty() => {
            writeln!(text, "No skill is on in this session.")
        }
        0 if !session.switches.all().is_empty() => writeln!(text, "All skills of this session are off."),
        0 => writeln!(
            text,
            "There are no skills in this session. `acp-skills-proxy list` with your flags says where it looks, and why."
        ),
        1 => writeln!(text, "**1 skill in this session**\n"),
        count => writeln!(text, "**{count} skills in this session**\n"),
    };
    let theirs = menu::agent_commands(session);
    let words = spelling::spelled(skills);
    for skill in skills.iter().take(MAX_SHOWN) {
        let word = words.iter().find(|(_, other)| other.name == skill.name).map(|(word, _)| word.as_str());
        let name = match word {
            Some(word) if menu::is_taken(&theirs, word) => format!("/{}{word}", menu::PREFIX),
            Some(word) => format!("/{word}"),
            None => skill.name.to_string(),
        };
        let mut notes = Vec::new();
        match session.activations.by(&skill.name) {
            Some(ActivatedBy::User) => notes.push("active, by you"),
            Some(ActivatedBy::Model) => notes.push("active, by the model"),
            Some(ActivatedBy::Prompt) => notes.push("active, because it fits a prompt"),
            None => {}
        }
        if skill.properties.disable_model_invocation {
            notes.push("only by command");
        }
        if word.is_none() {
            notes.push("only by the model");
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        let _ = writeln!(text, "- `{name}`{notes}: {}", described(skill));
    }
    if skills.len() > MAX_SHOWN {
        let more = skills.len() - MAX_SHOWN;
        let _ = writeln!(text, "- and {more} more; `/skills search WORDS` finds them");
    }
    let off: Vec<_> = session.switches.off().collect();
    if !off.is_empty() {
        let _ = writeln!(text, "\n**Off**\n");
        for skill in off.iter().take(MAX_SHOWN) {
            let here = if session.switches.is_remembered(&skill.name) { " (in this directory)" } else { "" };
            let _ = writeln!(text, "- `{}`{here}: {}", skill.name, described(skill));
        }
        if off.len() > MAX_SHOWN {
            let _ = writeln!(text, "- and {} more", off.len() - MAX_SHOWN);
        }
    }
    let waiting = session.switches.all().unapproved();
    if !waiting.is_empty() {
        let _ = writeln!(text, "\n**Waiting for your trust**\n");
        for it in waiting.iter().take(MAX_SHOWN) {
            let skill = &it.skill;
            let changed = if it.has_changed { " (it has changed since you trusted it)" } else { "" };
            let _ = writeln!(text, "- `{}`{changed}: {}", skill.name, described(skill));
        }
        if waiting.len() > MAX_SHOWN {
            let _ = writeln!(text, "- and {} more", waiting.len() - MAX_SHOWN);
        }
        let _ = writeln!(
            text,
            "\nThe project brings them, and your agent gets nothing of them. `/skills trust NAME` trusts one as it is now, \
             `/skills trust` all; look at their files first."
        );
    }
    let problems = problems(session.switches.all());
    if !problems.is_empty() {
        let _ = writeln!(text, "\n**Problems**\n");
        for problem in problems.iter().take(MAX_PROBLEMS) {
            let _ = writeln!(text, "- {problem}");
        }
        if problems.len() > MAX_PROBLEMS {
            let _ = writeln!(text, "- and {} more", problems.len() - MAX_PROBLEMS);
        }
    }
    let decisions = session.decisions.last(MAX_DECISIONS);
    if !decisions.is_empty() {
        let _ = writeln!(text, "\n**Permissions decided for you**\n");
        for (decision, times) in decisions {
            let times = if *times == 1 { String::new() } else { format!(" ({times} times)") };
            let _ = writeln!(text, "- {decision}{times}");
        }
    }
    let _ = write!(text, "\n{USAGE}");
    text
}

/// What is wrong, in a line for each skill.
fn problems(skills: &SkillSet) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in skills.entries() {
        let skill = &entry.skill;
        let missing = skill.tools().iter().filter_map(|tool| Some((&tool.name, tool.missing.as_ref()?)));
        let missing = missing.map(|(tool, why)| format!("its tool `{tool}` does not work: {why}"));
        let found = entry.diagnostics.iter().map(|finding| finding.message.clone());
        let dir = skill.dir().filter(|_| !entry.diagnostics.is_empty());
        lines.extend(problem(&format!("`{}`", skill.name), found.chain(missing).collect(), dir));
    }
    for skipped in skills.skipped() {
        if let Some(source) =
            skipped.diagnostics.first().filter(|finding| finding.code.starts_with("source-"))
        {
            let help = source.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
            lines.push(format!("{}{help}", source.message));
            continue;
        }
        let found = skipped.diagnostics.iter().map(|finding| finding.message.clone()).collect();
        let dir = skipped.path.parent().filter(|_| skipped.path.extension().is_some());
        let dir = dir.unwrap_or(&skipped.path);
        let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
        lines.extend(problem(&format!("`{name}` is left out"), found, Some(dir)));
    }
    let hidden = skills.shadowed().iter().map(|shadowed| {
        let place = |path: &Option<PathBuf>| path.as_deref().map_or("the configuration".to_owned(), shown_path);
        format!(
            "another `{}` ({}) is hidden by the one in {}; `acp-skills-proxy list` with your flags shows both",
            shadowed.name,
            place(&shadowed.path),
            place(&shadowed.by)
        )
    });
    lines.extend(hidden);
    lines.dedup();
    lines
}

/// One line for all that is wrong with one skill, with the command that explains it.
fn problem(what: &str, found: Vec<String>, dir: Option<&Path>) -> Option<String> {
    let more = found.len().saturating_sub(1);
    let mut line = format!("{what}: {}", found.into_iter().next()?);
    if more > 0 {
        let _ = write!(line, ", and {more} more");
    }
    if let Some(dir) = dir {
        let dir = dir.display().to_string();
        let quote = if dir.contains(char::is_whitespace) { "\"" } else { "" };
        let _ = write!(line, "; `acp-skills-proxy check {quote}{dir}{quote}` explains it");
    }
    Some(line)
}

/// The skills that fit `words`, best first.
pub(crate) fn search(session: &Session, words: &str) -> String {
    let found = session.skills.search(&Query { text: words.to_owned(), ..Query::default() });
    if found.hits.is_empty() {
        return "No skill fits. Try other or fewer words.".to_owned();
    }
    let mut text = String::new();
    for (number, hit) in (1..).zip(&found.hits) {
        let _ = writeln!(text, "{number}. `{}`: {}", hit.skill.name, spelling::description(&hit.skill));
    }
    if found.total > found.hits.len() {
        let _ = writeln!(text, "\nand {} more", found.total - found.hits.len());
    }
    text
}

/// A skill and where it comes from, if there is anything to tell of that.
fn described(skill: &Skill) -> String {
    let description = spelling::description(skill);
    match skill.dir() {
        Some(dir) => format!("{description} _(`{}`)_", shown_path(dir)),
        None if skill.scope == Scope::Remote => format!("{description} _(from the web)_"),
        None if skill.scope == Scope::Session => {
            format!("{description} _(from the editor, for this session)_")
        }
        None => description,
    }
}

/// What became of a switch: these skills are on or off now, and `kept` says whether new sessions have it so as well.
pub(crate) fn switched(
    session: &Session,
    names: &[SkillName],
    on: bool,
    saved: Option<&Result<(), HostError>>,
) -> String {
    let (state, other) = if on { ("on", "off") } else { ("off", "on") };
    let list: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    let mut text = format!("{} {are} {state}", list.join(", "));
    let is_missing = |name: &&SkillName| session.switches.all().get(name.as_str()).is_none();
    let missing: Vec<_> = names.iter().filter(is_missing).map(|name| format!("`{name}`")).collect();
    match saved {
        Some(Ok(())) => text.push_str(" in this session and in new ones of this directory."),
        Some(Err(error)) => {
            let _ =
                write!(text, " in this session. This was not saved for new sessions: {}.", shown(&error.0));
        }
        None => {
            text.push_str(" in this session.");
            if on && names.iter().any(|name| session.switches.is_remembered(name)) {
                text.push_str(" In new ones of this directory it stays off, unless you say `--here`.");
            }
        }
    }
    if on && !missing.is_empty() {
        let _ = write!(text, " There is no skill {} now.", missing.join(", "));
    }
    if !on && let [name] = names {
        let _ = write!(text, " `/skills {other} {name}` turns it {other} again.");
    }
    text
}

/// What became of a decision about skills of the project.
pub(crate) fn trust_outcome(outcome: &TrustOutcome) -> String {
    let mut text = String::new();
    let list: Vec<_> = outcome.done.iter().map(|name| format!("`{name}`")).collect();
    if !list.is_empty() {
        let (are, they) = if list.len() == 1 { ("is", "it is") } else { ("are", "they are") };
        let _ = write!(text, "{} {are} trusted, as {they} now; what changes waits again.", list.join(", "));
    }
    for (name, why) in &outcome.failed {
        let _ = write!(text, " `{name}` is not trusted: {}.", shown(why));
    }
    if let Err(error) = &outcome.saved {
        let _ = write!(text, " This was not saved for other sessions: {}.", shown(&error.0));
    }
    text.trim_start().to_owned()
}

/// What a new look at the skills brought.
pub(crate) fn reloaded(difference: &Difference, now: &SkillSet) -> String {
    let mut text = match now.len() {
        1 => "Loaded 1 skill.".to_owned(),
        count => format!("Loaded {count} skills."),
    };
    let Difference { added, removed, changed, .. } = difference;
    for (what, skills) in [("New", added), ("Gone", removed), ("Changed", changed)] {
        if !skills.is_empty() {
            let names: Vec<_> = skills.iter().map(|skill| format!("`{}`", skill.name)).collect();
            let _ = write!(text, " {what}: {}.", names.join(", "));
        }
    }
    if difference.is_empty() {
        text.push_str(" Nothing has changed.");
    }
    match now.skipped().len() {
        0 => {}
        1 => text.push_str(" 1 could not be loaded; `/skills` says why."),
        count => {
            let _ = write!(text, " {count} could not be loaded; `/skills` says why.");
        }
    }
    text
}
