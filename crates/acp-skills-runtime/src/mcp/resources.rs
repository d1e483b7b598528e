//! Skills as MCP resources: `skill://NAME/SKILL.md` and the other files of the skill. The skills extension (SEP-2640,
//! `skills/list` and `skills/get`) builds on them.
//!
//! Resources contain only skills that the model may see, as in the catalog, and skills that the user has activated.
//! All functions of this file may block.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::{
    ErrorData,
    model::{
        GetSkillResult, ListResourcesResult, ListSkillsResult, ReadResourceResult, Resource,
        ResourceContents, Skill as Entry, SkillFrontmatter, SkillResource, SkillResources,
    },
};
use serde_json::{Value, json};
use skills_core::{
    FileContent, ReadOptions, Skill, SkillFiles, Source,
    activation::{ActivationError, BodyCache, MAX_LISTED_FILES},
    files::{self, FileError},
    frontmatter,
    toolbox::{self, Turn},
};

use super::serving::Serving;

const SCHEME: &str = "skill://";
const SKILL_MD: &str = "SKILL.md";

/// The number of skills per page of a list.
const PAGE: usize = 50;
/// The maximum size of a resource in bytes. `read_skill_file` can read longer files in parts.
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;
/// The maximum total size of a skill's files for which a manifest is created, because creating it delays the list of
/// skills.
const MAX_MANIFEST_BYTES: u64 = 8 * 1024 * 1024;

/// The characters that are not percent-encoded in a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn uri(skill: &Skill, path: &str) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
    let path: Vec<_> = path.split('/').map(encoded).collect();
    format!("{SCHEME}{}/{}", encoded(skill.name.as_str()), path.join("/"))
}

/// Splits a URI into the name of the skill and the path of the file.
pub(super) fn parse(uri: &str) -> Option<(String, String)> {
    let (name, path) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let decoded = |text: &str| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    Some((decoded(name)?, decoded(path)?))
}

/// Returns the skills on the page at `cursor`, and the next cursor.
fn page(serving: &Serving, cursor: Option<&str>) -> Result<(Vec<Arc<Skill>>, Option<String>), ErrorData> {
    let start = match cursor.map(str::parse::<usize>) {
        None => 0,
        Some(Ok(start)) => start,
        Some(Err(_)) => return Err(ErrorData::invalid_params("the cursor is invalid", None)),
    };
    let shown = |skill: &&Arc<Skill>| skill.is_listed() || serving.context.is_unlocked(&skill.name);
    let mut rest = serving.toolbox.skills().iter().filter(shown).skip(start);
    let skills: Vec<_> = rest.by_ref().take(PAGE).cloned().collect();
    Ok((skills, rest.next().map(|_| (start + PAGE).to_string())))
}

/// Returns the skill with this name if the model may use it.
fn usable<'s>(serving: &'s Serving, name: &str) -> Option<&'s Arc<Skill>> {
    let skill = serving.toolbox.skills().get(name)?;
    (skill.is_model_invocable() || serving.context.is_unlocked(&skill.name)).then_some(skill)
}

/// Answers `resources/list` with one page.
pub(super) fn list(serving: &Serving, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let (skills, next_cursor) = page(serving, cursor)?;
    let mut resources = Vec::new();
    for skill in skills {
        let main = Resource::new(uri(&skill, SKILL_MD), skill.name.as_str());
        resources.push(main.with_description(skill.description.as_str()).with_mime_type("text/markdown"));
        let files = files::bundled(&skill, MAX_LISTED_FILES).map(|bundled| bundled.files).unwrap_or_default();
        resources.extend(files.into_iter().map(|(path, size)| {
            let resource = Resource::new(uri(&skill, &path), format!("{}/{path}", skill.name));
            size.into_iter().fold(resource, Resource::with_size)
        }));
    }
    Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(resources) })
}

/// Waits until a thread may read from the server of a skill, if the resource is one of its files.
pub(super) async fn turn(serving: &Serving, asked: &str) -> Turn {
    match parse(asked).and_then(|(name, _)| usable(serving, &name).cloned()) {
        Some(skill) => toolbox::turn(&skill).await,
        None => Turn::default(),
    }
}

