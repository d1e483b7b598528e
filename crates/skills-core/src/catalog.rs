//! [`Catalog`]: the list of skills that a model sees before it activates one, within a budget; and the [`guide`]
//! that tells it what to do with the list.
//!
//! How one entry looks is `catalog/format`; where the text is put into a conversation is the caller's business.

mod format;

use std::path::Path;

use crate::{
    set::SkillSet,
    skill::{Skill, Source},
};

pub use format::Format;
pub(crate) use format::{escape_attribute, escape_xml};

/// Default budget of a catalog, in characters: about 20 full entries, or 2,000 tokens.
pub const DEFAULT_BUDGET_CHARS: usize = 8_000;

/// A description is not shortened below this many characters; when that is still too much, skills are left out.
pub const MIN_DESCRIPTION_CHARS: usize = 60;

/// What a catalog shows, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogOptions {
    /// The notation. Default XML.
    pub format: Format,
    /// How much of each skill. Default [`Detail::Full`].
    pub detail: Detail,
    /// Which path of each stored skill. Default none.
    pub location: Location,
    /// How long the text may get, in characters. Default [`DEFAULT_BUDGET_CHARS`].
    pub budget_chars: usize,
    /// Whether the model has `search_skills`, so that the text may point to it when skills are left out.
    pub search: bool,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self {
            format: Format::Xml,
            detail: Detail::Full,
            location: Location::None,
            budget_chars: DEFAULT_BUDGET_CHARS,
            search: false,
        }
    }
}

/// How much of each skill a catalog shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Detail {
    /// Name and description.
    #[default]
    Full,
    /// The name alone.
    #[serde(rename = "names")]
    #[cfg_attr(feature = "clap", value(name = "names"))]
    NamesOnly,
}

/// Which path of a stored skill's `SKILL.md` a catalog shows; virtual skills have none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Location {
    /// None.
    #[default]
    None,
    /// The absolute path on this machine.
    Absolute,
    /// `PREFIX/DIRECTORY/SKILL.md`, for agents that see the skills' directories under another root.
    Mount(String),
}

/// A rendered catalog.
///
/// ```
/// use skills_core::{Catalog, CatalogOptions, Skill, SkillSet};
///
/// let skill = Skill::builder("greet", "Greets people & pets.").body("Say hello.").build()?;
/// let set: SkillSet = [skill].into_iter().collect();
/// let catalog = Catalog::render(&set, &CatalogOptions::default()).unwrap();
/// assert_eq!(
///     catalog.text,
///     "<available_skills>\n  \
///        <skill>\n    \
///          <name>greet</name>\n    \
///          <description>Greets people &amp; pets.</description>\n  \
///        </skill>\n\
///      </available_skills>"
/// );
/// assert!(Catalog::render(&SkillSet::default(), &CatalogOptions::default()).is_none());
/// # Ok::<(), skills_core::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Catalog {
    /// The text, without a final line break.
    pub text: String,
    /// How many skills it shows.
    pub shown: usize,
    /// How many it leaves out, because they did not fit.
    pub omitted: usize,
}

impl Catalog {
    /// The catalog of the skills that a model may see ([`SkillSet::listed`]), in their order; `None` when there
    /// is none, because an empty list only tempts a model to invent names.
    ///
    /// When the text would be longer than the budget, descriptions are shortened first, all to the same length
    /// and on a word boundary; then skills are left out from the end, and a sentence says how many. At least one
    /// skill is always shown, however small the budget.
    pub fn render(skills: &SkillSet, options: &CatalogOptions) -> Option<Self> {
        let total = skills.listed().count();
        let mut items = Vec::new();
        let mut needed = 0;
        for skill in skills.listed() {
            let item = Item::new(skill, options);
            needed += options.format.entry(&item, MIN_DESCRIPTION_CHARS).chars().count() + 1;
            items.push(item);
            // What follows cannot fit either: ten thousand skills cost no more than a budget's worth.
            if needed > options.budget_chars {
                break;
            }
        }
        if items.is_empty() {
            return None;
        }
        let text = |shown: usize, cap: usize| {
            let omitted = (total > shown).then(|| omission(total - shown, options.search));
            options.format.render(&items[..shown], cap, omitted.as_deref())
        };
        let fits = |text: &str| text.chars().count() <= options.budget_chars;

        let longest = items.iter().map(|item| item.description_chars).max().unwrap_or(0);
        let mut shown = items.len();
        let mut best = text(shown, MIN_DESCRIPTION_CHARS.min(longest));
        while shown > 1 && !fits(&best) {
            shown -= 1;
            best = text(shown, MIN_DESCRIPTION_CHARS.min(longest));
        }
        let (mut low, mut high) = (MIN_DESCRIPTION_CHARS, longest);
        while low < high {
            let cap = low.midpoint(high + 1);
            let longer = text(shown, cap);
            if fits(&longer) {
                (best, low) = (longer, cap);
            } else {
                high = cap - 1;
            }
        }
        Some(Self { text: best, shown, omitted: total - shown })
    }

    /// About how many tokens the whole entry of `skill` needs, whatever the budget; none when the model does not see
    /// the skill in a catalog ([`Skill::is_listed`]).
    pub fn entry_tokens(skill: &Skill, options: &CatalogOptions) -> usize {
        if !skill.is_listed() {
            return 0;
        }
        estimate_tokens(&options.format.entry(&Item::new(skill, options), usize::MAX))
    }
}

