//! Values with `${NAME}`, which come from secrets or from the environment. They are resolved when a program starts, so they are
//! never part of a catalog, a log, a record or the arguments of a process.

use std::{
    collections::BTreeMap,
    env, fmt, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The maximum size of a secret or of a file with secrets, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// The places of secrets, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// A file with lines such as `NAME=VALUE`, which only its owner may read.
    pub file: Option<PathBuf>,
    /// Secrets by name.
    pub named: BTreeMap<String, Secret>,
}

/// The place of one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// The first line that a program prints: the program and its arguments. It is run without a shell.
    Command(Vec<String>),
    /// The content of a file that only its owner may read.
    File(PathBuf),
}

/// The reason why a value is not available. It never contains a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// There is no secret and no environment variable with this name.
    #[error("`{0}` is neither a secret nor an environment variable")]
    Unknown(String),
    /// A file with secrets cannot be read.
    #[error("cannot read secrets from `{}`: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The program that prints a secret failed.
    #[error("command for secret `{name}` failed: {reason}")]
    Command {
        /// The name of the secret.
        name: String,
        /// The reason.
        reason: String,
    },
}

/// Names and resolved values, which are not shown in debug output.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Resolved(pub(super) Vec<(String, String)>);

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Secrets {
    /// Resolves values in which `${NAME}` stands for a secret or an environment variable. `$$` stands for `$`. Blocks while files are
    /// read and programs run.
    pub(super) fn resolve(&self, values: &[(String, String)]) -> Result<Resolved, ValueError> {
        let mut file = None;
        let resolved = values.iter().map(|(name, value)| {
            Ok((name.clone(), expand(value, &mut |variable| self.value(variable, &mut file))?))
        });
        resolved.collect::<Result<_, _>>().map(Resolved)
    }

    /// Returns the value of one secret or variable. `lines` keeps the content of the file.
    fn value(&self, name: &str, lines: &mut Option<Vec<(String, String)>>) -> Result<String, ValueError> {
        match self.named.get(name) {
            Some(Secret::Command(words)) => return run(name, words),
            Some(Secret::File(path)) => return read_private(path).map(|text| text.trim_end().to_owned()),
            None => {}
        }
        if let Some(path) = &self.file {
            if lines.is_none() {
                *lines = Some(parse(&read_private(path)?));
            }
            if let Some((_, value)) = lines.iter().flatten().find(|(other, _)| other == name) {
                return Ok(value.clone());
            }
        }
        env::var(name).map_err(|_| ValueError::Unknown(name.to_owned()))
    }
}

/// Replaces each `${NAME}` with its value.
fn expand(
    text: &str,
    value: &mut impl FnMut(&str) -> Result<String, ValueError>,
) -> Result<String, ValueError> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            expanded.push_str(&value(name)?);
            rest = after;
        } else {
            expanded.push('$');
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Reads lines such as `NAME=VALUE`. Empty lines and lines that start with `#` are skipped.
fn parse(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.strip_prefix("export ").unwrap_or(line).split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), unquoted(value.trim()).to_owned())).collect()
}

fn unquoted(value: &str) -> &str {
    let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// Reads a file that only its owner may read.
fn read_private(path: &Path) -> Result<String, ValueError> {
    let failed = |reason: String| ValueError::File { path: path.to_owned(), reason };
    let read = || -> io::Result<(fs::Metadata, String)> {
        use io::Read;
        let file = fs::File::open(path)?;
        let facts = file.metadata()?;
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text)?;
        Ok((facts, text))
    };
    if !fs::metadata(path).map_err(|error| failed(error.to_string()))?.is_file() {
        return Err(failed("it is not a file".to_owned()));
    }
    let (facts, text) = read().map_err(|error| failed(error.to_string()))?;
    if is_open_to_others(&facts) {
        return Err(failed("other users have access to it; run `chmod 600` on it".to_owned()));
    }
    Ok(text)
}

#[cfg(unix)]
fn is_open_to_others(facts: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    facts.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &fs::Metadata) -> bool {
    // On Windows, the files of a user are private by default.
    false
}

/// Runs the program that prints a secret.
fn run(name: &str, words: &[String]) -> Result<String, ValueError> {
    let failed = |reason: String| ValueError::Command { name: name.to_owned(), reason };
    let Some((program, args)) = words.split_first() else { return Err(failed("it is empty".to_owned())) };
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| failed("output is not UTF-8".to_owned()))?;
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(failed("no output".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_expanded() {
        for (text, expanded) in [
            ("plain", Some("plain")),
            ("Bearer ${A}", Some("Bearer 1")),
            ("${A}${B}", Some("12")),
            ("$A $", Some("$A $")),
            ("$${A}", Some("${A}")),
            ("${A", Some("${A")),
            ("${C}", None),
        ] {
            let value = |name: &str| match name {
                "A" => Ok("1".to_owned()),
                "B" => Ok("2".to_owned()),
                other => Err(ValueError::Unknown(other.to_owned())),
            };
            assert_eq!(expand(text, &mut { value }).ok().as_deref(), expanded, "{text}");
        }
    }

    #[test]
    fn files_have_a_line_for_each_secret() {
        let text = "# tokens\nA=1\n\nexport B = \"two words\"\nC='3=3'\nno value\n";
        let pairs = parse(text);
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("A", "1"), ("B", "two words"), ("C", "3=3")]);
    }

    #[cfg(unix)]
    #[test]
    fn files_of_others_and_failing_commands_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets");
        fs::write(&path, "TOKEN=s3cret\n").unwrap();
        let words = |words: &[&str]| Secret::Command(words.iter().map(|&word| word.to_owned()).collect());
        let mut secrets = Secrets { file: Some(path.clone()), ..Secrets::default() };
        secrets.named.insert("PRINTED".to_owned(), words(&["printf", "first\\nsecond"]));
        secrets.named.insert("FAILS".to_owned(), words(&["false"]));
        let resolve = |value: &str| secrets.resolve(&[("X".to_owned(), value.to_owned())]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(resolve("${TOKEN}").unwrap_err().to_string().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let resolved = resolve("${TOKEN} ${PRINTED}").unwrap();
        assert_eq!(resolved.0, [("X".to_owned(), "s3cret first".to_owned())]);
        assert!(!format!("{resolved:?}").contains("s3cret"));
        assert!(resolve("${FAILS}").is_err() && resolve("${NOT_SET_ANYWHERE}").is_err());
    }
}
