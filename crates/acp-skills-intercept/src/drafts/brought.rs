//! [`Brought`]: the skills that a client brings for a session, as it wrote them.
//!
//! What is wrong is an error of the request and names the skill: the agent never sees it. What means nothing here is a
//! warning.

use std::{collections::HashSet, fmt::Write};

use acp_skills_wire::{Edit, Message, Node};
use skills_core::{Scope, Skill, SkillName, SkillSet, frontmatter, text::shown};

use super::META;

/// The field.
pub(super) const AGENT_SKILLS: &str = "agentSkills";
/// How many skills a client may bring for a session.
pub(super) const MAX_SKILLS: usize = 100;
/// The longest text of one, in bytes: as of a `SKILL.md`.
const MAX_CONTENT_BYTES: usize = frontmatter::MAX_FILE_BYTES;
/// The longest name, in characters: as the specification has it.
const MAX_NAME_CHARS: usize = skills_core::name::MAX_NAME_CHARS;
/// How much of a text becomes its description, where it has no other, in characters.
const MAX_SUMMARY_CHARS: usize = 200;
/// What the draft says of a skill.
const MEMBERS: [&str; 8] =
    ["name", "version", "description", "content", "mimeType", "priority", "dependencies", META];

/// What a request brings.
pub(super) struct Brought {
    pub(super) skills: SkillSet,
    pub(super) warnings: Vec<String>,
    /// Takes it out of the request.
    pub(super) edit: Edit,
}

impl Brought {
    /// What `request` brings in the field, in `_meta`, or in both; nothing when it does not say anything of skills.
    ///
    /// # Errors
    /// A clause that says what is wrong, and with which skill.
    pub(super) fn read(request: &Message<'_>, field: bool, meta: bool) -> Result<Option<Self>, String> {
        let Some(params) = request.params.filter(Node::is_object) else { return Ok(None) };
        let in_meta = params.get(META).filter(|it| meta && it.is_object());
        let places = [Some(params).filter(|_| field), in_meta];
        let mut edit = Edit::new();
        let (mut skills, mut warnings) = (SkillSet::builder(), Vec::new());
        let (mut names, mut is_there, mut count) = (HashSet::new(), false, 0);
        for place in places.into_iter().flatten() {
            let mut lists = place.members().filter(|(key, _)| key.is_str(AGENT_SKILLS)).map(|(_, list)| list);
            let Some(list) = lists.next() else { continue };
            if lists.next().is_some() {
                return Err("it is there twice".to_owned());
            }
            is_there = true;
            edit.remove(place, AGENT_SKILLS);
            if list.is_null() {
                continue;
            }
            if !list.is_array() {
                return Err("it has to be a list of skills".to_owned());
            }
            for entry in list.elements() {
                count += 1;
                if count > MAX_SKILLS {
                    return Err(format!("there are more than {MAX_SKILLS} skills"));
                }
                let skill = read(entry, params, &mut warnings).map_err(|why| named(count, entry, &why))?;
                if !names.insert(skill.name.key()) {
                    return Err(named(count, entry, "another one has the same name"));
                }
                skills.add(skill, Vec::new());
            }
        }
        Ok(is_there.then(|| Self { skills: skills.build(), warnings, edit }))
    }
}

/// What is wrong, and with which skill.
fn named(number: usize, entry: Node<'_>, why: &str) -> String {
    match entry.str("name") {
        Some(name) => format!("skill {number}, `{}`: {why}", cut(&shown(&name))),
        None => format!("skill {number}: {why}"),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_NAME_CHARS).collect()
}

