//! [`PathGlobs`]: the files for which skills are meant.
//!
//! A skill with `paths` is not in the catalog until a file that matches one of its globs comes up in a session. Hosts decide which
//! files come up, such as those that the user mentions and those that the agent reads, and list the skill from then on
//! ([`SkillSet::joined`](crate::SkillSet::joined)).
//!
//! | glob | matches |
//! |---|---|
//! | `infra/**` | everything below `infra` |
//! | `infra/` | the same |
//! | `*.tsx` | all files with this name, in any directory |
//! | `/README.md` | only the file in the root |
//! | `src/**/*.{ts,tsx}` | `*` stays within a directory, `**` doesn't; `?`, `[ab]` and `{a,b}` work too |

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet};

use crate::{name::SkillName, set::SkillSet, skill::Skill};

/// The maximum number of globs of a skill. Further ones are ignored.
pub const MAX_GLOBS: usize = 100;

/// The maximum length of a glob in bytes.
const MAX_GLOB_BYTES: usize = 1_000;
/// The maximum number of globs of all skills of a session. The skills of further globs never join, but can be activated by name.
const MAX_ALL_GLOBS: usize = 256;
/// The maximum length of all globs of a session in bytes. The time and the memory of a comparison grow with it.
const MAX_ALL_GLOB_BYTES: usize = 4 * 1024;
/// The number of globs that are compared together. The memory of a comparison grows with its square.
const SET_SIZE: usize = 32;
/// The maximum number of wildcards in a glob. With many `**`, comparing the paths of a message takes half a minute.
const MAX_WILDCARDS: usize = 16;
/// The maximum number of braces in a glob, because `globset` limits how deep they can be nested.
const MAX_BRACES: usize = 50;

/// The globs of the skills in a set that are not listed yet.
///
/// ```
/// use std::path::Path;
/// use skills_core::{Skill, SkillSet, paths::PathGlobs};
///
/// let mut skill = Skill::builder("deploy", "Deploys.").body("…").build()?;
/// skill.properties.paths = vec!["infra/**".to_owned()];
/// let skills: SkillSet = [skill].into_iter().collect();
///
/// let globs = PathGlobs::of(&skills).unwrap();
/// let names = globs.matching(Path::new("infra/main.tf"));
/// assert_eq!(names[0].as_str(), "deploy");
/// let skills = skills.joined(|skill| names.contains(&skill.name));
/// assert_eq!(skills.listed().count(), 1);
/// # Ok::<(), skills_core::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PathGlobs {
    /// Globs in sets of [`SET_SIZE`].
    sets: Vec<GlobSet>,
    /// The skill of each glob.
    owners: Vec<SkillName>,
}

impl PathGlobs {
    /// Returns the globs of the skills that wait for a file. Returns `None` if no skill does.
    pub fn of(skills: &SkillSet) -> Option<Self> {
        let mut globs = Vec::new();
        let mut owners = Vec::new();
        let mut bytes = 0;
        for skill in skills.iter().filter(|skill| skill.awaits_path()) {
            for glob in skill.properties.paths.iter().filter_map(|glob| compile(glob).ok()) {
                bytes += glob.glob().len();
                if owners.len() == MAX_ALL_GLOBS || bytes > MAX_ALL_GLOB_BYTES {
                    break;
                }
                globs.push(glob);
                owners.push(skill.name.clone());
            }
        }
        let sets = globs.chunks(SET_SIZE).map(|globs| GlobSet::new(globs).ok()).collect::<Option<_>>()?;
        (!owners.is_empty()).then_some(Self { sets, owners })
    }

    /// Returns the names of the skills that are meant for a file. The path is relative to a root of the session.
    pub fn matching(&self, path: &Path) -> Vec<SkillName> {
        let mut names: Vec<SkillName> = Vec::new();
        for (set, owners) in self.sets.iter().zip(self.owners.chunks(SET_SIZE)) {
            for index in set.matches(path) {
                if !names.contains(&owners[index]) {
                    names.push(owners[index].clone());
                }
            }
        }
        names
    }
}

impl Skill {
    /// Returns true if the skill is left out of the catalog only because no file that matches its `paths` has come up.
    pub fn awaits_path(&self) -> bool {
        !self.has_joined
            && !self.properties.paths.is_empty()
            && !self.properties.hide_from_discovery
            && !self.properties.disable_model_invocation
    }
}

/// Returns true if a glob can be used in `paths`.
pub fn is_valid(glob: &str) -> bool {
    !glob.trim().is_empty() && compile(glob).is_ok()
}

