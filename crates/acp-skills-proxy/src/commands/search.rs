//! `search`: ranks skills by how well they match a description, as the model's tool `search_skills` does.

use std::{fmt::Write, num::NonZeroUsize, path::Path, process::ExitCode};

use acp_skills_setup::shell::{shell_line, shell_word};
use clap::Args;
use serde_json::json;
use skills_core::{
    Source, instructions,
    search::{Hit, Query},
    text::shown,
};

use super::skills;
use crate::{
    args::{ProxyArgs, SkillArgs, number},
    error::UsageError,
    output,
    words::count,
};
use acp_skills::config::Settings;

/// The flags of `search`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy search --skills ~/skills fill in a form
  acp-skills-proxy search --discover user --tag pdf --json merge files

Exit codes: 0 if a skill matches, 1 if none matches.")]
pub(crate) struct SearchArgs {
    /// Words that describe the task.
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Search only skills with a tag. Repeatable; skills must have all of the tags.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// The maximum number of results.
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = number::<NonZeroUsize>(), allow_negative_numbers = true)]
    limit: NonZeroUsize,
    /// Print JSON: `[{"name","description","score","path"}]`, with "url" for remote skills.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    skills: SkillArgs,
}

/// Prints the skills that match, the best match first.
///
/// # Errors
/// Returns an error if the configuration or a skill is invalid, or if there are no skills.
pub(crate) fn run(args: SearchArgs) -> anyhow::Result<ExitCode> {
    let SearchArgs { words, tags, limit, json, skills } = args;
    let is_named = skills.names_skills();
    let settings = Settings::resolve(ProxyArgs { session: skills.into(), ..ProxyArgs::default() }.config()?)?;
    let loaded = skills::load(settings.skills)?;
    if loaded.here.is_empty() {
        // The other commands for skills take paths, so this one is used in the same way.
        let (dirs, rest): (Vec<_>, Vec<_>) = words.iter().partition(|word| Path::new(word).is_dir());
        if let (Some(dir), false) = (dirs.first(), is_named) {
            let rest = if rest.is_empty() { "WORDS".to_owned() } else { shell_line(rest) };
            let hint = format!(
                "`search` takes words; for the skills in `{dir}`: acp-skills-proxy search --skills {} {rest}",
                shell_word(dir)
            );
            return Err(UsageError::new("no skills found").hint(hint).into());
        }
        return Err(loaded.none().into());
    }
    let text = words.join(" ");
    let query = Query { text: text.clone(), tags, instructions: true, limit: Some(limit.get()) };
    instructions::prepare_search(&loaded.here);
    let found = loaded.here.search(&query);
    if json {
        let hits = found.hits.iter().map(|hit| {
            let skill = &hit.skill;
            let path = skill.dir().map(|dir| dir.join("SKILL.md"));
            let mut hit = json!({ "name": skill.name, "description": skill.description, "score": hit.score, "path": path });
            if let Source::Remote(remote) = &skill.source {
                hit["url"] = (&*remote.url).into();
            }
            hit
        });
        output::print_json(&hits.collect::<Vec<_>>())?;
    } else if found.hits.is_empty() {
        output::note(&format!("no match for `{text}` in {}", count(loaded.here.len(), "skill")));
    } else {
        let line = |hit: &Hit| format!("{}\n    {}\n", hit.skill.name, shown(&hit.skill.description));
        let mut text: String = found.hits.iter().map(line).collect();
        let left = found.total.saturating_sub(found.hits.len());
        if left > 0 {
            let _ = writeln!(text, "… and {left} more (use --limit to show them)");
        }
        output::print(&text)?;
    }
    Ok(ExitCode::from(u8::from(found.hits.is_empty())))
}
