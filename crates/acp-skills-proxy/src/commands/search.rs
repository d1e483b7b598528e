//! `search`: ranks the skills by what they do, as the model's `search_skills` does.

use std::{fmt::Write, process::ExitCode};

use clap::Args;
use serde_json::json;
use skills_core::{
    Source,
    search::{Hit, Query},
    text::shown,
};

use super::skills;
use crate::{
    args::{ProxyArgs, SkillArgs},
    output,
    words::count,
};
use acp_skills::config::Settings;

/// Flags of `search`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0 when a skill fits, 1 when none does.

Example:
  acp-skills-proxy search --skills ~/skills fill in a form")]
pub(crate) struct SearchArgs {
    /// What to look for.
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Only skills with this tag. Repeatable: all of them.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// How many at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    limit: usize,
    /// Print JSON: `[{"name","description","score","path"}]`, and "url" for remote ones.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    skills: SkillArgs,
}

/// Prints the skills that fit, best first.
///
/// # Errors
/// The configuration or a skill is wrong, or there is no skill at all.
pub(crate) fn run(args: SearchArgs) -> anyhow::Result<ExitCode> {
    let SearchArgs { words, tags, limit, json, skills } = args;
    let settings = Settings::resolve(ProxyArgs { session: skills.into(), ..ProxyArgs::default() }.config()?)?;
    let loaded = skills::load(settings.skills)?;
    if loaded.here.is_empty() {
        return Err(loaded.none("search").into());
    }
    let text = words.join(" ");
    let found = loaded.here.search(&Query { text: text.clone(), tags, limit: Some(limit) });
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
        output::note(&format!("none of {} fits `{text}`", count(loaded.here.len(), "skill")));
    } else {
        let line = |hit: &Hit| format!("{}\n    {}\n", hit.skill.name, shown(&hit.skill.description));
        let mut text: String = found.hits.iter().map(line).collect();
        let left = found.total.saturating_sub(found.hits.len());
        if left > 0 {
            let _ = writeln!(text, "… and {left} more (--limit)");
        }
        output::print(&text)?;
    }
    Ok(ExitCode::from(u8::from(found.hits.is_empty())))
}
