//! `check`: checks skills against the specification and prints the lines that violate it.
//!
//! The command is suitable for a pre-commit hook, because it exits with 1 if there are errors. Scripts can rely on the output of
//! `--json`; later versions only add fields:
//! `[{"path","ok","name","description","diagnostics":[{"code","severity","line","column","message","help"}]}]`.
//! `path` is the absolute path of the `SKILL.md`. With `--security`, the list includes the findings of a scan of the whole directory,
//! which also have `risk`, `file` and `excerpt`.

mod conflicts;
mod excerpt;
mod problem;
mod sarif;

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use conflicts::Described;
use problem::Problem;
use serde::{Serialize, Serializer};
use skills_core::{
    Diagnostic,
    activation::long_body,
    files::SkillMd,
    frontmatter::{self, Frontmatter, ParseContext, Verdict},
    scan::{BUILT_IN, Rules, scan},
    text::shown_path,
};
use skills_sources::disk::patient;

use super::paths::{Candidate, find};
use crate::{args::path, error::UsageError, log, output, progress::Progress, words::count};

/// The exit code if a skill has errors.
const EXIT_FOUND: u8 = 1;

/// The flags of `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy check ./code-review
  acp-skills-proxy check ~/.agents/skills --json
  acp-skills-proxy check --reference skills/*/SKILL.md
  acp-skills-proxy check --security skills --sarif skills.sarif

Exit codes: 0 if there are no errors (warnings are allowed), 1 if there are errors, 2 if an argument is invalid.")]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct CheckArgs {
    /// A skill's directory, a SKILL.md, or a directory to search for skills. Skills within the directories of other skills are
    /// checked too. Repeatable.
    #[arg(required_unless_present = "print_rules", value_name = "PATH", value_parser = path())]
    paths: Vec<PathBuf>,
    /// Apply the rules of the reference validator `skills-ref`, which rejects more than the specification does.
    #[arg(long)]
    reference: bool,
    /// Also scan all files of the skills for signs of an attack: hidden text, commands that download and run programs, access to
    /// keys, uploads of data, disguised programs, and links to files outside of the skill.
    ///
    /// High risks are errors, and other risks are warnings. The scan doesn't run or fetch anything. A clean scan does not prove
    /// that a skill is safe.
    #[arg(long)]
    security: bool,
    /// Read rules for `--security` from a YAML file, in addition to the built-in rules. The file can also change built-in rules.
    ///
    /// `--print-rules` shows the format.
    #[arg(long, value_name = "FILE", requires = "security", value_parser = path())]
    rules: Option<PathBuf>,
    /// Print the built-in rules of `--security`, with an explanation of their format.
    #[arg(long, exclusive = true)]
    print_rules: bool,
    /// Also write the results to a file in SARIF 2.1.0, a format that code hosts and editors can read.
    #[arg(long, value_name = "FILE", value_parser = path())]
    sarif: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The results for one file.
#[derive(Debug, Serialize)]
struct Checked {
    /// The absolute path of the `SKILL.md`, or of the directory that can't be read.
    #[serde(serialize_with = "lossy")]
    path: PathBuf,
    ok: bool,
    name: Option<String>,
    description: Option<String>,
    #[serde(rename = "diagnostics")]
    problems: Vec<Problem>,
    /// True if models see the description.
    #[serde(skip)]
    is_offered: bool,
    #[serde(skip)]
    source: String,
}

/// Serializes a path. Characters that are not Unicode are replaced.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Checks the skills and prints the problems.
///
/// # Errors
/// Returns an error if a path does not exist or contains no skill, if the rules are invalid, or if a file can't be written.
pub(crate) fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    if args.print_rules {
        output::print(BUILT_IN)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rules = args.security.then(|| rules(args.rules.as_deref())).transpose()?;
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
        check(candidate, verdict, rules.as_ref())
    };
    let mut checked: Vec<Checked> = found.into_iter().map(check).collect();
    note_nested(&mut checked);
    if verdict == Verdict::Spec {
        note_conflicts(&mut checked);
    }
    drop(progress);
    if let Some(file) = &args.sarif {
        sarif::write(file, &checked, rules.as_ref())?;
    }
    if args.json {
        output::print_json(&checked)?;
    } else {
        output::print_colored(&text(&checked, output::has_colors()))?;
    }
    let ok = checked.iter().all(|skill| skill.ok);
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) })
}

/// The code of the warning about a skill within another one.
const NESTED: &str = "nested-skill";

/// Adds a warning to each skill that is within the directory of another one.
fn note_nested(checked: &mut [Checked]) {
    let outer: HashMap<PathBuf, String> = checked
        .iter()
        .filter_map(|skill| Some((skill.path.parent()?.to_owned(), skill.name.clone()?)))
        .collect();
    for skill in checked {
        let above = skill.path.parent().into_iter().flat_map(|dir| dir.ancestors().skip(1));
        let Some(name) = above.into_iter().find_map(|dir| outer.get(dir)) else { continue };
        let message =
            format!("this file is inside the directory of skill `{name}`, so it is not a separate skill");
        let help = "use `--nested` to load it as a skill, or move its directory out of the other skill";
        skill.problems.push(Diagnostic::warning(NESTED, message).help(help).into());
    }
}

/// Adds warnings about descriptions with which models choose the wrong skill, or none.
fn note_conflicts(checked: &mut [Checked]) {
    let is_compared = |skill: &Checked| {
        let is_nested = skill.problems.iter().any(|problem| problem.code == NESTED);
        skill.is_offered && !is_nested && skill.described().is_some()
    };
    let compared: Vec<usize> = (0..checked.len()).filter(|&at| is_compared(&checked[at])).collect();
    let skills: Vec<Described<'_>> = compared.iter().filter_map(|&at| checked[at].described()).collect();
    let found = conflicts::find(&skills);
    for (at, warnings) in compared.into_iter().zip(found) {
        checked[at].problems.extend(warnings.into_iter().map(Problem::from));
    }
}

/// The maximum size of a file of rules.
const MAX_RULES_BYTES: u64 = 16 * 1024 * 1024;

/// Returns the rules for a scan: the built-in rules, extended by those in `file`.
fn rules(file: Option<&Path>) -> Result<Rules, UsageError> {
    let Some(file) = file else { return Ok(Rules::built_in().clone()) };
    let cannot = |error: &dyn std::fmt::Display| {
        UsageError::new(format!("cannot use rules from `{}`: {error}", shown_path(file)))
    };
    let text = log::with_warnings_on_stderr(|| patient::read_text(file, MAX_RULES_BYTES))
        .map_err(|error| cannot(&error))?;
    let hint = "use `acp-skills-proxy check --print-rules` for example rules";
    Rules::built_in().extended(&text).map_err(|error| cannot(&error).hint(hint))
}

fn check(candidate: Candidate, verdict: Verdict, rules: Option<&Rules>) -> Checked {
    let mut checked = match candidate {
        Candidate::File(path) => check_file(path, verdict),
        Candidate::Unread(path, diagnostics) => return Checked::new(path, None, diagnostics, String::new()),
    };
    if let (Some(rules), Some(dir)) = (rules, checked.path.parent()) {
        match scan(dir, rules) {
            Ok(report) => checked.problems.extend(report.findings.into_iter().map(Problem::from)),
            Err(error) => checked.problems.push(error.to_diagnostic().into()),
        }
        checked.ok = !checked.problems.iter().any(Problem::is_error);
    }
    checked
}

fn check_file(path: PathBuf, verdict: Verdict) -> Checked {
    // This returns an error for links to files outside of the skill. Otherwise, a skill from someone else could copy
    // a private file into the output of the check.
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

/// Checks the name of the file. The reference validator also accepts `skill.md`.
fn file_name(name: &str, verdict: Verdict) -> Option<Diagnostic> {
    if name == "SKILL.md" || (verdict == Verdict::Reference && name == "skill.md") {
        return None;
    }
    if verdict == Verdict::Reference {
        return Some(Diagnostic::error("file-name", "Missing required file: SKILL.md"));
    }
    let message = format!("file is named {name}, but most agents only find SKILL.md");
    Some(Diagnostic::error("file-name", message).help("rename the file to SKILL.md"))
}

impl Checked {
    fn new(
        path: PathBuf,
        frontmatter: Option<Frontmatter>,
        diagnostics: Vec<Diagnostic>,
        source: String,
    ) -> Self {
        let ok = !diagnostics.iter().any(Diagnostic::is_error);
        let is_offered = frontmatter.as_ref().is_some_and(|fields| {
            !fields.properties.disable_model_invocation && !fields.properties.hide_from_discovery
        });
        let (name, description) =
            frontmatter.map(|fields| (fields.name.to_string(), fields.description)).unzip();
        let problems = diagnostics.into_iter().map(Problem::from).collect();
        Self { path, ok, name, description, problems, is_offered, source }
    }

    fn described(&self) -> Option<Described<'_>> {
        Some(Described { name: self.name.as_deref()?, description: self.description.as_deref()? })
    }
}

/// Renders the results as text.
fn text(checked: &[Checked], colors: bool) -> String {
    // Make paths below the working directory relative. Users can still click on them in a terminal.
    let here = std::env::current_dir().ok();
    let short = |path: &Path| {
        let below = here.as_ref().and_then(|here| path.strip_prefix(here).ok());
        shown_path(below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(path))
    };
    let mut text = String::new();
    // If there is a skill within another skill, it's scanned twice, but we only want to print it once.
    let mut printed = HashSet::new();
    for skill in checked {
        for problem in &skill.problems {
            let path = short(&problem.file(&skill.path));
            let rendered = excerpt::render(problem, &path, &skill.source, colors);
            if problem.found.is_none() || printed.insert(rendered.clone()) {
                text.push_str(&rendered);
                text.push_str("\n\n");
            }
        }
    }
    let all = || checked.iter().flat_map(|skill| &skill.problems);
    let errors = all().filter(|problem| problem.is_error()).count();
    let warnings = all().count() - errors;
    let parts = [count(checked.len(), "skill"), count(errors, "error"), count(warnings, "warning")];
    text + &format!("{} checked: {}, {}\n", parts[0], parts[1], parts[2])
}
