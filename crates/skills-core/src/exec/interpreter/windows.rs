//! The rules for Windows.
//!
//! Windows ignores `#!` lines, so we translate the interpreter of the line to a Windows program for the same language. If
//! there is no `#!` line, the file extension decides.
//!
//! The programs that Windows itself associates with extensions don't help: `.js` belongs to the Windows Script Host, and
//! `.py` often belongs to an editor. In addition, three programs on the search path are not what their names suggest:
//!
//! - `python` and `python3` in `WindowsApps` open the Microsoft Store, unless Python was installed from there. The launcher
//!   `py` is always a real Python.
//! - `bash` in `System32` and `WindowsApps` runs inside WSL, which is another system with other paths. Git for Windows
//!   includes a `bash` for Windows itself.
//!
//! Paths are plain text in this file, so that its tests run on other systems, too.

use std::path::PathBuf;

use super::{
    Candidate, Interpreter, Language, Machine, POWERSHELL, Place, Platform, Shebang, language,
    on_search_path as on_path,
};

const LANGUAGES: &[Language] = &[
    Language {
        interpreters: &["python", "python3", "python2", "pythonw", "py"],
        takes_options: true,
        // Without this, Python would use the system's code page for pipes, which doesn't support most characters.
        env: &[("PYTHONUTF8", "1")],
        advice: Some(
            "ask the user to install Python, because the `python` from Windows only opens the Microsoft Store",
        ),
        ..language(
            &["py"],
            &[
                Candidate { place: Place::Below("VIRTUAL_ENV", r"Scripts\python.exe"), args: &[] },
                on_path("py", &["-3"]),
                on_path("python", &[]),
                on_path("python3", &[]),
            ],
        )
    },
    Language {
        interpreters: &["sh", "dash", "ash"],
        takes_options: true,
        advice: Some(GIT),
        ..language(
            &["sh"],
            &[
                on_path("sh", &[]),
                Candidate { place: Place::BelowGit(r"bin\sh.exe"), args: &[] },
                on_path("bash", &[]),
                Candidate { place: Place::BelowGit(r"bin\bash.exe"), args: &[] },
            ],
        )
    },
    Language {
        interpreters: &["bash"],
        takes_options: true,
        advice: Some(GIT),
        ..language(
            &["bash"],
            &[
                on_path("bash", &[]),
                // Don't use the `bash.exe` in `usr\bin`, because it doesn't find the other programs there.
                Candidate { place: Place::BelowGit(r"bin\bash.exe"), args: &[] },
            ],
        )
    },
    Language {
        interpreters: &["node", "nodejs"],
        ..language(&["js", "mjs", "cjs"], &[on_path("node", &[]), on_path("bun", &[])])
    },
    language(
        &["ts"],
        &[
            on_path("bun", &[]),
            on_path("deno", &["run", "--allow-all"]),
            on_path("node", &["--experimental-strip-types"]),
        ],
    ),
    Language { interpreters: &["ruby"], takes_options: true, ..language(&["rb"], &[on_path("ruby", &[])]) },
    Language {
        interpreters: &["perl"],
        takes_options: true,
        ..language(
            &["pl"],
            &[on_path("perl", &[]), Candidate { place: Place::BelowGit(r"usr\bin\perl.exe"), args: &[] }],
        )
    },
    Language {
        interpreters: &["pwsh", "powershell"],
        ..language(&["ps1"], &[on_path("pwsh", POWERSHELL), on_path("powershell", POWERSHELL)])
    },
    // The standard library uses `cmd` to start these, and takes care of the quoting.
    language(&["bat", "cmd"], &[]),
];

const GIT: &str = "ask the user to install Git for Windows, because the `bash` from Windows runs in WSL and does not find \
                   Windows paths";

/// The directory in which the Microsoft Store puts programs on the search path.
const APP_ALIASES: &str = r"\Microsoft\WindowsApps";

