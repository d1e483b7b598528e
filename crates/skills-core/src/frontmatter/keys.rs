//! [`Field`]: the known keys of a frontmatter, and the types of their values.

use std::borrow::Cow;

use serde_json::Value;

use super::text::readable;
use crate::{paths, skill::Properties};

/// The maximum number of tools, and of tags. It bounds the memory of skills, and the time in which a call is compared with all tools.
pub(super) const MAX_WORDS: usize = 128;

/// A known field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Description,
    License,
    Compatibility,
    Metadata,
    AllowedTools,
    // The following fields are not in the specification, but clients support them.
    Version,
    ArgumentHint,
    Tags,
    Priority,
    UserInvocable,
    DisableModelInvocation,
    HideFromDiscovery,
    Paths,
}

impl Field {
    pub(super) const COUNT: usize = Self::Paths as usize + 1;

    /// Returns the field with exactly this name.
    pub(super) fn named(key: &str) -> Option<Self> {
        Some(match key {
            "name" => Self::Name,
            "description" => Self::Description,
            "license" => Self::License,
            "compatibility" => Self::Compatibility,
            "metadata" => Self::Metadata,
            "allowed-tools" => Self::AllowedTools,
            "version" => Self::Version,
            "argument-hint" => Self::ArgumentHint,
            "tags" => Self::Tags,
            "priority" => Self::Priority,
            "user-invocable" => Self::UserInvocable,
            "disable-model-invocation" => Self::DisableModelInvocation,
            "hide-from-discovery" => Self::HideFromDiscovery,
            "paths" => Self::Paths,
            _ => return None,
        })
    }

    /// Returns the name of the field that is most similar to an unknown `key`, if it is similar enough.
    pub(super) fn misspelled(key: &str) -> Option<&'static str> {
        /// The minimum similarity, from 0 to 1.
        const ALIKE: f64 = 0.75;
        const NAMES: [&str; 6] =
            ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
        let key = kebab(key);
        let alike = NAMES.map(|name| (strsim::normalized_damerau_levenshtein(&key, name), name));
        let best = alike.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        (best.0 >= ALIKE).then_some(best.1)
    }

    /// Returns true if the value of the field is a text.
    pub(super) fn is_text(self) -> bool {
        matches!(
            self,
            Self::Name
                | Self::Description
                | Self::License
                | Self::Compatibility
                | Self::Version
                | Self::ArgumentHint
        )
    }

    /// Returns true if the field is part of the specification.
    pub(super) fn in_specification(self) -> bool {
        (self as usize) <= Self::AllowedTools as usize
    }
}

/// Converts a key such as `userInvocable`, `user_invocable` or `User-Invocable` to `user-invocable`.
pub(super) fn kebab(key: &str) -> Cow<'_, str> {
    if !key.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'_') {
        return Cow::Borrowed(key);
    }
    let mut kebab = String::with_capacity(key.len() + 3);
    let mut before = '_';
    for c in key.chars() {
        let word_begins = c.is_ascii_uppercase() && before.is_ascii_lowercase();
        before = c;
        if c == '_' {
            kebab.push('-');
            continue;
        }
        if word_begins {
            kebab.push('-');
        }
        kebab.push(c.to_ascii_lowercase());
    }
    Cow::Owned(kebab)
}

/// Sets the property of `field`.
///
/// # Errors
/// Returns a description of the expected type if the value has another type.
pub(super) fn apply(properties: &mut Properties, field: Field, value: &Value) -> Result<(), &'static str> {
    const BOOLEAN: &str = "`true` or `false`";
    match field {
        Field::Tags => properties.tags = tags(value).ok_or("a list of words")?,
        Field::Priority => {
            properties.priority =
                scalar(value).and_then(|text| text.trim().parse().ok()).ok_or("a whole number")?;
        }
        Field::UserInvocable => properties.user_invocable = boolean(value).ok_or(BOOLEAN)?,
        Field::DisableModelInvocation => {
            properties.disable_model_invocation = boolean(value).ok_or(BOOLEAN)?;
        }
        Field::HideFromDiscovery => properties.hide_from_discovery = boolean(value).ok_or(BOOLEAN)?,
        Field::Paths => properties.paths = globs(value).ok_or("globs such as `src/**/*.ts`")?,
        _ => {}
    }
    Ok(())
}

/// Converts a scalar to text.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(readable(text)),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    let text = scalar(value)?.to_ascii_lowercase();
    match text.as_str() {
        "true" | "yes" | "on" | "y" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "0" => Some(false),
        _ => None,
    }
}

