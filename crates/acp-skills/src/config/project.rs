//! [`Project`]: settings for sessions in some directories.
//!
//! Editors have a single entry for an agent, which they use for all projects. This is why differences between projects are part
//! of the configuration file.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor, value::SeqAccessDeserializer},
};

use super::{ConfigError, Discover, SkillEntry, SourceEntry, Trusted, expand_home};

/// An entry of `projects`: settings for the sessions in some directories. If several entries match the directory of a session,
/// all of them apply.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Project {
    /// The directories, as globs. Directories below them match too.
    #[schemars(with = "super::schema::OneOrMany")]
    pub path: Globs,
    /// Skills by name, and virtual skills. They take precedence over all skills except those in `skills` at the top of the file.
    #[serde(default)]
    #[schemars(with = "Vec<super::schema::SkillShape>")]
    pub skills: Vec<SkillEntry>,
    /// Directories that are searched for skills.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// Git repositories and web sites with skills.
    #[serde(default)]
    #[schemars(with = "Vec<super::schema::SourceShape>")]
    pub sources: Vec<SourceEntry>,
    /// Other places to search for skills, in addition to those of the whole file.
    #[serde(default)]
    pub discover: Vec<Discover>,
    /// Discovered skills that are used here without asking the user.
    #[serde(default)]
    pub trust: Vec<Trusted>,
    /// Globs: of all skills, only those with a matching name are used. If the list is empty, all skills are used.
    #[serde(default)]
    pub include: Vec<String>,
    /// Globs: of all skills, those with a matching name are not used.
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// Globs of paths. In the file, a single glob can be written without a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Globs(pub Vec<String>);

impl Globs {
    /// Makes all globs absolute. `~` is the home directory, and relative globs start at `base`.
    pub(super) fn make_absolute(&mut self, base: &Path) {
        for glob in &mut self.0 {
            let (first, rest) = glob.split_once(['/', '\\']).unwrap_or((glob, ""));
            let home = expand_home(Path::new(first));
            if home != Path::new(first) {
                *glob = below(&home, rest);
            } else if !Path::new(&*glob).is_absolute() {
                *glob = below(base, glob.strip_prefix("./").unwrap_or(glob));
            }
        }
    }

    /// Returns a matcher for these directories and all directories below them.
    ///
    /// # Errors
    /// Returns [`ConfigError::Value`] if a glob is invalid.
    pub(super) fn compile(&self) -> Result<GlobSet, ConfigError> {
        let wrong = |error: globset::Error| ConfigError::Value(format!("`projects`: {error}"));
        let mut set = GlobSetBuilder::new();
        for glob in &self.0 {
            let directory = glob.trim_end_matches('/');
            let directory = directory.strip_suffix("/**").unwrap_or(directory);
            let directories = [Some(directory.to_owned()), without_links(directory)];
            let globs = directories.into_iter().flatten().flat_map(|dir| [format!("{dir}/**"), dir]);
            for glob in globs {
                let glob =
                    GlobBuilder::new(&glob).literal_separator(true).case_insensitive(cfg!(windows)).build();
                set.add(glob.map_err(wrong)?);
            }
        }
        set.build().map_err(wrong)
    }
}

/// Returns the glob with the canonical path of the directories before its first special character, if that is a different path.
fn without_links(glob: &str) -> Option<String> {
    let special = glob.find(['*', '?', '[', '{', '\\']).unwrap_or(glob.len());
    let end = if special == glob.len() { special } else { glob[..special].rfind('/')? };
    let (dir, rest) = glob.split_at(end);
    let real = dunce::canonicalize(dir).ok()?;
    (real != Path::new(dir)).then(|| below(&real, rest.trim_start_matches('/')))
}

/// Joins a directory and a glob. Special characters in the name of the directory are escaped.
fn below(dir: &Path, glob: &str) -> String {
    let dir = globset::escape(dir.to_string_lossy().trim_end_matches(['/', '\\']));
    let dir = if cfg!(windows) { dir.replace('\\', "/") } else { dir };
    if matches!(glob, "" | ".") { dir } else { format!("{dir}/{glob}") }
}

// This is not derived with `untagged`, because errors would then be missing the line, the column and the key.
impl<'de> Deserialize<'de> for Globs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Globs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a directory path, which may be a glob, or a list of paths")
            }

            fn visit_str<E>(self, glob: &str) -> Result<Globs, E> {
                Ok(Globs(vec![glob.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, globs: A) -> Result<Globs, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(globs)).map(Globs)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn globs_match_directories_and_everything_below() {
        for (glob, yes, no) in [
            ("/work/api", vec!["/work/api", "/work/api/src/x"], vec!["/work/apis", "/work"]),
            ("/work/*", vec!["/work/api", "/work/api/src"], vec!["/work", "/other"]),
            ("/work/**", vec!["/work", "/work/a/b"], vec!["/other"]),
            ("/*/api/", vec!["/work/api"], vec!["/a/b/api"]),
            ("/**/api", vec!["/a/b/api/c"], vec!["/a/b"]),
            ("/work/{api,web}", vec!["/work/web"], vec!["/work/x"]),
            (".", vec!["/te[a]m", "/te[a]m/x"], vec!["/team"]),
            ("./api", vec!["/te[a]m/api"], vec!["/te[a]m"]),
            ("../x", vec![], vec!["/x"]),
        ] {
            let mut globs = Globs(vec![glob.to_owned()]);
            globs.make_absolute(Path::new("/te[a]m"));
            let set = globs.compile().unwrap();
            for path in yes {
                assert!(set.is_match(path), "{glob} {path}");
            }
            for path in no {
                assert!(!set.is_match(path), "{glob} {path}");
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let real = dunce::canonicalize(dir.path()).unwrap();
        std::fs::create_dir(real.join("real")).unwrap();
        std::os::unix::fs::symlink("real", real.join("link")).unwrap();
        for glob in ["link", "link/*", "link/**"] {
            let set = Globs(vec![format!("{}/{glob}", real.display())]).compile().unwrap();
            assert!(set.is_match(real.join("link/a")) && set.is_match(real.join("real/a")), "{glob}");
            assert!(!set.is_match(&real), "{glob}");
        }
        assert!(Globs(vec!["/a[".to_owned()]).compile().is_err());
        let mut globs = Globs(vec!["~/work/*".to_owned()]);
        globs.make_absolute(Path::new("/"));
        assert!(!globs.0[0].contains('~') && globs.0[0].ends_with("/work/*"), "{globs:?}");
    }
}
