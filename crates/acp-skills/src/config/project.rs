//! [`Project`]: what differs for sessions in some directories. Editors have one entry for an agent, wherever it works.

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

/// An entry of `projects`: which directories, and what is added, included and excluded there. A session gets what all
/// entries say that fit its directory.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Project {
    /// The directories, as globs; what is below them counts as well.
    #[schemars(with = "super::schema::OneOrMany")]
    pub path: Globs,
    /// Directories of skills, and virtual skills, that come before all others but those of the top of the file.
    #[serde(default)]
    #[schemars(with = "Vec<super::schema::SkillShape>")]
    pub skills: Vec<SkillEntry>,
    /// Directories to look for skills in.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// Git repositories and web sites with skills.
    #[serde(default)]
    #[schemars(with = "Vec<super::schema::SourceShape>")]
    pub sources: Vec<SourceEntry>,
    /// Where else to look: only here, when the top of the file does not say it.
    #[serde(default)]
    pub discover: Vec<Discover>,
    /// Which of those need no approval here.
    #[serde(default)]
    pub trust: Vec<Trusted>,
    /// Of all skills, only those whose names match.
    #[serde(default)]
    pub include: Vec<String>,
    /// Of all skills, none whose names match.
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// Globs of paths; in the file also a single one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Globs(pub Vec<String>);

impl Globs {
    /// Makes each absolute: `~` is the home directory, and what is relative is relative to `base`.
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

    /// What matches these directories, and all below them.
    ///
    /// # Errors
    /// One of them is no glob.
    pub(super) fn compile(&self) -> Result<GlobSet, ConfigError> {
        let wrong = |error: globset::Error| ConfigError::Value(format!("`projects`: {error}"));
        let mut set = GlobSetBuilder::new();
        for glob in &self.0 {
            let directory = glob.trim_end_matches('/');
            let directory = directory.strip_suffix("/**").unwrap_or(directory);
            for glob in [directory.to_owned(), format!("{directory}/**")] {
                let glob =
                    GlobBuilder::new(&glob).literal_separator(true).case_insensitive(cfg!(windows)).build();
                set.add(glob.map_err(wrong)?);
            }
        }
        set.build().map_err(wrong)
    }
}

/// A glob below a directory, in whose own name nothing is special.
fn below(dir: &Path, glob: &str) -> String {
    let dir = globset::escape(dir.to_string_lossy().trim_end_matches(['/', '\\']));
    let dir = if cfg!(windows) { dir.replace('\\', "/") } else { dir };
    if matches!(glob, "" | ".") { dir } else { format!("{dir}/{glob}") }
}

// By hand and not `untagged`: serde forgets line, column and key of what is wrong in an untagged variant.
impl<'de> Deserialize<'de> for Globs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Globs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a directory, which may be a glob, or a list of them")
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
    fn which_directories_are_meant() {
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
        assert!(Globs(vec!["/a[".to_owned()]).compile().is_err());
        let mut globs = Globs(vec!["~/work/*".to_owned()]);
        globs.make_absolute(Path::new("/"));
        assert!(!globs.0[0].contains('~') && globs.0[0].ends_with("/work/*"), "{globs:?}");
    }
}
