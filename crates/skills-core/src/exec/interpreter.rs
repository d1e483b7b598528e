//! [`Interpreter`]: what runs a script. The executable bit does not matter: nine of ten scripts in the wild lack it.
//!
//! In this order: `uv` for Python with inline metadata ([PEP 723](https://peps.python.org/pep-0723/)), the `#!` line, the
//! extension.

use std::{ffi::OsString, path::PathBuf};

/// How much of a script decides what runs it, in bytes.
pub(super) const HEAD_BYTES: u64 = 16 * 1024;

/// Programs for one extension, the preferred one first, with what stands before the path of the script.
type Candidates = &'static [(&'static str, &'static [&'static str])];

const PYTHON: Candidates = &[("python3", &[]), ("python", &[])];
const POWERSHELL: &[&str] = &["-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"];

const BY_EXTENSION: &[(&[&str], Candidates)] = &[
    (&["py"], PYTHON),
    (&["sh"], &[("sh", &[]), ("bash", &[])]),
    (&["bash"], &[("bash", &[])]),
    (&["js", "mjs", "cjs"], &[("node", &[]), ("bun", &[])]),
    (&["ts"], &[("bun", &[]), ("deno", &["run", "--allow-all"]), ("node", &["--experimental-strip-types"])]),
    (&["rb"], &[("ruby", &[])]),
    (&["pl"], &[("perl", &[])]),
    (&["ps1"], &[("pwsh", POWERSHELL), ("powershell", POWERSHELL)]),
];

/// A program, and what stands before the path of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
}

impl Interpreter {
    fn new(program: PathBuf, args: &[impl AsRef<str>]) -> Self {
        let args = args.iter().map(|arg| OsString::from(arg.as_ref())).collect();
        Self { program, args, env: Vec::new() }
    }

    /// What runs the script `path`, which begins with `head`; `find` looks for a program. The error is for the model.
    pub(super) fn choose(
        path: &str,
        head: &[u8],
        find: &dyn Fn(&str) -> Option<PathBuf>,
    ) -> Result<Self, String> {
        let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        let extension = extension.unwrap_or_default();
        let shebang = Shebang::parse(head);
        let is_python = match &shebang {
            Some(shebang) => shebang.base_name().starts_with("python"),
            None => extension == "py",
        };
        if is_python
            && has_inline_metadata(head)
            && let Some(uv) = find("uv")
        {
            return Ok(Self::new(uv, &["run", "--script"]));
        }
        if let Some(shebang) = &shebang
            && let Some(program) = shebang.find(find)
        {
            let env = shebang.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
            return Ok(Self { env, ..Self::new(program, &shebang.args) });
        }
        let known = BY_EXTENSION.iter().find(|(extensions, _)| extensions.contains(&extension.as_str()));
        if let Some((_, candidates)) = known {
            for (name, args) in *candidates {
                if let Some(program) = find(name) {
                    return Ok(Self::new(program, args));
                }
            }
            let names: Vec<_> = candidates.iter().map(|(name, _)| format!("`{name}`")).collect();
            return Err(format!("`{path}` needs {}, which is not installed", names.join(" or ")));
        }
        Err(match shebang {
            Some(shebang) => format!("`{path}` needs `{}`, which is not installed", shebang.program),
            None => format!("nothing is known to run `{path}`: it has no `#!` line and no known extension"),
        })
    }
}

/// `# /// script` on a line of its own.
fn has_inline_metadata(head: &[u8]) -> bool {
    head.split(|&byte| byte == b'\n').any(|line| line.trim_ascii_end() == b"# /// script")
}

