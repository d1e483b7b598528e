//! `check`: every rule of the specification that a skill breaks, with the lines that break it.
//!
//! Made for a pre-commit hook: it prints what is wrong and exits with 1 when something is. `--json` is a promise to
//! scripts: `[{"path","ok","name","description","diagnostics":[{"code","severity","line","column","message","help"}]}]`,
//! where `path` is the absolute path of the `SKILL.md`; more fields may be added.

use std::{
    borrow::Cow,
    collections::HashSet,
    fs::{self, File},
    io::{IsTerminal, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use anyhow::Context;
use clap::Args;
use serde::Serialize;
use skills_core::{
    Diagnostic, Severity, Source,
    activation::long_body,
    discovery::{Discovery, Root},
    files::SKILL_FILE_NAMES,
    frontmatter::{self, MAX_FILE_BYTES, ParseContext, Verdict},
};

use crate::error::UsageError;

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
    #[arg(required = true, value_name = "PATH")]
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
    diagnostics: Vec<Diagnostic>,
    #[serde(skip)]
    source: String,
}

/// A path that is no Unicode is shown as well as it can be.
fn lossy<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Checks the skills and prints what is wrong.
///
/// # Errors
/// A path does not exist, or there is no skill in it.
pub(crate) fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let verdict = if args.reference { Verdict::Reference } else { Verdict::Spec };
    let mut checked = Vec::new();
    let mut seen = HashSet::new();
    for path in &args.paths {
        for found in find(path)? {
            if seen.insert(found.path().to_owned()) {
                checked.push(found.check(verdict));
            }
        }
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &checked)?;
        writeln!(out)?;
    } else {
        let color = out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        print(&mut out, &checked, if color { Renderer::styled() } else { Renderer::plain() })?;
    }
    let ok = checked.iter().all(|it| it.ok);
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) })
}

/// Something to say a verdict about.
enum Found {
    /// A `SKILL.md`.
    File(PathBuf),
    /// What kept the search from looking into a path.
    Unread(PathBuf, Vec<Diagnostic>),
}

/// The skills that `path` means.
fn find(path: &Path) -> anyhow::Result<Vec<Found>> {
    let shown = path.display();
    let metadata =
        fs::metadata(path).map_err(|error| UsageError::new(format!("cannot check `{shown}`: {error}")))?;
    let path = absolute(path).with_context(|| format!("cannot check `{shown}`"))?;
    if metadata.is_file() {
        return Ok(vec![Found::File(path)]);
    }
    if let Some(file) = skill_file(&path) {
        return Ok(vec![Found::File(file)]);
    }
    let skills = Discovery::new([Root::scanned(&path)]).find();
    let stored = skills.iter().filter_map(|skill| match &skill.source {
        Source::Stored(stored) => Some(Found::File(stored.file())),
        _ => None,
    });
    let shadowed = skills.shadowed().iter().filter_map(|it| it.path.clone()).map(Found::File);
    let skipped = skills.skipped().iter().map(|it| {
        if it.path.is_file() {
            Found::File(it.path.clone())
        } else {
            Found::Unread(it.path.clone(), it.diagnostics.clone())
        }
    });
    let mut found: Vec<Found> = stored.chain(shadowed).chain(skipped).collect();
    if found.is_empty() {
        let hint = "a skill is a directory with a file named SKILL.md";
        return Err(UsageError::new(format!("there is no skill in `{shown}`")).hint(hint).into());
    }
    found.sort_by(|a, b| a.path().cmp(b.path()));
    Ok(found)
}

/// `path` from the root on. Links stay, because a skill is known by the name of its link.
fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    // `..` would leave the skill's directory without a name.
    if absolute.file_name().is_none() || absolute.components().any(|it| it == std::path::Component::ParentDir)
    {
        return dunce::canonicalize(absolute);
    }
    Ok(absolute)
}

/// The `SKILL.md` in `dir`, as the directory spells it.
fn skill_file(dir: &Path) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.file_name()).collect();
    let name = SKILL_FILE_NAMES.into_iter().find(|name| entries.iter().any(|entry| entry == name))?;
    Some(dir.join(name)).filter(|path| path.is_file())
}

impl Found {
    fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Unread(path, _) => path,
        }
    }

    fn check(self, verdict: Verdict) -> Checked {
        match self {
            Self::File(path) => check_file(path, verdict),
            Self::Unread(path, diagnostics) => Checked::new(path, None, diagnostics, String::new()),
        }
    }
}

