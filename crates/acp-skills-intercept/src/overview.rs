//! The answers to `/skills`: Markdown for the user.

mod news;
mod unapproved;

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use skills_core::{
    Scope, Skill, SkillName, SkillSet,
    search::Query,
    set::REFUSED_BY_POLICY,
    text::{markdown, markdown_code, markdown_message, markdown_path, shown_path},
};

pub(crate) use self::unapproved::{first_unapproved, list_before_trust};

use crate::{
    difference::Difference,
    menu::{
        names::{AGENT_PREFIX, Names, PREFIX},
        spelling,
    },
    policy::CommandNames,
    queries::{HostError, TrustOutcome},
    session::Session,
};

/// The end of the answer to `/skills`.
pub(crate) const USAGE: &str = "`/skills` lists the skills, `/skills reload` looks for new ones, `/skills search WORDS` finds those that fit, `/skills off NAME` and `/skills on NAME` turn one off and on (with `--here` in new sessions of this directory, too).";

/// The note about a skill whose last instructions came from a restoration.
pub(crate) const RESTORED: &str = "restored after compaction";
/// The maximum number of skills in a section.
const MAX_SHOWN: usize = 100;
/// The maximum number of decisions. The last ones are shown.
const MAX_DECISIONS: usize = 10;
/// The maximum number of globs of a skill.
const MAX_GLOBS: usize = 5;
/// The maximum number of problems.
const MAX_PROBLEMS: usize = 20;

/// Answers `/skills`: the skills of a session, their problems, and decisions about permissions.
pub(crate) fn session(session: &Session, names: CommandNames) -> String {
    let mut text = headline(session);
    let all = session.switches.all();
    list_skills(&mut text, session, &Names::of(session, names));
    section(
        &mut text,
        "Off",
        MAX_SHOWN,
        session.switches.off().map(|skill| {
            let here = if session.switches.is_remembered(&skill.name) { " (in this directory)" } else { "" };
            format!("{}{here}: {}", code(&skill.name), described_in(session, skill))
        }),
    );
    unapproved::write(&mut text, session);
    news::write(&mut text, all);
    section(&mut text, "Problems", MAX_PROBLEMS, problems(all).into_iter());
    let decisions = session.decisions.last(MAX_DECISIONS).iter();
    section(
        &mut text,
        "Permissions decided for you",
        MAX_DECISIONS,
        decisions.map(|(decision, times)| {
            let times = if *times == 1 { String::new() } else { format!(" ({times} times)") };
            format!("{}{times}", markdown_message(decision))
        }),
    );
    let _ = write!(text, "\n{USAGE}");
    text
}

fn headline(session: &Session) -> String {
    let all = session.switches.all();
    match session.skills.len() {
        0 if !all.unapproved().is_empty() && all.is_empty() => "No trusted skills in this session.\n".to_owned(),
        0 if !all.is_empty() => "All skills in this session are off.\n".to_owned(),
        0 => "No skills found for this session. Run `acp-skills-proxy list` with your flags to list searched directories.\n"
            .to_owned(),
        1 => "**1 skill in this session**\n\n".to_owned(),
        count => format!("**{count} skills in this session**\n\n"),
    }
}

/// Lists the enabled skills, with their commands.
fn list_skills(text: &mut String, session: &Session, names: &Names<'_>) {
    let skills = &session.skills;
    let words = spelling::spelled(skills);
    for skill in skills.iter().take(MAX_SHOWN) {
        let word = words.iter().find(|(_, other)| other.name == skill.name).map(|(word, _)| word);
        let name = match word {
            Some(word) if names.skill_of(word).is_none() => format!("/{PREFIX}{word}"),
            Some(word) => format!("/{word}"),
            None => skill.name.to_string(),
        };
        let mut notes = Vec::new();
        if let Some(reason) = session.activations.reason(skill, skills, session.workspace.cwd.as_deref()) {
            notes.extend(["active", reason]);
        }
        if session.compaction.was_restored(&skill.name) {
            notes.push(RESTORED);
        }
        if skill.properties.disable_model_invocation {
            notes.push("only by command");
        }
        let waits = waits(skill);
        notes.extend(waits.as_deref());
        if word.is_none() {
            notes.push("only by the model");
        }
        let theirs = word.filter(|word| names.skill_of(word).is_some() && names.are_agents(word));
        let theirs = theirs
            .map(|word| format!("the agent's own is {}", markdown_code(&format!("/{AGENT_PREFIX}{word}"))));
        notes.extend(theirs.as_deref());
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        let _ = writeln!(text, "- {}{notes}: {}", markdown_code(&name), described_in(session, skill));
    }
    if skills.len() > MAX_SHOWN {
        let more = skills.len() - MAX_SHOWN;
        let _ = writeln!(text, "- and {more} more; use `/skills search WORDS` to find skills");
    }
}

