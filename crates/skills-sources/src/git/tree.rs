//! Selects the files of a repository to fetch: the files of its skills, and the manifests that list directories of skills. The
//! selection uses names only, before any file is fetched.
//!
//! A repository is untrusted, so links, submodules, and files without a [safe path](super::paths) are left out.

use std::{
    collections::{HashMap, HashSet},
    io::{self, BufRead, BufReader, Read},
};

use skills_core::{files::SKILL_FILE_NAMES, text::shown};

use super::{BLOCK_BYTES, GitError, Limits, error::mebibytes};
use crate::paths::{Spellings, safe};

/// The maximum number of bytes that we keep of an entry. This is enough for the mode, the object and the longest safe
/// path.
const KEPT_BYTES: u64 = 2048;
/// The maximum number of files in a skill.
pub(crate) const MAX_SKILL_FILES: usize = 5_000;
/// The maximum number of files in all skills of a source.
pub(crate) const MAX_FILES: usize = 50_000;
/// The maximum number of notes about files that were left out. Further ones are counted.
const MAX_NOTES: usize = 20;
/// The maximum number of characters of a path in a note.
const MAX_NOTE_CHARS: usize = 200;

/// The directory of the manifests of a repository.
pub(crate) const MANIFEST_DIR: &str = ".claude-plugin";
const MANIFESTS: [&str; 2] = ["marketplace.json", "plugin.json"];

/// An entry of a tree other than a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    mode: Mode,
    object: String,
    path: Vec<u8>,
}

impl Entry {
    /// Creates an entry. `object` stands for its content.
    pub(crate) fn new(mode: Mode, object: String, path: Vec<u8>) -> Self {
        Self { mode, object, path }
    }

    /// Returns the path, which may be unsafe.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Removes the first bytes of the path.
    pub(crate) fn remove_start(&mut self, bytes: usize) {
        self.path.drain(..bytes);
    }
}

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    File,
    Program,
    Link,
    Submodule,
    Unknown,
}

/// A file to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The hash of the blob, or what stands for the content in an archive.
    pub(crate) object: String,
    /// A safe path, see [`safe`].
    pub(crate) path: String,
    pub(crate) is_program: bool,
}

/// The files to fetch, and notes about files that were left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) wanted: Vec<Wanted>,
    /// The number of directories that the files need.
    pub(crate) directories: usize,
    pub(crate) notes: Vec<String>,
}

/// Reads the output of `git ls-tree -r -t -z`. Paths that are too long to be safe are cut. Directories are counted, because a repository
/// can have very many without a file.
pub(super) fn read(output: &mut dyn Read, limits: &Limits) -> Result<Vec<Entry>, GitError> {
    let system = |source| GitError::System { what: "ls-tree".to_owned(), source };
    let mut output = BufReader::new(output);
    let mut entries = Vec::new();
    let mut count = 0;
    let mut total = 0;
    loop {
        let mut record = Vec::new();
        let mut bytes = (&mut output).take(KEPT_BYTES).read_until(0, &mut record).map_err(system)?;
        if bytes == 0 {
            return Ok(entries);
        }
        if record.pop_if(|last| *last == 0).is_none() {
            bytes += output.skip_until(0).map_err(system)?;
        }
        total += bytes as u64;
        if total > limits.path_bytes() {
            let most = mebibytes(limits.path_bytes());
            return Err(GitError::TooMuch(format!("file paths are larger than {most}")));
        }
        let unexpected = || system(io::Error::new(io::ErrorKind::InvalidData, "entry has an unknown format"));
        let tab = record.iter().position(|byte| *byte == b'\t').ok_or_else(unexpected)?;
        let head = std::str::from_utf8(&record[..tab]).map_err(|_| unexpected())?;
        let [mode, kind, object] = head.split(' ').collect::<Vec<_>>()[..] else { return Err(unexpected()) };
        if count == limits.entries() {
            return Err(GitError::TooMuch(format!("more than {} files and directories", limits.entries())));
        }
        count += 1;
        if kind == "tree" {
            continue;
        }
        let mode = match mode {
            "100644" | "100664" => Mode::File,
            "100755" => Mode::Program,
            "120000" => Mode::Link,
            "160000" => Mode::Submodule,
            _ => Mode::Unknown,
        };
        entries.push(Entry { mode, object: object.to_owned(), path: record[tab + 1..].to_vec() });
    }
}

