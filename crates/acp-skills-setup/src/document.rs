//! [`Document`]: the text of settings, which is JSON with comments and trailing commas. Returns the agents in it, and errors
//! with line and column.

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Object, ObjectProp, Value},
    common::{Range, Ranged},
    parse_to_ast,
};

use super::{NAME, editors::Format};

/// Returns the syntax that editors accept: JSON with comments and trailing commas.
pub(super) fn syntax() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// An error in settings. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct SettingsError {
    /// The line of the error.
    pub line: usize,
    /// The column of the error, in characters.
    pub column: usize,
    /// The error without its position.
    pub message: String,
}

/// The text of settings. It excludes the byte order mark at the start of some files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// True if the file begins with a byte order mark.
    has_mark: bool,
    text: String,
}

/// The byte order mark.
pub(super) const MARK: &str = "\u{feff}";

/// An agent in settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name of the agent.
    pub name: String,
    /// The way in which the editor starts the agent.
    pub start: Start,
    /// The environment variables of the agent. Variables that are not strings are left out.
    pub env: Vec<(String, String)>,
    /// The line of the agent, counted from 1.
    pub line: usize,
}

/// The way in which an editor starts an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A command: the program and its arguments.
    Command(Vec<String>),
    /// The editor installs and starts the agent itself, so there is no command to change.
    Editor,
    /// The command could not be read, with the error.
    Unclear(SettingsError),
}

/// The words of a command that belong to the proxy: the words that start it, then flags, then `--` and the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ours {
    /// The number of words that start the proxy.
    pub launcher: usize,
    /// The index of the first word after `--`, where the agent's command begins. `None` if there is no `--`.
    pub agent: Option<usize>,
}

impl Entry {
    /// Returns the command of the agent, if the settings have one.
    pub fn command(&self) -> Option<&[String]> {
        match &self.start {
            Start::Command(words) => Some(words),
            _ => None,
        }
    }

    /// Returns the words of the command that belong to the proxy. `None` if the agent does not run through the proxy.
    pub fn ours(&self) -> Option<Ours> {
        ours(self.command()?)
    }
}

/// Returns the words of a command that belong to the proxy. `None` if the command does not start the proxy.
pub fn ours(words: &[String]) -> Option<Ours> {
    let launcher = match program_name(words.first()?) {
        NAME => 1,
        "npx" | "uvx" | "bunx" | "pnpx" | "pipx" | "uv" | "npm" | "pnpm" => {
            let before_agent = words.iter().take_while(|word| *word != "--");
            let package = before_agent.skip(1).position(|word| word.split('@').next() == Some(NAME))?;
            package + 2
        }
        _ => return None,
    };
    let agent = words[launcher..].iter().position(|word| word == "--").map(|at| launcher + at + 1);
    Some(Ours { launcher, agent })
}

/// Returns the file name of a program without its extension. `program` may be a path of any system.
pub fn program_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let ending =
        [".exe", ".cmd", ".bat", ".EXE", ".CMD", ".BAT"].iter().find_map(|end| name.strip_suffix(end));
    ending.unwrap_or(name)
}

impl Document {
    /// Decodes the content of a file. An empty slice stands for a file that does not exist.
    ///
    /// # Errors
    /// Returns an error if the content is not UTF-8.
    pub fn new(bytes: &[u8]) -> Result<Self, SettingsError> {
        let text = str::from_utf8(bytes).map_err(|error| {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            error_at(before.trim_start_matches(MARK), usize::MAX, "text is not valid UTF-8")
        })?;
        let without = text.strip_prefix(MARK);
        Ok(Self { has_mark: without.is_some(), text: without.unwrap_or(text).to_owned() })
    }

    /// Returns the text without the byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns a document with another text, and the same byte order mark.
    #[must_use]
    pub fn with(&self, text: String) -> Self {
        Self { text, ..*self }
    }

