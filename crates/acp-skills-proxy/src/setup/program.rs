//! How an editor starts us, and finds the agent: editors are started from a desktop, in any directory, and often without the
//! PATH of a terminal.

use std::{
    env,
    fs::File,
    io::Read,
    path::{Component, Path, PathBuf},
};

use skills_core::text::shown_path;

use super::{NAME, document::program_name};
use crate::error::UsageError;

/// The directories that programs of a desktop find programs in, whatever a shell's start-up files say. Empty where desktop and
/// terminal have the same.
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

/// How many bytes the first line of a script has at most, as Linux has it.
const MAX_SHEBANG_BYTES: u64 = 256;

/// What of a path tells who put a program there, and whether the path will be another after an update.
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

/// How we are started, and what to know about that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    /// The words of the command.
    pub words: Vec<String>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// How an editor starts us: the absolute path of the program that runs now. One that a runner of packages has in a cache
/// vanishes, and the runner is what stays.
///
/// # Errors
/// There is no path that can be written down.
pub(crate) fn our_own(is_desktop: bool) -> Result<Words, UsageError> {
    let program = env::current_exe()
        .map_err(|error| UsageError::failed("it is not known which program this is", error))?;
    if let Some((runner, arguments)) = cached(&program) {
        let mut found = reachable(runner, is_desktop)?;
        found.words.extend(arguments.iter().map(|&word| word.to_owned()));
        found.words.push(NAME.to_owned());
        let written = found.words.join(" ");
        found.notes.insert(
            0,
            format!(
                "this program lies in the cache of {runner} and may vanish, so `{written}` is written; to start faster and \
                 without a network, install it"
            ),
        );
        return Ok(found);
    }
    // A link in PATH outlives an update; where it leads to may have a version in its name.
    let real = dunce::canonicalize(&program).unwrap_or_else(|_| program.clone());
    let link = which::which(NAME).ok().filter(|link| link.is_absolute());
    let stays = link.filter(|link| dunce::canonicalize(link).is_ok_and(|target| target == real));
    Ok(Words { words: vec![text(&stays.unwrap_or(program))?], notes: Vec::new() })
}

/// Which runner of packages has the program in a cache, and the arguments with which that runs a package.
fn cached(program: &Path) -> Option<(&'static str, &'static [&'static str])> {
    let names: Vec<_> = program.components().filter_map(|it| it.as_os_str().to_str()).collect();
    let has = |name: &str| names.contains(&name);
    let is_below = |outer: &str, inner: &str| {
        names.windows(2).any(|pair| pair[0] == outer && pair[1].starts_with(inner))
    };
    if has("_npx") {
        Some(("npx", &["-y"]))
    } else if is_below("uv", "archive-v") || is_below("uv", "environments-v") || is_below("uv", "builds-v") {
        Some(("uvx", &[]))
    } else if is_below("pnpm", "dlx") || names.iter().any(|name| name.starts_with("dlx-")) {
        Some(("pnpx", &[]))
    } else if names.iter().any(|name| name.starts_with("bunx-")) {
        Some(("bunx", &[]))
    } else if is_below("pipx", ".cache") || is_below(".cache", "pipx") {
        Some(("pipx", &["run"]))
    } else {
        None
    }
}

/// How an editor finds `program`: by its name where a desktop has it in PATH, else by its absolute path. A script whose
/// interpreter it would not find either is started by that.
///
/// # Errors
/// The path is no text.
pub(crate) fn reachable(program: &str, is_desktop: bool) -> Result<Words, UsageError> {
    let as_it_is = |notes| Words { words: vec![program.to_owned()], notes };
    // What has a directory is the user's word; `~` is read by us.
    let is_name = Path::new(program).components().count() == 1 && !program.starts_with(['~', '$']);
    let path = match which::which(program) {
        Ok(path) => path,
        Err(_) if is_name => {
            return Ok(as_it_is(vec![format!("`{program}` is not in your PATH: is it installed?")]));
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
        // What lies beside the agent is found, behind all others.
        let first = DESKTOP.iter().map(|dir| Path::new(dir).join(&name)).find(|path| path.is_file());
        match (path.with_file_name(&name).is_file(), first) {
            (true, None) => {}
            (true, Some(first)) => notes.push(format!(
                "in an editor `{program}` may be run by {}, and not by {}",
                shown_path(&first),
                shown_path(&found)
            )),
            (false, _) => {
                notes.push(format!(
                    "`{program}` is run by `{name}`, which an editor may not have in its PATH: {}",
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
        notes.push(format!("an editor may not have `{program}` in its PATH: {}", why(&path)));
    }
    words.push(if is_name { text(&path)? } else { program.to_owned() });
    Ok(Words { words, notes })
}

/// Who put a program there, and what becomes of its path.
fn why(path: &Path) -> String {
    let dir = shown_path(path.parent().unwrap_or(path));
    let is_part =
        |name: &str| path.components().any(|part| matches!(part, Component::Normal(it) if it == name));
    match MANAGERS.iter().find(|(part, ..)| is_part(part)) {
        Some((_, manager, true)) => format!(
            "it is in {dir}, of {manager}; written with its directory, which another version changes, so run this again then"
        ),
        Some((_, manager, false)) => format!("it is in {dir}, of {manager}; written with its directory"),
        None => format!("it is in {dir}; written with its directory"),
    }
}

/// The same program by a path that is still there when this shell is not: fnm makes a directory of links for each.
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

/// The program that a script's first line has looked up in PATH: `node` in `#!/usr/bin/env node`.
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

fn text(path: &Path) -> Result<String, UsageError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        UsageError::new(format!("{} cannot be written into settings: it is no text", shown_path(path)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_vanishes() {
        for (path, runner) in [
            ("/home/me/.npm/_npx/0a1b/node_modules/@x/linux-x64/bin/acp-skills-proxy", Some("npx")),
            ("/home/me/.cache/uv/archive-v0/AbC/bin/acp-skills-proxy", Some("uvx")),
            ("/home/me/.cache/pnpm/dlx/x/node_modules/p/acp-skills-proxy", Some("pnpx")),
            ("/tmp/bunx-0-acp-skills-proxy@latest/node_modules/p/acp-skills-proxy", Some("bunx")),
            ("/home/me/.cache/pipx/x/bin/acp-skills-proxy", Some("pipx")),
            ("/home/me/.local/share/uv/tools/acp-skills-proxy/bin/acp-skills-proxy", None),
            ("/home/me/.cargo/bin/acp-skills-proxy", None),
            ("/usr/lib/node_modules/acp-skills-proxy/node_modules/p/bin/acp-skills-proxy", None),
        ] {
            assert_eq!(cached(Path::new(path)).map(|it| it.0), runner, "{path}");
        }
    }

    #[test]
    fn what_runs_a_script() {
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
