//! Finds commands with which an editor can start the proxy and the agent. Editors are started from a desktop, in any
//! directory, and often don't inherit the `PATH` of a shell.

use std::{
    env,
    fs::File,
    io::Read,
    path::{Component, Path, PathBuf},
};

use skills_core::text::shown_path;

use super::{NAME, document::program_name};
use crate::SetupError;

/// The `PATH` of programs that are started from a desktop, without what the shell's start-up files add. Empty on systems
/// where desktop and terminal share one `PATH`.
const DESKTOP: &[&str] = if cfg!(target_os = "macos") {
    &["/usr/bin", "/bin", "/usr/sbin", "/sbin"]
} else if cfg!(windows) {
    &[]
} else {
    &[
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
        "/usr/games",
        "/usr/local/games",
        "/snap/bin",
        "/run/current-system/sw/bin",
    ]
};

/// The maximum length of the first line of a script, in bytes. This is the limit of Linux.
const MAX_SHEBANG_BYTES: u64 = 256;

/// A path component of each version or package manager, its name, and true if the paths of programs contain a version, so that
/// an update changes them.
const MANAGERS: &[(&str, &str, bool)] = &[
    (".nvm", "nvm", true),
    ("fnm", "fnm", true),
    ("fnm_multishells", "fnm", true),
    (".nodenv", "nodenv", true),
    (".nodebrew", "nodebrew", true),
    (".n", "n", false),
    (".volta", "Volta", false),
    (".pyenv", "pyenv", true),
    (".asdf", "asdf", false),
    ("mise", "mise", false),
    ("homebrew", "Homebrew", false),
    (".linuxbrew", "Homebrew", false),
    (".bun", "Bun", false),
    (".cargo", "cargo", false),
    (".local", "~/.local", false),
];

/// Words of a command, with notes for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// The words of the command.
    pub words: Vec<String>,
    /// Notes for the user, such as a path that an update will change.
    pub notes: Vec<String>,
}

/// Returns the words with which an editor starts the proxy: the absolute path of the running program. If a package runner such
/// as uvx runs us from its cache, returns a command of the runner instead, because the cache may be cleared.
///
/// # Errors
/// Returns an error if the path of the program is unknown or not UTF-8, and if npx or a similar runner has started it.
pub fn our_own(is_desktop: bool) -> Result<Words, SetupError> {
    let program = env::current_exe()
        .map_err(|error| SetupError::failed("cannot determine path to this program", error))?;
    if let Some((cache, arguments)) = cached(&program) {
        let Some(arguments) = arguments else {
            let installer = if cache == "pipx" { "pipx install" } else { "npm install --global" };
            return Err(SetupError::new(format!(
                "this program is in the {cache} cache, and in a project, {cache} can run a program of the project instead: install \
                 {NAME} with `{installer} {NAME}`, and run setup again"
            )));
        };
        let mut found = reachable(cache, is_desktop)?;
        found.words.extend(arguments.iter().map(|&word| word.to_owned()));
        found.words.push(NAME.to_owned());
        let written = found.words.join(" ");
        found.notes.insert(
            0,
            format!(
                "this program is in the {cache} cache, which may be cleared; using `{written}` instead (install the \
                 program for a faster start without a network)"
            ),
        );
        return Ok(found);
    }
    // Prefer a link in `PATH` to the target of the link, which may include a version and would then not work after an
    // update.
    let real = dunce::canonicalize(&program).unwrap_or_else(|_| program.clone());
    let link = which::which(NAME).ok().filter(|link| link.is_absolute());
    let stays = link.filter(|link| dunce::canonicalize(link).is_ok_and(|target| target == real));
    Ok(Words { words: vec![text(&stays.unwrap_or(program))?], notes: Vec::new() })
}