    /// Returns the content for the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mark = if self.has_mark { MARK } else { "" };
        [mark.as_bytes(), self.text.as_bytes()].concat()
    }

    /// Returns the agents in the order of the text.
    ///
    /// # Errors
    /// Returns an error if the text cannot be parsed, or if a key that leads to the agents is not an object or occurs twice.
    pub fn agents(&self, format: &Format) -> Result<Vec<Entry>, SettingsError> {
        let parsed = parse_to_ast(&self.text, &CollectOptions::default(), &syntax()).map_err(|error| {
            SettingsError {
                line: error.line_display(),
                column: error.column_display(),
                message: format!("invalid JSON: {}", lower(&error.kind().to_string())),
            }
        })?;
        let root = match parsed.value {
            None => return Ok(Vec::new()),
            Some(Value::Object(root)) => root,
            Some(other) => return Err(self.wrong(other.range(), "expected an object `{ … }`")),
        };
        let Some(list) = self.only(&root, format.key)? else { return Ok(Vec::new()) };
        let Value::Object(list) = &list.value else {
            let message = format!("`{}` must be an object `{{ … }}`", format.key);
            return Err(self.wrong(list.value.range(), &message));
        };
        list.properties
            .iter()
            .map(|agent| {
                self.only(list, agent.name.as_str())?;
                Ok(self.entry(agent, format))
            })
            .collect()
    }

    fn only<'a, 'b>(
        &self,
        object: &'b Object<'a>,
        name: &str,
    ) -> Result<Option<&'b ObjectProp<'a>>, SettingsError> {
        only(&self.text, object, name)
    }

    fn entry(&self, agent: &ObjectProp<'_>, format: &Format) -> Entry {
        let name = agent.name.as_str().to_owned();
        let line = error_at(&self.text, agent.range.start, "").line;
        let Value::Object(object) = &agent.value else {
            let error = self.wrong(agent.value.range(), &format!("agent `{name}` must be an object"));
            return Entry { name, start: Start::Unclear(error), env: Vec::new(), line };
        };
        let env = object.get_object("env").map(|env| env.properties.as_slice()).unwrap_or_default();
        let env = env.iter().filter_map(|variable| {
            let value = variable.value.as_string_lit()?;
            Some((variable.name.as_str().to_owned(), value.value.to_string()))
        });
        let start = self.start(&name, object, format).unwrap_or_else(Start::Unclear);
        Entry { name, env: env.collect(), start, line }
    }

    fn start(&self, name: &str, object: &Object<'_>, format: &Format) -> Result<Start, SettingsError> {
        if let Some(argv) = self.only(object, "argv")?.filter(|_| format.has_argv) {
            let words = self.words(name, "argv", &argv.value)?;
            return if words.is_empty() {
                Err(self.wrong(argv.range, &format!("`argv` of agent `{name}` is empty")))
            } else {
                Ok(Start::Command(words))
            };
        }
        let Some(command) = self.only(object, "command")? else { return Ok(Start::Editor) };
        let wrong = |message: String| Err(self.wrong(command.value.range(), &message));
        let Value::StringLit(program) = &command.value else {
            return wrong(format!("`command` of agent `{name}` must be a string"));
        };
        let args = self.only(object, "args")?;
        // In this case, the editor splits `command` into words, but we don't know which rules it uses.
        if format.has_argv && program.value.contains(char::is_whitespace) {
            return wrong(format!(
                "`command` of agent `{name}` is a command line; use a list in `argv` instead"
            ));
        }
        let mut words = vec![program.value.to_string()];
        if let Some(args) = args {
            words.extend(self.words(name, "args", &args.value)?);
        }
        Ok(Start::Command(words))
    }

    fn words(&self, name: &str, key: &str, value: &Value<'_>) -> Result<Vec<String>, SettingsError> {
        let wrong = |value: &Value<'_>| {
            self.wrong(value.range(), &format!("`{key}` of agent `{name}` must be a list of strings"))
        };
        let Value::Array(list) = value else { return Err(wrong(value)) };
        list.elements
            .iter()
            .map(|word| match word {
                Value::StringLit(word) => Ok(word.value.to_string()),
                other => Err(wrong(other)),
            })
            .collect()
    }

    fn wrong(&self, range: Range, message: &str) -> SettingsError {
        error_at(&self.text, range.start, message)
    }
}

/// Returns the property of an object in `text` with this name. A duplicate is an error, because programs differ in which of the two they
/// use.
pub(super) fn only<'a, 'b>(
    text: &str,
    object: &'b Object<'a>,
    name: &str,
) -> Result<Option<&'b ObjectProp<'a>>, SettingsError> {
    let mut found = object.properties.iter().filter(|property| property.name.as_str() == name);
    let first = found.next();
    match (first, found.next()) {
        (Some(first), Some(second)) => {
            let line = error_at(text, first.range.start, "").line;
            let message = format!("duplicate key `{name}`; first used in line {line}");
            Err(error_at(text, second.range.start, &message))
        }
        _ => Ok(first),
    }
}

fn error_at(text: &str, offset: usize, message: &str) -> SettingsError {
    let before = &text[..offset.min(text.len())];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    SettingsError {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        message: message.to_owned(),
    }
}

/// Lowercases the first letter of a parser's message, because we put it after a colon.
fn lower(message: &str) -> String {
    let mut rest = message.chars();
    rest.next().map_or_else(String::new, |first| first.to_lowercase().chain(rest).collect())
}
