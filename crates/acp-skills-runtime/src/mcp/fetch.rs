//! Texts of skills that are added to a prompt. This is used if the user invoked a skill, or if the agent doesn't have
//! tools to activate one.

use std::{sync::Arc, time::Instant};

use acp_skills_intercept::{Fetched, NotFetched, Wanted};
use skills_core::{
    CallContext, Skill, SkillName, Toolbox,
    catalog::Guide,
    search::{Hit, Query},
};

use tokio::task::{JoinSet, spawn_blocking};

use super::calls;
use crate::events::{ActivatedBy, EventKind};

/// The maximum number of skills that are added to one prompt.
const MAX_SKILLS: usize = 2;
/// The maximum total size of these skills, in bytes.
const MAX_BYTES: usize = 20 * 1024;
/// The minimum number of words that a skill must share with the prompt. A single word could be a coincidence.
const MIN_WORDS: usize = 2;
/// The minimum score of a skill, as a share of the best score.
const MIN_SHARE: f32 = 0.5;

/// Returns the text for a prompt. It is empty if there is no such skill or if none matches.
///
/// # Errors
/// Returns an error if the skill that the user named cannot be activated.
pub(super) async fn text(
    toolbox: &Toolbox,
    context: &CallContext,
    wanted: Wanted,
) -> Result<Fetched, NotFetched> {
    match wanted {
        Wanted::Skill { name, arguments, guide } => {
            let Some(skill) = toolbox.skills().get(&name) else { return Ok(Fetched::default()) };
            let (text, event) =
                activate(toolbox, context, skill, arguments, guide, ActivatedBy::User).await?;
            Ok(Fetched { text: Some(text), activations: vec![event], ..Fetched::default() })
        }
        Wanted::BestFor { words, guide } => {
            Ok(best(toolbox, context, words, guide).await.unwrap_or_default())
        }
        Wanted::Hint { words, except } => Ok(hint(toolbox, words, except).await),
        Wanted::Active { names, guide, best_for } => {
            let fetched = match best_for {
                Some(words) => best(toolbox, context, words, guide).await,
                None => None,
            };
            let skills = instructions(toolbox, context, &names, guide).await;
            Ok(Fetched { skills, ..fetched.unwrap_or_default() })
        }
    }
}

async fn activate(
    toolbox: &Toolbox,
    context: &CallContext,
    skill: &Arc<Skill>,
    arguments: String,
    guide: Guide,
    by: ActivatedBy,
) -> Result<(String, EventKind), NotFetched> {
    let started = Instant::now();
    tracing::Span::current().record("skill", skill.name.as_str());
    // We don't need to add the arguments to the text, because the prompt already contains them as the user wrote
    // them.
    match toolbox.activate_in(skill, Some(arguments), guide, context).await {
        Ok(activation) => {
            tracing::debug!(skill = %skill.name, bytes = activation.text.len(), "fetched skill text for a prompt");
            let event = calls::activated(skill, by, &activation.text, started.elapsed());
            Ok((activation.text, event))
        }
        Err(error) => Err(NotFetched {
            why: format!("The skill `{}` cannot be activated: {error}", skill.name),
            failed: Some(calls::not_activated(skill, by, started.elapsed())),
        }),
    }
}

/// Fetches the texts of these skills at the same time. Skills that cannot be activated are left out.
async fn instructions(
    toolbox: &Toolbox,
    context: &CallContext,
    names: &[SkillName],
    guide: Guide,
) -> Vec<(SkillName, String)> {
    let mut activations = JoinSet::new();
    for skill in names.iter().filter_map(|name| toolbox.skills().get(name.as_str())) {
        let skill = Arc::clone(skill);
        let toolbox = toolbox.clone();
        let context = context.clone();
        activations.spawn(async move {
            let activation = toolbox.activate_in(&skill, None, guide, &context).await;
            (skill.name.clone(), activation.map(|activation| activation.text))
        });
    }
    let mut texts = Vec::new();
    while let Some(activated) = activations.join_next().await {
        match activated {
            Ok((name, Ok(text))) => texts.push((name, text)),
            Ok((name, Err(error))) => tracing::warn!("cannot repeat the instructions of `{name}`: {error}"),
            Err(error) => tracing::warn!("cannot repeat the instructions of a skill: {error}"),
        }
    }
    texts
}

/// Returns the name of the skill that clearly fits the words best.
async fn hint(toolbox: &Toolbox, words: String, except: Vec<SkillName>) -> Fetched {
    let skills = toolbox.skills().clone();
    // The first search builds an index, which takes a while if there are many skills.
    let search = move || skills.search(&Query { text: words, limit: Some(2), ..Query::default() });
    let found = spawn_blocking(search).await.unwrap_or_default();
    let name = found.confident().map(|hit| hit.skill.name.clone());
    Fetched { hint: name.filter(|name| !except.contains(name)), ..Fetched::default() }
}

async fn best(toolbox: &Toolbox, context: &CallContext, words: String, guide: Guide) -> Option<Fetched> {
    // An agent on this machine can always read the files.
    let guide = if toolbox.options().elsewhere { guide } else { Guide::Files };
    let found =
        toolbox.skills().search(&Query { text: words, limit: Some(MAX_SKILLS), ..Query::default() }).hits;
    let enough = found.first()?.score * MIN_SHARE;
    let fits = |hit: &&Hit| hit.matched >= MIN_WORDS && hit.score >= enough;
    let mut texts: Vec<String> = Vec::new();
    let mut activations = Vec::new();
    for hit in found.iter().filter(fits) {
        match activate(toolbox, context, &hit.skill, String::new(), guide, ActivatedBy::Prompt).await {
            Ok((text, event)) if texts.iter().map(String::len).sum::<usize>() + text.len() <= MAX_BYTES => {
                texts.push(text);
                activations.push(event);
            }
            Ok(_) => tracing::info!(skill = %hit.skill.name, "the skill is too long to be added to a prompt"),
            Err(error) => {
                tracing::warn!("{}", error.why);
                activations.extend(error.failed);
            }
        }
    }
    let text = (!texts.is_empty())
        .then(|| format!("These skills fit the request. Follow them.\n\n{}", texts.join("\n\n")));
    Some(Fetched { text, activations, ..Fetched::default() })
}
