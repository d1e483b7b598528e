//! Texts of skills that the proxy itself puts in front of a prompt: because the user asked for a skill by name, or
//! because the agent has no tools to ask for one.

use std::sync::Arc;

use skills_core::{
    Skill, Toolbox,
    catalog::Guide,
    search::{Hit, Query},
};

use crate::intercept::Wanted;

/// How many skills are put in front of one prompt at most.
const MAX_SKILLS: usize = 2;
/// How many bytes of them together.
const MAX_BYTES: usize = 20 * 1024;
/// How many words a skill must share with the prompt: one alone is chance.
const MIN_WORDS: usize = 2;
/// How much worse than the best one a skill may fit.
const MIN_SHARE: f32 = 0.5;

/// The text; `None` when there is nothing to say, and a sentence for the user when there should be.
pub(super) async fn text(toolbox: &Toolbox, wanted: Wanted) -> Result<Option<String>, String> {
    match wanted {
        Wanted::Skill { name, arguments, tools } => {
            let Some(skill) = toolbox.skills().get(&name) else { return Ok(None) };
            let guide = if tools { Guide::Tools } else { Guide::Files };
            activate(toolbox, skill, arguments, guide).await.map(Some)
        }
        Wanted::BestFor(words) => Ok(best(toolbox, words).await),
    }
}

async fn activate(
    toolbox: &Toolbox,
    skill: &Arc<Skill>,
    arguments: String,
    guide: Guide,
) -> Result<String, String> {
    // The arguments stand in the prompt too, as the user's own words, so they are not repeated behind the text.
    match toolbox.activate(skill, Some(arguments), guide).await {
        Ok(activation) => Ok(activation.text),
        Err(error) => Err(format!("The skill `{}` cannot be activated: {error}", skill.name)),
    }
}

async fn best(toolbox: &Toolbox, words: String) -> Option<String> {
    let found =
        toolbox.skills().search(&Query { text: words, limit: Some(MAX_SKILLS), ..Query::default() }).hits;
    let enough = found.first()?.score * MIN_SHARE;
    let fits = |hit: &&Hit| hit.matched >= MIN_WORDS && hit.score >= enough;
    let mut texts: Vec<String> = Vec::new();
    for hit in found.iter().filter(fits) {
        match activate(toolbox, &hit.skill, String::new(), Guide::Files).await {
            Ok(text) if texts.iter().map(String::len).sum::<usize>() + text.len() <= MAX_BYTES => {
                texts.push(text);
            }
            Ok(_) => tracing::info!(skill = %hit.skill.name, "too long to be put in front of a prompt"),
            Err(error) => tracing::warn!("{error}"),
        }
    }
    (!texts.is_empty())
        .then(|| format!("These skills fit the request. Follow them.\n\n{}", texts.join("\n\n")))
}
