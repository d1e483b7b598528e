//! `list`: which skills there are, where they come from, what they cost, and which were left out.

mod text;

use std::{
    iter,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde::Serialize;
use skills_core::{
    Catalog, CatalogOptions, Diagnostic, Instructions, Scope, Skill, SkillSet, Source, ToolDefinition,
    activation::BodyCache,
    catalog::{self, Guide},
    estimate_tokens,
    files::{SKILL_FILE_NAMES, bundled},
    set::{Entry, Shadowed, Skipped, Unapproved},
    text::shown_path,
};

use super::{
    paths::{Meaning, meaning},
    skills, table,
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
};

/// Flags of `list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy list ~/skills
  acp-skills-proxy list --discover user,project
  acp-skills-proxy list --config skills.yaml --json")]
pub(crate) struct ListArgs {
    /// The directory of a skill, a SKILL.md, or a directory to look for skills in; the same as --skills. Repeatable.
    #[arg(value_name = "PATH", value_parser = path())]
    paths: Vec<PathBuf>,
    /// Print JSON: `skills`, `shadowed`, `skipped`, `waiting`, `catalog`, `tools` and `fixedTokens`.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// What is printed, as JSON. A promise to scripts: fields may be added, not changed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    skills: Vec<Row<'a>>,
    shadowed: &'a [Shadowed],
    skipped: &'a [Skipped],
    /// Skills of the project that are not used until somebody trusts them.
    waiting: Vec<WaitingRow<'a>>,
    catalog: CatalogSize,
    /// The tools of the skills server, in the order in which agents get them.
    tools: Vec<ToolSize>,
    /// What the model reads before it activates anything: the catalog, how to use it, and the tools.
    fixed_tokens: usize,
}

/// One skill.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    name: &'a str,
    description: &'a str,
    scope: Scope,
    /// The absolute path of the `SKILL.md`; a virtual or remote skill has none.
    path: Option<PathBuf>,
    /// The address of the `SKILL.md` of a remote skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    /// What activation costs; unknown for a body that is behind a URL or cannot be read.
    body_tokens: Option<usize>,
    /// What the entry in the catalog costs; nothing for a skill that the model does not see there.
    catalog_tokens: usize,
    /// How many files come with it, beside the `SKILL.md`.
    files: usize,
    diagnostics: &'a [Diagnostic],
}

/// A skill that waits.
#[derive(Debug, Serialize)]
struct WaitingRow<'a> {
    name: &'a str,
    description: &'a str,
    path: Option<PathBuf>,
    /// An earlier version was trusted.
    changed: bool,
}

/// What a tool costs before anybody calls it.
#[derive(Debug, Serialize)]
struct ToolSize {
    name: String,
    tokens: usize,
}

/// The catalog.
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
/// The command line, the configuration or a named skill is wrong, or stdout cannot be written.
pub(crate) fn run(args: ListArgs) -> anyhow::Result<ExitCode> {
    let ListArgs { paths, json, mut session, log } = args;
    for path in &paths {
        session.skills.roots.push(match meaning(path, "list")? {
            Meaning::Skill(file) if !is_skill_file(&file) => {
                let message = format!("`{}` is no SKILL.md", shown_path(path));
                return Err(UsageError::new(message)
                    .hint("name a directory to look in, or that of a skill")
                    .into());
            }
            Meaning::Skill(file) => file.parent().unwrap_or(Path::new("/")).to_owned(),
            Meaning::Root(dir) => dir,
        });
    }
    let config = ProxyArgs { session, log, ..ProxyArgs::default() }.config()?;
    log::start(&config)?;
    let settings = Settings::resolve(config)?;
    let loaded = skills::load(settings.skills)?;
    let tools = match settings.policy.mcp {
        McpMode::Off => Vec::new(),
        _ => (settings.toolbox)(loaded.here.clone()).definitions(),
    };
    let report = Report::new(&loaded.here, &settings.policy, &tools);
    if json {
        output::print_json(&report)?;
    } else if report.skills.is_empty() && report.skipped.is_empty() && report.waiting.is_empty() {
        let hints = loaded.why_none().into_iter().map(|sentence| format!("hint: {sentence}"));
        let lines: Vec<_> = iter::once("There are no skills.".to_owned()).chain(hints).collect();
        output::print(&(lines.join("\n") + "\n"))?;
    } else {
        output::print(&text::of(&report, &loaded.library.missing(), table::terminal_width()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn is_skill_file(file: &Path) -> bool {
    file.file_name().is_some_and(|name| SKILL_FILE_NAMES.iter().any(|it| name == *it))
}

impl<'a> Report<'a> {
    fn new(set: &'a SkillSet, policy: &Policy, tools: &[ToolDefinition]) -> Self {
        let options = &policy.catalog;
        let rendered = Catalog::render(set, options).filter(|_| policy.catalog_in != CatalogIn::Off);
        let guide = if policy.mcp == McpMode::Off { Guide::Files } else { Guide::Tools };
        let told = rendered
            .as_ref()
            .map_or(0, |catalog| estimate_tokens(&format!("{}\n\n{}", catalog.text, catalog::guide(guide))));
        let tool = |tool: &ToolDefinition| ToolSize {
            name: tool.name.to_string(),
            tokens: estimate_tokens(&tool.for_model()),
        };
        let tools: Vec<_> = tools.iter().map(tool).collect();
        let fixed_tokens = told + tools.iter().map(|tool| tool.tokens).sum::<usize>();
        let catalog = rendered.map(|catalog| CatalogSize {
            tokens: estimate_tokens(&catalog.text),
            shown: catalog.shown,
            omitted: catalog.omitted,
        });
        let progress = Progress::steps("reading skills", set.len());
        let row = |entry| {
            progress.step();
            Row::new(entry, options)
        };
        Self {
            skills: set.entries().iter().map(row).collect(),
            shadowed: set.shadowed(),
            skipped: set.skipped(),
            waiting: set.unapproved().iter().map(WaitingRow::new).collect(),
            catalog: catalog.unwrap_or_default(),
            tools,
            fixed_tokens,
        }
    }
}

impl<'a> WaitingRow<'a> {
    fn new(waiting: &'a Unapproved) -> Self {
        let skill = &*waiting.skill;
        Self {
            name: skill.name.as_str(),
            description: &skill.description,
            path: file(skill),
            changed: waiting.has_changed,
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
    fn new(entry: &'a Entry, options: &CatalogOptions) -> Self {
        let skill = &*entry.skill;
        Self {
            name: skill.name.as_str(),
            description: &skill.description,
            scope: skill.scope,
            path: file(skill),
            url: match &skill.source {
                Source::Remote(remote) => Some(&remote.url),
                _ => None,
            },
            body_tokens: body_tokens(skill),
            catalog_tokens: Catalog::entry_tokens(skill, options),
            files: bundled(skill, 0).map_or(0, |bundled| bundled.more),
            diagnostics: &entry.diagnostics,
        }
    }
}

fn body_tokens(skill: &Skill) -> Option<usize> {
    // A list fetches nothing.
    match &skill.source {
        Source::Remote(_) => return None,
        Source::Virtual(it) if matches!(it.instructions, Instructions::Url(_)) => return None,
        _ => {}
    }
    BodyCache::default().body(skill).ok().map(|body| estimate_tokens(&body))
}