/// The first line of a script, `env` resolved.
#[derive(Debug, PartialEq, Eq)]
struct Shebang {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Shebang {
    fn parse(head: &[u8]) -> Option<Self> {
        let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
        let line = std::str::from_utf8(line).ok()?.trim();
        let (program, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if program.is_empty() {
            return None;
        }
        if base_name(program) == "env" {
            return Self::parse_env(rest.trim());
        }
        // The kernel gives everything behind the program as one argument.
        let args = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
        Some(Self { program: program.to_owned(), args: args.into_iter().collect(), env: Vec::new() })
    }

    /// `env -S NAME=value program args`, `env program`; without `-S` Linux would not split, but it would not run either.
    fn parse_env(rest: &str) -> Option<Self> {
        let rest = ["--split-string=", "--split-string", "-S"]
            .iter()
            .find_map(|flag| rest.strip_prefix(flag))
            .unwrap_or(rest);
        let mut words = split_words(rest).into_iter().peekable();
        let mut env = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            env.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        let program = words.next().filter(|word| !word.starts_with('-'))?;
        Some(Self { program, args: words.collect(), env })
    }

    fn base_name(&self) -> &str {
        base_name(&self.program)
    }

    /// The program itself, or the one with its name on the search path: `/usr/local/bin/python3` is elsewhere here.
    fn find(&self, find: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        let name = self.base_name();
        let other = match name {
            "python" => Some("python3"),
            "python3" => Some("python"),
            "nodejs" => Some("node"),
            _ => None,
        };
        find(&self.program).or_else(|| find(name)).or_else(|| find(other?))
    }
}

fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Words as `env -S` splits them: spaces, with single and double quotes around them.
fn split_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut in_word) = (Vec::new(), String::new(), None, false);
    for c in text.chars() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => {
                if in_word {
                    words.push(std::mem::take(&mut word));
                }
                in_word = false;
            }
            (None, '"' | '\'') => (quote, in_word) = (Some(c), true),
            (Some(open), c) if open == c => quote = None,
            (_, c) => {
                word.push(c);
                in_word = true;
            }
        }
    }
    if in_word {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command line for a script where these programs are installed, below `/bin`.
    fn check(path: &str, head: &str, installed: &[&str], expected: Result<&str, &str>) {
        let find = |name: &str| {
            let found = installed.contains(&name)
                || name.strip_prefix("/bin/").is_some_and(|it| installed.contains(&it));
            found.then(|| PathBuf::from(name))
        };
        let line = Interpreter::choose(path, head.as_bytes(), &find).map(|chosen| {
            let env =
                chosen.env.iter().map(|(name, value)| format!("{}={} ", name.display(), value.display()));
            let args = chosen.args.iter().map(|arg| format!(" [{}]", arg.display()));
            env.chain([chosen.program.display().to_string()]).chain(args).collect::<String>()
        });
        assert_eq!(line, expected.map(str::to_owned).map_err(str::to_owned), "{path} {head:?} {installed:?}");
    }

    #[test]
    fn shebangs() {
        for (head, installed, expected) in [
            ("#!/bin/bash\n", "bash", "/bin/bash"),
            ("#! /bin/sh -e -u\r\n", "sh", "/bin/sh [-e -u]"),
            ("#!/opt/homebrew/bin/python3\n", "python3", "python3"),
            ("#!/usr/bin/env python3\n", "python3", "python3"),
            ("#!/usr/bin/env python\n", "python3", "python3"),
            ("#!/usr/bin/env nodejs", "node", "node"),
            ("#!/usr/bin/env node --no-warnings\n", "node", "node [--no-warnings]"),
            ("#!/usr/bin/env -S uv run --script\n", "uv", "uv [run] [--script]"),
            ("#!/usr/bin/env -Sdeno run 'a b' \"\"\n", "deno", "deno [run] [a b] []"),
            ("#!/usr/bin/env -S A=1 B='x y' perl -w\n", "perl", "A=1 B=x y perl [-w]"),
            ("#!C:\\Python\\python.exe\n", "python", "python"),
        ] {
            check("scripts/run", head, &[installed], Ok(expected));
        }
    }

    #[test]
    fn extensions() {
        for (path, installed, expected) in [
            ("a.py", &["python3", "python", "uv"][..], "python3"),
            ("a.PY", &["python"], "python"),
            ("a.sh", &["bash", "sh"], "sh"),
            ("a.bash", &["bash", "sh"], "bash"),
            ("a.js", &["node"], "node"),
            ("a.mjs", &["node"], "node"),
            ("a.cjs", &["bun"], "bun"),
            ("a.ts", &["node"], "node [--experimental-strip-types]"),
            ("a.ts", &["node", "deno"], "deno [run] [--allow-all]"),
            ("a.ts", &["node", "deno", "bun"], "bun"),
            ("a.b.rb", &["ruby"], "ruby"),
            ("a.pl", &["perl"], "perl"),
        ] {
            check(path, "", installed, Ok(expected));
        }
        check("a.py", "#!/usr/bin/env pypy\n", &["python3"], Ok("python3"));
        let powershell = "pwsh [-NoProfile] [-NonInteractive] [-ExecutionPolicy] [Bypass] [-File]";
        check("a.ps1", "", &["pwsh"], Ok(powershell));
    }

    #[test]
    fn python_with_inline_metadata() {
        let script = "#!/usr/bin/env python3\n# Licence.\n# /// script\n# dependencies = []\n# ///\n";
        check("a.py", script, &["uv", "python3"], Ok("uv [run] [--script]"));
        check("a.py", &script[23..], &["uv", "python3"], Ok("uv [run] [--script]"));
        check("a", script, &["uv", "python3"], Ok("uv [run] [--script]"));
        check("a.py", script, &["python3"], Ok("python3"));
        check("a.sh", "# /// script\n", &["uv", "sh"], Ok("sh"));
        check("a.py", "x = '# /// script'\n", &["uv", "python3"], Ok("python3"));
    }

    #[test]
    fn nothing_to_run_it() {
        check("a.rb", "", &[], Err("`a.rb` needs `ruby`, which is not installed"));
        check("a.py", "", &[], Err("`a.py` needs `python3` or `python`, which is not installed"));
        check("a", "#!/usr/bin/env lua\n", &[], Err("`a` needs `lua`, which is not installed"));
        let unknown = "nothing is known to run `a.md`: it has no `#!` line and no known extension";
        check("a.md", "# Title\n", &["sh"], Err(unknown));
        check("a.md", "#!\n", &["sh"], Err(unknown));
        check("a.md", "#!/usr/bin/env\n", &["sh"], Err(unknown));
    }
}