fn check_file(path: PathBuf, verdict: Verdict) -> Checked {
    let (bytes, size) = match read(&path) {
        Ok(read) => read,
        Err(error) => {
            let diagnostic = Diagnostic::error("unreadable", format!("cannot read the file: {error}"));
            return Checked::new(path, None, vec![diagnostic], String::new());
        }
    };
    let directory = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let context = ParseContext { directory: directory.as_deref(), file_bytes: Some(size) };
    let source = frontmatter::decode(&bytes).into_owned();
    let parsed = frontmatter::parse(&source, &context);
    let mut diagnostics = frontmatter::validate_bytes(&bytes, &context, verdict);
    diagnostics.extend(file_name(&path, verdict));
    if verdict == Verdict::Spec
        && parsed.frontmatter.is_some()
        && let Some(long) = long_body(parsed.body(&source))
    {
        diagnostics.push(long.at(parsed.body_line, 0));
    }
    Checked::new(path, parsed.frontmatter, diagnostics, source)
}

/// The content of the file as far as it is looked at, and its size.
fn read(path: &Path) -> std::io::Result<(Vec<u8>, u64)> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let size = size.max(bytes.len() as u64);
    Ok((bytes, size))
}

/// What is wrong with the name of the file: the reference also looks for `skill.md`.
fn file_name(path: &Path, verdict: Verdict) -> Option<Diagnostic> {
    let name = path.file_name()?.to_string_lossy();
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
        frontmatter: Option<frontmatter::Frontmatter>,
        diagnostics: Vec<Diagnostic>,
        source: String,
    ) -> Self {
        let ok = !diagnostics.iter().any(Diagnostic::is_error);
        let (name, description) = frontmatter.map(|it| (it.name.to_string(), it.description)).unzip();
        Self { path, ok, name, description, diagnostics, source }
    }
}

fn print(out: &mut impl Write, checked: &[Checked], renderer: Renderer) -> std::io::Result<()> {
    let renderer = renderer.term_width(120);
    for skill in checked {
        // Below the working directory a relative path is shorter, and can be clicked as well.
        let here = std::env::current_dir().ok();
        let path = here.and_then(|here| skill.path.strip_prefix(here).ok().map(Path::to_owned));
        let path = path.as_deref().unwrap_or(&skill.path).to_string_lossy();
        for diagnostic in &skill.diagnostics {
            writeln!(out, "{}\n", renderer.render(&[report(diagnostic, &path, &skill.source)]))?;
        }
    }
    let all = || checked.iter().flat_map(|it| &it.diagnostics);
    let errors = all().filter(|it| it.is_error()).count();
    let warnings = all().count() - errors;
    writeln!(
        out,
        "{} checked: {}, {}",
        count(checked.len(), "skill"),
        count(errors, "error"),
        count(warnings, "warning"),
    )
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// `diagnostic` with the line that it is about.
fn report<'a>(diagnostic: &'a Diagnostic, path: &'a str, source: &'a str) -> Group<'a> {
    let level = if diagnostic.severity == Severity::Warning { Level::WARNING } else { Level::ERROR };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code);
    let group = match excerpt(diagnostic, source) {
        Some((line, span)) => Group::with_title(title).element(
            Snippet::source(line)
                .line_start(usize::try_from(diagnostic.line).unwrap_or(usize::MAX))
                .path(path)
                .annotation(AnnotationKind::Primary.span(span)),
        ),
        None => Group::with_title(title).element(annotate_snippets::Origin::path(path)),
    };
    match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    }
}

/// The line of `diagnostic`, and the bytes in it to point at: a word or value from the column on, or the whole line.
fn excerpt<'a>(diagnostic: &Diagnostic, source: &'a str) -> Option<(Cow<'a, str>, std::ops::Range<usize>)> {
    /// A line that is longer is shown up to here.
    const SHOWN_CHARS: usize = 400;

    let number = usize::try_from(diagnostic.line).ok()?.checked_sub(1)?;
    let line = source.split('\n').nth(number)?.trim_end_matches('\r');
    let start = usize::try_from(diagnostic.column).ok()?.saturating_sub(1);
    let start = line.char_indices().nth(start).map_or(line.len(), |(at, _)| at);
    let rest = line[start..].trim_end();
    let end = start
        + if diagnostic.code == "invalid-yaml" {
            rest.chars().next().map_or(0, char::len_utf8)
        } else {
            rest.len()
        };
    let cut = line.char_indices().nth(SHOWN_CHARS).map_or(line.len(), |(at, _)| at).max(start);
    Some((Cow::Borrowed(&line[..cut]), start..end.min(cut)))
}
