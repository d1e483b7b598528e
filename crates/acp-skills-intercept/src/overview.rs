//! What `/skills` answers: Markdown for the user.

use std::fmt::Write;

use skills_core::{Diagnostic, Difference, SkillSet, search::Query};

use crate::{
    menu::{self, spelling},
    policy::Policy,
    session::{Session, activations::By, menu::AgentCommands},
};

/// What to type.
pub(crate) const USAGE: &str = "`/skills` lists the skills, `/skills reload` looks for new ones, `/skills search WORDS` finds those that fit.";

/// How many skills are shown at most.
const MAX_SHOWN: usize = 100;
/// How many decisions are shown at most, the last ones.
const MAX_DECISIONS: usize = 10;
/// How many findings are shown at most.
const MAX_FINDINGS: usize = 50;

/// The skills of a session, what is wrong with them, and what was decided for the user.
pub(crate) fn session(session: &Session, policy: &Policy) -> String {
    let mut text = String::new();
    let skills = &session.skills;
    let _ = match skills.len() {
        0 => writeln!(text, "There are no skills in this session."),
        1 => writeln!(text, "**1 skill in this session**\n"),
        count => writeln!(text, "**{count} skills in this session**\n"),
    };
    let theirs = AgentCommands::of(&session.menu);
    let words = spelling::spelled(skills);
    for skill in skills.iter().take(MAX_SHOWN) {
        let word = words.iter().find(|(_, other)| other.name == skill.name).map(|(word, _)| word.as_str());
        let name = match word {
            Some(word) if menu::is_taken(&theirs, word) => format!("/{}{word}", menu::PREFIX),
            Some(word) => format!("/{word}"),
            None => skill.name.to_string(),
        };
        let mut notes = vec![skill.scope.to_string()];
        match session.activations.by(&skill.name) {
            Some(By::User) => notes.push("**active**, by you".to_owned()),
            Some(By::Model) => notes.push("**active**, by the model".to_owned()),
            Some(By::Prompt) => notes.push("**active**, by the proxy".to_owned()),
            None => {}
        }
        if skill.properties.disable_model_invocation {
            notes.push("only by command".to_owned());
        }
        if word.is_none() {
            notes.push("only by the model".to_owned());
        }
        let _ = writeln!(text, "- `{name}` ({}): {}", notes.join(", "), spelling::description(skill));
    }
    if skills.len() > MAX_SHOWN {
        let more = skills.len() - MAX_SHOWN;
        let _ = writeln!(text, "- and {more} more; `/skills search WORDS` finds them");
    }
    let findings = findings(skills);
    if !findings.is_empty() {
        let _ = writeln!(text, "\n**Warnings**\n");
        for finding in findings.iter().take(MAX_FINDINGS) {
            let _ = writeln!(text, "- {finding}");
        }
        if findings.len() > MAX_FINDINGS {
            let _ = writeln!(text, "- and {} more", findings.len() - MAX_FINDINGS);
        }
    }
    let _ = writeln!(
        text,
        "\n**Permissions**: `--approve {}`, `--tool-policy {}`",
        policy.approve.name(),
        policy.tool_policy.name()
    );
    let decisions = session.decisions.last(MAX_DECISIONS);
    if !decisions.is_empty() {
        text.push('\n');
        for decision in decisions {
            let _ = writeln!(text, "- {decision}");
        }
    }
    let _ = write!(text, "\n{USAGE}");
    text
}

fn findings(skills: &SkillSet) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |what: &str, diagnostics: &[Diagnostic]| {
        lines.extend(diagnostics.iter().map(|finding| format!("{what}: {}", finding.message)));
    };
    for entry in skills.entries() {
        add(&format!("`{}`", entry.skill.name), &entry.diagnostics);
        for tool in entry.skill.tools() {
            if let Some(missing) = &tool.missing {
                add(
                    &format!("`{}`, tool `{}`", entry.skill.name, tool.name),
                    &[Diagnostic::warning("missing-program", missing.clone())],
                );
            }
        }
    }
    for skipped in skills.skipped() {
        add(&format!("{} is left out", skipped.path.display()), &skipped.diagnostics);
    }
    for shadowed in skills.shadowed() {
        let by = shadowed.by.as_ref().map_or("another one".to_owned(), |by| by.display().to_string());
        let path = shadowed.path.as_ref().map(|path| format!(" in {}", path.display())).unwrap_or_default();
        lines.push(format!("`{}`{path} is hidden by {by}", shadowed.name));
    }
    lines.dedup();
    lines
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
