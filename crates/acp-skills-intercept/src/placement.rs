//! The place of the catalog: the system prompt if the agent supports one, otherwise the first prompt.

use std::{path::Path, sync::Arc};

use acp_skills_wire::{Edit, Node};
use serde_json::{Value, json};
use skills_core::{
    SkillSet,
    catalog::{self, Catalog, CatalogOptions, Guide, Location},
    order,
    text::sanitize,
};

use crate::{agent_facts::AgentFacts, policy::CatalogIn, servers, session::Session};

/// The place of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The draft field `systemPrompt` of session requests.
    SystemPrompt,
    /// `_meta.systemPrompt.append`, which older versions of Claude's adapter read.
    ClaudeMeta,
    /// A text block before or after the user's text in the first prompt that is not a command.
    Prompt,
    /// The model gets no catalog.
    Off,
}

/// Returns the place for this agent.
pub(crate) fn choose(wish: CatalogIn, agent: &AgentFacts) -> Placement {
    match wish {
        CatalogIn::Off => Placement::Off,
        CatalogIn::Auto | CatalogIn::System if agent.system_prompt => Placement::SystemPrompt,
        CatalogIn::Auto | CatalogIn::System if agent.quirks.takes_system_prompt_in_meta => {
            Placement::ClaudeMeta
        }
        // If the agent doesn't let us set a system prompt, it fails on the field. So we fall back to the first prompt here, even
        // for `system`.
        CatalogIn::Auto | CatalogIn::System | CatalogIn::Prompt => Placement::Prompt,
    }
}

/// Returns the catalog of a session with instructions. Returns `None` if there is no skill to list.
pub(crate) fn text(
    session: &Session,
    agent: &AgentFacts,
    options: &CatalogOptions,
    guide: Guide,
) -> Option<String> {
    let Session { skills, server, .. } = session;
    let list = list(skills, options, guide)?;
    let more = match server.name() {
        // Some agents don't connect until the model uses a tool, so it's possible that the tools will show up later.
        _ if guide != Guide::Tools && server.is_missing() => {
            " Should you have the tools `activate_skill` and `read_skill_file` after all, use them instead."
                .to_owned()
        }
        Some(name) if guide == Guide::Tools => {
            // If the agent runs elsewhere, its model may not be able to read the files.
            let can_read = session.without_tools == Guide::Files;
            whose_tools(name, agent, patterns(skills, options).filter(|_| can_read && !agent.gives_tools()))
        }
        _ => String::new(),
    };
    Some(list + &more)
}

/// Returns the sentence that identifies the skill tools, or an empty text if their names are enough.
/// `files` are patterns for the files to read without the tools.
fn whose_tools(server: &str, agent: &AgentFacts, files: Option<String>) -> String {
    // If there may be a different tool with the same name, we include the name of the server. For example, this happens with
    // Gemini, or if there is another proxy in the chain. We also include it if the model has to search for tools, so that it
    // knows which words to use.
    let is_first = server == servers::SERVER_NAME || agent.quirks.shares_servers;
    let is_alone = agent.quirks.own_tools.is_empty() && is_first;
    match files {
        Some(files) => format!(
            " The tools are those of the MCP server `{server}`; if you do not have them, read the `SKILL.md` instead: {files}."
        ),
        None if is_alone && !agent.quirks.hides_tools => String::new(),
        None => format!(" The tools are those of the MCP server `{server}`."),
    }
}

/// Returns patterns that match the files of the skills. Returns `None` if no skill has files, or if the catalog has the
/// paths.
fn patterns(skills: &SkillSet, options: &CatalogOptions) -> Option<String> {
    if options.location != Location::None {
        return None;
    }
    let mut roots: Vec<&Path> = skills.listed().filter_map(|skill| skill.dir()?.parent()).collect();
    order::sort(&mut roots);
    roots.dedup();
    // A pattern for a directory will also match everything below it.
    let tops: Vec<&Path> = roots
        .iter()
        .filter(|root| !roots.iter().any(|other| *root != other && root.starts_with(other)))
        .copied()
        .collect();
    let more = tops.len().saturating_sub(MAX_PATTERNS);
    let pattern = |top: &&Path| {
        let is_flat = !roots.iter().any(|root| root != top && root.starts_with(top));
        let stars = if is_flat { "*" } else { "**" };
        format!("`{}`", sanitize(&top.join(stars).join("SKILL.md").to_string_lossy()))
    };
    let mut patterns: Vec<_> = tops.iter().take(MAX_PATTERNS).map(pattern).collect();
    if more > 0 {
        patterns.push(format!("and in {more} more directories"));
    }
    (!patterns.is_empty()).then(|| patterns.join(", "))
}

