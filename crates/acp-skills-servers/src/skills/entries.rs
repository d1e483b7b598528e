//! [`Entry`]: the entry of one skill in a server's list, and the checks that it passes. Nothing that a server sends is trusted.

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use serde_json::Value;
use skills_core::{
    NameRule,
    diagnostic::Diagnostic,
    frontmatter::{self, Frontmatter, MAX_DESCRIPTION_CHARS, ParseContext},
    skill::Sha256,
};

/// The name of the file with the instructions.
pub(super) const SKILL_MD: &str = "SKILL.md";
/// The maximum number of files of a skill. Hosts must support this number.
const MAX_FILES: usize = 512;
/// The maximum size of a skill in bytes. Hosts must support this size.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum length of a URI in bytes.
const MAX_URI: usize = 2_048;

/// The entry of one skill.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    /// The URI of the `SKILL.md`.
    pub(super) uri: String,
    pub(super) frontmatter: Frontmatter,
    /// All files, with the `SKILL.md`.
    pub(super) files: Vec<File>,
}

/// A file of a skill.
#[derive(Debug, PartialEq)]
pub(super) struct File {
    /// The path relative to the directory of the skill.
    pub(super) path: String,
    /// The URI, as the server wrote it.
    pub(super) uri: String,
    pub(super) size: u64,
    pub(super) sha256: Sha256,
}

/// The reason why an entry is not used, as a clause.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    #[error("`uri` is not the address of a {SKILL_MD}")]
    Uri,
    #[error("`frontmatter` is invalid: {0}")]
    Frontmatter(String),
    #[error("{0}")]
    Name(String),
    #[error("the description has more than {MAX_DESCRIPTION_CHARS} characters")]
    LongDescription,
    #[error("its content is generated, so it can't be approved")]
    Dynamic,
    #[error("`resources` is not a list of files")]
    NoFiles,
    #[error("it has more than {MAX_FILES} files")]
    ManyFiles,
    #[error("its files have more than {MAX_BYTES} bytes")]
    LargeFiles,
    #[error("a file has no valid `digest` or `size`")]
    File,
    #[error("a file is listed twice, or its address is not within the skill")]
    Outside,
    #[error("the {SKILL_MD} is not listed, or it has more than {} bytes", frontmatter::MAX_FILE_BYTES)]
    NoSkillMd,
}

impl Entry {
    /// Reads an entry.
    ///
    /// # Errors
    /// Returns the reason if the entry breaks a rule of the extension, or exceeds a limit.
    pub(super) fn read(value: &Value) -> Result<Self, EntryError> {
        let uri = value["uri"].as_str().filter(|uri| is_uri(uri)).ok_or(EntryError::Uri)?;
        let root = uri.strip_suffix(SKILL_MD).filter(|root| root.ends_with('/')).ok_or(EntryError::Uri)?;
        let root = decoded(root).ok_or(EntryError::Uri)?;
        let directory = root.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        let frontmatter = read_frontmatter(&value["frontmatter"])?;
        let name = frontmatter.name.as_str();
        if let Some(rule) = NameRule::broken_by(name, Some(&directory)).first() {
            return Err(EntryError::Name(rule.message(name, Some(&directory))));
        }
        if frontmatter.description.chars().count() > MAX_DESCRIPTION_CHARS {
            return Err(EntryError::LongDescription);
        }
        let files = read_files(&value["resources"], &root)?;
        let is_main = |file: &File| file.path == SKILL_MD && file.uri == uri;
        let main = files.iter().find(|file| is_main(file)).ok_or(EntryError::NoSkillMd)?;
        if main.size > frontmatter::MAX_FILE_BYTES as u64 {
            return Err(EntryError::NoSkillMd);
        }
        Ok(Self { uri: uri.to_owned(), frontmatter, files })
    }

    /// Returns true if the frontmatter of a `SKILL.md` is the same as in this entry, so that the model receives what the user has approved.
    pub(super) fn describes(&self, skill_md: &[u8]) -> bool {
        let parsed = frontmatter::parse_bytes(skill_md, &ParseContext::default());
        parsed.frontmatter.is_some_and(|file| is_same(&self.frontmatter, &file))
    }

    /// Returns the segments of the URI before the name, such as `acme-billing`, to tell apart skills with the same name.
    pub(super) fn prefix(&self) -> Option<String> {
        let path = decoded(self.uri.split_once("://")?.1)?;
        let mut parts: Vec<_> = path.split('/').collect();
        parts.truncate(parts.len().saturating_sub(2));
        let prefix = parts.join("-").to_lowercase();
        (!prefix.is_empty() && NameRule::broken_by(&prefix, None).is_empty()).then_some(prefix)
    }
}

