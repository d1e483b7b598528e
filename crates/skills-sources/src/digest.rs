//! Computes the checksum of a skill. The user approves this checksum, and we compare it before we serve the skill.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs::{self, File},
    io::{self, Read},
    ops::Bound,
    path::Path,
};

use skills_core::{
    Remote, Skill, Source, order,
    skill::{FileGuard, Sha256},
};

use crate::site::base_of;

/// The maximum number of entries in a stored skill. We never write more than that.
const MAX_ENTRIES: usize = 100_000;

/// Returns the checksum of all files below `dir`: the SHA-256 of one line `SHA-256 PATH` per file, sorted by path, with `/` as
/// the separator.
///
/// # Errors
/// Returns an error if a file can't be read, if an entry is not a regular file or a directory, or if a name contains a control
/// character.
pub(super) fn of_skill(dir: &Path) -> io::Result<Sha256> {
    Ok(Files::of(dir)?.digest())
}

/// The checksums of the files of a skill, by path. Each file is compared again when it is read.
#[derive(Default)]
pub(super) struct Files(BTreeMap<String, Sha256>);

impl Files {
    /// Computes the checksums of the files below `dir`.
    ///
    /// # Errors
    /// Returns the errors of [`of_skill`].
    pub(super) fn of(dir: &Path) -> io::Result<Self> {
        Self::read(dir, files(dir)?, |_, _| {})
    }

    /// Computes the checksums of the files with these paths below `dir`, and passes each content to `see`.
    ///
    /// # Errors
    /// Returns an error if a file can't be read.
    pub(super) fn read(dir: &Path, paths: Vec<String>, mut see: impl FnMut(&str, &[u8])) -> io::Result<Self> {
        let mut all = BTreeMap::new();
        // A start hashes thousands of files, so use the same memory for all of them.
        let mut content = Vec::with_capacity(32 * 1024);
        for path in paths {
            content.clear();
            File::open(dir.join(&path))?.read_to_end(&mut content)?;
            see(&path, &content);
            all.insert(path, Sha256::of(&content));
        }
        Ok(Self(all))
    }

    /// Returns the number of files.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a file with its content.
    pub(super) fn add(&mut self, path: &str, content: &[u8]) {
        self.0.insert(path.to_owned(), Sha256::of(content));
    }

    /// Returns the checksum of all files, see [`of_skill`].
    pub(super) fn digest(&self) -> Sha256 {
        let mut text = String::new();
        for (path, digest) in &self.0 {
            text.extend([digest.to_string().as_str(), " ", path, "\n"]);
        }
        Sha256::of(text.as_bytes())
    }
}

impl FileGuard for Files {
    fn allows(&self, path: &str, content: Option<&mut dyn io::Read>) -> io::Result<bool> {
        let (Some(known), Some(content)) = (self.0.get(path), content) else { return Ok(false) };
        Ok(*known == Sha256::of_content(content)?)
    }

    fn paths<'a>(&'a self, start: &str) -> Box<dyn Iterator<Item = &'a str> + 'a> {
        let rest = self.0.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        Box::new(rest.map(|(path, _)| path.as_str()))
    }
}

/// Returns the checksum of a skill of a web site: of its entry in the index, without the files.
pub(super) fn of_entry(skill: &Skill) -> String {
    let entry = match &skill.source {
        Source::Remote(remote) => entry(remote),
        _ => String::new(),
    };
    // Without the escapes, a description with a line break could look like a description and a file.
    Sha256::of(format!("{}\n{:?}\n{entry}", skill.name, skill.description).as_bytes()).to_string()
}

/// Returns the URL, the files and the checksums of a remote skill as text, to compare them.
fn entry(remote: &Remote) -> String {
    let digest =
        |digest: Option<Sha256>| digest.map_or_else(|| "unknown".to_owned(), |digest| digest.to_string());
    let mut text = format!("{} {}\n", remote.url, digest(remote.sha256));
    // Two entries with the same file can have other files in different places, or none.
    if remote.base.as_deref() != base_of(&remote.url).as_deref() {
        let _ = writeln!(text, "base {}", remote.base.as_deref().unwrap_or("none"));
    }
    // An index that lists no files allows every file of the skill, which is more than one that lists none.
    if remote.files.is_none() {
        text.push_str("*\n");
    }
    for file in remote.files.iter().flat_map(|files| files.iter()) {
        let _ = writeln!(text, "{} {}", file.path, digest(file.sha256));
    }
    text
}

