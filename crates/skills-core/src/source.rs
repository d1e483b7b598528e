//! [`SkillSource`]: a trait for places that have skills, such as a database or a registry on the network.
//!
//! [`SkillSetBuilder::add_source`] adds the skills of a source to a [`SkillSet`], page by page. All functions may block.

use std::sync::Arc;

use crate::{
    name::SkillName,
    search::{Hits, Query},
    set::{SkillSet, SkillSetBuilder},
    skill::Skill,
};

/// The maximum number of skills that [`SkillSetBuilder::add_source`] requests at once.
pub const PAGE_SKILLS: usize = 500;

/// The error of a source.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// A place with skills.
///
/// Only [`count`](Self::count) and [`list`](Self::list) are required. The default implementations of the other functions use
/// `list`. Override them if the source can do it faster, for example because it has an index. [`SkillSet`] implements this
/// trait.
///
/// ```
/// use std::sync::Arc;
/// use skills_core::{Skill, SkillSet, SkillSource, source::SourceError};
///
/// /// The shared skills of a team.
/// struct Shared(Vec<Arc<Skill>>);
///
/// impl SkillSource for Shared {
///     fn count(&self) -> Result<usize, SourceError> {
///         Ok(self.0.len())
///     }
///
///     fn list(&self, offset: usize, limit: usize) -> Result<Vec<Arc<Skill>>, SourceError> {
///         Ok(self.0.iter().skip(offset).take(limit).cloned().collect())
///     }
/// }
///
/// let skill = Skill::builder("greet", "Greets people.").body("Say hello.").build()?;
/// let shared = Shared(vec![Arc::new(skill)]);
/// assert!(shared.load("Greet")?.is_some());
///
/// let mut skills = SkillSet::builder();
/// skills.add_source(&shared, 1_000)?;
/// assert_eq!(skills.build().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub trait SkillSource: Send + Sync {
    /// Returns the number of skills.
    ///
    /// # Errors
    /// Returns an error if the source can't be reached or read.
    fn count(&self) -> Result<usize, SourceError>;

    /// Returns at most `limit` skills, starting at index `offset`. The order is always the same. After the last skill, the
    /// result is empty.
    ///
    /// # Errors
    /// Returns an error if the source can't be reached or read.
    fn list(&self, offset: usize, limit: usize) -> Result<Vec<Arc<Skill>>, SourceError>;

    /// Returns the skill with this name, ignoring case.
    ///
    /// # Errors
    /// Returns an error if the source can't be reached or read.
    fn load(&self, name: &str) -> Result<Option<Arc<Skill>>, SourceError> {
        let key = SkillName::key_of(name);
        let mut offset = 0;
        loop {
            let page = self.list(offset, PAGE_SKILLS)?;
            if page.is_empty() {
                return Ok(None);
            }
            offset += page.len();
            if let Some(skill) = page.into_iter().find(|skill| skill.name.key() == key) {
                return Ok(Some(skill));
            }
        }
    }

    /// Returns the skills that match `query`, best first. Skills that the model must not see are left out
    /// ([`Skill::is_listed`]).
    ///
    /// # Errors
    /// Returns an error if the source can't be reached or read.
    fn search(&self, query: &Query) -> Result<Hits, SourceError> {
        let mut skills = SkillSet::builder();
        skills.add_source(self, usize::MAX)?;
        Ok(skills.build().search(query))
    }
}

impl SkillSource for SkillSet {
    fn count(&self) -> Result<usize, SourceError> {
        Ok(self.len())
    }

    fn list(&self, offset: usize, limit: usize) -> Result<Vec<Arc<Skill>>, SourceError> {
        Ok(self.iter().skip(offset).take(limit).cloned().collect())
    }

    fn load(&self, name: &str) -> Result<Option<Arc<Skill>>, SourceError> {
        Ok(self.get(name).cloned())
    }

    fn search(&self, query: &Query) -> Result<Hits, SourceError> {
        Ok(SkillSet::search(self, query))
    }
}

impl SkillSetBuilder {
    /// Appends the skills of `source` until the set has `max` skills. Returns the number of skills that were added.
    ///
    /// # Errors
    /// Returns the error of the source. The skills that it returned before are in the set.
    pub fn add_source(
        &mut self,
        source: &(impl SkillSource + ?Sized),
        max: usize,
    ) -> Result<usize, SourceError> {
        let before = self.len();
        let mut offset = 0;
        while self.len() < max {
            let page = source.list(offset, PAGE_SKILLS.min(max - self.len()))?;
            if page.is_empty() {
                break;
            }
            offset += page.len();
            for skill in page {
                self.add_shared(skill, Vec::new());
            }
        }
        Ok(self.len() - before)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A source of generated skills that counts its pages and can fail.
    struct Numbers {
        skills: usize,
        pages: AtomicUsize,
        fails_from: usize,
    }

    impl SkillSource for Numbers {
        fn count(&self) -> Result<usize, SourceError> {
            Ok(self.skills)
        }

        fn list(&self, offset: usize, limit: usize) -> Result<Vec<Arc<Skill>>, SourceError> {
            self.pages.fetch_add(1, Ordering::Relaxed);
            if offset >= self.fails_from {
                return Err("the registry is down".into());
            }
            let skill =
                |number| Skill::builder(format!("S{number}"), format!("Knows {number}.")).body("x").build();
            let numbers = offset..self.skills.min(offset.saturating_add(limit));
            Ok(numbers.map(skill).collect::<Result<Vec<_>, _>>()?.into_iter().map(Arc::new).collect())
        }
    }

    fn numbers(skills: usize, fails_from: usize) -> Numbers {
        Numbers { skills, pages: AtomicUsize::new(0), fails_from }
    }

    #[test]
    fn every_skill_arrives_once_in_pages() {
        let source = numbers(1_203, usize::MAX);
        let mut skills = SkillSet::builder();
        skills.add(Skill::builder("s7", "Was first.").body("x").build().unwrap(), Vec::new());
        assert_eq!(skills.add_source(&source, 10_000).unwrap(), 1_202);
        assert_eq!(source.pages.load(Ordering::Relaxed), 4);
        let skills = skills.build();
        assert_eq!(skills.get("S7").unwrap().description, "Was first.");
        assert_eq!(skills.shadowed().len(), 1);
        assert_eq!(SkillSource::count(&skills).unwrap(), 1_203);
        assert_eq!(skills.list(1_200, 10).unwrap().len(), 3);
        assert!(skills.list(5_000, 10).unwrap().is_empty());
    }

    #[test]
    fn skills_are_added_up_to_the_limit_or_the_first_failure() {
        let mut skills = SkillSet::builder();
        assert_eq!(skills.add_source(&numbers(1_000, usize::MAX), 600).unwrap(), 600);
        assert_eq!(skills.add_source(&numbers(1_000, usize::MAX), 600).unwrap(), 0);

        let mut skills = SkillSet::builder();
        let error = skills.add_source(&numbers(1_000, 500), usize::MAX).unwrap_err();
        assert_eq!((error.to_string().as_str(), skills.len()), ("the registry is down", 500));
    }

    #[test]
    fn skills_are_loaded_and_searched_by_default() {
        let source: &dyn SkillSource = &numbers(700, usize::MAX);
        assert_eq!(source.load(" s650 ").unwrap().unwrap().name.as_str(), "S650");
        assert!(source.load("s700").unwrap().is_none());
        let hits = source.search(&Query { text: "knows 650".into(), ..Query::default() }).unwrap();
        assert_eq!(hits.hits[0].skill.name.as_str(), "S650");
        assert!(numbers(700, 0).load("s1").is_err());
    }
}
