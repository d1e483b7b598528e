//! `list`: which skills there are, where they come from, what they cost, and which were left out.

use std::{env, path::PathBuf, process::ExitCode};

use clap::Args;
use serde::Serialize;
use skills_core::{
    Catalog, CatalogOptions, Diagnostic, Instructions, Scope, Skill, SkillSet, Source,
    activation::BodyCache,
    estimate_tokens,
    files::bundled,
    name::sanitize,
    set::{Entry, Shadowed, Skipped},
};

use super::table::{self, Align, Table};
use crate::{
    args::{CatalogArgs, LogArgs, ProxyArgs, SkillArgs},
    log,
};
use acp_skills::config::Settings;

/// Flags of `list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy list --skills ~/skills
  acp-skills-proxy list --discover user,project
  acp-skills-proxy list --config skills.yaml --json")]
pub(crate) struct ListArgs {
    /// Print JSON: `skills`, `shadowed`, `skipped` and `catalog`.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    skills: SkillArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
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
    catalog: CatalogSize,
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

/// What the model reads before it activates anything.
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
    let ListArgs { json, skills, catalog, log } = args;
    let config = ProxyArgs { skills, catalog, log, ..ProxyArgs::default() }.config()?;
    log::start(&config)?;
    let settings = Settings::resolve(config)?;
    let set = settings.skills.load()?.at(env::current_dir().ok().as_deref());
    let report = Report::new(&set, &settings.policy.catalog);
    let text = if json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        report.to_text(table::terminal_width())
    };
    super::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl<'a> Report<'a> {
    fn new(set: &'a SkillSet, options: &CatalogOptions) -> Self {
        let catalog = Catalog::render(set, options).map(|catalog| CatalogSize {
            tokens: estimate_tokens(&catalog.text),
            shown: catalog.shown,
            omitted: catalog.omitted,
        });
        Self {
            skills: set.entries().iter().map(|entry| Row::new(entry, options)).collect(),
            shadowed: set.shadowed(),
            skipped: set.skipped(),
            catalog: catalog.unwrap_or_default(),
        }
    }

    fn to_text(&self, width: Option<usize>) -> String {
        let mut lines = Vec::new();
        if !self.skills.is_empty() {
            lines.push(self.table(width));
        }
        lines.push(self.summary());
        for shadowed in self.shadowed {
            let (loser, winner) = (place(shadowed.path.as_ref()), place(shadowed.by.as_ref()));
            lines.push(format!("shadowed: {} in {loser}, by the one in {winner}", shadowed.name));
        }
        for row in &self.skills {
            let path = row.url.map_or_else(|| place(row.path.as_ref()), str::to_owned);
            lines.extend(row.diagnostics.iter().map(|diagnostic| located(row.name, &path, diagnostic)));
        }
        for skipped in self.skipped {
            let path = skipped.path.display().to_string();
            lines.extend(skipped.diagnostics.iter().map(|diagnostic| located("skipped", &path, diagnostic)));
        }
        lines.join("\n") + "\n"
    }

    fn table(&self, width: Option<usize>) -> String {
        let mut table = Table::new([
            ("NAME", Align::Left),
            ("SCOPE", Align::Left),
            ("CATALOG", Align::Right),
            ("BODY", Align::Right),
            ("FILES", Align::Right),
            ("DESCRIPTION", Align::Left),
        ]);
        for row in &self.skills {
            let body = row.body_tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
            let description = sanitize(row.description).split_whitespace().collect::<Vec<_>>().join(" ");
            table.row([
                row.name.to_owned(),
                row.scope.to_string(),
                row.catalog_tokens.to_string(),
                body,
                row.files.to_string(),
                description,
            ]);
        }
        table.render(width)
    }

    fn summary(&self) -> String {
        let count = match self.skills.len() {
            0 => return "There are no skills.".to_owned(),
            1 => "1 skill".to_owned(),
            count => format!("{count} skills"),
        };
        let omitted = match self.catalog.omitted {
            0 => String::new(),
            omitted => format!(", which leaves {omitted} of them out"),
        };
        format!("\n{count}; about {} tokens in the catalog{omitted}.", self.catalog.tokens)
    }
}

impl<'a> Row<'a> {
    fn new(entry: &'a Entry, options: &CatalogOptions) -> Self {
        let skill = &*entry.skill;
        Self {
            name: skill.name.as_str(),
            description: &skill.description,
            scope: skill.scope,
            path: match &skill.source {
                Source::Stored(stored) => Some(stored.file()),
                _ => None,
            },
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

fn place(path: Option<&PathBuf>) -> String {
    path.map_or_else(|| "the configuration".to_owned(), |path| path.display().to_string())
}

/// `NAME: PATH:3:14: warning[code]: …`
fn located(name: &str, path: &str, diagnostic: &Diagnostic) -> String {
    let separator = if diagnostic.line == 0 { ": " } else { ":" };
    format!("{name}: {path}{separator}{diagnostic}")
}