/// Writes a section with a list, unless the list is empty.
fn section(text: &mut String, title: &str, max: usize, entries: impl Iterator<Item = String>) {
    let mut entries = entries.peekable();
    if entries.peek().is_some() {
        let _ = writeln!(text, "\n**{title}**\n");
        list(text, max, entries);
    }
}

/// Writes the first `max` entries as a list, and the number of the others.
fn list(text: &mut String, max: usize, mut entries: impl Iterator<Item = String>) {
    for entry in entries.by_ref().take(max) {
        let _ = writeln!(text, "- {entry}");
    }
    let more = entries.count();
    if more > 0 {
        let _ = writeln!(text, "- and {more} more");
    }
}

/// Returns the problems of the skills, a line for each skill.
fn problems(skills: &SkillSet) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in skills.entries() {
        let skill = &entry.skill;
        let missing = skill.tools().iter().filter_map(|tool| Some((&tool.name, tool.missing.as_ref()?)));
        let missing = missing.map(|(tool, why)| format!("tool `{tool}` is not available: {why}"));
        let found = entry.diagnostics.iter().map(|finding| finding.message.clone());
        let dir = skill.dir().filter(|_| !entry.diagnostics.is_empty());
        lines.extend(problem(&code(&skill.name), found.chain(missing).collect(), dir));
    }
    for skipped in skills.skipped() {
        let is_about_place = |code: &str| code.starts_with("source-") || code == REFUSED_BY_POLICY;
        if let Some(source) = skipped.diagnostics.first().filter(|finding| is_about_place(finding.code)) {
            let help = source.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
            lines.push(markdown_message(&format!("{}{help}", source.message)));
            continue;
        }
        let found = skipped.diagnostics.iter().map(|finding| finding.message.clone()).collect();
        let dir = skipped.path.parent().filter(|_| skipped.path.extension().is_some());
        let dir = dir.unwrap_or(&skipped.path);
        let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
        lines.extend(problem(&format!("{} was skipped", markdown_code(&name)), found, Some(dir)));
    }
    let hidden = skills.shadowed().iter().map(|shadowed| {
        let place = |path: &Option<PathBuf>| {
            path.as_deref().map_or("the configuration".to_owned(), |path| markdown(&shown_path(path)))
        };
        format!(
            "{} from {} is hidden by the skill from {}; run `acp-skills-proxy list` with your flags to list both",
            code(&shadowed.name),
            place(&shadowed.path),
            place(&shadowed.by)
        )
    });
    lines.extend(hidden);
    lines.dedup();
    lines
}

/// Returns a line with the first problem of a skill, the number of its other problems, and the command that explains them.
/// Returns `None` if there are no problems.
fn problem(what: &str, found: Vec<String>, dir: Option<&Path>) -> Option<String> {
    let more = found.len().saturating_sub(1);
    let mut line = format!("{what}: {}", markdown_message(&found.into_iter().next()?));
    if more > 0 {
        let _ = write!(line, ", and {more} more");
    }
    if let Some(dir) = dir {
        let path = shown_path(dir);
        let quote = if path.contains(' ') { "\"" } else { "" };
        let _ = if path.chars().all(is_plain) {
            let command = markdown_code(&format!("acp-skills-proxy check {quote}{path}{quote}"));
            write!(line, "; run {command} for details")
        } else {
            write!(line, "; run `acp-skills-proxy check` with {} for details", markdown_code(&path))
        };
    }
    Some(line)
}

/// Answers `/skills search`: the skills that match `words`, the best match first.
pub(crate) fn search(session: &Session, words: &str) -> String {
    let found = session.skills.search(&Query { text: words.to_owned(), ..Query::default() });
    if found.hits.is_empty() {
        return "No matching skills. Use fewer or different words.".to_owned();
    }
    let mut text = String::new();
    for (number, hit) in (1..).zip(&found.hits) {
        let _ = writeln!(
            text,
            "{number}. {}: {}",
            code(&hit.skill.name),
            markdown(&spelling::description(&hit.skill))
        );
    }
    if found.total > found.hits.len() {
        let _ = writeln!(text, "\nand {} more", found.total - found.hits.len());
    }
    text
}

/// Returns true if a character of a path has no meaning for any shell within double quotes, so that a user can copy it.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '\\' | ':' | '.' | '-' | '_' | '+' | ',' | '=' | '@' | '~' | ' ')
}

/// Returns a name as Markdown.
pub(crate) fn code(name: &SkillName) -> String {
    markdown_code(name.as_str())
}

/// Returns a list of names as Markdown.
fn codes<'n>(names: impl IntoIterator<Item = &'n SkillName>) -> String {
    names.into_iter().map(code).collect::<Vec<_>>().join(", ")
}

/// Returns the globs of the files for which a skill waits, if it does.
fn waits(skill: &Skill) -> Option<String> {
    let globs = skill.properties.paths.iter().take(MAX_GLOBS).map(|glob| markdown_code(glob));
    let more = if skill.properties.paths.len() > MAX_GLOBS { ", …" } else { "" };
    skill.awaits_path().then(|| format!("waits for {}{more}", globs.collect::<Vec<_>>().join(", ")))
}

