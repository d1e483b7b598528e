//! [`Difference`]: how one set of skills differs from another.

use std::sync::Arc;

use crate::{
    set::{Entry, SkillSet},
    skill::Skill,
};

/// How a set of skills differs from an earlier one, each list in the order of its set.
///
/// ```
/// use skills_core::{Difference, Skill, SkillSet};
///
/// let set = |names: &[&str]| -> SkillSet {
///     names.iter().map(|name| Skill::builder(*name, "An example.").body("…").build().unwrap()).collect()
/// };
/// let difference = Difference::between(&set(&["greet", "review"]), &set(&["review", "test"]));
/// assert_eq!(difference.added[0].name.as_str(), "test");
/// assert_eq!(difference.removed[0].name.as_str(), "greet");
/// assert!(difference.changed.is_empty());
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Difference {
    /// Skills that were not there before.
    pub added: Vec<Arc<Skill>>,
    /// Skills that are gone, as they were.
    pub removed: Vec<Arc<Skill>>,
    /// Skills that differ ([`Skill::is_same_as`]), as they are now. The scope does not count.
    pub changed: Vec<Arc<Skill>>,
    /// How many of those that changed differ in more than their instructions.
    pub redescribed: usize,
}

impl Difference {
    /// How `after` differs from `before`.
    ///
    /// Two snapshots that share most of their skills cost little more than a look at the others.
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

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    /// Whether nothing differs but the instructions of some skills: every list of names and descriptions stays as it was.
    pub fn changes_only_instructions(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.redescribed == 0
    }
}

/// The scope does not count: it says how a skill was found, not what it is.
fn is_same(old: &Skill, new: &Skill) -> bool {
    if old.scope == new.scope {
        return old.is_same_as(new);
    }
    let mut moved = old.clone();
    moved.scope = new.scope;
    moved.is_same_as(new)
}

/// The entries without those at both ends that are one and the same skill.
fn unshared<'a>(old: &'a [Entry], new: &'a [Entry]) -> (&'a [Entry], &'a [Entry]) {
    let is_shared = |(a, b): &(&Entry, &Entry)| Arc::ptr_eq(&a.skill, &b.skill);
    let start = old.iter().zip(new).take_while(is_shared).count();
    let (old, new) = (&old[start..], &new[start..]);
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
    fn what_differs() {
        let (a, b, c, d) = (skill("a", "1"), skill("b", "1"), skill("c", "1"), skill("d", "1"));
        let (a_again, b_anew) = (skill("a", "1"), skill("B", "2"));
        for (before, after, added, removed, changed) in [
            (vec![], vec![], vec![], vec![], vec![]),
            (vec![&a, &b, &c], vec![&a, &b, &c], vec![], vec![], vec![]),
            (vec![], vec![&a], vec!["a"], vec![], vec![]),
            (vec![&a], vec![], vec![], vec!["a"], vec![]),
            (vec![&a, &b, &c], vec![&a, &c], vec![], vec!["b"], vec![]),
            (vec![&a, &c], vec![&a, &b, &c], vec!["b"], vec![], vec![]),
            // Another order is no difference, and neither is a copy.
            (vec![&a, &b, &c], vec![&c, &a, &b], vec![], vec![], vec![]),
            (vec![&a, &b], vec![&a_again, &b], vec![], vec![], vec![]),
            // A name in another case is the same name, and a change.
            (vec![&a, &b, &c], vec![&a, &b_anew, &c], vec![], vec![], vec!["B"]),
            (vec![&b, &c], vec![&d, &b_anew], vec!["d"], vec!["c"], vec!["B"]),
            (vec![&a, &a], vec![&a], vec![], vec![], vec![]),
        ] {
            let difference = Difference::between(&set(&before), &set(&after));
            let found = (names(&difference.added), names(&difference.removed), names(&difference.changed));
            assert_eq!(found, (added.clone(), removed.clone(), changed.clone()), "{before:?} {after:?}");
            assert_eq!(difference.is_empty(), added.is_empty() && removed.is_empty() && changed.is_empty());
        }
    }
}
