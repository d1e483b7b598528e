//! `list`: lists the skills with their directories and sizes, and the skills that are not used.

mod text;

use std::{
    iter,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde::Serialize;
use skills_core::{
    Catalog, CatalogOptions, Diagnostic, Instructions, Scope, Skill, Source, ToolDefinition,
    activation::BodyCache,
    catalog::{self, Guide},
    discovery::skills_within,
    estimate_tokens,
    files::{SKILL_FILE_NAMES, bundled},
    set::{Entry, Shadowed, Skipped, Unapproved},
    text::shown_path,
};

use super::{
    paths::{Meaning, meaning},
    skills::{self, Loaded},
    table,
};
use crate::{
    args::{LogArgs, ProxyArgs, SessionArgs, path},
    error::UsageError,
    log, output,
    progress::Progress,
};
use acp_skills::{
    config::Settings,
    intercept::{CatalogIn, McpMode, Policy},
    library::DirectoryLibrary,
};

/// The flags of `list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy list ~/skills
  acp-skills-proxy list --discover user,project
  acp-skills-proxy list --config skills.yaml --json")]
pub(crate) struct ListArgs {
    /// A skill's directory, a SKILL.md, or a directory to search for skills, in addition to --skill and --skills. Repeatable.
    #[arg(value_name = "PATH", value_parser = path())]
    paths: Vec<PathBuf>,
    /// An additional directory of the session, as editors send it in `additionalDirectories`. With `--discover project`, its skills
    /// are listed too. Repeatable.
    #[arg(long = "add-dir", value_name = "DIR", value_parser = path())]
    add_dirs: Vec<PathBuf>,
    /// Print JSON: `skills`, `shadowed`, `skipped`, `unapproved`, `catalog`, `tools` and `fixedTokens`.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// The JSON output. Scripts can rely on it: later versions only add fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    #[serde(skip)]
    library: &'a DirectoryLibrary,
    skills: Vec<Row<'a>>,
    shadowed: &'a [Shadowed],
    skipped: &'a [Skipped],
    /// Skills of the project that are not used until the user trusts them.
    unapproved: Vec<UnapprovedRow<'a>>,
    catalog: CatalogSize,
    /// The tools of the MCP server, in the order in which agents get them.
    tools: Vec<ToolSize>,
    /// The number of tokens that the model reads before it activates a skill: the catalog, its instructions, and the tools.
    fixed_tokens: usize,
}

/// A skill.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    name: &'a str,
    description: &'a str,
    scope: Scope,
    /// The absolute path of the `SKILL.md`. `None` for a virtual or remote skill.
    path: Option<PathBuf>,
    /// The directory of the session to whose project the skill belongs. `None` for other skills.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<&'a Path>,
    /// The URL of the `SKILL.md` of a remote skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    /// The size of the body in tokens. `None` if the body has a URL or can't be read.
    body_tokens: Option<usize>,
    /// The size of the entry in the catalog in tokens. 0 for a skill that is not in the catalog.
    catalog_tokens: usize,
    /// The number of files in addition to the `SKILL.md`.
    files: usize,
    /// The globs of the files for which the skill is meant. Such a skill is not in the catalog at first.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    paths: &'a [String],
    /// The paths of other `SKILL.md` files in the skill's directory, which are files of this skill.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nested: Vec<PathBuf>,
    diagnostics: &'a [Diagnostic],
}

/// A skill that waits for the user's trust.
#[derive(Debug, Serialize)]
struct UnapprovedRow<'a> {
    name: &'a str,
    description: &'a str,
    path: Option<PathBuf>,
    /// The directory of the session to whose project the skill belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<&'a Path>,
    /// True if the user has trusted an earlier version.
    changed: bool,
}

/// The size of a tool's definition.
#[derive(Debug, Serialize)]
struct ToolSize {
    name: String,
    tokens: usize,
}

/// The size of the catalog.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct CatalogSize {
    tokens: usize,
    shown: usize,
    omitted: usize,
}

