//! `init`: a new skill that breaks no rule, with cases to evaluate it by.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use skills_core::{
    Severity,
    frontmatter::{self, ParseContext, Verdict},
};

use crate::error::UsageError;

/// Flags of `init`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy init code-review
  acp-skills-proxy init code-review --in skills
  acp-skills-proxy init code-review --description 'Reviews code. Use before a commit.'")]
pub(crate) struct InitArgs {
    /// The name: lowercase letters, digits and single hyphens, at most 64.
    name: String,
    /// The directory in which the skill's own directory is made.
    #[arg(long = "in", value_name = "DIR", default_value = ".")]
    parent: PathBuf,
    /// What it does and when to use it.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// Makes the skill.
///
/// # Errors
/// The name or the description breaks a rule, or there is such a directory.
pub(crate) fn run(args: InitArgs) -> anyhow::Result<ExitCode> {
    let InitArgs { name, parent, description } = args;
    let title = name.replace('-', " ");
    let description = description.unwrap_or_else(|| {
        format!("Does {title}, step by step. Use when the user asks for {title}, or names a file and wants {title} for it.")
    });
    // JSON is YAML, and quotes what has to be quoted.
    let skill = SKILL
        .replace("{name}", &serde_json::to_string(&name)?)
        .replace("{description}", &serde_json::to_string(&description)?)
        .replace("{title}", &title);
    let broken = frontmatter::validate(&skill, &ParseContext::in_directory(&name), Verdict::Reference);
    if let Some(rule) = broken.iter().find(|rule| rule.severity == Severity::Error).or(broken.first()) {
        let error = UsageError::new(format!("`{name}` cannot be a skill: {}", rule.message));
        return Err(match rule.help.clone().or_else(|| meant(&name)) {
            Some(help) => error.hint(help).into(),
            None => error.into(),
        });
    }
    let dir = parent.join(&name);
    let unwritable =
        |error: io::Error| UsageError::failed(format_args!("cannot make {}", dir.display()), error);
    fs::create_dir_all(&parent).map_err(unwritable)?;
    // Not what is there already: it may be somebody's work.
    fs::create_dir(&dir).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => UsageError::new(format!("there is a {} already", dir.display()))
            .hint("nothing was changed; give the skill another name, or another place with `--in DIR`"),
        _ => unwritable(error),
    })?;
    let written = [
        ("SKILL.md", skill.as_str()),
        ("evals/eval_queries.json", &fill(QUERIES, &name, &title)),
        ("evals/evals.json", &fill(EVALS, &name, &title)),
        ("evals/files/notes.txt", NOTES),
    ]
    .into_iter()
    .try_for_each(|(file, text)| write(&dir.join(file), text));
    if let Err(error) = written {
        // Half a skill would be in the way of the next try. The directory is one that was made here.
        drop(fs::remove_dir_all(&dir));
        return Err(unwritable(error).into());
    }
    crate::output::print(&format!(
        "Made {0}: fill in SKILL.md, then the cases in evals/.\n\n  acp-skills-proxy try --skill {0}\n  \
         acp-skills-proxy check --reference {0}\n  acp-skills-proxy eval {0} -- YOUR-AGENT\n",
        dir.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// What somebody probably meant whose `name` cannot be one: a path, or words.
fn meant(name: &str) -> Option<String> {
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

1. Find out what the user wants, and which files it is about.
2. Do it. Write down here what a model would not know by itself: your conventions, the order of steps, what to avoid.
3. Check the result before you answer: what must be true of it?

Long material goes into files in `references/` beside this one; name each here, and it is read when it is needed.
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
      "expected_output": "A file result.md with what the notes say, ordered as the skill wants it.",
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
      "expected_output": "The agent says that there is no such file, and makes nothing up.",
      "files": [],
      "assertions": [
        { "answer_matches": "(?i)(not|no|cannot|can't|missing)" },
        "The answer says that the file does not exist, and invents no contents"
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