/// Returns a skill's description, with its source if the user should see it. If the session has several roots, the source of a
/// project's skill includes its root.
fn described_in(session: &Session, skill: &Skill) -> String {
    let description = markdown(&spelling::description(skill));
    let root = skill.session_root.as_deref().filter(|_| !session.workspace.additional.is_empty());
    match skill.dir() {
        Some(dir) if let Some(root) = root => {
            format!("{description} _({}, of {})_", markdown_path(dir), markdown_path(root))
        }
        Some(dir) => format!("{description} _({})_", markdown_path(dir)),
        // The description names the service.
        None if skill.service().is_some() => description,
        None if skill.scope == Scope::Remote => format!("{description} _(from the web)_"),
        None if skill.scope == Scope::Session => {
            format!("{description} _(from the editor, for this session)_")
        }
        None => description,
    }
}

/// Answers `/skills on` and `/skills off`. `saved` is the result of saving the change for new sessions, or `None` if the
/// command was for this session only.
pub(crate) fn switched(
    session: &Session,
    names: &[SkillName],
    on: bool,
    saved: Option<&Result<(), HostError>>,
) -> String {
    let (state, other) = if on { ("on", "off") } else { ("off", "on") };
    let are = if names.len() == 1 { "is" } else { "are" };
    let mut text = format!("{} {are} {state}", codes(names));
    let is_missing = |name: &&SkillName| session.switches.all().get(name.as_str()).is_none();
    let missing = codes(names.iter().filter(is_missing));
    match saved {
        Some(Ok(())) => text.push_str(
            " in this session and for new sessions in this directory. Open sessions of other editors or windows don't change.",
        ),
        Some(Err(error)) => {
            let _ = write!(
                text,
                " in this session, but could not be saved for new sessions: {}.",
                markdown_message(&error.0)
            );
        }
        None => {
            text.push_str(" in this session.");
            if on && names.iter().any(|name| session.switches.is_remembered(name)) {
                text.push_str(" To include new sessions in this directory, add `--here`.");
            }
        }
    }
    if on && !missing.is_empty() {
        let _ = write!(text, " Not available at the moment: {missing}.");
    }
    if !on && let [name] = names {
        let command = markdown_code(&format!("/skills {other} {name}"));
        let _ = write!(text, " To undo, use {command}.");
    }
    text
}

/// Answers `/skills trust`. `unlisted` is the number of skills that still wait for approval, and whose current version
/// was not listed.
pub(crate) fn trust_outcome(outcome: &TrustOutcome, unlisted: usize) -> String {
    let mut text = String::new();
    if !outcome.done.is_empty() {
        let are = if outcome.done.len() == 1 { "is" } else { "are" };
        let _ = write!(text, "{} {are} trusted until the next change.", codes(&outcome.done));
    }
    for (name, why) in &outcome.failed {
        let _ = write!(text, " Could not trust {}: {}.", code(name), markdown_message(why));
    }
    if let Err(error) = &outcome.saved {
        let why = markdown_message(&error.0);
        let _ = write!(text, " Could not save this decision for other sessions: {why}.");
    }
    match unlisted {
        0 => {}
        1 => {
            text.push_str(" 1 other skill was not listed in its current version. `/skills trust` lists it.");
        }
        count => {
            let _ = write!(
                text,
                " {count} other skills were not listed in their current version. `/skills trust` lists them."
            );
        }
    }
    text.trim_start().to_owned()
}

/// Lists the skills that the user has declined in a form, but that stay trusted, with the reasons.
pub(crate) fn not_declined(outcome: &TrustOutcome) -> String {
    let mut text = String::new();
    for (name, why) in &outcome.failed {
        let _ = write!(text, " Could not decline {}: {}.", code(name), markdown_message(why));
    }
    text.trim_start().to_owned()
}

/// Answers `/skills reload`.
pub(crate) fn reloaded(difference: &Difference, now: &SkillSet) -> String {
    let mut text = match now.len() {
        1 => "Loaded 1 skill.".to_owned(),
        count => format!("Loaded {count} skills."),
    };
    let Difference { added, removed, changed, .. } = difference;
    for (what, skills) in [("New", added), ("Removed", removed), ("Changed", changed)] {
        if !skills.is_empty() {
            let names = codes(skills.iter().map(|skill| &skill.name));
            let _ = write!(text, " {what}: {names}.");
        }
    }
    if difference.is_empty() {
        text.push_str(" No changes.");
    }
    match now.skipped().len() {
        0 => {}
        1 => text.push_str(" 1 skill could not be loaded; use `/skills` for details."),
        count => {
            let _ = write!(text, " {count} skills could not be loaded; use `/skills` for details.");
        }
    }
    text
}
