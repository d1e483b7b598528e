//! [`Interpreter`]: the program that runs a script. The executable bit is ignored, because nine of ten published scripts lack
//! it.
//!
//! The choice depends on, in this order: inline metadata of Python
//! ([PEP 723](https://peps.python.org/pep-0723/), run with `uv`), the `#!` line, and the file extension. The meaning of the
//! last two differs between systems, so it is in `unix` and `windows`. Tests run both on each system, with a simulated
//! machine.

mod isolation;
mod shebang;
mod unix;
mod windows;

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

pub(super) use isolation::{Surroundings, VARIABLES};
use shebang::Shebang;

/// The number of bytes at the beginning of a script that we read to choose its interpreter.
pub(super) const HEAD_BYTES: u64 = 16 * 1024;

/// A program that runs a script, and the arguments before the path of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// The interpreter; `None` if the script itself is the program.
    pub(super) program: Option<PathBuf>,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
}

/// The reason that a script has no interpreter on this machine. Written for the model that asked to run the script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InterpreterError {
    /// The script's `#!` line or extension names a language, but none of its interpreters is installed.
    #[error("could not find {programs} to run `{path}`; {advice}")]
    NotInstalled {
        path: String,
        /// The names of the interpreters, quoted and joined with "or".
        programs: String,
        /// Advice for the model or the user.
        advice: &'static str,
    },
    /// The script has neither a `#!` line nor a known extension.
    #[error("could not find a program to run `{path}`: expected a `#!` line or a known extension")]
    Unknown { path: String },
}

/// The programs, variables and files of a machine, on which the choice depends.
trait Machine {
    /// Lists all programs called `name` on the search path, in its order. If `name` is a path, it is returned if it exists.
    fn programs(&self, name: &str) -> Vec<PathBuf>;

    /// Returns the value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// Lists the names in a directory. The list is empty if the directory doesn't exist.
    fn names(&self, dir: &str) -> Vec<String>;

    /// Returns true if there is a file at this path.
    fn has_file(&self, path: &str) -> bool;

    /// Returns `path` without links.
    fn real_path(&self, path: &Path) -> PathBuf;

    /// Returns the path of a file that is always empty.
    fn empty_file(&self) -> PathBuf;
}

/// The rules for finding interpreters on an operating system.
trait Platform {
    /// Returns the known languages.
    fn languages(&self) -> &'static [Language];

    /// Returns the path of a candidate's program if it is installed.
    fn locate(&self, place: Place, machine: &dyn Machine) -> Option<PathBuf>;

    /// Returns the interpreter that a `#!` line names if it is installed.
    fn interpreter_of(&self, shebang: &Shebang, machine: &dyn Machine) -> Option<Interpreter>;

    /// Returns a directory that belongs to the system. No project contains it.
    fn system_directory(&self, machine: &dyn Machine) -> PathBuf;
}

/// A language that scripts are written in.
struct Language {
    extensions: &'static [&'static str],
    /// The names of its interpreters in `#!` lines.
    interpreters: &'static [&'static str],
    /// True if all candidates understand the options of a `#!` line.
    takes_options: bool,
    /// The interpreters, preferred first. Empty if the scripts are programs themselves.
    candidates: &'static [Candidate],
    /// Environment variables that the interpreters need.
    env: &'static [(&'static str, &'static str)],
    /// Advice for the error if none of the candidates is installed. The default is [`INSTALL`].
    advice: Option<&'static str>,
}

/// An interpreter, and the arguments before the path of the script.
struct Candidate {
    place: Place,
    args: &'static [&'static str],
}

/// A place to look for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A name on the search path.
    SearchPath(&'static str),
    /// A variable that contains a directory, and a path under that directory.
    Below(&'static str, &'static str),
    /// A path under the directory in which Git is installed.
    BelowGit(&'static str),
}

const fn language(extensions: &'static [&'static str], candidates: &'static [Candidate]) -> Language {
    Language { extensions, interpreters: &[], takes_options: false, candidates, env: &[], advice: None }
}

const fn on_search_path(name: &'static str, args: &'static [&'static str]) -> Candidate {
    Candidate { place: Place::SearchPath(name), args }
}

/// The default advice if an interpreter is missing.
const INSTALL: &str = "ask the user to install this program";

const POWERSHELL: &[&str] = &["-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"];

impl Interpreter {
    /// Chooses the interpreter of the script at `path`, which begins with `head`, on this machine. The interpreter reads no
    /// configuration of a project, see [`isolation`].
    pub(super) fn choose(
        path: &str,
        head: &[u8],
        surroundings: Surroundings,
    ) -> Result<Self, InterpreterError> {
        let platform: &dyn Platform = if cfg!(windows) { &windows::Windows } else { &unix::Unix };
        choose(path, head, platform, &ThisMachine)?.isolated(path, head, surroundings, platform, &ThisMachine)
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
    if let Some(language) =
        languages.iter().find(|language| language.extensions.contains(&extension.as_str()))
    {
        return language.first(platform, machine).ok_or_else(|| language.missing(path));
    }
    Err(match &shebang {
        Some(shebang) => {
            match languages.iter().find(|language| language.interpreters.contains(&shebang.name())) {
                Some(language) => language.missing(path),
                None => InterpreterError::NotInstalled {
                    path: path.to_owned(),
                    programs: format!("`{}`", shebang.program),
                    advice: INSTALL,
                },
            }
        }
        None => InterpreterError::Unknown { path: path.to_owned() },
    })
}

impl Language {
    /// Returns the first candidate that is installed.
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
        let advice = self.advice.unwrap_or(INSTALL);
        InterpreterError::NotInstalled { path: path.to_owned(), programs, advice }
    }
}

/// Returns true if the script has inline metadata, which starts with `# /// script` on a line of its own.
fn has_inline_metadata(head: &[u8]) -> bool {
    head.split(|&byte| byte == b'\n').any(|line| line.trim_ascii_end() == b"# /// script")
}

/// The machine on which this program runs.
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
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
    }

    fn real_path(&self, path: &Path) -> PathBuf {
        isolation::real(path)
    }

    fn empty_file(&self) -> PathBuf {
        isolation::empty_file()
    }
}

#[cfg(test)]
mod tests;