fn tags(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => {
            Some(items.iter().filter_map(scalar).filter(|tag| !tag.is_empty()).take(MAX_WORDS).collect())
        }
        Value::Object(_) | Value::Null => None,
        _ => {
            let text = scalar(value)?;
            let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            Some(tags.map(str::to_owned).take(MAX_WORDS).collect())
        }
    }
}

/// Reads a list of globs, or a text with globs separated by commas. Returns `None` if one of them is invalid.
fn globs(value: &Value) -> Option<Vec<String>> {
    let globs = match value {
        Value::Array(items) => items.iter().map(scalar).collect::<Option<Vec<_>>>()?,
        Value::Object(_) | Value::Null => return None,
        _ => paths::split(&scalar(value)?),
    };
    globs.iter().all(|glob| paths::is_valid(glob)).then(|| globs.into_iter().take(paths::MAX_GLOBS).collect())
}

/// Splits `text` into patterns at spaces and commas outside of parentheses, at most [`MAX_WORDS`]. Also returns true if there were no
/// commas.
pub(super) fn split_tools(text: &str) -> (Vec<String>, bool) {
    let mut tools = Vec::new();
    let mut tool = String::new();
    let mut depth = 0_usize;
    let mut commas = false;
    // True after a comma and white space.
    let mut is_separated = true;
    // If the parentheses are unbalanced, treat them as normal characters.
    let balanced = text.matches('(').count() == text.matches(')').count();
    for c in text.chars().filter(|&c| c == '\n' || c == '\t' || !c.is_control()) {
        if c == '(' && balanced && tool.is_empty() && !is_separated {
            // White space before the parenthesis would turn a pattern for some commands into one for all.
            tool = tools.pop().unwrap_or_default();
        }
        match c {
            '(' if balanced => depth += 1,
            ')' if balanced => depth = depth.saturating_sub(1),
            ',' if depth == 0 => commas = true,
            _ => {}
        }
        is_separated = depth == 0 && (c == ',' || is_separated && c.is_whitespace());
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            if !tool.is_empty() {
                tools.push(std::mem::take(&mut tool));
                // A parenthesis after white space would continue the last pattern, so the next one is still read.
                if tools.len() > MAX_WORDS {
                    break;
                }
            }
        } else {
            tool.push(c);
        }
    }
    if !tool.is_empty() {
        tools.push(tool);
    }
    tools.truncate(MAX_WORDS);
    (tools, !commas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_split_outside_of_parentheses() {
        let check = |text: &str, tools: &[&str], specified: bool| {
            assert_eq!(
                split_tools(text),
                (tools.iter().map(ToString::to_string).collect(), specified),
                "{text}"
            );
        };
        check("", &[], true);
        check("Read", &["Read"], true);
        check("Bash(git:*) Read\n Write", &["Bash(git:*)", "Read", "Write"], true);
        check("Bash(gh issue:*) Bash(gh pr view:*)", &["Bash(gh issue:*)", "Bash(gh pr view:*)"], true);
        check("Read, Bash(a b, c), Write", &["Read", "Bash(a b, c)", "Write"], false);
        check("Bash(git Read", &["Bash(git", "Read"], true);
        check("a) b (c", &["a)", "b(c"], true);
        check("Bash (git log:*) Read", &["Bash(git log:*)", "Read"], true);
        check("Bash\t(git log:*), Bash  (npm test)", &["Bash(git log:*)", "Bash(npm test)"], false);
        check("Read, (x)", &["Read", "(x)"], false);
        assert_eq!(split_tools(&"a ".repeat(15_000)).0.len(), MAX_WORDS);
        let last = format!("{}Bash (git log:*) Read", "a ".repeat(MAX_WORDS - 1));
        assert_eq!(split_tools(&last).0.last().unwrap(), "Bash(git log:*)");
    }

    #[test]
    fn misspelled_fields_are_recognised() {
        for (key, meant) in [
            ("descripton", Some("description")),
            ("Desciption", Some("description")),
            ("nmae", Some("name")),
            ("names", Some("name")),
            ("licence", Some("license")),
            ("allowed_tool", Some("allowed-tools")),
            ("author", None),
            ("", None),
        ] {
            assert_eq!(Field::misspelled(key), meant, "{key}");
        }
    }

    #[test]
    fn other_spellings_of_fields_are_recognised() {
        for key in ["userInvocable", "user_invocable", "User-Invocable", "UserInvocable", "USER_INVOCABLE"] {
            assert_eq!(Field::named(&kebab(key)), Some(Field::UserInvocable), "{key}");
        }
        assert_eq!(kebab("allowed-tools"), "allowed-tools");
        assert_eq!(Field::named("userinvocable"), None);
    }
}