fn omission(count: usize, search: bool) -> String {
    let (skills, are, them) = if count == 1 { ("skill", "is", "it") } else { ("skills", "are", "them") };
    if search {
        format!("{count} more {skills} {are} not listed here; `search_skills` finds {them}.")
    } else {
        format!("{count} more {skills} {are} not listed here.")
    }
}

/// One skill, reduced to clean lines of text.
struct Item {
    name: String,
    /// Empty when only names are shown.
    description: String,
    description_chars: usize,
    location: Option<String>,
}

impl Item {
    fn new(skill: &Skill, options: &CatalogOptions) -> Self {
        let description = match options.detail {
            Detail::Full => one_line(&skill.description),
            Detail::NamesOnly => String::new(),
        };
        Self {
            name: skill.name.to_string(),
            description_chars: description.chars().count(),
            description,
            location: location(skill, &options.location),
        }
    }
}

fn location(skill: &Skill, location: &Location) -> Option<String> {
    let Source::Stored(stored) = &skill.source else { return None };
    let path = match location {
        Location::None => return None,
        Location::Absolute => stored.file().to_string_lossy().into_owned(),
        Location::Mount(prefix) => format!("{}/{}", mounted_dir(&stored.dir, prefix), stored.file_name),
    };
    // No clean-up of spaces here: a path must stay what it is. Control characters go all the same.
    Some(crate::name::sanitize(&path))
}

/// One skill in a sentence, as far as `options` show it: its name, its description cut to `cap` characters, and where its
/// `SKILL.md` is.
///
/// ```
/// use skills_core::{CatalogOptions, Skill, catalog};
///
/// let skill = Skill::builder("greet", "Greets people.\nAnd pets.").body("Say hello.").build()?;
/// assert_eq!(catalog::line(&skill, &CatalogOptions::default(), 100), "`greet` (Greets people. And pets.)");
/// # Ok::<(), skills_core::BuildError>(())
/// ```
pub fn line(skill: &Skill, options: &CatalogOptions, cap: usize) -> String {
    let Item { name, description, location, .. } = Item::new(skill, options);
    let description = shorten(&description, cap);
    let about: Vec<_> = [Some(&*description), location.as_deref()]
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect();
    if about.is_empty() { format!("`{name}`") } else { format!("`{name}` ({})", about.join("; ")) }
}

/// One skill as in an XML catalog, its description cut to `cap` characters.
#[cfg(feature = "toolbox")]
pub(crate) fn xml_entry(skill: &Skill, cap: usize) -> String {
    Format::Xml.entry(&Item::new(skill, &CatalogOptions::default()), cap)
}

/// The directory `dir` as an agent sees it that has the skills' directories under `prefix`.
pub(crate) fn mounted_dir(dir: &Path, prefix: &str) -> String {
    let name = dir.file_name().map_or(dir, Path::new);
    format!("{}/{}", prefix.trim_end_matches('/'), name.display())
}

/// `text` as one line without control and bidirectional characters and without repeated spaces.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in crate::name::sanitize(text).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// `text` cut to at most `cap` characters, `…` included, at the end of a word where there is one.
pub(crate) fn shorten(text: &str, cap: usize) -> std::borrow::Cow<'_, str> {
    if text.chars().count() <= cap {
        return text.into();
    }
    let end = text.char_indices().nth(cap.saturating_sub(1)).map_or(text.len(), |(index, _)| index);
    let (mut head, rest) = text.split_at(end);
    if !rest.starts_with(char::is_whitespace)
        && let Some(space) = head.rfind(char::is_whitespace)
        // Text without spaces (CJK) is cut where it is.
        && space >= head.len() / 2
    {
        head = &head[..space];
    }
    format!("{}…", head.trim_end_matches(|c: char| c.is_whitespace() || ",;:.-–—(".contains(c))).into()
}

/// About how many tokens a model needs for `text`.
///
/// A heuristic, the same for every model: four ASCII characters a token, two characters of other alphabets
/// (below U+0800), one of everything else (CJK, symbols). Within a quarter of real tokenizers on prose.
///
/// ```
/// assert_eq!(skills_core::estimate_tokens("Review code for bugs"), 5);
/// assert_eq!(skills_core::estimate_tokens("代码审查"), 4);
/// ```
pub fn estimate_tokens(text: &str) -> usize {
    let quarters: usize = text
        .chars()
        .map(|c| match c {
            '\0'..='\x7f' => 1,
            '\u{80}'..='\u{7ff}' => 2,
            _ => 4,
        })
        .sum();
    quarters.div_ceil(4)
}

/// How a model gets at the skills of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Guide {
    /// It has the tools of [`Toolbox`](crate::Toolbox).
    #[default]
    Tools,
    /// It has none of them: it reads the `SKILL.md` at the location that the catalog shows, with its own tools.
    Files,
}

/// A few sentences, to be put beside the catalog, on how to use what it lists. What comes after activation, the activated
/// skill says itself.
pub fn guide(guide: Guide) -> &'static str {
    match guide {
        Guide::Tools => {
            "Skills are proven instructions for particular kinds of tasks. \
             When a task matches the description of a skill, call `activate_skill` with its name before you begin, \
             and follow the instructions that it returns."
        }
        Guide::Files => {
            "Skills are proven instructions for particular kinds of tasks. \
             When a task matches the description of a skill, read the `SKILL.md` at its location with your own file \
             tools before you begin, and follow the instructions in it. \
             Relative paths in a skill start at the directory of its `SKILL.md`; read further files only when the \
             instructions ask for them."
        }
    }
}

#[cfg(test)]
mod tests;