/// Splits a list of globs at commas outside of braces. Quotes around a glob are removed.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let globs = text.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    let globs = globs.map(|glob| glob.trim().trim_matches(['"', '\'']));
    globs.filter(|glob| !glob.is_empty()).map(str::to_owned).collect()
}

fn compile(glob: &str) -> Result<Glob, globset::Error> {
    let glob = glob.trim();
    let is_refused = glob.len() > MAX_GLOB_BYTES
        || glob.starts_with('!')
        || glob.matches('{').count() > MAX_BRACES
        || glob.matches(['?', '*', '[']).count() > MAX_WILDCARDS;
    // An empty class is always invalid.
    let glob = if is_refused { "[" } else { glob };
    let below = glob.strip_prefix("./").or_else(|| glob.strip_prefix('/')).unwrap_or(glob);
    let is_anchored = below.len() < glob.len() || below.trim_end_matches('/').contains('/');
    let start = if is_anchored || below.starts_with("**") { "" } else { "**/" };
    let end = if below.ends_with('/') { "**" } else { "" };
    GlobBuilder::new(&format!("{start}{below}{end}"))
        .literal_separator(true)
        .case_insensitive(cfg!(windows))
        .backslash_escape(true)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_files_below_a_root() {
        for (glob, yes, no) in [
            ("infra/**", &["infra/a", "infra/a/b.tf"][..], &["infra", "x/infra/a", "infrared/a"][..]),
            ("infra/", &["infra/a", "infra/a/b"], &["infra"]),
            ("*.tsx", &["a.tsx", "src/deep/a.tsx"], &["a.ts", "tsx"]),
            ("/*.md", &["a.md"], &["docs/a.md"]),
            ("./*.md", &["a.md"], &["docs/a.md"]),
            ("README.md", &["README.md", "docs/README.md"], &["README.mdx"]),
            ("**/*.rs", &["a.rs", "b/a.rs"], &["a.rsx"]),
            ("src/*.rs", &["src/a.rs"], &["src/b/a.rs", "x/src/a.rs"]),
            ("src/**/*.{ts,tsx}", &["src/a.ts", "src/b/c.tsx"], &["a.ts"]),
            ("docs/[ab]?.md", &["docs/a1.md"], &["docs/c1.md", "docs/a.md"]),
            ("**", &["a", "b/c"], &[]),
        ] {
            let mut skill = Skill::builder("x", "x").body("x").build().unwrap();
            skill.properties.paths = vec![glob.to_owned()];
            let globs = PathGlobs::of(&[skill].into_iter().collect()).unwrap();
            for path in yes {
                assert_eq!(globs.matching(Path::new(path)).len(), 1, "{glob} {path}");
            }
            for path in no {
                assert!(globs.matching(Path::new(path)).is_empty(), "{glob} {path}");
            }
        }
    }

    #[test]
    fn invalid_globs_are_refused() {
        let nested = format!("{}a{}", "{".repeat(200), "}".repeat(200));
        for glob in ["", " ", "a[", "!src/**", "{a", &"a".repeat(2_000), &nested] {
            assert!(!is_valid(glob), "{glob}");
        }
    }

    #[test]
    fn lists_are_split_outside_of_braces() {
        assert_eq!(split("src/**, *.{ts,tsx} ,,'a', \"b\""), ["src/**", "*.{ts,tsx}", "a", "b"]);
        assert_eq!(split(""), [""; 0]);
    }

    #[test]
    fn the_number_of_wildcards_is_limited() {
        for (wildcards, expected) in [(MAX_WILDCARDS, true), (MAX_WILDCARDS + 1, false)] {
            assert_eq!(is_valid(&format!("a{}", "?".repeat(wildcards))), expected);
            assert_eq!(is_valid(&"[ab]".repeat(wildcards)), expected);
        }
    }

    #[test]
    fn the_number_of_globs_is_limited() {
        let skills: SkillSet = (0..100)
            .map(|number| {
                let mut skill = Skill::builder(format!("s{number}"), "x").body("x").build().unwrap();
                skill.properties.paths =
                    (0..MAX_GLOBS).map(|glob| format!("a{number}/*b{glob}*/**/c?")).collect();
                skill
            })
            .collect();
        let globs = PathGlobs::of(&skills).unwrap();
        assert_eq!(globs.matching(Path::new("a1/xb7x/d/c1")).len(), 1);
        assert_eq!(globs.owners.len(), MAX_ALL_GLOBS);
    }
}
