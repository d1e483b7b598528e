//! [`Catalog`]: the list of skills that the model sees before it activates one, and the [`guide`] that explains the list.
//!
//! The list has a budget. The caller decides where to put the text, for example into the system prompt.

mod format;
mod style;

use std::path::Path;

use crate::{
    set::SkillSet,
    skill::{Skill, Source},
    text::{markdown_code, shorten},
};

pub use format::Format;
pub(crate) use format::{escape_attribute, escape_xml};
pub use style::Style;

/// The default budget of a catalog in characters. This is enough for about 20 full entries, or 2,000 tokens.
pub const DEFAULT_BUDGET_CHARS: usize = 8_000;

/// The minimum length to which descriptions are shortened, in characters. If the catalog still exceeds its budget, skills are
/// left out.
pub const MIN_DESCRIPTION_CHARS: usize = 60;

/// Options of a [`Catalog`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogOptions {
    /// The format. The default is XML.
    pub format: Format,
    /// The wording and order. The default is [`Style::List`].
    pub style: Style,
    /// The amount of detail for each skill. The default is [`Detail::Full`].
    pub detail: Detail,
    /// The path that is shown for each stored skill. The default is none.
    pub location: Location,
    /// The maximum length of the text in characters. The default is [`DEFAULT_BUDGET_CHARS`].
    pub budget_chars: usize,
    /// True if the model has the tool `search_skills`. The text mentions it if skills are left out. The default is `false`.
    pub search: bool,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self {
            format: Format::Xml,
            style: Style::List,
            detail: Detail::Full,
            location: Location::None,
            budget_chars: DEFAULT_BUDGET_CHARS,
            search: false,
        }
    }
}

/// The amount of detail that a catalog shows for each skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Detail {
    /// The name and the description.
    #[default]
    Full,
    /// Only the name.
    #[serde(rename = "names")]
    #[cfg_attr(feature = "clap", value(name = "names"))]
    NamesOnly,
}

/// The path of a stored skill's `SKILL.md` that a catalog shows. Other skills have no path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Location {
    /// No path.
    #[default]
    None,
    /// The absolute path on this machine.
    Absolute,
    /// `PREFIX/DIRECTORY/SKILL.md`, for agents that see the skills' directories under a different root.
    Mount(String),
}

/// The maximum number of skills that [`Style::Grouped`] doesn't group.
const MAX_UNGROUPED: usize = 60;

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
    /// The number of skills that the text lists.
    pub shown: usize,
    /// The number of skills that were left out because of the budget.
    pub omitted: usize,
}

impl Catalog {
    /// Renders the catalog of the skills that the model sees ([`SkillSet::listed`]), in the order of the set.
    ///
    /// Returns `None` if there are no such skills, because an empty list tempts models to invent names.
    ///
    /// If the text exceeds the budget, all descriptions are shortened to the same length, at word boundaries. If that isn't
    /// enough, skills are left out from the end, and the text says how many. At least one skill is always listed, even if it
    /// exceeds the budget.
    pub fn render(skills: &SkillSet, options: &CatalogOptions) -> Option<Self> {
        let total = skills.listed().count();
        let mut items = Vec::new();
        let mut needed = 0;
        for skill in skills.listed() {
            let item = Item::new(skill, options);
            needed += options.format.entry(&item, MIN_DESCRIPTION_CHARS).chars().count() + 1;
            items.push(item);
            // We can just stop here, since the remaining skills will not fit either. This keeps sets with 10,000 skills fast.
            if needed > options.budget_chars {
                break;
            }
        }
        if items.is_empty() {
            return None;
        }
        let is_grouped = options.style == Style::Grouped && total > MAX_UNGROUPED;
        let text = |shown: usize, cap: usize| {
            let omitted = (total > shown).then(|| omission(total - shown, options.search));
            options.format.render(&items[..shown], is_grouped, cap, omitted.as_deref())
        };
        let fits = |text: &str| text.chars().count() <= options.budget_chars;

        let longest = items.iter().map(|item| item.description_chars).max().unwrap_or(0);
        let mut shown = items.len();
        let mut best = text(shown, MIN_DESCRIPTION_CHARS.min(longest));
        while shown > 1 && !fits(&best) {
            shown -= 1;
            best = text(shown, MIN_DESCRIPTION_CHARS.min(longest));
        }
        let mut low = MIN_DESCRIPTION_CHARS;
        let mut high = longest;
        while low < high {
            let cap = low.midpoint(high + 1);
            let longer = text(shown, cap);
            if fits(&longer) {
                best = longer;
                low = cap;
            } else {
                high = cap - 1;
            }
        }
        Some(Self { text: best, shown, omitted: total - shown })
    }

