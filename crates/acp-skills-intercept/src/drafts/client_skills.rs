//! [`ClientSkills`]: the skills that a client provides for a session, in the `agentSkills` field of its request.
//!
//! An invalid skill fails the request: the error names the skill, and the agent does not get the request. Members that
//! the proxy doesn't use cause a warning.

use std::{collections::HashSet, fmt::Write};

use acp_skills_wire::{Edit, Message, Node};
use skills_core::{Scope, Skill, SkillName, SkillSet, frontmatter, text::shown};
use thiserror::Error;

use super::META;

/// The field with the skills in a setup request.
pub(super) const AGENT_SKILLS: &str = "agentSkills";
/// The maximum number of skills that a client can provide for a session.
pub(super) const MAX_SKILLS: usize = 100;
/// The maximum length of the `content` of a skill, in bytes. The same limit applies to a `SKILL.md`.
const MAX_CONTENT_BYTES: usize = frontmatter::MAX_FILE_BYTES;
/// The maximum length of a name, in characters, as in the specification.
const MAX_NAME_CHARS: usize = skills_core::name::MAX_NAME_CHARS;
/// The maximum length of a description that is taken from the text of a skill, in characters.
const MAX_SUMMARY_CHARS: usize = 200;
/// The maximum number of unknown members that a warning names.
const MAX_UNKNOWN_NAMED: usize = 5;
/// The members of a skill in the draft.
const MEMBERS: [&str; 8] =
    ["name", "version", "description", "content", "mimeType", "priority", "dependencies", META];

/// The skills that a request provides.
pub(super) struct ClientSkills {
    pub(super) skills: SkillSet,
    /// Warnings for the user.
    pub(super) warnings: Vec<String>,
    /// Removes the skills from the request.
    pub(super) edit: Edit,
}

/// The reason why the skills of a request are refused.
#[derive(Debug, Error)]
pub(super) enum ClientSkillsError {
    /// A JSON object has the field twice.
    #[error("duplicate field")]
    Duplicate,
    /// The field is neither a list nor `null`.
    #[error("should be a list of skills")]
    NotAList,
    /// The list is too long.
    #[error("expected at most {MAX_SKILLS} skills")]
    TooMany,
    /// One of the skills is invalid.
    #[error("skill {number}{name}: {error}")]
    Invalid {
        /// The position of the skill in the list, starting at 1.
        number: usize,
        /// The name of the skill in backticks after a comma. Empty if the skill has none.
        name: String,
        /// The reason.
        error: SkillError,
    },
}