/// The usual installation directories of Git, each under the directory in a variable.
const GIT_DIRECTORIES: [(&str, &str); 3] =
    [("ProgramFiles", "Git"), ("ProgramFiles(x86)", "Git"), ("LOCALAPPDATA", r"Programs\Git")];

pub(super) struct Windows;

impl Platform for Windows {
    fn languages(&self) -> &'static [Language] {
        LANGUAGES
    }

    fn locate(&self, place: Place, machine: &dyn Machine) -> Option<PathBuf> {
        match place {
            Place::SearchPath(name) => machine
                .programs(name)
                .into_iter()
                .find(|path| !path.to_str().is_some_and(|path| is_impostor(name, path, machine))),
            Place::Below(variable, path) => {
                let directory = machine.variable(variable)?;
                existing(format!(r"{directory}\{path}"), machine)
            }
            Place::BelowGit(path) => git_directories(machine)
                .into_iter()
                .find_map(|directory| existing(format!(r"{directory}\{path}"), machine)),
        }
    }

    fn interpreter_of(&self, shebang: &Shebang, machine: &dyn Machine) -> Option<Interpreter> {
        let name = shebang.name();
        let known = language_of(name);
        let mut interpreter = match known {
            Some(language) => language.first(self, machine)?,
            None => Interpreter::new(machine.programs(name).into_iter().next()?, &[""; 0]),
        };
        if known.is_none_or(|language| language.takes_options) {
            interpreter.args.extend(shebang.args.iter().map(Into::into));
        }
        interpreter.env.extend(shebang.env.iter().map(|(name, value)| (name.into(), value.into())));
        Some(interpreter)
    }

    fn system_directory(&self, machine: &dyn Machine) -> PathBuf {
        machine.variable("SystemRoot").map_or_else(|| r"C:\Windows".into(), PathBuf::from)
    }
}

/// Returns the language whose interpreter has this name, with or without a version, such as `python3.12`.
fn language_of(name: &str) -> Option<&'static Language> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    LANGUAGES.iter().find(|language| [name, plain].iter().any(|name| language.interpreters.contains(name)))
}

/// Returns true if the program at `path` is a stub of the Microsoft Store, or runs in WSL.
fn is_impostor(name: &str, path: &str, machine: &dyn Machine) -> bool {
    let directory = parent(path);
    let is_below = |name: &str| directory.to_ascii_lowercase().ends_with(&name.to_ascii_lowercase());
    match name {
        "bash" => [r"\System32", r"\Sysnative", APP_ALIASES].into_iter().any(is_below),
        // If Python was installed from the Store, `WindowsApps` also contains the directory of its package.
        "python" | "python3" if is_below(APP_ALIASES) => {
            !machine.names(directory).iter().any(|name| name.starts_with("PythonSoftwareFoundation.Python"))
        }
        _ => false,
    }
}

/// Lists the directories in which Git may be installed. The installation that `git` on the search path belongs to comes
/// first.
fn git_directories(machine: &dyn Machine) -> Vec<String> {
    // `git.exe` is in `cmd`, `bin` or `mingw64\bin` of the installation.
    let programs = machine.programs("git");
    let known = programs.iter().filter_map(|path| path.to_str()).flat_map(|path| {
        let directory = parent(parent(path));
        [directory, parent(directory)].map(str::to_owned)
    });
    let usual = GIT_DIRECTORIES.iter().filter_map(|(variable, directory)| {
        machine.variable(variable).map(|parent| format!(r"{parent}\{directory}"))
    });
    known.chain(usual).filter(|directory| !directory.is_empty()).collect()
}

fn existing(path: String, machine: &dyn Machine) -> Option<PathBuf> {
    machine.has_file(&path).then(|| path.into())
}

/// Returns the directory of a path, without the separator at its end. The result is empty if the path has no directory.
fn parent(path: &str) -> &str {
    path.rsplit_once(['\\', '/']).map_or("", |(parent, _)| parent)
}