/// Selects the files to fetch.
///
/// # Errors
/// Returns [`GitError::TooMuch`] if there are too many files, or if the files and their directories need more disk space than allowed
/// even if they are empty.
pub(crate) fn select(entries: &[Entry], limits: &Limits) -> Result<Selection, GitError> {
    let mut notes = Notes::default();
    let mut files = Vec::new();
    for entry in entries {
        match safe(&entry.path) {
            Ok(path) => files.push((path, entry)),
            Err(why) => notes.add(&String::from_utf8_lossy(&entry.path), why),
        }
    }
    let skills = directories_of_skills(&files);
    for (path, entry) in &files {
        if entry.mode == Mode::Submodule && skill_of(path, &skills).is_none() {
            notes.add(path, "is a submodule; if it has skills, add its repository as a source");
        }
    }
    let mut wanted = Vec::new();
    let too_many = skills_with_too_many_files(&files, &skills)?;
    for skill in &too_many {
        notes.add(skill, "has too many files for a skill");
    }
    let mut spellings = Spellings::default();
    for (path, entry) in files {
        let skill = skill_of(path, &skills);
        if skill.map_or_else(|| !is_manifest(path), |skill| too_many.contains(skill)) {
            continue;
        }
        let why_not = match entry.mode {
            Mode::File | Mode::Program => spellings.clash(path),
            Mode::Link => Some("is a link"),
            Mode::Submodule => Some("is a submodule"),
            Mode::Unknown => Some("has an unknown type"),
        };
        if let Some(why) = why_not {
            match skill {
                Some(skill) if entry.mode == Mode::Submodule => {
                    notes.add(path, &format!("{why}, {}", incomplete(skill)));
                }
                _ => notes.add(path, why),
            }
            continue;
        }
        // A small repository can have very many directories, because equal directories are stored once.
        if spellings.len() as u64 * BLOCK_BYTES > limits.bytes {
            let most = mebibytes(limits.bytes);
            return Err(GitError::TooMuch(format!("files and directories of skills need more than {most}")));
        }
        let is_program = entry.mode == Mode::Program;
        wanted.push(Wanted { object: entry.object.clone(), path: path.to_owned(), is_program });
    }
    let directories = spellings.len() - wanted.len();
    Ok(Selection { wanted, directories, notes: notes.finish() })
}

/// Returns the skills that are left out because they have too many files.
///
/// # Errors
/// Returns [`GitError::TooMuch`] if the other skills have too many files together.
fn skills_with_too_many_files<'a>(
    files: &[(&str, &Entry)],
    skills: &HashSet<&'a str>,
) -> Result<HashSet<&'a str>, GitError> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (path, _) in files.iter().filter(|(_, entry)| matches!(entry.mode, Mode::File | Mode::Program)) {
        if let Some(skill) = skill_of(path, skills) {
            *counts.entry(skill).or_default() += 1;
        }
    }
    let mut too_many = HashSet::new();
    counts.retain(|skill, count| *count <= MAX_SKILL_FILES || !too_many.insert(*skill));
    if counts.values().sum::<usize>() > MAX_FILES {
        return Err(GitError::TooMuch(format!("more than {MAX_FILES} files in skills")));
    }
    Ok(too_many)
}

/// Returns notes about files that were left out because they are Git LFS pointers.
pub(crate) fn notes_on_pointers(wanted: &[Wanted], pointers: &[String]) -> Vec<String> {
    let skills: HashSet<&str> =
        wanted.iter().filter_map(|file| directory_if(&file.path, &SKILL_FILE_NAMES)).collect();
    let mut notes = Notes::default();
    for path in pointers {
        match skill_of(path, &skills) {
            Some(skill) => notes.add(path, &format!("is a Git LFS pointer, {}", incomplete(skill))),
            // A manifest doesn't belong to a skill.
            None => notes.add(path, "is a Git LFS pointer"),
        }
    }
    notes.finish()
}

/// Returns the consequence for a skill as the end of a sentence.
fn incomplete(skill: &str) -> String {
    let skill =
        if skill.is_empty() { "of the repository".to_owned() } else { format!("in `{}`", shown(skill)) };
    format!("so the skill {skill} is incomplete")
}

/// Returns the directories that contain a `SKILL.md`.
fn directories_of_skills<'a>(files: &[(&'a str, &Entry)]) -> HashSet<&'a str> {
    let has_skill = files.iter().filter(|(_, entry)| matches!(entry.mode, Mode::File | Mode::Program));
    has_skill.filter_map(|(path, _)| directory_if(path, &SKILL_FILE_NAMES)).collect()
}

/// Returns the directory of a file that has one of `names`.
fn directory_if<'a>(path: &'a str, names: &[&str]) -> Option<&'a str> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    names.contains(&name).then_some(directory)
}

/// Returns the outermost skill that contains a file.
fn skill_of<'a>(path: &str, skills: &HashSet<&'a str>) -> Option<&'a str> {
    let ends = std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at));
    ends.into_iter().find_map(|end| skills.get(&path[..end]).copied())
}

fn is_manifest(path: &str) -> bool {
    directory_if(path, &MANIFESTS)
        .is_some_and(|directory| directory == MANIFEST_DIR || directory.ends_with("/.claude-plugin"))
}

#[derive(Default)]
struct Notes {
    lines: Vec<String>,
    more: usize,
}

impl Notes {
    fn add(&mut self, path: &str, why: &str) {
        if self.lines.len() == MAX_NOTES {
            self.more += 1;
            return;
        }
        let path = if path.is_empty() { "the repository" } else { path };
        let path: String = path.chars().take(MAX_NOTE_CHARS).collect();
        self.lines.push(format!("skipped `{}`, because it {why}", shown(&path)));
    }

    fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("and {} more", self.more));
        }
        self.lines
    }
}

#[cfg(test)]
mod tests;
