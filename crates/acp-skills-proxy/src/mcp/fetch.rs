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

/// The text; `None` when there is nothing to say.
pub(super) async fn text(toolbox: &Toolbox, wanted: Wanted) -> Option<String> {
    match wanted {
        Wanted::Skill { name, arguments, tools } => {
            let skill = toolbox.skills().get(&name)?;
            let guide = if tools { Guide::Tools } else { Guide::Files };
            Some(activate(toolbox, skill, arguments, guide).await.unwrap_or_else(|error| error))
        }
        Wanted::BestFor(words) => best(toolbox, words).await,
    }
}

async fn activate(
    toolbox: &Toolbox,
    skill: &Arc<Skill>,
    arguments: String,
    guide: Guide,
) -> Result<String, String> {
    let given = (!arguments.is_empty()).then(|| arguments.clone());
    match toolbox.activate(skill, given, guide).await {
        Ok(activation) if activation.uses_arguments || arguments.is_empty() => Ok(activation.text),
        Ok(activation) => Ok(format!("{}\n\n{arguments}", activation.text)),
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