/// Lists the skills.
///
/// # Errors
/// Returns an error if an argument, the configuration or a selected skill is invalid, or if stdout can't be written.
pub(crate) fn run(args: ListArgs) -> anyhow::Result<ExitCode> {
    let ListArgs { paths, add_dirs, json, mut session, log } = args;
    for path in &paths {
        session.skills.roots.push(match meaning(path, "list")? {
            Meaning::Skill(file) if !is_skill_file(&file) => {
                let message = format!("`{}` is not a SKILL.md file", shown_path(path));
                return Err(UsageError::new(message)
                    .hint("use a skill directory, or a directory to search for skills")
                    .into());
            }
            Meaning::Skill(file) => file.parent().unwrap_or(Path::new("/")).to_owned(),
            Meaning::Root(dir) => dir,
        });
    }
    let config = ProxyArgs { session, log, ..ProxyArgs::default() }.config()?;
    log::start(&config)?;
    let nested = config.nested;
    let settings = Settings::resolve(config)?;
    let add_dirs = add_dirs.iter().map(std::path::absolute).collect::<Result<_, _>>()?;
    let loaded = skills::load_for(settings.skills, add_dirs)?;
    let tools = match settings.policy.mcp {
        McpMode::Off => Vec::new(),
        _ => (settings.toolbox)(loaded.here.clone()).definitions(),
    };
    let report = Report::new(&loaded, &settings.policy, &tools, nested);
    if json {
        output::print_json(&report)?;
    } else if report.skills.is_empty() && report.skipped.is_empty() && report.unapproved.is_empty() {
        let hints = loaded.why_none().into_iter().map(|sentence| format!("hint: {sentence}"));
        let lines: Vec<_> = iter::once("No skills found.".to_owned()).chain(hints).collect();
        output::print(&(lines.join("\n") + "\n"))?;
    } else {
        output::print(&text::of(&report, &loaded.library.missing(), table::terminal_width()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn is_skill_file(file: &Path) -> bool {
    file.file_name().is_some_and(|name| SKILL_FILE_NAMES.iter().any(|known| name == *known))
}

impl<'a> Report<'a> {
    fn new(loaded: &'a Loaded, policy: &Policy, tools: &[ToolDefinition], nested: bool) -> Self {
        let set = &loaded.here;
        let options = &policy.catalog;
        let rendered = Catalog::render(set, options).filter(|_| policy.catalog_in != CatalogIn::Off);
        let guide = if policy.mcp == McpMode::Off { Guide::Files } else { Guide::Tools };
        let catalog_tokens = rendered.as_ref().map_or(0, |catalog| {
            estimate_tokens(&format!("{}\n\n{}", catalog.text, catalog::styled_guide(guide, options.style)))
        });
        let tool = |tool: &ToolDefinition| ToolSize {
            name: tool.name.to_string(),
            tokens: estimate_tokens(&tool.for_model()),
        };
        let tools: Vec<_> = tools.iter().map(tool).collect();
        let fixed_tokens = catalog_tokens + tools.iter().map(|tool| tool.tokens).sum::<usize>();
        let catalog = rendered.map(|catalog| CatalogSize {
            tokens: estimate_tokens(&catalog.text),
            shown: catalog.shown,
            omitted: catalog.omitted,
        });
        let progress = Progress::steps("reading skills", set.len());
        let row = |entry| {
            progress.step();
            Row::new(entry, options, nested)
        };
        Self {
            library: &loaded.library,
            skills: set.entries().iter().map(row).collect(),
            shadowed: set.shadowed(),
            skipped: set.skipped(),
            unapproved: set.unapproved().iter().map(UnapprovedRow::new).collect(),
            catalog: catalog.unwrap_or_default(),
            tools,
            fixed_tokens,
        }
    }
}

impl<'a> UnapprovedRow<'a> {
    fn new(unapproved: &'a Unapproved) -> Self {
        let skill = &*unapproved.skill;
        Self {
            name: skill.name.as_str(),
            description: &skill.description,
            path: file(skill),
            root: skill.session_root.as_deref(),
            changed: unapproved.has_changed,
        }
    }
}

fn file(skill: &Skill) -> Option<PathBuf> {
    match &skill.source {
        Source::Stored(stored) => Some(stored.file()),
        _ => None,
    }
}

impl<'a> Row<'a> {
    /// Describes a skill. `nested` is true if skills within skills are listed by themselves.
    fn new(entry: &'a Entry, options: &CatalogOptions, nested: bool) -> Self {
        let skill = &*entry.skill;
        Self {
            name: skill.name.as_str(),
            description: &skill.description,
            scope: skill.scope,
            path: file(skill),
            root: skill.session_root.as_deref(),
            url: match &skill.source {
                Source::Remote(remote) => Some(&remote.url),
                _ => None,
            },
            body_tokens: body_tokens(skill),
            catalog_tokens: Catalog::entry_tokens(skill, options),
            files: bundled(skill, 0).map_or(0, |bundled| bundled.more),
            paths: &skill.properties.paths,
            nested: skill.dir().filter(|_| !nested).map(skills_within).unwrap_or_default(),
            diagnostics: &entry.diagnostics,
        }
    }
}

fn body_tokens(skill: &Skill) -> Option<usize> {
    // We don't use the network to list skills.
    match &skill.source {
        Source::Remote(_) => return None,
        Source::Virtual(skill) if matches!(skill.instructions, Instructions::Url(_)) => return None,
        _ => {}
    }
    BodyCache::default().body(skill).ok().map(|body| estimate_tokens(&body))
}