/// Returns true if a text can be a URI ([RFC 3986](https://www.rfc-editor.org/rfc/rfc3986)) without a query and a fragment.
fn is_uri(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}?#".contains(&byte);
    text.len() <= MAX_URI && text.contains("://") && text.bytes().all(is_plain)
}

fn decoded(uri: &str) -> Option<String> {
    Some(percent_decode_str(uri).decode_utf8().ok()?.into_owned())
}

fn read_files(resources: &Value, root: &str) -> Result<Vec<File>, EntryError> {
    if resources == "dynamic" {
        return Err(EntryError::Dynamic);
    }
    let resources = resources.as_array().ok_or(EntryError::NoFiles)?;
    if resources.len() > MAX_FILES {
        return Err(EntryError::ManyFiles);
    }
    let mut files: Vec<File> = Vec::new();
    let mut bytes: u64 = 0;
    for resource in resources {
        let uri = resource["uri"].as_str().filter(|uri| is_uri(uri)).ok_or(EntryError::Outside)?;
        let path = decoded(uri).and_then(|uri| Some(uri.strip_prefix(root)?.to_owned()));
        let path = path.filter(|path| is_within(path)).ok_or(EntryError::Outside)?;
        if files.iter().any(|file| file.path == path) {
            return Err(EntryError::Outside);
        }
        let digest = resource["digest"].as_str().filter(|digest| digest.starts_with("sha256:"));
        let sha256 = digest.and_then(Sha256::parse).ok_or(EntryError::File)?;
        let size = resource["size"].as_u64().ok_or(EntryError::File)?;
        bytes = bytes.saturating_add(size);
        files.push(File { path, uri: uri.to_owned(), size, sha256 });
    }
    if bytes > MAX_BYTES {
        return Err(EntryError::LargeFiles);
    }
    Ok(files)
}

/// Returns true if a path leads to a file below a directory.
fn is_within(path: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..");
    path.split('/').all(is_name) && !path.contains(|c: char| c == '\\' || c.is_control())
}

/// Reads the frontmatter of an entry with the rules for a `SKILL.md`.
fn read_frontmatter(value: &Value) -> Result<Frontmatter, EntryError> {
    let wrong = |what: &str| EntryError::Frontmatter(what.to_owned());
    let fields = value.as_object().ok_or_else(|| wrong("it is not an object"))?;
    if !fields.get("name").is_some_and(Value::is_string) {
        return Err(wrong("it has no `name`"));
    }
    if !fields.get("description").is_some_and(Value::is_string) {
        return Err(wrong("it has no `description`"));
    }
    // JSON is also YAML.
    let mut text = "---\n".to_owned();
    for (key, value) in fields {
        text.extend([&Value::from(&**key).to_string(), ": ", &value.to_string(), "\n"]);
    }
    text.push_str("---\n");
    let parsed = frontmatter::parse(&text, &ParseContext::default());
    let first = parsed.diagnostics.iter().find(|finding| finding.is_error());
    let why = first.map_or("it cannot be read", |finding: &Diagnostic| &finding.message);
    parsed.frontmatter.ok_or_else(|| wrong(why))
}

/// Compares the fields. A number may be written in another way, because JSON does not keep `1.10`.
fn is_same(entry: &Frontmatter, file: &Frontmatter) -> bool {
    let mut other = file.properties.clone();
    let own = &entry.properties;
    if let (Some(ours), Some(theirs)) = (&own.version, &other.version)
        && is_same_scalar(ours, theirs)
    {
        other.version.clone_from(&own.version);
    }
    let parsed = |json: &Option<Arc<str>>| json.as_deref().and_then(|json| serde_json::from_str(json).ok());
    for (ours, theirs) in [(&own.metadata, &mut other.metadata), (&own.extra, &mut other.extra)] {
        if let (Some(our_value), Some(their_value)) = (parsed(ours), parsed(theirs))
            && is_same_value(&our_value, &their_value)
        {
            theirs.clone_from(ours);
        }
    }
    entry.name == file.name && entry.description == file.description && *own == other
}

