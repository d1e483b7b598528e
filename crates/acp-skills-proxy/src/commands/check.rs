//! `check`: every rule of the specification that a skill breaks, with the lines that break it.
//!
//! Made for a pre-commit hook: it prints what is wrong and exits with 1 when something is. `--json` is a promise to
//! scripts: `[{"path","ok","name","description","diagnostics":[{"code","severity","line","column","message","help"}]}]`,
//! where `path` is the absolute path of the `SKILL.md`; more fields may be added. With `--security` what a scan of the whole
//! directory finds is there as well, with `risk`, `file` and `excerpt`.

mod excerpt;
mod problem;
mod sarif;

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
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

use super::paths::{Candidate, find};
use crate::{args::path, error::UsageError, output, progress::Progress, words::count};

/// Something is wrong with a skill.
const EXIT_FOUND: u8 = 1;

/// Flags of `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy check ./code-review
  acp-skills-proxy check ~/.agents/skills --json
  acp-skills-proxy check --reference skills/*/SKILL.md
  acp-skills-proxy check --security skills --sarif skills.sarif

Exit codes: 0 nothing is wrong, 1 a rule is broken or a risk is high, 2 a wrong command line.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct CheckArgs {
    /// The directory of a skill, a SKILL.md, or a directory to look for skills in. Repeatable.
    #[arg(required_unless_present = "print_rules", value_name = "PATH", value_parser = path())]
    paths: Vec<PathBuf>,
    /// Say what the reference validator `skills-ref` says: it refuses more than the specification does.
    #[arg(long)]
    reference: bool,
    /// Also look in all files of the skills for what attacks are made of: hidden text, commands that fetch and run, reads of
    /// keys, data that leaves, programs in disguise, links that lead out.
    ///
    /// High risks are errors, others are warnings. Nothing is run and nothing is fetched. No finding does not mean that a
    /// skill is good.
    #[arg(long)]
    security: bool,
    /// Rules of your own for `--security`, in YAML; they add to the built-in ones, or change them.
    ///
    /// `--print-rules` shows how they are written.
    #[arg(long, value_name = "FILE", requires = "security", value_parser = path())]
    rules: Option<PathBuf>,
    /// Print the built-in rules of `--security`, and how rules are written.
    #[arg(long, exclusive = true)]
    print_rules: bool,
    /// Also write what is found to a file, as SARIF 2.1.0, which code hosts and editors read.
    #[arg(long, value_name = "FILE", value_parser = path())]
    sarif: Option<PathBuf>,
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
    #[serde(rename = "diagnostics")]
    problems: Vec<Problem>,
    #[serde(skip)]
    source: String,
}

/// A path that is not Unicode is shown as well as it can be.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Checks the skills and prints what is wrong.
///
/// # Errors
/// A path does not exist, or there is no skill in it; rules are none, or a file cannot be written.
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
    let checked: Vec<Checked> = found.into_iter().map(check).collect();
    drop(progress);
    if let Some(file) = &args.sarif {
        sarif::write(file, &checked, rules.as_ref())?;
    }
    if args.json {
        output::print_json(&checked)?;
    } else {
        output::print_colored(&text(&checked, output::has_colors()))?;
    }
    let ok = checked.iter().all(|it| it.ok);
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) })
}

/// What a scan looks for.
fn rules(file: Option<&Path>) -> Result<Rules, UsageError> {
    let Some(file) = file else { return Ok(Rules::built_in().clone()) };
    let cannot = |error: &dyn std::fmt::Display| {
        UsageError::new(format!("cannot use the rules in `{}`: {error}", shown_path(file)))
    };
    let text = fs::read_to_string(file).map_err(|error| cannot(&error))?;
    let hint = "`acp-skills-proxy check --print-rules` shows how rules are written";
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
    let message = format!("the file is named {name}, so most agents won't find it");
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
        let problems = diagnostics.into_iter().map(Problem::from).collect();
        Self { path, ok, name, description, problems, source }
    }
}

/// Everything for people.
fn text(checked: &[Checked], colors: bool) -> String {
    // Below the working directory a relative path is shorter, and can be clicked as well.
    let here = std::env::current_dir().ok();
    let short = |path: &Path| {
        let below = here.as_ref().and_then(|here| path.strip_prefix(here).ok());
        shown_path(below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(path))
    };
    let mut text = String::new();
    // A file of a skill within a skill is a file of both.
    let mut said = HashSet::new();
    for skill in checked {
        for problem in &skill.problems {
            let path = short(&problem.file(&skill.path));
            let rendered = excerpt::render(problem, &path, &skill.source, colors);
            if problem.found.is_none() || said.insert(rendered.clone()) {
                text.push_str(&rendered);
                text.push_str("\n\n");
            }
        }
    }
    let all = || checked.iter().flat_map(|it| &it.problems);
    let errors = all().filter(|it| it.is_error()).count();
    let warnings = all().count() - errors;
    let parts = [count(checked.len(), "skill"), count(errors, "error"), count(warnings, "warning")];
    text + &format!("{} checked: {}, {}\n", parts[0], parts[1], parts[2])
}
