//! Skills that web sites list: fetched at the start, and an error when that fails, because the user asked for them.

use std::thread;

use skills_core::{
    RemoteIndex, SkillSet, SkillSetBuilder, SkillSource,
    discovery::Filter,
    remote::RemoteError,
    source::{PAGE_SKILLS, SourceError},
};

/// What went wrong with a web site's list of skills.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceFailure {
    /// The index cannot be fetched or read.
    #[error(transparent)]
    Index(#[from] RemoteError),
    /// A part of the list cannot be read.
    #[error(transparent)]
    List(#[from] SourceError),
}

/// The skills of these indexes that `filter` takes, at most `max_skills`.
///
/// # Errors
/// The address of an index that cannot be fetched or read, and why.
pub(crate) fn load<'u>(
    urls: &'u [String],
    filter: &Filter,
    max_skills: usize,
) -> Result<SkillSet, (&'u str, SourceFailure)> {
    // At the same time: each may be slow.
    let fetched: Vec<Result<RemoteIndex, RemoteError>> = thread::scope(|scope| {
        let fetching: Vec<_> = urls.iter().map(|url| scope.spawn(|| RemoteIndex::fetch(url))).collect();
        fetching
            .into_iter()
            .map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut skills = SkillSet::builder();
    for (url, index) in urls.iter().zip(fetched) {
        let index = index.map_err(|error| (url.as_str(), SourceFailure::from(error)))?;
        add(&mut skills, &index, filter, max_skills).map_err(|error| (url.as_str(), error.into()))?;
    }
    Ok(skills.build())
}

fn add(
    skills: &mut SkillSetBuilder,
    index: &RemoteIndex,
    filter: &Filter,
    max_skills: usize,
) -> Result<(), SourceError> {
    let mut offset = 0;
    while skills.len() < max_skills {
        let page = index.list(offset, PAGE_SKILLS)?;
        if page.is_empty() {
            break;
        }
        offset += page.len();
        for skill in page {
            if filter.takes(&skill.name) && skills.len() < max_skills {
                skills.add_shared(skill, Vec::new());
            }
        }
    }
    for skipped in index.skills().skipped() {
        skills.skip(skipped.clone());
    }
    Ok(())
}
