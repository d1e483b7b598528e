//! `init`: creates a valid skill with evaluation cases.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use skills_core::{
    Severity,
    frontmatter::{self, ParseContext, Verdict},
};
use skills_sources::disk::leftovers;
use tempfile::Builder;

use crate::error::UsageError;

/// The part of a hidden directory's name between the name of the skill and six random characters.
const STAGED: &str = "-init-";
/// The age of a hidden directory after which it is considered left over. A running process renames its directory much
/// earlier.
const IN_USE: Duration = Duration::from_mins(1);

/// The flags of `init`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy init code-review
  acp-skills-proxy init code-review --in skills
  acp-skills-proxy init code-review --description 'Reviews code. Use before a commit.'")]
pub(crate) struct InitArgs {
    /// The name of the skill: at most 64 lowercase letters, digits and single hyphens.
    name: String,
    /// The parent of the skill's directory.
    #[arg(long = "in", value_name = "DIR", default_value = ".")]
    parent: PathBuf,
    /// The description of the skill: its purpose, and when to use it.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// Creates the skill.
///
/// # Errors
/// Returns an error if the name or the description is invalid, if the directory exists, or if a file can't be written.
pub(crate) fn run(args: InitArgs) -> anyhow::Result<ExitCode> {
    let InitArgs { name, parent, description } = args;
    let title = name.replace('-', " ");
    let description = description.unwrap_or_else(|| {
        format!("Does {title}, step by step. Use when the user asks for {title}, or names a file and wants {title} for it.")
    });
    // Use JSON to quote special characters, because any JSON string is also valid in YAML.
    let skill = SKILL
        .replace("{name}", &serde_json::to_string(&name)?)
        .replace("{description}", &serde_json::to_string(&description)?)
        .replace("{title}", &title);
    let broken = frontmatter::validate(&skill, &ParseContext::in_directory(&name), Verdict::Reference);
    if let Some(rule) = broken.iter().find(|rule| rule.severity == Severity::Error).or(broken.first()) {
        let error = UsageError::new(format!("cannot create skill `{name}`: {}", rule.message));
        return Err(match rule.help.clone().or_else(|| suggestion(&name)) {
            Some(help) => error.hint(help).into(),
            None => error.into(),
        });
    }
    let dir = parent.join(&name);
    let unwritable = |error: io::Error| UsageError::at("cannot create skill", &dir, error);
    fs::create_dir_all(&parent).map_err(unwritable)?;
    let exists = || {
        UsageError::new(format!("{} already exists", dir.display()))
            .hint("no files were changed; use another name, or another directory with `--in DIR`")
    };
    if dir.symlink_metadata().is_ok() {
        return Err(exists().into());
    }
    // Write the files to a hidden directory first, so that a process that is killed doesn't leave a part of a skill.
    remove_leftovers(&parent);
    let staging =
        Builder::new().prefix(&format!(".{name}{STAGED}")).tempdir_in(&parent).map_err(unwritable)?;
    let staged = staging.path().join(&name);
    [
        ("SKILL.md", skill.as_str()),
        ("evals/eval_queries.json", &fill(QUERIES, &name, &title)),
        ("evals/evals.json", &fill(EVALS, &name, &title)),
        ("evals/files/notes.txt", NOTES),
    ]
    .into_iter()
    .try_for_each(|(file, text)| write(&staged.join(file), text))
    .map_err(unwritable)?;
    fs::rename(&staged, &dir).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => exists(),
        _ => unwritable(error),
    })?;
    crate::output::print(&format!(
        "Created {0}: edit SKILL.md, then the cases in evals/.\n\n  acp-skills-proxy try --skill {0}\n  \
         acp-skills-proxy check --reference {0}\n  acp-skills-proxy eval {0} -- YOUR-AGENT\n",
        dir.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Removes hidden directories of processes that were killed. A process may still use a directory that is newer than a minute.
fn remove_leftovers(parent: &Path) {
    leftovers::remove_older(parent, IN_USE, |path, metadata| metadata.is_dir() && is_leftover(path));
}

/// Returns true if `init` left `dir` behind: it is called `.NAME-init-` and six random characters, and contains the directory `NAME`
/// or nothing. This protects directories of the user with a similar name.
fn is_leftover(dir: &Path) -> bool {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let Some((name, random)) = name.strip_prefix('.').and_then(|rest| rest.rsplit_once(STAGED)) else {
        return false;
    };
    leftovers::is_random(random)
        && fs::read_dir(dir).is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == name))
}

/// Suggests a command for an invalid `name`, which may be a path or several words.
fn suggestion(name: &str) -> Option<String> {
    let name = name.trim_end_matches(['/', '\\']);
    let (parent, last) =
        name.rsplit_once(['/', '\\']).map_or((None, name), |(parent, last)| (Some(parent), last));
    let words = last.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-").to_lowercase();
    if name.is_empty() {
        return None;
    }
    let place = parent.map_or_else(String::new, |parent| format!(" --in {parent}/"));
    Some(format!("did you mean `acp-skills-proxy init {name}{place}`?"))
}

fn fill(text: &str, name: &str, title: &str) -> String {
    text.replace("{name}", name).replace("{title}", title)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

const SKILL: &str = "\
---
name: {name}
description: {description}
---

# {title}

1. Find out what the user wants, and which files to use.
2. Do the task. Add the knowledge that a model does not have: your conventions, the order of steps, and common mistakes.
3. Check the result before you answer. List the conditions that it must meet.

Put long texts into files in `references/`. Mention each file here, so that the model reads it when it is needed.
";

const QUERIES: &str = r#"[
  { "query": "Please help me with {title} for notes.txt", "should_trigger": true },
  { "query": "I need {title}, where do I start?", "should_trigger": true },
  { "query": "What is the capital of France?", "should_trigger": false },
  { "query": "Rename the file old.txt to new.txt", "should_trigger": false }
]
"#;

const EVALS: &str = r#"{
  "skill_name": "{name}",
  "evals": [
    {
      "id": 1,
      "name": "short-summary",
      "prompt": "Do {title} for notes.txt, and write the result to result.md.",
      "expected_output": "A file result.md with the contents of the notes, in the order that the skill asks for.",
      "files": ["evals/files/notes.txt"],
      "assertions": [
        { "file_exists": "result.md" },
        "The result names all three topics of the notes"
      ]
    },
    {
      "id": 2,
      "name": "no-input",
      "prompt": "Do {title} for missing.txt.",
      "expected_output": "The agent reports that missing.txt does not exist, and invents no contents.",
      "files": [],
      "assertions": [
        { "answer_matches": "(?i)(not|no|cannot|can't|missing)" },
        "The answer says that missing.txt does not exist, and invents no contents"
      ]
    }
  ]
}
"#;

const NOTES: &str = "\
Monday: the release is late, because a test fails on Windows.
Tuesday: Ana found the reason, a path with a backslash.
Wednesday: budget for next year; nothing is decided.
";
