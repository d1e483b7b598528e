//! Values with `${NAME}`, which come from secrets or from the environment. They are resolved when a program starts, so they are
//! never part of a catalog, a log, a record or the arguments of a process.

use std::{
    collections::BTreeMap,
    env, fmt, fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use skills_core::exec::{ProcessGroup, TOKEN_VARIABLE};
use tokio::{
    io::AsyncReadExt,
    process::Command,
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use crate::processes::Processes;

/// The maximum size of a secret or of a file with secrets, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// The places of secrets, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// A file with lines such as `NAME=VALUE`, which only its owner may read.
    pub file: Option<PathBuf>,
    /// Secrets by name.
    pub named: BTreeMap<String, Secret>,
    /// The directory in which the programs run. `None` is the home directory. It is never the working directory of this process, which can
    /// be a project, because many programs look for code there.
    pub directory: Option<PathBuf>,
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
    /// The proxy is ending.
    #[error("interrupted")]
    Interrupted,
}

/// Names and resolved values, which are not shown in debug output.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) values: Vec<(String, String)>,
    /// The secrets and variables in these values.
    pub(super) secrets: Vec<String>,
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values.iter().map(|(name, _)| name)).finish()
    }
}

/// Secrets and lines of a file with secrets that were read already, by name.
type Known = Vec<(String, String)>;

impl Secrets {
    /// Resolves values in which `${NAME}` stands for a secret or an environment variable. `$$` stands for `$`. The programs that print
    /// secrets are registered in `processes`, and have the time `limit` together.
    pub(super) async fn resolve(
        &self,
        values: &[(String, String)],
        processes: &Processes,
        limit: Duration,
    ) -> Result<Resolved, ValueError> {
        let deadline = Instant::now() + limit;
        let mut printed = Known::new();
        for name in names(values) {
            if let Some(Secret::Command(words)) = self.named.get(&name) {
                let late = || io::Error::other(format!("no result within {} s", limit.as_secs_f64()));
                match timeout_at(deadline, run(words, self.directory.as_deref(), processes))
                    .await
                    .unwrap_or_else(|_| Err(late()))
                {
                    Ok(value) => printed.push((name, value)),
                    Err(error) => return Err(ValueError::Command { name, reason: error.to_string() }),
                }
            }
        }
        let secrets = self.clone();
        let values = values.to_vec();
        // Files are read on another thread, because they can be on a slow disk.
        let reading = spawn_blocking(move || secrets.expand_all(values, &printed));
        reading.await.map_err(|_| ValueError::Interrupted)?
    }

    /// Resolves values. `printed` are the secrets that programs have printed.
    fn expand_all(&self, values: Vec<(String, String)>, printed: &Known) -> Result<Resolved, ValueError> {
        let mut file = None;
        let mut resolved = Resolved::default();
        for (name, value) in values {
            let value = expand(&value, &mut |variable| {
                let value = self.value(variable, printed, &mut file)?;
                resolved.secrets.push(value.clone());
                Ok(value)
            })?;
            resolved.values.push((name, value));
        }
        Ok(resolved)
    }

    /// Returns the value of one secret or variable. `lines` keeps the content of the file.
    fn value(&self, name: &str, printed: &Known, lines: &mut Option<Known>) -> Result<String, ValueError> {
        let of = |known: &Known| Some(known.iter().find(|(other, _)| other == name)?.1.clone());
        if let Some(value) = of(printed) {
            return Ok(value);
        }
        if let Some(Secret::File(path)) = self.named.get(name) {
            return read_private(path).map(|text| text.trim_end().to_owned());
        }
        if let Some(path) = &self.file {
            if lines.is_none() {
                *lines = Some(parse(&read_private(path)?));
            }
            if let Some(value) = lines.as_ref().and_then(of) {
                return Ok(value);
            }
        }
        env::var(name).map_err(|_| ValueError::Unknown(name.to_owned()))
    }
}

/// Returns the names in these values, each of them once.
fn names(values: &[(String, String)]) -> Vec<String> {
    let mut names = Vec::new();
    for (_, value) in values {
        // This never fails, because each name has a value here.
        let _ = expand(value, &mut |name| {
            if !names.iter().any(|other| other == name) {
                names.push(name.to_owned());
            }
            Ok(String::new())
        });
    }
    names
}

