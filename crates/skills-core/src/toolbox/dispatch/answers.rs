//! The implementations of the built-in tools, except `run_skill_script`.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use serde_json::{Value, json};

use super::{
    super::{Content, turn},
    ToolOutput, Toolbox,
    arguments::Arguments,
    errors::{self, CallError},
};
use crate::{
    catalog::{Guide, xml_entry},
    files::{self, FileContent, ReadOptions},
    instructions,
    search::Query,
    skill::Skill,
    tool::{CallContext, InvalidInput, ProviderError, SkillTool, ToolProvider},
};

/// The maximum length of a description in search results, in characters.
const MAX_FOUND_DESCRIPTION_CHARS: usize = 400;

pub(super) type Answer = Result<ToolOutput, CallError>;

pub(super) async fn activate_skill(
    toolbox: &Toolbox,
    arguments: &Arguments,
    context: &CallContext,
) -> Answer {
    let skill = skill(toolbox, arguments, "name", context)?;
    let activation = toolbox.activate_in(skill, None, Guide::Tools, context).await?;
    Ok(ToolOutput::text(activation.text))
}

pub(super) async fn call_skill_tool(
    toolbox: &Toolbox,
    mut arguments: Arguments,
    context: &CallContext,
) -> Answer {
    let input = arguments.take("input");
    let skill = skill(toolbox, &arguments, "skill", context)?;
    let name = arguments.required("tool")?;
    match (skill.tool(name), &skill.provider) {
        (Some(tool), _) => run(tool, input, context).await,
        (None, Some(provider)) => call_provider(skill, &**provider, name, input, context).await,
        (None, None) => Err(errors::tool_not_found(skill, name)),
    }
}

/// Calls a tool of the skill's provider.
async fn call_provider(
    skill: &Skill,
    provider: &dyn ToolProvider,
    name: &str,
    input: Option<Value>,
    context: &CallContext,
) -> Answer {
    match provider.call(name.to_owned(), input, context.clone()).await {
        Ok(output) => Ok(output),
        Err(ProviderError::UnknownTool { tools }) => {
            let own = skill.tools().iter().map(|tool| tool.name.as_str());
            let names: Vec<&str> = own.chain(tools.iter().map(String::as_str)).collect();
            Err(errors::tool_not_among(skill, name, &names))
        }
        Err(ProviderError::Failed(error)) => Err(CallError::new("ToolFailed", error.to_string())),
    }
}

/// Runs a tool of a skill or of the set, and converts its result.
pub(super) async fn run(tool: &SkillTool, input: Option<Value>, context: &CallContext) -> Answer {
    let handler = Arc::clone(&tool.handler);
    let context = context.clone();
    // Call the handler inside the future, since the call itself can also panic.
    let call = AssertUnwindSafe(async move { handler.call(input, context).await });
    match call.catch_unwind().await {
        Ok(Ok(Value::String(text))) => Ok(ToolOutput::text(text)),
        Ok(Ok(value)) => {
            let text = value.to_string();
            // MCP allows only objects as structured results before its revision of 2026, and clients reject other values.
            Ok(ToolOutput { structured: Some(value).filter(Value::is_object), ..ToolOutput::text(text) })
        }
        Ok(Err(error)) => Err(match error.downcast_ref::<InvalidInput>() {
            Some(invalid) => errors::invalid_input(tool, invalid),
            None => CallError::new("ToolFailed", error.to_string()),
        }),
        Err(panic) => {
            let message = format!("tool \"{}\" crashed{}.", tool.name, panic_message(&*panic));
            Err(CallError::new("ToolFailed", message))
        }
    }
}

pub(super) async fn read_skill_file(
    toolbox: &Toolbox,
    arguments: &Arguments,
    context: &CallContext,
) -> Answer {
    let skill = Arc::clone(skill(toolbox, arguments, "skill", context)?);
    let path = arguments.required("path")?.to_owned();
    let options = ReadOptions { offset: arguments.number("offset")?, limit: arguments.number("limit")? };
    let turn = turn(&skill).await;
    let read = move || {
        let read = files::read(&skill, &path, options);
        read.map(|content| show(&path, content)).map_err(|error| errors::file(&skill, &error))
    };
    off_thread(|| turn.run(read)).await?
}

pub(super) async fn search_skills(toolbox: &Toolbox, arguments: &Arguments) -> Answer {
    let limit = arguments.number("limit")?.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let query = Query {
        text: arguments.optional("query")?.unwrap_or_default().to_owned(),
        tags: arguments.strings("tags")?,
        instructions: true,
        limit,
    };
    if query.text.trim().is_empty() && query.tags.is_empty() {
        return Err(CallError::arguments("missing `query`: expected a string"));
    }
    let skills = toolbox.skills().clone();
    let search = move || {
        instructions::prepare_search(&skills);
        skills.search(&query)
    };
    let found = off_thread(search).await?;
    if found.hits.is_empty() {
        return Ok(ToolOutput::text(
            "No skill found. Use fewer or different words, or continue without a skill.",
        ));
    }
    let skills: Vec<Value> = found
        .hits
        .iter()
        .map(|hit| json!({ "name": hit.skill.name, "description": hit.skill.description }))
        .collect();
    let structured = json!({ "skills": skills, "total": found.total });
    let mut lines = vec!["<search_results>".to_owned()];
    lines.extend(found.hits.iter().map(|hit| xml_entry(&hit.skill, MAX_FOUND_DESCRIPTION_CHARS)));
    match found.total - found.hits.len() {
        0 => {}
        1 => lines.push("  1 more skill found; to show all skills, increase `limit`.".to_owned()),
        more => {
            lines.push(format!("  {more} more skills found; use more precise words, or increase `limit`."));
        }
    }
    lines.push("</search_results>".to_owned());
    Ok(ToolOutput { structured: Some(structured), ..ToolOutput::text(lines.join("\n")) })
}

/// Runs blocking work on a thread of the runtime that is meant for it.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CallError> {
    let interrupted = |_| CallError::new("Interrupted", "call was interrupted; retry the call.");
    tokio::task::spawn_blocking(work).await.map_err(interrupted)
}

/// Returns the skill whose name is in the argument `name`, if the model may use it.
pub(super) fn skill<'t>(
    toolbox: &'t Toolbox,
    arguments: &Arguments,
    name: &'static str,
    context: &CallContext,
) -> Result<&'t Arc<Skill>, CallError> {
    let name = arguments.required(name)?;
    toolbox.usable(name, context).ok_or_else(|| errors::skill_not_found(toolbox, name))
}

fn show(path: &str, content: FileContent) -> ToolOutput {
    match content {
        FileContent::Text { text, note: None, .. } if text.is_empty() => {
            ToolOutput::text("[The file is empty.]")
        }
        FileContent::Text { text, note: None, .. } => ToolOutput::text(text),
        FileContent::Text { mut text, note: Some(note), .. } => {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            ToolOutput::text(format!("{text}[{note}]"))
        }
        FileContent::Image { media_type, data } => {
            let text = format!("`{path}` is an image ({media_type}, {} bytes).", data.len());
            let mut output = ToolOutput::text(text);
            output.content.push(Content::Image { media_type, data });
            output
        }
        FileContent::Binary { media_type, size } => ToolOutput::text(format!(
            "`{path}` is a binary file ({media_type}, {size} bytes) and cannot be shown as text."
        )),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}