/// The reason why a single skill is refused.
#[derive(Debug, Error)]
pub(super) enum SkillError {
    #[error("should be an object")]
    NotAnObject,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` should be a string")]
    NotAString(&'static str),
    #[error("`name` should have at least one visible character")]
    InvisibleName,
    #[error("`name` should have at most {MAX_NAME_CHARS} characters")]
    LongName,
    #[error("`name` is already used by another skill")]
    SameName,
    #[error("`content` should have at most {MAX_CONTENT_BYTES} bytes")]
    LongContent,
    #[error("`content` is empty")]
    EmptyContent,
    #[error("`mimeType` should be `text/markdown` or `text/plain`")]
    MimeType,
    #[error("`priority` should be a number from 0 to 100")]
    Priority,
    #[error("`description` is missing, and `content` has no line to use instead")]
    NoDescription,
    #[error("`dependencies` should be an object")]
    Dependencies,
    #[error("`dependencies.{0}` should be a list of names")]
    DependencyNames(&'static str),
    #[error(transparent)]
    Build(#[from] skills_core::BuildError),
}

impl ClientSkills {
    /// Reads the skills of `request` from the field, from `_meta`, or from both. Returns `None` if the request has neither.
    ///
    /// # Errors
    /// Returns [`ClientSkillsError::Duplicate`] if the field occurs twice, [`ClientSkillsError::NotAList`] if it is not a list,
    /// [`ClientSkillsError::TooMany`] for more than [`MAX_SKILLS`] skills, and [`ClientSkillsError::Invalid`] for an invalid
    /// skill.
    pub(super) fn read(
        request: &Message<'_>,
        field: bool,
        meta: bool,
    ) -> Result<Option<Self>, ClientSkillsError> {
        let Some(params) = request.params.filter(Node::is_object) else { return Ok(None) };
        let in_meta = params.get(META).filter(|node| meta && node.is_object());
        let places = [Some(params).filter(|_| field), in_meta];
        let mut edit = Edit::new();
        let mut skills = SkillSet::builder();
        let mut warnings = Vec::new();
        let mut names = HashSet::new();
        let mut has_field = false;
        let mut count = 0;
        for place in places.into_iter().flatten() {
            let mut lists = place.members().filter(|(key, _)| key.is_str(AGENT_SKILLS)).map(|(_, list)| list);
            let Some(list) = lists.next() else { continue };
            if lists.next().is_some() {
                return Err(ClientSkillsError::Duplicate);
            }
            has_field = true;
            edit.remove(place, AGENT_SKILLS);
            if list.is_null() {
                continue;
            }
            if !list.is_array() {
                return Err(ClientSkillsError::NotAList);
            }
            for entry in list.elements() {
                count += 1;
                if count > MAX_SKILLS {
                    return Err(ClientSkillsError::TooMany);
                }
                let skill =
                    read(entry, params, &mut warnings).map_err(|error| invalid(count, entry, error))?;
                if !names.insert(skill.name.key()) {
                    return Err(invalid(count, entry, SkillError::SameName));
                }
                skills.add(skill, Vec::new());
            }
        }
        Ok(has_field.then(|| Self { skills: skills.build(), warnings, edit }))
    }
}

fn invalid(number: usize, entry: Node<'_>, error: SkillError) -> ClientSkillsError {
    let name = entry.str("name").map(|name| format!(", `{}`", cut(&shown(&name)))).unwrap_or_default();
    ClientSkillsError::Invalid { number, name, error }
}

/// Cuts a text to the length of a name.
fn cut(text: &str) -> String {
    text.chars().take(MAX_NAME_CHARS).collect()
}

fn read(entry: Node<'_>, params: Node<'_>, warnings: &mut Vec<String>) -> Result<Skill, SkillError> {
    if !entry.is_object() {
        return Err(SkillError::NotAnObject);
    }
    let name = text(entry, "name")?.ok_or(SkillError::Missing("name"))?;
    let name = SkillName::new(&name).ok_or(SkillError::InvisibleName)?;
    if name.as_str().chars().count() > MAX_NAME_CHARS {
        return Err(SkillError::LongName);
    }
    let content = text(entry, "content")?.ok_or(SkillError::Missing("content"))?;
    if content.len() > MAX_CONTENT_BYTES {
        return Err(SkillError::LongContent);
    }
    if let Some(kind) = text(entry, "mimeType")? {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !matches!(kind.as_str(), "text/markdown" | "text/plain") {
            return Err(SkillError::MimeType);
        }
    }
    let parsed = frontmatter::parse(&content, &frontmatter::ParseContext::default());
    let has_frontmatter = parsed.body_start > 0;
    let body = if has_frontmatter { parsed.body(&content) } else { &content };
    if body.trim().is_empty() {
        return Err(SkillError::EmptyContent);
    }
    let mut properties =
        parsed.frontmatter.as_ref().map(|frontmatter| frontmatter.properties.clone()).unwrap_or_default();
    if let Some(version) = text(entry, "version")? {
        properties.version = Some(version.into());
    }
    if let Some(priority) = entry.get("priority").filter(|node| !node.is_null()) {
        let number = priority.as_number::<f64>();
        let number = number.filter(|number| (0.0..=100.0).contains(number)).ok_or(SkillError::Priority)?;
        // We map the default priority, which is 0, to the middle of the draft's range.
        #[expect(clippy::cast_possible_truncation, reason = "it is in 0..=100")]
        let number = number as i64;
        properties.priority = number - 50;
    }
    let needs = needs(entry, params, &name, warnings)?;
    let description = match text(entry, "description")? {
        Some(description) if !description.trim().is_empty() => description,
        _ => match parsed.frontmatter {
            Some(frontmatter) => frontmatter.description,
            None => summary(body).ok_or(SkillError::NoDescription)?,
        },
    };
    let unknown: Vec<_> = entry
        .members()
        .filter_map(|(key, _)| key.as_str())
        .filter(|key| !MEMBERS.contains(&key.as_ref()))
        .map(|key| format!("`{}`", cut(&shown(&key))))
        .take(MAX_UNKNOWN_NAMED)
        .collect();
    if !unknown.is_empty() {
        warnings.push(format!("ignoring unknown fields in client skill `{name}`: {}", unknown.join(", ")));
    }
    let skill =
        Skill::builder(name.as_str(), description).body(format!("{body}{needs}")).properties(properties);
    let mut skill = skill.build()?;
    skill.scope = Scope::Session;
    Ok(skill)
}

/// Returns the text of a member, or `None` if there is no such member.
fn text(entry: Node<'_>, key: &'static str) -> Result<Option<String>, SkillError> {
    let Some(node) = entry.get(key).filter(|node| !node.is_null()) else { return Ok(None) };
    node.as_str().map(|text| Some(text.into_owned())).ok_or(SkillError::NotAString(key))
}

/// Returns the text that tells the model which skills and servers a skill needs. Empty if it needs none.
///
/// The proxy itself does not load any dependency, so skills may depend on each other in a circle.
fn needs(
    entry: Node<'_>,
    params: Node<'_>,
    name: &SkillName,
    warnings: &mut Vec<String>,
) -> Result<String, SkillError> {
    let Some(needed) = entry.get("dependencies").filter(|node| !node.is_null()) else {
        return Ok(String::new());
    };
    if !needed.is_object() {
        return Err(SkillError::Dependencies);
    }
    let names = |key: &'static str| -> Result<Vec<String>, SkillError> {
        let Some(list) = needed.get(key).filter(|node| !node.is_null()) else { return Ok(Vec::new()) };
        let all = list.elements().take(MAX_SKILLS).map(|name| name.as_str().map(|name| cut(&shown(&name))));
        let all = all.collect::<Option<_>>().filter(|_| list.is_array());
        all.ok_or(SkillError::DependencyNames(key))
    };
    let quoted =
        |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    let skills: Vec<_> =
        names("skills")?.into_iter().filter(|other| SkillName::key_of(other) != name.key()).collect();
    if !skills.is_empty() {
        text =
            format!("\n\nThis skill needs others: activate {} as well, unless you have.\n", quoted(&skills));
    }
    let servers = names("mcpServers")?;
    if !servers.is_empty() {
        let has = |name: &String| {
            let mut listed = params.get("mcpServers").into_iter().flat_map(|list| list.elements());
            listed.any(|server| server.get("name").is_some_and(|listed| listed.is_str(name)))
        };
        let missing: Vec<_> = servers.iter().filter(|name| !has(name)).cloned().collect();
        if !missing.is_empty() {
            warnings.push(format!("missing MCP servers for client skill `{name}`: {}", quoted(&missing)));
        }
        let _ = write!(text, "\n\nThis skill uses tools of the MCP servers {}.\n", quoted(&servers));
    }
    Ok(text)
}

/// Returns the first line with words, as a description.
fn summary(body: &str) -> Option<String> {
    let line = body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty())?;
    Some(line.chars().take(MAX_SUMMARY_CHARS).collect())
}
