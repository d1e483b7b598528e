//! Windows: nothing there reads a `#!` line, so its program is translated into what the same language has here, and the
//! extension decides where there is none.
//!
//! What Windows itself associates with an extension is no help: `.js` belongs to the Windows Script Host and `.py` often
//! to an editor. And three programs on the search path are not what their name says:
//!
//! - `python` and `python3` in `WindowsApps` open the Microsoft Store, unless Python was installed from there. The
//!   launcher `py` always is the real one.
//! - `bash` in `System32` and in `WindowsApps` runs inside of WSL, another system with other paths. Git for Windows brings
//!   one that runs here.
//!
//! Paths are text here, so that this file can be tested on other systems.

use std::path::PathBuf;

use super::{
    Candidate, Interpreter, Language, Machine, POWERSHELL, Place, Platform, Shebang, language,
    on_search_path as on_path,
};

const LANGUAGES: &[Language] = &[
    Language {
        interpreters: &["python", "python3", "python2", "pythonw", "py"],
        takes_options: true,
        // Into a pipe it would write in the code page of the system, which lacks most characters.
        env: &[("PYTHONUTF8", "1")],
        advice: Some("the `python` that comes with Windows only opens the Microsoft Store"),
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
                // Not the one in `usr\bin`, which does not find the programs beside it.
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
    // The standard library starts them through `cmd`, with its quoting rules in mind.
    language(&["bat", "cmd"], &[]),
];

const GIT: &str = "Git for Windows brings one; the `bash` that comes with Windows runs in WSL, where it does not find the \
                   files of this system";

/// Where the Store puts programs on the search path.
const APP_ALIASES: &str = r"\Microsoft\WindowsApps";

/// Where Git is installed, apart from what the search path says.
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
}

/// The language whose interpreter has this name, with or without a version (`python3.12`).
fn language_of(name: &str) -> Option<&'static Language> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    LANGUAGES.iter().find(|language| [name, plain].iter().any(|it| language.interpreters.contains(it)))
}

/// Whether a program on the search path is one of those that are not what their name says.
fn is_impostor(name: &str, path: &str, machine: &dyn Machine) -> bool {
    let directory = parent(path);
    let is_below = |name: &str| directory.to_ascii_lowercase().ends_with(&name.to_ascii_lowercase());
    match name {
        "bash" => [r"\System32", r"\Sysnative", APP_ALIASES].into_iter().any(is_below),
        // With a Python from the Store there is its directory beside the alias.
        "python" | "python3" if is_below(APP_ALIASES) => {
            !machine.names(directory).iter().any(|name| name.starts_with("PythonSoftwareFoundation.Python"))
        }
        _ => false,
    }
}

/// The directories into which Git may be installed, the one that the search path knows first.
fn git_directories(machine: &dyn Machine) -> Vec<String> {
    // `git.exe` is in `cmd`, `bin` or `mingw64\bin` of it.
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

/// The directory of a path, without the separator; empty where there is none.
fn parent(path: &str) -> &str {
    path.rsplit_once(['\\', '/']).map_or("", |(parent, _)| parent)
}
