//! [`Interpreter`]: what runs a script. The executable bit does not matter: nine of ten scripts in the wild lack it.
//!
//! In this order: `uv` for Python with inline metadata ([PEP 723](https://peps.python.org/pep-0723/)), the `#!` line, the
//! extension. What the last two mean differs between systems, and is decided in `unix` and `windows`; both are tested
//! everywhere, with made-up machines.

mod shebang;
mod unix;
mod windows;

use std::{ffi::OsString, fs, path::PathBuf};

use shebang::Shebang;

/// How much of a script decides what runs it, in bytes.
pub(super) const HEAD_BYTES: u64 = 16 * 1024;

/// What runs a script, and what stands before the path of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// `None` where the script is the program.
    pub(super) program: Option<PathBuf>,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
}

/// The reason that a script has no interpreter on this machine. Written for the model that asked to run the script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InterpreterError {
    /// The script's `#!` line or extension names a language, but none of its interpreters is installed.
    #[error("`{path}` needs {programs}, which is not installed{}{advice}", if advice.is_empty() { "" } else { ": " })]
    NotInstalled {
        path: String,
        /// The names of the interpreters, quoted and joined with "or".
        programs: String,
        /// An additional sentence for this system; empty if there is none.
        advice: &'static str,
    },
    /// The script has neither a `#!` line nor a known extension.
    #[error("cannot tell which program runs `{path}`: it has neither a `#!` line nor a known extension")]
    Unknown { path: String },
}

/// What the choice depends on: which programs and files a machine has.
trait Machine {
    /// Every program that a shell would find under `name`, the first one first. A path finds itself.
    fn programs(&self, name: &str) -> Vec<PathBuf>;

    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// The names in a directory; none when there is no such directory.
    fn names(&self, dir: &str) -> Vec<String>;

    /// Whether there is a file at this path.
    fn has_file(&self, path: &str) -> bool;
}

/// Which interpreters a system has, and where.
trait Platform {
    fn languages(&self) -> &'static [Language];

    /// Where the program of a candidate is.
    fn locate(&self, place: Place, machine: &dyn Machine) -> Option<PathBuf>;

    /// What a `#!` line means.
    fn interpreter_of(&self, shebang: &Shebang, machine: &dyn Machine) -> Option<Interpreter>;
}

/// A language that scripts are written in.
struct Language {
    extensions: &'static [&'static str],
    /// The names that its interpreters have in `#!` lines.
    interpreters: &'static [&'static str],
    /// Whether the options of a `#!` line mean the same to all candidates.
    takes_options: bool,
    /// The preferred one first; none where the scripts are programs themselves.
    candidates: &'static [Candidate],
    /// Variables that its interpreters need.
    env: &'static [(&'static str, &'static str)],
    /// What somebody should know who has none of the candidates.
    advice: Option<&'static str>,
}

/// An interpreter, and what stands before the path of the script.
struct Candidate {
    place: Place,
    args: &'static [&'static str],
}

/// Where to look for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On the search path, under this name.
    SearchPath(&'static str),
    /// Below the directory that a variable names.
    Below(&'static str, &'static str),
    /// Below the directory into which Git is installed.
    BelowGit(&'static str),
}

const fn language(extensions: &'static [&'static str], candidates: &'static [Candidate]) -> Language {
    Language { extensions, interpreters: &[], takes_options: false, candidates, env: &[], advice: None }
}

const fn on_search_path(name: &'static str, args: &'static [&'static str]) -> Candidate {
    Candidate { place: Place::SearchPath(name), args }
}

const POWERSHELL: &[&str] = &["-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"];

impl Interpreter {
    /// What runs the script `path`, which begins with `head`, on this machine. The error is for the model.
    pub(super) fn choose(path: &str, head: &[u8]) -> Result<Self, InterpreterError> {
        let platform: &dyn Platform = if cfg!(windows) { &windows::Windows } else { &unix::Unix };
        choose(path, head, platform, &ThisMachine)
    }

    fn new(program: PathBuf, args: &[impl AsRef<str>]) -> Self {
        let args = args.iter().map(|arg| OsString::from(arg.as_ref())).collect();
        Self { program: Some(program), args, env: Vec::new() }
    }
}

fn choose(
    path: &str,
    head: &[u8],
    platform: &dyn Platform,
    machine: &dyn Machine,
) -> Result<Interpreter, InterpreterError> {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let extension = extension.unwrap_or_default();
    let shebang = Shebang::parse(head);
    let is_python = match &shebang {
        Some(shebang) => shebang.name().starts_with("python"),
        None => extension == "py",
    };
    if is_python
        && has_inline_metadata(head)
        && let Some(uv) = platform.locate(Place::SearchPath("uv"), machine)
    {
        return Ok(Interpreter::new(uv, &["run", "--script"]));
    }
    if let Some(shebang) = &shebang
        && let Some(interpreter) = platform.interpreter_of(shebang, machine)
    {
        return Ok(interpreter);
    }
    let languages = platform.languages();
    if let Some(language) = languages.iter().find(|it| it.extensions.contains(&extension.as_str())) {
        return language.first(platform, machine).ok_or_else(|| language.missing(path));
    }
    Err(match &shebang {
        Some(shebang) => match languages.iter().find(|it| it.interpreters.contains(&shebang.name())) {
            Some(language) => language.missing(path),
            None => InterpreterError::NotInstalled {
                path: path.to_owned(),
                programs: format!("`{}`", shebang.program),
                advice: "",
            },
        },
        None => InterpreterError::Unknown { path: path.to_owned() },
    })
}

impl Language {
    /// The first candidate that is there.
    fn first(&self, platform: &dyn Platform, machine: &dyn Machine) -> Option<Interpreter> {
        let env = self.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        if self.candidates.is_empty() {
            return Some(Interpreter { program: None, args: Vec::new(), env });
        }
        self.candidates.iter().find_map(|candidate| {
            let program = platform.locate(candidate.place, machine)?;
            Some(Interpreter { env: env.clone(), ..Interpreter::new(program, candidate.args) })
        })
    }

    fn missing(&self, path: &str) -> InterpreterError {
        let names = self.candidates.iter().filter_map(|candidate| match candidate.place {
            Place::SearchPath(name) => Some(format!("`{name}`")),
            Place::Below(..) | Place::BelowGit(_) => None,
        });
        let programs = names.collect::<Vec<_>>().join(" or ");
        let advice = self.advice.unwrap_or_default();
        InterpreterError::NotInstalled { path: path.to_owned(), programs, advice }
    }
}

/// `# /// script` on a line of its own.
fn has_inline_metadata(head: &[u8]) -> bool {
    head.split(|&byte| byte == b'\n').any(|line| line.trim_ascii_end() == b"# /// script")
}

/// The one that we run on.
struct ThisMachine;

impl Machine for ThisMachine {
    fn programs(&self, name: &str) -> Vec<PathBuf> {
        which::which_all(name).map(Iterator::collect).unwrap_or_default()
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn names(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn has_file(&self, path: &str) -> bool {
        fs::metadata(path).is_ok_and(|it| it.is_file())
    }
}

#[cfg(test)]
mod tests;