/// Returns the paths of the files below `dir`, sorted.
///
/// # Errors
/// Returns the errors of [`of_skill`].
pub(super) fn files(dir: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut directories = vec![String::new()];
    let mut seen = 0;
    while let Some(prefix) = directories.pop() {
        for entry in fs::read_dir(dir.join(&prefix))? {
            let entry = entry?;
            let wrong = || {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    "skill contains entries other than regular files and directories",
                )
            };
            let name = entry.file_name().into_string().map_err(|_| wrong())?;
            // With a line break, a name could look like two lines of the checksum's input.
            if name.contains(char::is_control) {
                return Err(wrong());
            }
            let kind = entry.file_type()?;
            seen += 1;
            if seen > MAX_ENTRIES {
                return Err(wrong());
            }
            if kind.is_dir() {
                directories.push(format!("{prefix}{name}/"));
            } else if kind.is_file() {
                files.push(format!("{prefix}{name}"));
            } else {
                return Err(wrong());
            }
        }
    }
    order::sort(&mut files);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_counts_and_empty_directories_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            fs::write(dir.path().join(path), text).unwrap();
        };
        let hash = || of_skill(dir.path()).unwrap();
        write("SKILL.md", "a");
        write("b/c", "d");
        let line = |path: &str, text: &str| format!("{} {path}\n", Sha256::of(text.as_bytes()));
        let expected = Sha256::of((line("SKILL.md", "a") + &line("b/c", "d")).as_bytes());
        assert_eq!(hash(), expected);
        fs::create_dir(dir.path().join("empty")).unwrap();
        assert_eq!(hash(), expected);
        for (path, text) in [("SKILL.md", "b"), ("b/c", "D"), (".hidden", ""), ("b/e", "")] {
            let before = hash();
            write(path, text);
            assert_ne!(hash(), before, "{path}");
        }
    }

    /// An index without a list of files allows every file, so it differs from one with an empty list.
    #[test]
    fn a_missing_list_of_files_counts() {
        let of = |files: serde_json::Value| {
            let mut skill = serde_json::json!({ "name": "pdf", "description": "d", "url": "https://example.com/pdf/SKILL.md" });
            skill["files"] = files;
            let text = serde_json::json!({ "skills": [skill] }).to_string();
            let index = crate::site::RemoteIndex::parse(&text, "https://example.com/i.json").unwrap();
            let [skill] = index.skills().entries() else { panic!("{:?}", index.skills().skipped()) };
            of_entry(&skill.skill)
        };
        let without = of(serde_json::Value::Null);
        assert_ne!(without, of(serde_json::json!(["SKILL.md"])));
    }

    /// A site must not be able to add files to a skill that was approved without any.
    #[test]
    fn the_place_of_other_files_counts() {
        let of = |entry: &str| {
            let text = format!(r#"{{"skills":[{{"name":"pdf","description":"d",{entry}}}]}}"#);
            let index = crate::site::RemoteIndex::parse(&text, "https://example.com/i.json").unwrap();
            let [skill] = index.skills().entries() else { panic!("{:?}", index.skills().skipped()) };
            let Source::Remote(remote) = &skill.skill.source else { unreachable!() };
            (of_entry(&skill.skill), remote.url.clone())
        };
        for (alone, with_files) in [
            (r#""url":"/pdf/SKILL.md""#, r#""baseUrl":"/pdf""#),
            (r#""url":"/pdf/SKILL.md","files":["SKILL.md"]"#, r#""baseUrl":"/pdf","files":["SKILL.md"]"#),
        ] {
            assert_eq!(of(alone), of(with_files), "the same files in two forms");
        }
        let skill = of(r#""url":"/x?p=/SKILL.md""#);
        let error = format!(r#"{{"skills":[{{"name":"pdf","description":"d","baseUrl":"{}"}}]}}"#, "/x?p=");
        let index = crate::site::RemoteIndex::parse(&error, "https://example.com/i.json").unwrap();
        assert!(index.skills().is_empty() && index.skills().skipped().len() == 1);
        let mut other = Remote::new(&skill.1, None, std::time::Duration::ZERO);
        other.base = Some("https://example.com/x?p=/".into());
        let mut alone = other.clone();
        alone.base = None;
        assert_ne!(entry(&other), entry(&alone));
    }

    /// A file name that contains a line of the checksum.
    #[cfg(unix)]
    #[test]
    fn a_name_with_a_line_break_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(format!("a\n{} b", Sha256::of(b""))), "").unwrap();
        assert_eq!(of_skill(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("x")).unwrap();
        assert_eq!(of_skill(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
