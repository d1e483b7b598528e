//! [`Difference`]: compares two sets of skills.

use std::sync::Arc;

use skills_core::{Skill, SkillSet, set::Entry};

/// The skills that were added, removed and changed between two sets. Each list is in the order of its set.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Difference {
    /// Skills that only the new set has.
    pub added: Vec<Arc<Skill>>,
    /// Skills that only the old set has.
    pub removed: Vec<Arc<Skill>>,
    /// Skills of the new set that differ from the skill with the same name in the old set ([`Skill::is_same_as`]). The scope
    /// is ignored.
    pub changed: Vec<Arc<Skill>>,
    /// The number of changed skills that differ in more than their instructions.
    pub redescribed: usize,
}

impl Difference {
    /// Compares two sets.
    ///
    /// This is fast if both sets share most of their skills: shared skills are recognised by their pointers.
    pub fn between(before: &SkillSet, after: &SkillSet) -> Self {
        let mut difference = Self::default();
        if before.ptr_eq(after) {
            return difference;
        }
        let (old, new) = unshared(before.entries(), after.entries());
        let gone = old.iter().filter(|entry| after.get(entry.skill.name.as_str()).is_none());
        difference.removed = gone.map(|entry| Arc::clone(&entry.skill)).collect();
        for Entry { skill, .. } in new {
            match before.get(skill.name.as_str()) {
                None => difference.added.push(Arc::clone(skill)),
                Some(old) if Arc::ptr_eq(old, skill) || is_same(old, skill) => {}
                Some(old) => {
                    difference.redescribed += usize::from(!old.is_described_as(skill));
                    difference.changed.push(Arc::clone(skill));
                }
            }
        }
        difference
    }

    /// Returns true if the sets have the same skills.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    /// Returns true if at most the instructions of some skills differ, so that a catalog of names and descriptions stays the
    /// same.
    pub fn changes_only_instructions(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.redescribed == 0
    }
}

/// Returns true if two skills differ at most in their scope and their root. These say how a skill was found, so they are no change.
fn is_same(old: &Skill, new: &Skill) -> bool {
    if old.scope == new.scope && old.session_root == new.session_root {
        return old.is_same_as(new);
    }
    let mut moved = old.clone();
    moved.scope = new.scope;
    moved.session_root.clone_from(&new.session_root);
    moved.is_same_as(new)
}

/// Strips the shared skills at the beginning and at the end of both slices.
fn unshared<'a>(old: &'a [Entry], new: &'a [Entry]) -> (&'a [Entry], &'a [Entry]) {
    let is_shared = |(a, b): &(&Entry, &Entry)| Arc::ptr_eq(&a.skill, &b.skill);
    let start = old.iter().zip(new).take_while(is_shared).count();
    let old = &old[start..];
    let new = &new[start..];
    let end = old.iter().rev().zip(new.iter().rev()).take_while(is_shared).count();
    (&old[..old.len() - end], &new[..new.len() - end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, description: &str) -> Arc<Skill> {
        Arc::new(Skill::builder(name, description).body("x").build().unwrap())
    }

    fn set(skills: &[&Arc<Skill>]) -> SkillSet {
        let mut builder = SkillSet::builder();
        for skill in skills {
            builder.add_shared(Arc::clone(skill), Vec::new());
        }
        builder.build()
    }

    fn names(skills: &[Arc<Skill>]) -> Vec<&str> {
        skills.iter().map(|skill| skill.name.as_str()).collect()
    }

    #[test]
    fn sets_are_compared_by_name_and_content() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| skill(name, "1"));
        let a_copy = skill("a", "1");
        let b_changed = skill("B", "2");
        for (before, after, added, removed, changed) in [
            (vec![], vec![], vec![], vec![], vec![]),
            (vec![&a, &b, &c], vec![&a, &b, &c], vec![], vec![], vec![]),
            (vec![], vec![&a], vec!["a"], vec![], vec![]),
            (vec![&a], vec![], vec![], vec!["a"], vec![]),
            (vec![&a, &b, &c], vec![&a, &c], vec![], vec!["b"], vec![]),
            (vec![&a, &c], vec![&a, &b, &c], vec!["b"], vec![], vec![]),
            // We should ignore the order of the skills, and treat a copy of a skill as equal.
            (vec![&a, &b, &c], vec![&c, &a, &b], vec![], vec![], vec![]),
            (vec![&a, &b], vec![&a_copy, &b], vec![], vec![], vec![]),
            // We ignore case to match names, but a name that only differs in case is still a change.
            (vec![&a, &b, &c], vec![&a, &b_changed, &c], vec![], vec![], vec!["B"]),
            (vec![&b, &c], vec![&d, &b_changed], vec!["d"], vec!["c"], vec!["B"]),
            (vec![&a, &a], vec![&a], vec![], vec![], vec![]),
        ] {
            let difference = Difference::between(&set(&before), &set(&after));
            let found = (names(&difference.added), names(&difference.removed), names(&difference.changed));
            assert_eq!(found, (added.clone(), removed.clone(), changed.clone()), "{before:?} {after:?}");
            assert_eq!(difference.is_empty(), added.is_empty() && removed.is_empty() && changed.is_empty());
        }
    }
}