fn read(entry: Node<'_>, params: Node<'_>, warnings: &mut Vec<String>) -> Result<Skill, String> {
    if !entry.is_object() {
        return Err("it has to be an object".to_owned());
    }
    let name = text(entry, "name")?.ok_or("it has no `name`")?;
    let name = SkillName::new(&name).ok_or("its name has no character that can be seen")?;
    if name.as_str().chars().count() > MAX_NAME_CHARS {
        return Err(format!("its name has more than {MAX_NAME_CHARS} characters"));
    }
    let content = text(entry, "content")?.ok_or("it has no `content`")?;
    if content.len() > MAX_CONTENT_BYTES {
        return Err(format!("its `content` has more than {MAX_CONTENT_BYTES} bytes"));
    }
    if let Some(kind) = text(entry, "mimeType")? {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !matches!(kind.as_str(), "text/markdown" | "text/plain") {
            return Err("its `mimeType` is neither `text/markdown` nor `text/plain`".to_owned());
        }
    }
    let parsed = frontmatter::parse(&content, &frontmatter::ParseContext::default());
    let has_frontmatter = parsed.body_start > 0;
    let body = if has_frontmatter { parsed.body(&content) } else { &content };
    if body.trim().is_empty() {
        return Err("its `content` is empty".to_owned());
    }
    let mut properties = parsed.frontmatter.as_ref().map(|it| it.properties.clone()).unwrap_or_default();
    if let Some(version) = text(entry, "version")? {
        properties.version = Some(version.into());
    }
    if let Some(priority) = entry.get("priority").filter(|it| !it.is_null()) {
        let number = std::str::from_utf8(priority.raw()).ok().and_then(|number| number.parse::<f64>().ok());
        let number = number.filter(|number| (0.0..=100.0).contains(number));
        let number = number.ok_or("its `priority` is no number from 0 to 100")?;
        // Those without one stand in the middle.
        #[expect(clippy::cast_possible_truncation, reason = "it is in 0..=100")]
        let number = number as i64;
        properties.priority = number - 50;
    }
    let needs = needs(entry, params, &name, warnings)?;
    let description = match text(entry, "description")? {
        Some(said) if !said.trim().is_empty() => said,
        _ => match parsed.frontmatter {
            Some(found) => found.description,
            None => summary(body)
                .ok_or("it has no `description`, and its `content` has no line to take for one")?,
        },
    };
    let unknown: Vec<_> = entry
        .members()
        .filter_map(|(key, _)| key.as_str())
        .filter(|key| !MEMBERS.contains(&key.as_ref()))
        .map(|key| format!("`{}`", cut(&shown(&key))))
        .take(5)
        .collect();
    if !unknown.is_empty() {
        warnings.push(format!(
            "the client's skill `{name}` has {}, which means nothing here and is left out",
            unknown.join(", ")
        ));
    }
    let skill =
        Skill::builder(name.as_str(), description).body(format!("{body}{needs}")).properties(properties);
    let mut skill = skill.build().map_err(|error| error.to_string())?;
    skill.scope = Scope::Session;
    Ok(skill)
}

/// The text of a member; nothing where there is none.
fn text(entry: Node<'_>, key: &str) -> Result<Option<String>, String> {
    let Some(node) = entry.get(key).filter(|node| !node.is_null()) else { return Ok(None) };
    match node.as_str() {
        Some(text) => Ok(Some(text.into_owned())),
        None => Err(format!("its `{key}` is no text")),
    }
}

/// What the model is told of what a skill needs. Nothing is loaded by that, so a circle of skills that need each other is
/// harmless.
fn needs(
    entry: Node<'_>,
    params: Node<'_>,
    name: &SkillName,
    warnings: &mut Vec<String>,
) -> Result<String, String> {
    let Some(needed) = entry.get("dependencies").filter(|it| !it.is_null()) else { return Ok(String::new()) };
    if !needed.is_object() {
        return Err("its `dependencies` are no object".to_owned());
    }
    let names = |key: &str| -> Result<Vec<String>, String> {
        let wrong = || format!("its `dependencies.{key}` is no list of names");
        let Some(list) = needed.get(key).filter(|it| !it.is_null()) else { return Ok(Vec::new()) };
        if !list.is_array() {
            return Err(wrong());
        }
        let all = list.elements().take(MAX_SKILLS).map(|it| it.as_str().map(|name| cut(&shown(&name))));
        all.collect::<Option<_>>().ok_or_else(wrong)
    };
    let quoted = |names: &[String]| names.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
    let mut said = String::new();
    let skills: Vec<_> =
        names("skills")?.into_iter().filter(|it| SkillName::key_of(it) != name.key()).collect();
    if !skills.is_empty() {
        said =
            format!("\n\nThis skill needs others: activate {} as well, unless you have.\n", quoted(&skills));
    }
    let servers = names("mcpServers")?;
    if !servers.is_empty() {
        let has = |name: &String| {
            let mut listed = params.get("mcpServers").into_iter().flat_map(|list| list.elements());
            listed.any(|server| server.get("name").is_some_and(|it| it.is_str(name)))
        };
        let missing: Vec<_> = servers.iter().filter(|name| !has(name)).cloned().collect();
        if !missing.is_empty() {
            warnings.push(format!(
                "the client's skill `{name}` needs MCP servers that the session does not have: {}",
                quoted(&missing)
            ));
        }
        let _ = write!(said, "\n\nThis skill uses tools of the MCP servers {}.\n", quoted(&servers));
    }
    Ok(said)
}

/// The first line with words, for want of a description.
fn summary(body: &str) -> Option<String> {
    let line = body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty())?;
    Some(line.chars().take(MAX_SUMMARY_CHARS).collect())
}