    /// Estimates the number of tokens of the skill's full entry, without a budget. Returns 0 if the catalog doesn't list the
    /// skill ([`Skill::is_listed`]).
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

/// The texts of a skill, without line breaks and control characters.
struct Item {
    name: String,
    /// The description, which is empty if only names are shown.
    description: String,
    description_chars: usize,
    location: Option<String>,
    /// The name of the skill's group. Empty if the catalog has no groups.
    group: String,
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
            group: if options.style == Style::Grouped { style::group(skill) } else { String::new() },
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
    // Remove control characters. We need to keep spaces, because they are part of the path.
    Some(crate::name::sanitize(&path))
}

/// Returns a line about a skill: its name, its description cut to `cap` characters, and the path of its `SKILL.md`.
///
/// The description and the path are left out if `options` don't show them. All parts are quoted, so that a description can't
/// pretend to end and to be followed by other skills.
///
/// ```
/// use skills_core::{CatalogOptions, Skill, catalog};
///
/// let skill = Skill::builder("greet", "Greets people.\nAnd pets.").body("Say hello.").build()?;
/// assert_eq!(catalog::line(&skill, &CatalogOptions::default(), 100), "`greet` (\"Greets people. And pets.\")");
/// # Ok::<(), skills_core::BuildError>(())
/// ```
pub fn line(skill: &Skill, options: &CatalogOptions, cap: usize) -> String {
    let Item { name, description, location, .. } = Item::new(skill, options);
    let name = markdown_code(&name);
    let description = shorten(&description, cap).replace('"', "'");
    let description = Some(format!("\"{description}\"")).filter(|_| !description.is_empty());
    let location = location.map(|path| markdown_code(&path));
    let about: Vec<_> = description.into_iter().chain(location).collect();
    if about.is_empty() { name } else { format!("{name} ({})", about.join("; ")) }
}

/// Returns a skill's entry in an XML catalog, with its description cut to `cap` characters.
#[cfg(feature = "toolbox")]
pub(crate) fn xml_entry(skill: &Skill, cap: usize) -> String {
    Format::Xml.entry(&Item::new(skill, &CatalogOptions::default()), cap)
}

/// Returns the path of `dir` for an agent that sees the skills' directories under `prefix`.
pub(crate) fn mounted_dir(dir: &Path, prefix: &str) -> String {
    let name = dir.file_name().map_or(dir, Path::new);
    format!("{}/{}", prefix.trim_end_matches('/'), name.display())
}

/// Joins the lines of `text`, and removes control and bidirectional characters and repeated spaces.
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

/// Estimates the number of tokens of `text`.
///
/// The heuristic is the same for all models. A token has four ASCII characters, two characters of other alphabets (below
/// U+0800), or one other character such as a Chinese character or a symbol. On prose, the result is within 25% of real
/// tokenizers.
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

/// The way in which a model accesses the skills in a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Guide {
    /// The model has the tools of [`Toolbox`](crate::Toolbox).
    #[default]
    Tools,
    /// The model has no such tools. It reads the `SKILL.md` at the path in the catalog with its own file tools.
    Files,
    /// The model has no such tools and can't open the files, because the agent runs elsewhere. Instructions are only added to prompts.
    Prompts,
}

/// Returns instructions for the model on how to use a catalog of the default style. Put them before or after the catalog.
///
/// They end with the activation of a skill. The activated skill explains everything else.
pub fn guide(guide: Guide) -> &'static str {
    styled_guide(guide, Style::List)
}

/// Returns instructions like [`guide`] for a catalog of any style.
pub fn styled_guide(guide: Guide, style: Style) -> &'static str {
    style.guide(guide)
}

#[cfg(test)]
mod tests;
