//! `check`: every rule of the specification that a skill breaks, with the lines that break it.
//!
//! Made for a pre-commit hook: it prints what is wrong and exits with 1 when something is. `--json` is a promise to
//! scripts: `[{"path","ok","name","description","diagnostics":[{"code","severity","line","column","message","help"}]}]`,
//! where `path` is the absolute path of the `SKILL.md`; more fields may be added.

mod excerpt;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde::{Serialize, Serializer};
use skills_core::{
    Diagnostic,
    activation::long_body,
    files::SkillMd,
    frontmatter::{self, Frontmatter, ParseContext, Verdict},
    text::shown_path,
};

use super::paths::{Candidate, find};
use crate::{args::path, output, progress::Progress, words::count};

/// Something is wrong with a skill.
const EXIT_FOUND: u8 = 1;

/// Flags of `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy check ./code-review
  acp-skills-proxy check ~/.agents/skills --json
  acp-skills-proxy check --reference skills/*/SKILL.md

Exit codes: 0 nothing is wrong, 1 a rule is broken, 2 a wrong command line.")]
pub(crate) struct CheckArgs {
    /// The directory of a skill, a SKILL.md, or a directory to look for skills in. Repeatable.
    #[arg(required = true, value_name = "PATH", value_parser = path())]
    paths: Vec<PathBuf>,
    /// Say what the reference validator `skills-ref` says: it refuses more than the specification does.
    #[arg(long)]
    reference: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What was found out about one file.
#[derive(Debug, Serialize)]
struct Checked {
    /// The absolute path of the `SKILL.md`, or of what could not be read.
    #[serde(serialize_with = "lossy")]
    path: PathBuf,
    ok: bool,
    name: Option<String>,
    description: Option<String>,
    #[serde(serialize_with = "from_one")]
    diagnostics: Vec<Diagnostic>,
    #[serde(skip)]
    source: String,
}

/// A path that is no Unicode is shown as well as it can be.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Columns are counted from 1, also where it is the whole line that is meant.
fn from_one<S: Serializer>(diagnostics: &[Diagnostic], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(diagnostics.iter().cloned().map(|mut diagnostic| {
        diagnostic.column = diagnostic.column.max(diagnostic.line.min(1));
        diagnostic
    }))
}

/// Checks the skills and prints what is wrong.
///
/// # Errors
/// A path does not exist, or there is no skill in it.
pub(crate) fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let verdict = if args.reference { Verdict::Reference } else { Verdict::Spec };
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for path in &args.paths {
        let skills = find(path)?.into_iter();
        found.extend(skills.filter(|skill| seen.insert(skill.path().to_owned())));
    }
    let progress = Progress::steps("checking skills", found.len());
    let check = |candidate| {
        progress.step();
        check(candidate, verdict)
    };
    let checked: Vec<Checked> = found.into_iter().map(check).collect();
    drop(progress);
    if args.json {
        output::print_json(&checked)?;
    } else {
        output::print_colored(&text(&checked, output::has_colors()))?;
    }
    let ok = checked.iter().all(|it| it.ok);
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) })
}

fn check(candidate: Candidate, verdict: Verdict) -> Checked {
    match candidate {
        Candidate::File(path) => check_file(path, verdict),
        Candidate::Unread(path, diagnostics) => Checked::new(path, None, diagnostics, String::new()),
    }
}

fn check_file(path: PathBuf, verdict: Verdict) -> Checked {
    // A link that leads elsewhere is refused: what is in that file would be in the log of whoever checks somebody's skill.
    let file = match SkillMd::read(&path) {
        Ok(file) => file,
        Err(error) => return Checked::new(path, None, vec![error.to_diagnostic()], String::new()),
    };
    let directory = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let context = ParseContext { directory: directory.as_deref(), file_bytes: Some(file.size) };
    let source = frontmatter::decode(&file.bytes).into_owned();
    let parsed = frontmatter::parse(&source, &context);
    let mut diagnostics = frontmatter::validate_bytes(&file.bytes, &context, verdict);
    diagnostics.extend(file_name(&file.name, verdict));
    if verdict == Verdict::Spec
        && parsed.frontmatter.is_some()
        && let Some(long) = long_body(parsed.body(&source))
    {
        diagnostics.push(long.at(parsed.body_line, 0));
    }
    Checked::new(path, parsed.frontmatter, diagnostics, source)
}

/// What is wrong with the name of the file: the reference also looks for `skill.md`.
fn file_name(name: &str, verdict: Verdict) -> Option<Diagnostic> {
    if name == "SKILL.md" || (verdict == Verdict::Reference && name == "skill.md") {
        return None;
    }
    if verdict == Verdict::Reference {
        return Some(Diagnostic::error("file-name", "Missing required file: SKILL.md"));
    }
    let message = format!("the file is named {name}, and most agents will not find it");
    Some(Diagnostic::error("file-name", message).help("rename it to SKILL.md"))
}

impl Checked {
    fn new(
        path: PathBuf,
        frontmatter: Option<Frontmatter>,
        diagnostics: Vec<Diagnostic>,
        source: String,
    ) -> Self {
        let ok = !diagnostics.iter().any(Diagnostic::is_error);
        let (name, description) = frontmatter.map(|it| (it.name.to_string(), it.description)).unzip();
        Self { path, ok, name, description, diagnostics, source }
    }
}

/// Everything for people.
fn text(checked: &[Checked], colors: bool) -> String {
    // Below the working directory a relative path is shorter, and can be clicked as well.
    let here = std::env::current_dir().ok();
    let mut text = String::new();
    for skill in checked {
        let path = here.as_ref().and_then(|here| skill.path.strip_prefix(here).ok());
        let path = shown_path(path.unwrap_or(&skill.path));
        for diagnostic in &skill.diagnostics {
            text.push_str(&excerpt::render(diagnostic, &path, &skill.source, colors));
            text.push_str("\n\n");
        }
    }
    let all = || checked.iter().flat_map(|it| &it.diagnostics);
    let errors = all().filter(|it| it.is_error()).count();
    let warnings = all().count() - errors;
    let parts = [count(checked.len(), "skill"), count(errors, "error"), count(warnings, "warning")];
    text + &format!("{} checked: {}, {}\n", parts[0], parts[1], parts[2])
}
