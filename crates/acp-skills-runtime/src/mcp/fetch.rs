//! Texts of skills that the proxy itself puts in front of a prompt: because the user asked for a skill by name, or
//! because the agent has no tools to ask for one.

use std::{sync::Arc, time::Instant};

use skills_core::{
    Skill, Toolbox,
    catalog::Guide,
    search::{Hit, Query},
};

use super::calls;
use crate::events::{ActivatedBy, EventKind};
use acp_skills_intercept::{Fetched, NotFetched, Wanted};

/// How many skills are put in front of one prompt at most.
const MAX_SKILLS: usize = 2;
/// How many bytes of them together.
const MAX_BYTES: usize = 20 * 1024;
/// How many words a skill must share with the prompt: one alone is chance.
const MIN_WORDS: usize = 2;
/// How much worse than the best one a skill may fit.
const MIN_SHARE: f32 = 0.5;

/// The text for a prompt; fails when there should be one.
pub(super) async fn text(toolbox: &Toolbox, wanted: Wanted) -> Result<Fetched, NotFetched> {
    match wanted {
        Wanted::Skill { name, arguments, tools } => {
            let Some(skill) = toolbox.skills().get(&name) else { return Ok(Fetched::default()) };
            let guide = if tools { Guide::Tools } else { Guide::Files };
            let (text, what) = activate(toolbox, skill, arguments, guide, ActivatedBy::User).await?;
            Ok(Fetched { text: Some(text), activations: vec![what] })
        }
        Wanted::BestFor(words) => Ok(best(toolbox, words).await.unwrap_or_default()),
    }
}

async fn activate(
    toolbox: &Toolbox,
    skill: &Arc<Skill>,
    arguments: String,
    guide: Guide,
    by: ActivatedBy,
) -> Result<(String, EventKind), NotFetched> {
    let started = Instant::now();
    // The arguments stand in the prompt too, as the user's own words, so they are not repeated behind the text.
    match toolbox.activate(skill, Some(arguments), guide).await {
        Ok(activation) => {
            let what = calls::activated(skill, by, &activation.text, started.elapsed());
            Ok((activation.text, what))
        }
        Err(error) => Err(NotFetched {
            why: format!("The skill `{}` cannot be activated: {error}", skill.name),
            failed: Some(calls::not_activated(skill, by, started.elapsed())),
        }),
    }
}

async fn best(toolbox: &Toolbox, words: String) -> Option<Fetched> {
    let found =
        toolbox.skills().search(&Query { text: words, limit: Some(MAX_SKILLS), ..Query::default() }).hits;
    let enough = found.first()?.score * MIN_SHARE;
    let fits = |hit: &&Hit| hit.matched >= MIN_WORDS && hit.score >= enough;
    let mut texts: Vec<String> = Vec::new();
    let mut activations = Vec::new();
    for hit in found.iter().filter(fits) {
        match activate(toolbox, &hit.skill, String::new(), Guide::Files, ActivatedBy::Prompt).await {
            Ok((text, what)) if texts.iter().map(String::len).sum::<usize>() + text.len() <= MAX_BYTES => {
                texts.push(text);
                activations.push(what);
            }
            Ok(_) => tracing::info!(skill = %hit.skill.name, "too long to be put in front of a prompt"),
            Err(error) => {
                tracing::warn!("{}", error.why);
                activations.extend(error.failed);
            }
        }
    }
    let text = (!texts.is_empty())
        .then(|| format!("These skills fit the request. Follow them.\n\n{}", texts.join("\n\n")));
    Some(Fetched { text, activations })
}
