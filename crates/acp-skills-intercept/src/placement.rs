//! How the catalog reaches the model: in the system prompt where the agent takes one, else in the first prompt.

use std::sync::Arc;

use acp_skills_wire::{Edit, Node};
use serde_json::{Value, json};
use skills_core::{
    SkillSet,
    catalog::{self, Catalog, CatalogOptions, Guide, Location},
};

use crate::{
    agent_facts::{AgentFacts, AgentKind},
    policy::CatalogIn,
    servers,
    session::server::SessionServer,
};

/// Where the catalog goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The draft field `systemPrompt` of session requests.
    SystemPrompt,
    /// `_meta.systemPrompt.append`, which older versions of Claude's adapter read.
    ClaudeMeta,
    /// A text block in front of the first prompt that is no command.
    Prompt,
    /// Nowhere.
    Off,
}

/// The place for this agent.
pub(crate) fn choose(wish: CatalogIn, agent: &AgentFacts) -> Placement {
    match wish {
        CatalogIn::Off => Placement::Off,
        CatalogIn::Auto | CatalogIn::System if agent.system_prompt => Placement::SystemPrompt,
        CatalogIn::Auto | CatalogIn::System if agent.kind == AgentKind::Claude => Placement::ClaudeMeta,
        // An agent without a system prompt field fails on one, so `system` is a wish and not an order.
        CatalogIn::Auto | CatalogIn::System | CatalogIn::Prompt => Placement::Prompt,
    }
}

/// The text that lists the skills of a session and says how to use them, `None`
/// when there is no skill to list.
pub(crate) fn text(
    skills: &SkillSet,
    server: &SessionServer,
    agent: &AgentFacts,
    options: &CatalogOptions,
    guide: Guide,
) -> Option<String> {
    let list = list(skills, options, guide)?;
    // Where there is another tool of the same name, the model has to know which one is meant: Gemini has one itself, and
    // a proxy with other skills before us in a chain has them all.
    let is_alone = agent.kind != AgentKind::Gemini && server.name() == Some(servers::SERVER_NAME);
    let more = match server.name() {
        // Some agents connect only when a tool is used.
        _ if guide == Guide::Files && server.is_missing() => {
            " Should you have the tools `activate_skill` and `read_skill_file` after all, use them instead."
                .to_owned()
        }
        Some(name) if !is_alone && guide == Guide::Tools => {
            format!(" The tools are those of the MCP server `{name}`.")
        }
        _ => String::new(),
    };
    Some(list + &more)
}

/// The list itself with how to use it, which every text of [`text`] begins with for these skills.
pub(crate) fn list(skills: &SkillSet, options: &CatalogOptions, guide: Guide) -> Option<String> {
    let catalog = match guide {
        Guide::Files => Catalog::render(&stored(skills), &for_files(options)),
        _ => Catalog::render(skills, options),
    }?;
    Some(format!("{}\n\n{}", catalog.text, catalog::guide(guide)))
}

/// The options for a model that has only its own tools: it needs to know where the files are.
fn for_files(options: &CatalogOptions) -> CatalogOptions {
    let mut options = options.clone();
    if options.location == Location::None {
        options.location = Location::Absolute;
    }
    options.search = false;
    options
}

/// The skills that have files; the others cannot be read, only invoked by command.
fn stored(skills: &SkillSet) -> SkillSet {
    let mut builder = SkillSet::builder();
    for skill in skills.iter().filter(|skill| skill.dir().is_some()) {
        builder.add_shared(Arc::clone(skill), Vec::new());
    }
    builder.build()
}

/// Adds `text` to the draft field `systemPrompt` of `params`, keeping what the client sends and its mode.
pub(crate) fn into_system_prompt(edit: &mut Edit, params: Node<'_>, text: &str) {
    let block = json!({ "type": "text", "text": text });
    let Some(system) = params.get("systemPrompt") else {
        let field = json!({ "mode": "append", "content": [block] });
        edit.insert(params, "systemPrompt", &field.to_string());
        return;
    };
    match system.get("content") {
        Some(content) if content.is_array() => edit.push(content, &block.to_string()),
        Some(other) => edit.set(other, &json!([block])),
        _ if system.is_object() => edit.insert(system, "content", &json!([block]).to_string()),
        _ => edit.set(system, &json!({ "mode": "append", "content": [block] })),
    }
}

/// Adds `text` to `_meta.systemPrompt` of `params`: behind a text that replaces the prompt, or to the appended one.
pub(crate) fn into_claude_meta(edit: &mut Edit, params: Node<'_>, text: &str) {
    let ours = json!({ "append": text });
    let Some(meta) = params.get("_meta").filter(Node::is_object) else {
        let field = json!({ "systemPrompt": ours });
        match params.get("_meta") {
            Some(null) => edit.set(null, &field),
            None => edit.insert(params, "_meta", &field.to_string()),
        }
        return;
    };
    let Some(system) = meta.get("systemPrompt") else {
        edit.insert(meta, "systemPrompt", &ours.to_string());
        return;
    };
    if let Some(theirs) = system.as_str() {
        edit.set(system, &Value::from(format!("{theirs}\n\n{text}")));
        return;
    }
    match system.get("append") {
        Some(append) => {
            let theirs = append.as_str().unwrap_or_default();
            edit.set(append, &Value::from(format!("{theirs}\n\n{text}")));
        }
        None if system.is_object() => edit.insert(system, "append", &Value::from(text).to_string()),
        None => edit.set(system, &ours),
    }
}
