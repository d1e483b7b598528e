//! Files of skills for `fs/read_text_file` requests of an agent that runs elsewhere. Files are confined to the directory of their
//! skill, as for the tool `read_skill_file`.

use std::time::Instant;

use acp_skills_intercept::SkillFile;
use acp_skills_wire::{INTERNAL_ERROR, INVALID_PARAMS, Id, RESOURCE_NOT_FOUND, build};
use serde_json::json;
use skills_core::{
    Skill,
    files::{self, FileContent, FileError, ReadOptions, SKILL_FILE_NAMES, SOFT_CAP_BYTES},
    toolbox::turn,
};

use super::{calls, handler::Handler, serving::Serving};
use crate::events::ActivatedBy;

/// The reasons why a file has no text for the agent.
#[derive(Debug, thiserror::Error)]
enum NoText {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("`{}` is not a text file", .0.escape_debug())]
    NotText(String),
    #[error("`{}` is longer than 2 MiB; read it in parts, with `line` and `limit`", .0.escape_debug())]
    TooLong(String),
}

/// Reads a file of a skill. Returns the answer to the agent's request.
pub(super) async fn answer(handler: &Handler, id: &Id, file: SkillFile) -> Vec<u8> {
    let Serving { toolbox, context, .. } = handler.now();
    let Some(skill) = toolbox.usable(file.skill.as_str(), &context).cloned() else {
        return no_such_skill(id);
    };
    let started = Instant::now();
    let turn = turn(&skill).await;
    let reading = tokio::task::spawn_blocking(move || (turn.run(|| text(&skill, &file)), skill, file));
    let Ok((text, skill, file)) = reading.await else {
        return build::error(id, INTERNAL_ERROR, "interrupted");
    };
    match text {
        Ok(text) => {
            if SKILL_FILE_NAMES.contains(&file.path.as_str()) && file.line.unwrap_or(1) <= 1 {
                handler.recorded(calls::activated(&skill, ActivatedBy::Model, &text, started.elapsed()));
                handler.activated(&skill.name);
            } else {
                handler.recorded(calls::read(&skill, file.path, text.len(), started.elapsed()));
            }
            build::result(id, &json!({ "content": text }))
        }
        Err(error @ NoText::File(FileError::NotFound { .. })) => {
            build::error(id, RESOURCE_NOT_FOUND, &error.to_string())
        }
        Err(error) => build::error(id, INVALID_PARAMS, &error.to_string()),
    }
}

/// Returns the answer to a request for a file of a skill that no longer exists.
pub(super) fn no_such_skill(id: &Id) -> Vec<u8> {
    build::error(id, RESOURCE_NOT_FOUND, "this skill no longer exists")
}

/// Returns the lines that the agent asks for. Blocks.
fn text(skill: &Skill, file: &SkillFile) -> Result<String, NoText> {
    let options = ReadOptions { offset: file.line, limit: file.limit };
    let FileContent::Text { text, first_line, total_lines, .. } = files::read(skill, &file.path, options)?
    else {
        return Err(NoText::NotText(file.path.clone()));
    };
    let wanted = match file.limit {
        Some(0) => return Ok(String::new()),
        Some(limit) => limit,
        None => u64::MAX,
    };
    let lines = text.lines().count() as u64;
    let is_cut = lines < wanted.min((total_lines + 1).saturating_sub(first_line));
    // A single line that is too long is cut at a character.
    if is_cut || text.len() as u64 + 4 > SOFT_CAP_BYTES {
        return Err(NoText::TooLong(file.path.clone()));
    }
    Ok(text)
}
