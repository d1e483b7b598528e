//! [`prepare_search`]: reads the instructions of skills for the search.

use std::sync::Arc;

use crate::{
    activation::BodyCache,
    files::SkillFiles,
    frontmatter,
    set::SkillSet,
    skill::{Instructions, Skill, Source},
};

/// The maximum size of the part of a `SKILL.md` that is read, in bytes. Most are shorter.
const MAX_BYTES: usize = 16 * 1024;

/// Builds the index for searches of the instructions, if the set doesn't have it yet. Blocks while it reads the instructions, which
/// takes about 100 µs per skill.
///
/// Instructions that cannot be read are left out, and those on the web are not fetched.
///
/// ```
/// use skills_core::{Skill, SkillSet, instructions, search::Query};
///
/// let skill = Skill::builder("report", "Writes reports.").body("Read the ledger first.").build()?;
/// let set: SkillSet = [skill].into_iter().collect();
/// instructions::prepare_search(&set);
/// let query = Query { text: "ledger".into(), instructions: true, ..Query::default() };
/// assert_eq!(set.search(&query).total, 1);
/// # Ok::<(), skills_core::BuildError>(())
/// ```
pub fn prepare_search(skills: &SkillSet) {
    skills.index_instructions(read);
}

/// Returns the beginning of the instructions.
fn read(skill: &Skill) -> Option<Arc<str>> {
    match &skill.source {
        Source::Stored(stored) => {
            let files = SkillFiles::of(skill).ok()?;
            let head = files.head(stored.file_name, MAX_BYTES as u64).ok()?;
            Some(frontmatter::quick_body(&frontmatter::decode(&head.bytes)).into())
        }
        Source::Virtual(own) => match &own.instructions {
            Instructions::Inline(text) => Some(Arc::clone(text)),
            Instructions::File(_) => BodyCache::default().body(skill).ok(),
            Instructions::Url(_) => None,
        },
        #[cfg(feature = "fetch")]
        Source::Remote(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Query;

    #[test]
    fn stored_instructions_are_read_and_missing_ones_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        for (name, body) in [("near", "Mentions zeppelins."), ("gone", "Mentions zeppelins, too.")] {
            let dir = root.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            let text = format!("---\nname: {name}\ndescription: Travels.\n---\n{body}\n");
            std::fs::write(dir.join("SKILL.md"), text).unwrap();
        }
        let skills: Vec<_> =
            ["near", "gone"].map(|name| crate::load_dir(&root.path().join(name)).unwrap().0).into();
        std::fs::remove_dir_all(root.path().join("gone")).unwrap();
        let set: SkillSet = skills.into_iter().collect();
        prepare_search(&set);
        let query = Query { text: "zeppelin".into(), instructions: true, ..Query::default() };
        let hits = set.search(&query).hits;
        assert_eq!(hits.iter().map(|hit| hit.skill.name.as_str()).collect::<Vec<_>>(), ["near"]);
    }
}