/// Returns the package runner whose cache contains the program, and the arguments with which it runs a package. These are `None` if the
/// runner prefers programs in the working directory, because editors start it in the directory of a project.
fn cached(program: &Path) -> Option<(&'static str, Option<&'static [&'static str]>)> {
    let names: Vec<_> = program.components().filter_map(|part| part.as_os_str().to_str()).collect();
    let has = |name: &str| names.contains(&name);
    let is_below = |outer: &str, inner: &str| {
        names.windows(2).any(|pair| pair[0] == outer && pair[1].starts_with(inner))
    };
    if has("_npx") {
        Some(("npx", None))
    } else if is_below("uv", "archive-v") || is_below("uv", "environments-v") || is_below("uv", "builds-v") {
        Some(("uvx", Some(&[])))
    } else if is_below("pnpm", "dlx") || names.iter().any(|name| name.starts_with("dlx-")) {
        Some(("pnpx", None))
    } else if names.iter().any(|name| name.starts_with("bunx-")) {
        Some(("bunx", None))
    } else if is_below("pipx", ".cache") || is_below(".cache", "pipx") {
        Some(("pipx", None))
    } else {
        None
    }
}

/// Returns the words with which an editor starts `program`: its name if it is in the `PATH` of a desktop, and its absolute path
/// otherwise. If `program` is a script and its interpreter is not in that `PATH`, the interpreter comes first.
///
/// # Errors
/// Returns an error if the path is not UTF-8.
pub fn reachable(program: &str, is_desktop: bool) -> Result<Words, SetupError> {
    let as_it_is = |notes| Words { words: vec![program.to_owned()], notes };
    // If this is a path, return it as is, without expanding `~`, because the proxy does that.
    let is_name = Path::new(program).components().count() == 1 && !program.starts_with(['~', '$']);
    let path = match which::which(program) {
        Ok(path) => path,
        Err(_) if is_name => {
            return Ok(as_it_is(vec![format!(
                "`{program}` not found in PATH; check if the program is installed"
            )]));
        }
        Err(_) => return Ok(as_it_is(Vec::new())),
    };
    if !is_desktop || DESKTOP.is_empty() {
        return Ok(as_it_is(Vec::new()));
    }
    let path = lasting(&path);
    let interpreter = interpreter(&path).and_then(|name| Some((which::which(&name).ok()?, name)));
    let mut notes = Vec::new();
    let mut words = Vec::new();
    if let Some((found, name)) = interpreter.filter(|(found, _)| !is_on_desktop(found)) {
        // The interpreter can also be next to the agent, because the proxy adds this directory to the end of `PATH`.
        let first = DESKTOP.iter().map(|dir| Path::new(dir).join(&name)).find(|path| path.is_file());
        match (path.with_file_name(&name).is_file(), first) {
            (true, None) => {}
            (true, Some(first)) => notes.push(format!(
                "your editor may run `{program}` using {} instead of {}",
                shown_path(&first),
                shown_path(&found)
            )),
            (false, _) => {
                notes.push(format!(
                    "`{program}` needs `{name}`, which may not be in the PATH of your editor: {}",
                    why(&found)
                ));
                words.push(text(&lasting(&found))?);
            }
        }
    }
    if words.is_empty() && is_name && is_on_desktop(&path) {
        return Ok(as_it_is(notes));
    }
    if is_name && !is_on_desktop(&path) {
        notes.push(format!("`{program}` may not be in the PATH of your editor: {}", why(&path)));
    }
    words.push(if is_name { text(&path)? } else { program.to_owned() });
    Ok(Words { words, notes })
}

/// Returns the absolute path of `program`, but not of a program in `dir`. A script there would start itself again.
///
/// # Errors
/// Returns an error if the path is not UTF-8.
pub fn outside_of(program: &str, dir: &Path) -> Result<Words, SetupError> {
    let found = which::which_all(program).into_iter().flatten().find(|path| path.parent() != Some(dir));
    Ok(match found {
        Some(path) => Words { words: vec![text(&lasting(&path))?], notes: Vec::new() },
        None => Words {
            words: vec![program.to_owned()],
            notes: vec![format!("`{program}` not found in PATH; check if the program is installed")],
        },
    })
}

/// Explains where a program is, which manager installed it, and if an update changes the path.
fn why(path: &Path) -> String {
    let dir = shown_path(path.parent().unwrap_or(path));
    let is_part =
        |name: &str| path.components().any(|part| matches!(part, Component::Normal(part) if part == name));
    match MANAGERS.iter().find(|(part, ..)| is_part(part)) {
        Some((_, manager, true)) => format!(
            "using the full path, because the program is in {dir} (managed by {manager}); run setup again after an \
             update, because the path will change"
        ),
        Some((_, manager, false)) => {
            format!("using the full path, because the program is in {dir} (managed by {manager})")
        }
        None => format!("using the full path, because the program is in {dir}"),
    }
}

/// Returns a path of the same program that stays valid after this shell ends, because fnm creates a directory of links for each
/// shell.
fn lasting(path: &Path) -> PathBuf {
    let is_of_shell = path.components().any(|part| part.as_os_str() == "fnm_multishells");
    let real = path.parent().filter(|_| is_of_shell).and_then(|dir| dunce::canonicalize(dir).ok());
    match (real, path.file_name()) {
        (Some(dir), Some(name)) => dir.join(name),
        _ => path.to_owned(),
    }
}

fn is_on_desktop(path: &Path) -> bool {
    path.parent().is_some_and(|dir| DESKTOP.iter().any(|known| dir == Path::new(known)))
}

/// Returns the interpreter that a script looks up in `PATH`: `node` for `#!/usr/bin/env node`.
fn interpreter(script: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(script).ok()?.take(MAX_SHEBANG_BYTES).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?;
    let line = str::from_utf8(line.split(|&byte| byte == b'\n').next()?).ok()?;
    let mut words = line.split_whitespace();
    if program_name(words.next()?) != "env" {
        return None;
    }
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
}

fn text(path: &Path) -> Result<String, SetupError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        SetupError::new(format!("cannot write {} to settings: not valid UTF-8", shown_path(path)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_caches_of_package_runners_are_recognized() {
        for (path, cache) in [
            ("/home/me/.npm/_npx/0a1b/node_modules/@x/linux-x64/bin/acp-skills-proxy", Some("npx")),
            ("/home/me/.cache/uv/archive-v0/AbC/bin/acp-skills-proxy", Some("uvx")),
            ("/home/me/.cache/pnpm/dlx/x/node_modules/p/acp-skills-proxy", Some("pnpx")),
            ("/tmp/bunx-0-acp-skills-proxy@latest/node_modules/p/acp-skills-proxy", Some("bunx")),
            ("/home/me/.cache/pipx/x/bin/acp-skills-proxy", Some("pipx")),
            ("/home/me/.local/share/uv/tools/acp-skills-proxy/bin/acp-skills-proxy", None),
            ("/home/me/.cargo/bin/acp-skills-proxy", None),
            ("/usr/lib/node_modules/acp-skills-proxy/node_modules/p/bin/acp-skills-proxy", None),
        ] {
            let found = cached(Path::new(path));
            assert_eq!(found.map(|found| found.0), cache, "{path}");
            // Editors start the command in the directory of a project.
            let is_written = found.is_some_and(|(_, arguments)| arguments.is_some());
            assert_eq!(is_written, cache == Some("uvx"), "{path}");
        }
    }

    #[test]
    fn the_interpreter_of_a_script() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        for (text, name) in [
            ("#!/usr/bin/env node\nx", Some("node")),
            ("#!/usr/bin/env -S node --no-warnings\nx", Some("node")),
            ("#!/usr/bin/env -S A=b python3 -x", Some("python3")),
            ("#!/bin/sh\nx", None),
            ("\u{7f}ELF", None),
            ("#!", None),
            ("", None),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(interpreter(&file).as_deref(), name, "{text:?}");
        }
        assert_eq!(interpreter(dir.path()), None);
    }
}