fn is_same_value(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let is_same_field = |(key, value): (&String, &Value)| {
                theirs.get(key).is_some_and(|other| is_same_value(value, other))
            };
            ours.len() == theirs.len() && ours.iter().all(is_same_field)
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| is_same_value(ours, theirs))
        }
        _ => ours == theirs || is_same_scalar(&text(ours), &text(theirs)),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_same_scalar(ours: &str, theirs: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    ours == theirs || number(ours).is_some_and(|ours| number(theirs) == Some(ours))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry() -> Value {
        let digest = format!("sha256:{}", Sha256::of(b"x"));
        json!({
            "uri": "skill://acme/refunds/SKILL.md",
            "frontmatter": { "name": "refunds", "description": "Refunds: \"all\".", "metadata": { "version": 1.1 } },
            "resources": [
                { "uri": "skill://acme/refunds/SKILL.md", "digest": digest, "size": 1 },
                { "uri": "skill://acme/refunds/references/a%20b.md", "digest": digest, "size": 7 },
            ],
        })
    }

    /// Reads the entry after a change of one member. Returns the paths of its files, or the error.
    fn read(pointer: &str, value: Value) -> Result<Vec<String>, String> {
        let mut entry = entry();
        if let Some(place) = entry.pointer_mut(pointer) {
            *place = value;
        }
        let read = Entry::read(&entry).map_err(|error| error.to_string())?;
        Ok(read.files.into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn entries_are_checked() {
        assert_eq!(read("", entry()).unwrap(), ["SKILL.md", "references/a b.md"]);
        let many: Vec<_> = (0..513).map(|_| json!({})).collect();
        for (pointer, value, expected) in [
            ("/uri", json!("skill://acme/refunds/skill.md"), "`uri`"),
            ("/uri", json!("skill://acme/refunds/SKILL.md?x"), "`uri`"),
            ("/uri", json!(7), "`uri`"),
            ("/uri", json!("skill://acme/other/SKILL.md"), "refunds"),
            ("/frontmatter", json!("name: refunds"), "not an object"),
            ("/frontmatter/name", json!("Refunds"), "upper-case"),
            ("/frontmatter/name", json!(["refunds"]), "no `name`"),
            ("/frontmatter/description", json!(""), "`frontmatter` is invalid"),
            ("/frontmatter/description", json!(null), "no `description`"),
            ("/frontmatter/description", json!("x".repeat(1025)), "more than 1024"),
            ("/resources", json!("dynamic"), "generated"),
            ("/resources", json!("static"), "not a list"),
            ("/resources", json!([]), "not listed"),
            ("/resources", many.into(), "more than 512"),
            ("/resources/0/size", json!(2_000_000), "not listed, or"),
            ("/resources/1/size", json!(20_000_000), "more than 16777216"),
            ("/resources/1/size", json!(-1), "`digest` or `size`"),
            ("/resources/1/size", json!(u64::MAX), "more than 16777216"),
            ("/resources/1/digest", json!("sha1:00"), "`digest` or `size`"),
            ("/resources/1/uri", json!("skill://acme/refunds/../other/a.md"), "not within"),
            ("/resources/1/uri", json!("skill://acme/refunds/x%2F..%2f..%2fa.md"), "not within"),
            ("/resources/1/uri", json!("skill://acme/refunds/a%00.md"), "not within"),
            ("/resources/1/uri", json!("skill://acme/refunds//etc/passwd"), "not within"),
            ("/resources/1/uri", json!("skill://acme/refunds/a%5C..%5Cb"), "not within"),
            ("/resources/1/uri", json!("skill://acme/refunds2/a.md"), "not within"),
            ("/resources/1/uri", json!("file:///etc/passwd"), "not within"),
            ("/resources/1/uri", json!("skill://acme/refunds/SKILL%2Emd"), "listed twice"),
            ("/resources/1/uri", json!(format!("skill://acme/refunds/{}", "x".repeat(3000))), "not within"),
        ] {
            let error = read(pointer, value.clone()).unwrap_err();
            assert!(error.contains(expected), "{pointer} {value}: {error}");
        }
    }

    #[test]
    fn frontmatter_of_the_file_must_be_that_of_the_entry() {
        let entry = Entry::read(&entry()).unwrap();
        for (text, expected) in [
            ("name: refunds\ndescription: 'Refunds: \"all\".'\nmetadata:\n  version: 1.10\n", true),
            ("metadata: {version: '1.1'}\nname: refunds\ndescription: 'Refunds: \"all\".'\n", true),
            ("name: refunds\ndescription: 'Refunds: \"all\".'\n", false),
            ("name: refunds\ndescription: Other.\nmetadata: {version: 1.1}\n", false),
            ("name: other\ndescription: 'Refunds: \"all\".'\nmetadata: {version: 1.1}\n", false),
            (
                "name: refunds\ndescription: 'Refunds: \"all\".'\nmetadata: {version: 1.1}\nallowed-tools: Bash\n",
                false,
            ),
            (
                "name: refunds\ndescription: 'Refunds: \"all\".'\nmetadata: {version: 1.1}\nhooks: [x]\n",
                false,
            ),
        ] {
            let file = format!("---\n{text}---\nDo it.\n");
            assert_eq!(entry.describes(file.as_bytes()), expected, "{text}");
        }
        assert!(!entry.describes(b"Do it."));
        assert_eq!(entry.prefix().as_deref(), Some("acme"));
    }
}
