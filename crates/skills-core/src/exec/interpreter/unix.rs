//! The rules for Linux, macOS and other Unix systems: the `#!` line names the interpreter, and the search path finds it.

use std::path::PathBuf;

use super::{
    Interpreter, Language, Machine, POWERSHELL, Place, Platform, Shebang, language, on_search_path as on_path,
};

const LANGUAGES: &[Language] = &[
    language(&["py"], &[on_path("python3", &[]), on_path("python", &[])]),
    language(&["sh"], &[on_path("sh", &[]), on_path("bash", &[])]),
    language(&["bash"], &[on_path("bash", &[])]),
    language(&["js", "mjs", "cjs"], &[on_path("node", &[]), on_path("bun", &[])]),
    language(
        &["ts"],
        &[
            on_path("bun", &[]),
            on_path("deno", &["run", "--allow-all"]),
            on_path("node", &["--experimental-strip-types"]),
        ],
    ),
    language(&["rb"], &[on_path("ruby", &[])]),
    language(&["pl"], &[on_path("perl", &[])]),
    language(&["ps1"], &[on_path("pwsh", POWERSHELL), on_path("powershell", POWERSHELL)]),
];

pub(super) struct Unix;

impl Platform for Unix {
    fn languages(&self) -> &'static [Language] {
        LANGUAGES
    }

    fn locate(&self, place: Place, machine: &dyn Machine) -> Option<PathBuf> {
        match place {
            Place::SearchPath(name) => machine.programs(name).into_iter().next(),
            Place::Below(..) | Place::BelowGit(_) => None,
        }
    }

    /// Returns the program of the line, or a program with the same name on the search path. The path of an interpreter, for
    /// example `/usr/local/bin/python3`, differs between machines.
    fn interpreter_of(&self, shebang: &Shebang, machine: &dyn Machine) -> Option<Interpreter> {
        let name = shebang.name();
        let alias = match name {
            "python" => Some("python3"),
            "python3" => Some("python"),
            "nodejs" => Some("node"),
            _ => None,
        };
        let mut names = [Some(shebang.program.as_str()), Some(name), alias].into_iter().flatten();
        let program = names.find_map(|name| machine.programs(name).into_iter().next())?;
        let env = shebang.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Some(Interpreter { env, ..Interpreter::new(program, &shebang.args) })
    }

    fn system_directory(&self, _: &dyn Machine) -> PathBuf {
        "/".into()
    }
}