/// Returns the skill and the path of a resource, if the model may use the skill.
pub(super) fn place(serving: &Serving, asked: &str) -> Option<(Arc<Skill>, String)> {
    let (name, path) = parse(asked)?;
    Some((Arc::clone(usable(serving, &name)?), path))
}

/// Answers `resources/read`.
pub(super) fn read(
    serving: &Serving,
    bodies: &BodyCache,
    asked: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let missing = |why: &str| ErrorData::resource_not_found(format!("{asked}: {why}"), None);
    let (name, path) = parse(asked).ok_or_else(|| missing("the URI is not that of a skill"))?;
    let skill = usable(serving, &name).ok_or_else(|| missing("there is no such skill"))?;
    let contents = if path == SKILL_MD {
        let text = skill_md(skill, bodies).map_err(|error| missing(&error.to_string()))?;
        ResourceContents::text(text, asked).with_mime_type("text/markdown")
    } else {
        file(skill, &path, asked).map_err(|error| missing(&error.to_string()))?
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Returns the length of a resource.
pub(super) fn bytes(read: &ReadResourceResult) -> u64 {
    let lengths = read.contents.iter().map(|contents| match contents {
        ResourceContents::TextResourceContents { text, .. } => text.len(),
        ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
        _ => 0,
    });
    lengths.sum::<usize>() as u64
}

/// The reasons why a resource cannot be read.
#[derive(Debug, thiserror::Error)]
enum ResourceError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Body(#[from] ActivationError),
    #[error("the file is not text, or it is too long; `read_skill_file` returns the exact reason")]
    NotText,
    #[error("the file has {0} bytes, which is too long for a resource; `read_skill_file` reads it in parts")]
    TooLong(u64),
}

/// Returns the text of `SKILL.md`. If the skill is not stored in a file, creates the text.
fn skill_md(skill: &Skill, bodies: &BodyCache) -> Result<String, ResourceError> {
    if let Source::Stored(stored) = &skill.source {
        let head = SkillFiles::of(skill)?.head(stored.file_name, frontmatter::MAX_FILE_BYTES as u64)?;
        return Ok(String::from_utf8_lossy(&head.bytes).into_owned());
    }
    let body = bodies.body(skill)?;
    // Quote these with JSON, which is also valid YAML.
    let name = json!(skill.name);
    let description = json!(skill.description);
    Ok(format!("---\nname: {name}\ndescription: {description}\n---\n\n{}\n", body.trim_end()))
}

fn file(skill: &Skill, path: &str, uri: &str) -> Result<ResourceContents, ResourceError> {
    if skill.dir().is_none() {
        return match files::read(skill, path, ReadOptions::default())? {
            FileContent::Text { text, note: None, .. } => Ok(ResourceContents::text(text, uri)),
            FileContent::Image { media_type, data } => {
                Ok(ResourceContents::blob(STANDARD.encode(data), uri).with_mime_type(media_type))
            }
            _ => Err(ResourceError::NotText),
        };
    }
    let head = SkillFiles::of(skill)?.head(path, MAX_FILE_BYTES)?;
    if !head.complete {
        return Err(ResourceError::TooLong(head.size));
    }
    Ok(match String::from_utf8(head.bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => ResourceContents::blob(STANDARD.encode(error.as_bytes()), uri)
            .with_mime_type("application/octet-stream"),
    })
}

/// Answers `skills/list` with one page.
pub(super) fn list_skills(serving: &Serving, cursor: Option<&str>) -> Result<ListSkillsResult, ErrorData> {
    let (skills, next_cursor) = page(serving, cursor)?;
    let entries = skills.iter().filter_map(|skill| entry(skill)).collect();
    Ok(ListSkillsResult { next_cursor, ..ListSkillsResult::with_all_items(entries) })
}

/// Answers `skills/get`.
pub(super) fn get_skill(serving: &Serving, asked: &str) -> Result<GetSkillResult, ErrorData> {
    let name = parse(asked).filter(|(_, path)| path == SKILL_MD).map(|(name, _)| name);
    let skill = name.and_then(|name| usable(serving, &name));
    let skill =
        skill.ok_or_else(|| ErrorData::invalid_params(format!("{asked}: there is no such skill"), None))?;
    let entry = entry(skill)
        .ok_or_else(|| ErrorData::invalid_params(format!("{asked}: the name is not allowed here"), None))?;
    Ok(GetSkillResult::new(entry))
}

/// Returns the entry of a skill. Returns `None` if the extension doesn't allow its name, such as one with capital letters: a client
/// would refuse the whole list.
fn entry(skill: &Skill) -> Option<Entry> {
    let properties = &skill.properties;
    let mut frontmatter = SkillFrontmatter::new(skill.name.as_str(), skill.description.as_str());
    let texts = [
        ("license", &properties.license),
        ("compatibility", &properties.compatibility),
        ("version", &properties.version),
        ("argument-hint", &properties.argument_hint),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            frontmatter = frontmatter.with_field(key, &**text);
        }
    }
    if !properties.allowed_tools.is_empty() {
        frontmatter = frontmatter.with_field("allowed-tools", properties.allowed_tools.join(" "));
    }
    if let Some(metadata) = &properties.metadata
        && let Ok(metadata) = serde_json::from_str::<Value>(metadata)
    {
        frontmatter = frontmatter.with_field("metadata", metadata);
    }
    let files = manifest(skill).map_or(SkillResources::Dynamic, SkillResources::Files);
    // Two files whose names differ only in their escapes can't be in one list.
    let with_files = Entry::new(uri(skill, SKILL_MD), frontmatter.clone(), files);
    let without_files = || Entry::new(uri(skill, SKILL_MD), frontmatter, SkillResources::Dynamic);
    if with_files.validate().is_ok() {
        return Some(with_files);
    }
    Some(without_files()).filter(|entry| entry.validate().is_ok())
}

/// Returns the files of a stored skill with their digests. Returns `None` if the skill isn't stored in files, or if
/// it has too many or too large files.
fn manifest(skill: &Skill) -> Option<Vec<SkillResource>> {
    let Source::Stored(stored) = &skill.source else { return None };
    let files = SkillFiles::of(skill).ok()?;
    let listing = files.list(MAX_LISTED_FILES);
    let total: u64 = listing.files.iter().map(|file| file.size).sum();
    if listing.more > 0 || !listing.complete || total > MAX_MANIFEST_BYTES {
        return None;
    }
    let resource = |path: &str, name: &str| {
        let head = files.head(path, MAX_FILE_BYTES).ok().filter(|head| head.complete)?;
        Some(SkillResource::from_bytes(uri(skill, name), &head.bytes))
    };
    let main = resource(stored.file_name, SKILL_MD)?;
    let others = listing.files.iter().map(|file| resource(&file.path, &file.path));
    std::iter::once(Some(main)).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use skills_core::{CallContext, SkillName, SkillSet, Toolbox, load_dir};

    use super::*;

    fn serving(dir: &std::path::Path) -> Serving {
        let write = |path: &str, bytes: &[u8]| {
            let path = dir.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        write("review/SKILL.md", b"---\nname: review\ndescription: Reviews.\nlicense: MIT\n---\nDo it.\n");
        write("review/references/a b.md", b"text");
        write("review/data.bin", &[0xff, 0x00]);
        write(
            "secret/SKILL.md",
            b"---\nname: secret\ndescription: Secret.\ndisable-model-invocation: true\n---\nx\n",
        );
        let mut set = SkillSet::builder();
        for name in ["review", "secret"] {
            let (skill, diagnostics) = load_dir(&dir.join(name)).unwrap();
            set.add(skill, diagnostics);
        }
        let virtual_skill = Skill::builder("Plan B", "Plans: \"well\".").body("Plan.").build().unwrap();
        set.add(virtual_skill, Vec::new());
        set.add(Skill::builder("plan", "Plans.").body("Plan.").build().unwrap(), Vec::new());
        Serving::new(Toolbox::new(set.build()), CallContext::default())
    }

    fn text(serving: &Serving, uri: &str) -> Result<String, String> {
        let result = read(serving, &BodyCache::default(), uri).map_err(|error| error.message.into_owned())?;
        let value = serde_json::to_value(&result.contents[0]).unwrap();
        let content = value.get("text").or(value.get("blob")).unwrap();
        Ok(content.as_str().unwrap().to_owned())
    }

    #[test]
    fn resources_are_limited_to_skills_that_the_model_may_use() {
        let directory = tempfile::tempdir().unwrap();
        let mut serving = serving(directory.path());
        let uris = |serving: &Serving| -> Vec<String> {
            list(serving, None).unwrap().resources.into_iter().map(|resource| resource.uri).collect()
        };
        assert_eq!(
            uris(&serving),
            [
                "skill://review/SKILL.md",
                "skill://review/data.bin",
                "skill://review/references/a%20b.md",
                "skill://Plan%20B/SKILL.md",
                "skill://plan/SKILL.md",
            ]
        );
        assert_eq!(text(&serving, "skill://review/references/a%20b.md").unwrap(), "text");
        assert_eq!(text(&serving, "skill://review/data.bin").unwrap(), "/wA=");
        assert!(text(&serving, "skill://review/SKILL.md").unwrap().starts_with("---\nname: review\n"));
        assert_eq!(
            text(&serving, "skill://Plan%20B/SKILL.md").unwrap(),
            "---\nname: \"Plan B\"\ndescription: \"Plans: \\\"well\\\".\"\n---\n\nPlan.\n"
        );
        for uri in [
            "skill://secret/SKILL.md",
            "skill://review/../secret/SKILL.md",
            "skill://review/%2e%2e/secret/SKILL.md",
            "skill://review//etc/passwd",
            "skill://review",
            "skill://nobody/SKILL.md",
            "file:///etc/passwd",
            "skill://review/none.md",
        ] {
            assert!(text(&serving, uri).is_err(), "{uri}");
        }
        // If the user activates the skill, the model should be able to read it.
        serving.context = serving.context.unlock([SkillName::new("secret").unwrap()]);
        assert!(text(&serving, "skill://secret/SKILL.md").unwrap().contains("name: secret"));
        assert!(uris(&serving).contains(&"skill://secret/SKILL.md".to_owned()));
    }

    #[test]
    fn the_skills_extension_lists_files_with_digests() {
        let directory = tempfile::tempdir().unwrap();
        let serving = serving(directory.path());
        let skills = list_skills(&serving, None).unwrap().skills;
        assert_eq!(skills.iter().map(Entry::name).collect::<Vec<_>>(), ["review", "plan"]);
        skills[0].validate().unwrap();
        assert_eq!(skills[0].frontmatter.extra["license"], "MIT");
        let SkillResources::Files(files) = &skills[0].resources else { panic!("{skills:?}") };
        assert_eq!(files.len(), 3);
        for file in files {
            let (_, path) = parse(&file.uri).unwrap();
            file.verify(&std::fs::read(directory.path().join("review").join(path)).unwrap()).unwrap();
        }
        assert_eq!(skills[1].resources, SkillResources::Dynamic);
        assert_eq!(get_skill(&serving, "skill://review/SKILL.md").unwrap().skill, skills[0]);
        assert!(get_skill(&serving, "skill://secret/SKILL.md").is_err());
        assert!(get_skill(&serving, "skill://review/data.bin").is_err());
        // A client would refuse a list with such a name.
        assert!(get_skill(&serving, "skill://Plan%20B/SKILL.md").is_err());
        assert!(skills.iter().all(|entry| entry.validate().is_ok()));
    }

    #[test]
    fn lists_have_pages() {
        let skill = |number: usize| Skill::builder(format!("s{number:03}"), "x").body("x").build().unwrap();
        let toolbox = Toolbox::new((0..120).map(skill).collect());
        let serving = Serving::new(toolbox, CallContext::default());
        let mut cursor = None;
        let mut found = Vec::new();
        loop {
            let result = list(&serving, cursor.as_deref()).unwrap();
            assert!(result.resources.len() <= PAGE);
            found.extend(result.resources.into_iter().map(|resource| resource.name));
            cursor = result.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, (0..120).map(|number| format!("s{number:03}")).collect::<Vec<_>>());
        assert!(list(&serving, Some("nonsense")).is_err());
        assert!(list(&serving, Some("120")).unwrap().resources.is_empty());
    }
}