/// The maximum number of patterns.
const MAX_PATTERNS: usize = 4;

/// Returns the list of skills with instructions. Every text of [`text`] for these skills begins with it.
pub(crate) fn list(skills: &SkillSet, options: &CatalogOptions, guide: Guide) -> Option<String> {
    let catalog = match guide {
        Guide::Files => Catalog::render(&stored(skills), &for_files(options)),
        // Without the tools, there is no search.
        Guide::Prompts => Catalog::render(skills, &CatalogOptions { search: false, ..options.clone() }),
        _ => Catalog::render(skills, options),
    }?;
    Some(format!("{}\n\n{}", catalog.text, catalog::styled_guide(guide, options.style)))
}

/// Returns the options for a model without the skill tools, which needs the paths of the files.
fn for_files(options: &CatalogOptions) -> CatalogOptions {
    let mut options = options.clone();
    if options.location == Location::None {
        options.location = Location::Absolute;
    }
    options.search = false;
    options
}

/// Returns the skills that have files. The model cannot read the others, but users can invoke them.
fn stored(skills: &SkillSet) -> SkillSet {
    let mut builder = SkillSet::builder();
    for skill in skills.iter().filter(|skill| skill.dir().is_some()) {
        builder.add_shared(Arc::clone(skill), Vec::new());
    }
    builder.build()
}

/// Adds `text` to the draft field `systemPrompt` of `params`. The client's content and mode are kept. Returns false, and
/// changes nothing, if the field does not have the form of the draft.
pub(crate) fn into_system_prompt(edit: &mut Edit, params: Node<'_>, text: &str) -> bool {
    let block = json!({ "type": "text", "text": text });
    let field = || json!({ "mode": "append", "content": [block] });
    match params.get("systemPrompt") {
        None => edit.insert(params, "systemPrompt", &field().to_string()),
        Some(null) if null.is_null() => edit.set(null, &field()),
        Some(system) if system.is_object() => match system.get("content") {
            None => edit.insert(system, "content", &json!([block]).to_string()),
            Some(null) if null.is_null() => edit.set(null, &json!([block])),
            Some(content) if content.is_array() => edit.push(content, &block.to_string()),
            Some(_) => return false,
        },
        Some(_) => return false,
    }
    true
}

/// Adds `text` to `_meta.systemPrompt` of `params`, after the client's own text. Returns false, and changes nothing, if the
/// field does not have the form that Claude's adapter reads.
pub(crate) fn into_claude_meta(edit: &mut Edit, params: Node<'_>, text: &str) -> bool {
    let field = json!({ "append": text });
    let meta = match params.get("_meta") {
        Some(meta) if meta.is_object() => meta,
        Some(null) if null.is_null() => {
            edit.set(null, &json!({ "systemPrompt": field }));
            return true;
        }
        Some(_) => return false,
        None => {
            edit.insert(params, "_meta", &json!({ "systemPrompt": field }).to_string());
            return true;
        }
    };
    match meta.get("systemPrompt") {
        None => edit.insert(meta, "systemPrompt", &field.to_string()),
        Some(null) if null.is_null() => edit.set(null, &field),
        Some(system) if system.is_object() => match system.get("append") {
            None => edit.insert(system, "append", &Value::from(text).to_string()),
            Some(null) if null.is_null() => edit.set(null, &text.into()),
            Some(append) => return extend(edit, append, text),
        },
        Some(system) => return extend(edit, system, text),
    }
    true
}

/// Adds a paragraph to a JSON string without rewriting the string. Returns false if the node is not a string.
fn extend(edit: &mut Edit, string: Node<'_>, text: &str) -> bool {
    if string.as_text().is_none() {
        return false;
    }
    let end = string.span().end - 1;
    let quoted = Value::from(format!("\n\n{text}")).to_string();
    edit.replace(end..end, &quoted[1..quoted.len() - 1]);
    true
}
