//! [`Filter`]: selects skills by name.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::{name::SkillName, text::shown};

/// Selects names with globs, ignoring case.
///
/// A name is selected if it matches at least one of the globs to include and none of the globs to exclude. If there are no globs
/// to include, all names are included.
///
/// ```
/// use skills_core::{SkillName, discovery::Filter};
///
/// let filter = Filter::new(["pdf-*", "docx"], ["*-old"])?;
/// let takes = |name| filter.takes(&SkillName::new(name).unwrap());
/// assert!(takes("PDF-forms") && takes("docx"));
/// assert!(!takes("pdf-old") && !takes("xlsx"));
/// # Ok::<(), skills_core::discovery::FilterError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Filter {
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
}

/// The error for an invalid glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid glob `{}`: {reason}", shown(glob))]
#[non_exhaustive]
pub struct FilterError {
    /// The glob.
    pub glob: String,
    /// The reason why it is invalid.
    pub reason: String,
}

impl Filter {
    /// Creates a filter. In a glob, `*` matches any characters, `?` one character, `[ab]` one of the characters, and `{a,b}`
    /// either alternative.
    ///
    /// # Errors
    /// Returns [`FilterError`] for the first invalid glob.
    pub fn new<I, E>(include: I, exclude: E) -> Result<Self, FilterError>
    where
        I: IntoIterator<Item: AsRef<str>>,
        E: IntoIterator<Item: AsRef<str>>,
    {
        Ok(Self { include: compile(include)?, exclude: compile(exclude)? })
    }

    /// Returns true if the filter selects this name.
    pub fn takes(&self, name: &SkillName) -> bool {
        self.include.as_ref().is_none_or(|globs| globs.is_match(name.as_str()))
            && !self.exclude.as_ref().is_some_and(|globs| globs.is_match(name.as_str()))
    }
}

/// Compiles globs. Returns `None` if there are none.
fn compile<G>(globs: G) -> Result<Option<GlobSet>, FilterError>
where
    G: IntoIterator<Item: AsRef<str>>,
{
    let error = |glob: &str, error: &globset::Error| FilterError {
        glob: glob.to_owned(),
        reason: error.kind().to_string(),
    };
    let mut set = GlobSetBuilder::new();
    let mut any = None;
    for glob in globs {
        let glob = glob.as_ref();
        // Note that names are not paths, so we always treat a backslash as an escape, even on Windows.
        let compiled = GlobBuilder::new(glob).case_insensitive(true).backslash_escape(true).build();
        set.add(compiled.map_err(|source| error(glob, &source))?);
        any = Some(glob.to_owned());
    }
    match any {
        None => Ok(None),
        Some(last) => set.build().map(Some).map_err(|source| error(&last, &source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(include: &[&str], exclude: &[&str], expected: &[&str]) {
        let filter = Filter::new(include, exclude).unwrap();
        let names = ["pdf", "PDF-Forms", "docx", "code review", "a/b"];
        let taken: Vec<_> =
            names.into_iter().filter(|name| filter.takes(&SkillName::new(name).unwrap())).collect();
        assert_eq!(taken, expected, "{include:?} {exclude:?}");
    }

    #[test]
    fn names_are_selected_by_globs() {
        check(&[], &[], &["pdf", "PDF-Forms", "docx", "code review", "a/b"]);
        check(&["*"], &[], &["pdf", "PDF-Forms", "docx", "code review", "a/b"]);
        check(&["pdf"], &[], &["pdf"]);
        check(&["pdf*", "DOC?"], &[], &["pdf", "PDF-Forms", "docx"]);
        check(&["{pdf,docx}"], &["docx"], &["pdf"]);
        check(&[], &["*"], &[]);
        check(&[], &["code *"], &["pdf", "PDF-Forms", "docx", "a/b"]);
        check(&["nothing"], &[], &[]);
    }

    #[test]
    fn an_invalid_glob_is_named_in_the_error() {
        let error = Filter::new(["a[", "b"], [""; 0]).unwrap_err();
        assert_eq!(error.glob, "a[");
        assert_eq!(error.to_string(), "invalid glob `a[`: unclosed character class; missing ']'");
    }
}
