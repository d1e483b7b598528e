//! Skills as MCP prompts, one for each skill that the user may invoke. Some agents show these to their users.

use std::time::Instant;

use acp_skills_intercept::spelled;
use rmcp::{
    ErrorData,
    model::{
        GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
        Role,
    },
};
use skills_core::{
    CallContext, SkillName, Toolbox,
    catalog::Guide,
    text::{shown, shown_lines},
};

use super::calls;
use crate::events::{ActivatedBy, EventKind};

/// The name of the only argument: the text that the user writes after the command.
const ARGUMENTS: &str = "arguments";

/// Returns the list of prompts.
pub(super) fn list(toolbox: &Toolbox) -> ListPromptsResult {
    let words = spelled(toolbox.skills());
    let prompts = words.iter().map(|(word, skill)| {
        let mut argument = PromptArgument::new(ARGUMENTS).with_required(false);
        if let Some(hint) = skill.hint() {
            argument = argument.with_description(shown(&hint));
        }
        Prompt::new(word, Some(shown_lines(&skill.description)), Some(vec![argument]))
            .with_title(skill.name.as_str())
    });
    ListPromptsResult::with_all_items(prompts.collect())
}

/// Returns the text of a prompt, the skill that it activates, and the event for the record.
///
/// # Errors
/// Returns an error if there is no such prompt, or if the skill cannot be activated.
pub(super) async fn get(
    toolbox: &Toolbox,
    request: GetPromptRequestParams,
    context: &CallContext,
) -> Result<(GetPromptResult, SkillName, EventKind), ErrorData> {
    let known = spelled(toolbox.skills());
    let Some(skill) = known.skill(&request.name) else {
        return Err(ErrorData::invalid_params(format!("no such prompt: `{}`", request.name), None));
    };
    let words = request.arguments.as_ref().and_then(|arguments| arguments.get(ARGUMENTS));
    let words = words.and_then(|words| words.as_str()).unwrap_or_default().trim();
    let started = Instant::now();
    let activation = toolbox.activate_in(skill, Some(words.to_owned()), Guide::Tools, context).await;
    let activation = activation.map_err(|error| {
        ErrorData::internal_error(format!("cannot activate skill `{}`: {error}", skill.name), None)
    })?;
    let event = calls::activated(skill, ActivatedBy::Model, &activation.text, started.elapsed());
    let mut messages = vec![PromptMessage::new_text(Role::User, activation.text)];
    if !words.is_empty() {
        messages.push(PromptMessage::new_text(Role::User, words));
    }
    Ok((
        GetPromptResult::new(messages).with_description(shown_lines(&skill.description)),
        skill.name.clone(),
        event,
    ))
}