/// Replaces each `${NAME}` with its value.
fn expand(
    text: &str,
    value: &mut dyn FnMut(&str) -> Result<String, ValueError>,
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

/// Runs the program that prints a secret, and returns its first line. The program and its children are ended if they still run at the
/// end, or if the returned future is dropped.
async fn run(words: &[String], directory: Option<&Path>, processes: &Processes) -> io::Result<String> {
    let Some((program, args)) = words.split_first() else { return Err(io::Error::other("it is empty")) };
    let mut command = Command::new(program);
    if let Some(directory) = directory.map(Path::to_owned).or_else(env::home_dir) {
        command.current_dir(directory);
    }
    // What the program writes to stderr can contain secrets, so it is not logged.
    command
        .args(args)
        .env_remove(TOKEN_VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut group = ProcessGroup::spawn_without_terminal(command, Some(Arc::new(processes.clone())))?;
    let mut output = Vec::new();
    if let (_, Some(stdout), _) = group.pipes() {
        stdout.take(MAX_BYTES + 1).read_to_end(&mut output).await?;
    }
    if output.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("output is too long"));
    }
    let status = group.exited().await?;
    if !status.success() {
        return Err(io::Error::other(status.to_string()));
    }
    let text = str::from_utf8(&output).map_err(|_| io::Error::other("output is not UTF-8"))?;
    let line = text.lines().next().filter(|line| !line.is_empty());
    Ok(line.ok_or_else(|| io::Error::other("no output"))?.to_owned())
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

    /// Resolves a value that may take a second.
    #[cfg(unix)]
    async fn resolve(secrets: &Secrets, value: &str, limit: Duration) -> Result<Resolved, ValueError> {
        secrets.resolve(&[("X".to_owned(), value.to_owned())], &Processes::default(), limit).await
    }

    #[cfg(unix)]
    fn command(words: &[&str]) -> Secret {
        Secret::Command(words.iter().map(|&word| word.to_owned()).collect())
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn files_of_others_and_failing_commands_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets");
        fs::write(&path, "TOKEN=s3cret\n").unwrap();
        let mut secrets = Secrets { file: Some(path.clone()), ..Secrets::default() };
        secrets.named.insert("PRINTED".to_owned(), command(&["printf", "first\\nsecond"]));
        secrets.named.insert("FAILS".to_owned(), command(&["false"]));
        secrets.named.insert("EMPTY".to_owned(), command(&[]));
        let limit = Duration::from_mins(1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = resolve(&secrets, "${TOKEN}", limit).await.unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let resolved = resolve(&secrets, "${TOKEN} ${PRINTED}", limit).await.unwrap();
        assert_eq!(resolved.values, [("X".to_owned(), "s3cret first".to_owned())]);
        assert!(!format!("{resolved:?}").contains("s3cret"));
        for (value, words) in [
            ("${FAILS}", "command for secret `FAILS` failed: exit status: 1"),
            ("${EMPTY}", "command for secret `EMPTY` failed: it is empty"),
            ("${NOT_SET_ANYWHERE}", "`NOT_SET_ANYWHERE` is neither a secret nor an environment variable"),
        ] {
            assert_eq!(resolve(&secrets, value, limit).await.unwrap_err().to_string(), words);
        }
    }

    /// A project could have a program that the command starts, such as a module of Python.
    #[cfg(unix)]
    #[tokio::test]
    async fn commands_run_in_the_directory_of_the_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(dir.path()).unwrap();
        let mut secrets = Secrets { directory: Some(real.clone()), ..Secrets::default() };
        secrets.named.insert("WHERE".to_owned(), command(&["pwd"]));
        let of = async |secrets: &Secrets| {
            resolve(secrets, "${WHERE}", Duration::from_mins(1)).await.unwrap().values.remove(0).1
        };
        assert_eq!(Path::new(&of(&secrets).await), real);
        secrets.directory = None;
        let home = env::home_dir().and_then(|home| fs::canonicalize(home).ok());
        let found = fs::canonicalize(of(&secrets).await).ok();
        assert_eq!(found, home);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn commands_have_a_time_limit_and_an_output_limit() {
        let mut secrets = Secrets::default();
        secrets.named.insert("ENDLESS".to_owned(), command(&["yes"]));
        // The child has the pipe of its parent.
        secrets.named.insert("SLOW".to_owned(), command(&["sh", "-c", "sleep 1000 & wait"]));
        let error = resolve(&secrets, "${ENDLESS}", Duration::from_mins(1)).await.unwrap_err();
        assert_eq!(error.to_string(), "command for secret `ENDLESS` failed: output is too long");
        // All commands of a value share the time limit.
        let error = resolve(&secrets, "${SLOW} ${SLOW}", Duration::from_millis(100)).await.unwrap_err();
        assert_eq!(error.to_string(), "command for secret `SLOW` failed: no result within 0.1 s");
    }
}
