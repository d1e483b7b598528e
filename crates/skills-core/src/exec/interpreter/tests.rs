use super::*;

/// A simulated machine. Programs are given as paths in the order of the search path, and found by their file name without
/// `.exe`.
pub(super) struct TestMachine {
    pub(super) programs: Vec<&'static str>,
    pub(super) files: Vec<&'static str>,
    pub(super) variables: Vec<(&'static str, &'static str)>,
}

impl Machine for TestMachine {
    fn programs(&self, name: &str) -> Vec<PathBuf> {
        let matches = |path: &&&str| {
            let own = path.rsplit(['/', '\\']).next().unwrap_or(path);
            **path == name || own.split('.').next() == Some(name)
        };
        self.programs.iter().filter(matches).map(PathBuf::from).collect()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
    }

    fn names(&self, dir: &str) -> Vec<String> {
        let below = |path: &&str| Some(path.strip_prefix(dir)?.strip_prefix('\\')?.to_owned());
        self.files.iter().chain(&self.programs).filter_map(below).collect()
    }

    fn has_file(&self, path: &str) -> bool {
        self.files.contains(&path) || self.programs.contains(&path)
    }

    fn real_path(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn empty_file(&self) -> PathBuf {
        "EMPTY".into()
    }
}

/// Formats an interpreter on one line: variables, program, arguments.
pub(super) fn line(interpreter: Interpreter) -> String {
    let env = interpreter.env.iter().map(|(name, value)| format!("{}={} ", name.display(), value.display()));
    let program = interpreter.program.map_or("itself".to_owned(), |program| program.display().to_string());
    let args = interpreter.args.iter().map(|arg| format!(" [{}]", arg.display()));
    env.chain([program]).chain(args).collect()
}

mod on_unix {
    use super::*;

    /// Compares the command line for a script on a machine with these programs in `/bin`.
    fn check(path: &str, head: &str, installed: &[&'static str], expected: Result<&str, &str>) {
        let programs: Vec<_> = installed.iter().map(|name| &*format!("/bin/{name}").leak()).collect();
        let machine = TestMachine { programs, files: Vec::new(), variables: Vec::new() };
        let actual =
            choose(path, head.as_bytes(), &unix::Unix, &machine).map(line).map_err(|error| error.to_string());
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(actual, expected, "{path} {head:?} {installed:?}");
    }

    #[test]
    fn a_shebang_line_names_the_interpreter() {
        for (head, installed, expected) in [
            ("#!/bin/bash\n", "bash", "/bin/bash"),
            ("#! /bin/sh -e -u\r\n", "sh", "/bin/sh [-e -u]"),
            ("#!/opt/homebrew/bin/python3\n", "python3", "/bin/python3"),
            ("#!/usr/bin/env python3\n", "python3", "/bin/python3"),
            ("#!/usr/bin/env python\n", "python3", "/bin/python3"),
            ("#!/usr/bin/env nodejs", "node", "/bin/node"),
            ("#!/usr/bin/env node --no-warnings\n", "node", "/bin/node [--no-warnings]"),
            ("#!/usr/bin/env -S uv run --script\n", "uv", "/bin/uv [run] [--script]"),
            ("#!/usr/bin/env -Sdeno run 'a b' \"\"\n", "deno", "/bin/deno [run] [a b] []"),
            ("#!/usr/bin/env -S A=1 B='x y' perl -w\n", "perl", "A=1 B=x y /bin/perl [-w]"),
            ("#!C:\\Python\\python.exe\n", "python", "/bin/python"),
        ] {
            check("scripts/run", head, &[installed], Ok(expected));
        }
    }

    #[test]
    fn an_extension_names_the_interpreter() {
        for (path, installed, expected) in [
            ("a.py", &["python3", "python", "uv"][..], "/bin/python3"),
            ("a.PY", &["python"], "/bin/python"),
            ("a.sh", &["bash", "sh"], "/bin/sh"),
            ("a.bash", &["bash", "sh"], "/bin/bash"),
            ("a.js", &["node"], "/bin/node"),
            ("a.mjs", &["node"], "/bin/node"),
            ("a.cjs", &["bun"], "/bin/bun"),
            ("a.ts", &["node"], "/bin/node [--experimental-strip-types]"),
            ("a.ts", &["node", "deno"], "/bin/deno [run] [--allow-all]"),
            ("a.ts", &["node", "deno", "bun"], "/bin/bun"),
            ("a.b.rb", &["ruby"], "/bin/ruby"),
            ("a.pl", &["perl"], "/bin/perl"),
        ] {
            check(path, "", installed, Ok(expected));
        }
        check("a.py", "#!/usr/bin/env pypy\n", &["python3"], Ok("/bin/python3"));
        let powershell = "/bin/pwsh [-NoProfile] [-NonInteractive] [-ExecutionPolicy] [Bypass] [-File]";
        check("a.ps1", "", &["pwsh"], Ok(powershell));
    }

    #[test]
    fn python_with_inline_metadata_runs_with_uv() {
        let script = "#!/usr/bin/env python3\n# Licence.\n# /// script\n# dependencies = []\n# ///\n";
        check("a.py", script, &["uv", "python3"], Ok("/bin/uv [run] [--script]"));
        check("a.py", &script[23..], &["uv", "python3"], Ok("/bin/uv [run] [--script]"));
        check("a", script, &["uv", "python3"], Ok("/bin/uv [run] [--script]"));
        check("a.py", script, &["python3"], Ok("/bin/python3"));
        check("a.sh", "# /// script\n", &["uv", "sh"], Ok("/bin/sh"));
        check("a.py", "x = '# /// script'\n", &["uv", "python3"], Ok("/bin/python3"));
    }

    #[test]
    fn a_missing_interpreter_is_an_error() {
        check(
            "a.rb",
            "",
            &[],
            Err("could not find `ruby` to run `a.rb`; ask the user to install this program"),
        );
        check(
            "a.py",
            "",
            &[],
            Err("could not find `python3` or `python` to run `a.py`; ask the user to install this program"),
        );
        check(
            "a",
            "#!/usr/bin/env lua\n",
            &[],
            Err("could not find `lua` to run `a`; ask the user to install this program"),
        );
        let unknown = "could not find a program to run `a.md`: expected a `#!` line or a known extension";
        check("a.md", "# Title\n", &["sh"], Err(unknown));
        check("a.md", "#!\n", &["sh"], Err(unknown));
        check("a.md", "#!/usr/bin/env\n", &["sh"], Err(unknown));
    }
}

mod on_windows {
    use super::*;

    const VARIABLES: [(&str, &str); 2] =
        [("ProgramFiles", r"C:\Program Files"), ("LOCALAPPDATA", r"C:\Users\me\AppData\Local")];
    const PY: &str = r"C:\Windows\py.exe";
    const STORE_PYTHON: &str = r"C:\Users\me\AppData\Local\Microsoft\WindowsApps\python.exe";
    const STORE_PYTHON3: &str = r"C:\Users\me\AppData\Local\Microsoft\WindowsApps\python3.exe";
    const PYTHON: &str = r"C:\Python312\python.exe";
    const WSL_BASH: &str = r"C:\WINDOWS\system32\bash.exe";
    const STORE_BASH: &str = r"C:\Users\me\AppData\Local\Microsoft\WindowsApps\bash.exe";
    const GIT: &str = r"C:\Program Files\Git\cmd\git.exe";
    const GIT_BASH: &str = r"C:\Program Files\Git\bin\bash.exe";
    const GIT_SH: &str = r"C:\Program Files\Git\bin\sh.exe";
    const POWERSHELL: &str = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe";

    /// Compares the command line for a script on a machine with these programs on the search path, and these other files.
    fn check_with(
        path: &str,
        head: &str,
        (programs, files): (&[&'static str], &[&'static str]),
        variables: &[(&'static str, &'static str)],
        expected: Result<&str, &str>,
    ) {
        let variables = [&VARIABLES, variables].concat();
        let machine = TestMachine { programs: programs.to_vec(), files: files.to_vec(), variables };
        let actual = choose(path, head.as_bytes(), &windows::Windows, &machine)
            .map(line)
            .map_err(|error| error.to_string());
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(actual, expected, "{path} {head:?} {programs:?} {files:?}");
    }

    fn check(path: &str, head: &str, programs: &[&'static str], expected: &str) {
        check_with(path, head, (programs, &[]), &[], Ok(expected));
    }

    #[test]
    fn the_python_stub_of_the_store_is_ignored() {
        let py = r"PYTHONUTF8=1 C:\Windows\py.exe [-3]";
        let python = r"PYTHONUTF8=1 C:\Python312\python.exe";
        for (head, programs, expected) in [
            ("", &[STORE_PYTHON, STORE_PYTHON3, PY][..], py),
            ("", &[PYTHON, PY], py),
            ("", &[STORE_PYTHON, PYTHON], python),
            ("#!/usr/bin/env python3\n", &[STORE_PYTHON3, PY], py),
            ("#!/usr/bin/python3.12 -u\n", &[PY], r"PYTHONUTF8=1 C:\Windows\py.exe [-3] [-u]"),
            (
                "#!/usr/bin/env -S A=1 python -X dev\r\n",
                &[PYTHON],
                r"PYTHONUTF8=1 A=1 C:\Python312\python.exe [-X] [dev]",
            ),
        ] {
            check("a.py", head, programs, expected);
        }
        check("a", "#!/usr/bin/env python3\n", &[STORE_PYTHON3, PYTHON], python);
        let none = "could not find `py` or `python` or `python3` to run `a.py`; ask the user to install Python, because the `python` from Windows only opens the Microsoft Store";
        check_with("a.py", "", (&[STORE_PYTHON, STORE_PYTHON3], &[]), &[], Err(none));
        check_with("a.py", "#!/usr/bin/env python3\n", (&[STORE_PYTHON3], &[]), &[], Err(none));
        // If Python was installed from the Store, we should use it.
        let package = r"C:\Users\me\AppData\Local\Microsoft\WindowsApps\PythonSoftwareFoundation.Python.3.12_qbz5n2kfra8p0";
        let store = r"PYTHONUTF8=1 C:\Users\me\AppData\Local\Microsoft\WindowsApps\python.exe";
        check_with("a.py", "", (&[STORE_PYTHON], &[package]), &[], Ok(store));
        // An active virtual environment should come first.
        let environment = r"C:\work\.venv\Scripts\python.exe";
        let active = [("VIRTUAL_ENV", r"C:\work\.venv")];
        let expected = r"PYTHONUTF8=1 C:\work\.venv\Scripts\python.exe";
        check_with("a.py", "", (&[PY], &[environment]), &active, Ok(expected));
        check_with("a.py", "", (&[PY], &[]), &active, Ok(py));
        let script = "# /// script\n# ///\n";
        check("a.py", script, &[PY, r"C:\bin\uv.exe"], r"C:\bin\uv.exe [run] [--script]");
    }

    #[test]
    fn the_bash_of_wsl_is_ignored() {
        for (path, head, programs, files, expected) in [
            ("a.sh", "", &[WSL_BASH, GIT][..], &[GIT_BASH, GIT_SH][..], GIT_SH),
            ("a.sh", "#!/bin/bash\n", &[WSL_BASH, STORE_BASH, GIT], &[GIT_BASH, GIT_SH], GIT_BASH),
            ("a.bash", "", &[WSL_BASH], &[GIT_BASH], GIT_BASH),
            ("a.sh", "", &[WSL_BASH], &[GIT_BASH], GIT_BASH),
            ("a", "#!/usr/bin/env bash\n", &[WSL_BASH], &[GIT_BASH], GIT_BASH),
            // Any other `bash` on the search path should come first.
            ("a.bash", "", &[r"C:\msys64\usr\bin\bash.exe", GIT], &[GIT_BASH], r"C:\msys64\usr\bin\bash.exe"),
            // Here, Git is installed for one user only, or into an unusual directory on the search path.
            (
                "a.bash",
                "",
                &[],
                &[r"C:\Users\me\AppData\Local\Programs\Git\bin\bash.exe"],
                r"C:\Users\me\AppData\Local\Programs\Git\bin\bash.exe",
            ),
            (
                "a.bash",
                "",
                &[r"D:\Git\mingw64\bin\git.exe"],
                &[r"D:\Git\bin\bash.exe"],
                r"D:\Git\bin\bash.exe",
            ),
        ] {
            check_with(path, head, (programs, files), &[], Ok(expected));
        }
        let options = r"C:\Program Files\Git\bin\bash.exe [-eu]";
        check_with("a.sh", "#!/bin/bash -eu\n", (&[], &[GIT_BASH]), &[], Ok(options));
        let none = "ask the user to install Git for Windows, because the `bash` from Windows runs in WSL and does not find Windows paths";
        check_with(
            "a.bash",
            "",
            (&[WSL_BASH, STORE_BASH], &[]),
            &[],
            Err(&format!("could not find `bash` to run `a.bash`; {none}")),
        );
        check_with(
            "a",
            "#!/bin/bash\n",
            (&[WSL_BASH], &[]),
            &[],
            Err(&format!("could not find `bash` to run `a`; {none}")),
        );
    }

    #[test]
    fn other_extensions() {
        let file = "[-NoProfile] [-NonInteractive] [-ExecutionPolicy] [Bypass] [-File]";
        let node = r"C:\Program Files\nodejs\node.exe";
        for (path, head, programs, expected) in [
            ("a.ps1", "", &[POWERSHELL][..], &*format!("{POWERSHELL} {file}")),
            ("a.ps1", "", &[POWERSHELL, r"C:\pwsh.exe"], &format!(r"C:\pwsh.exe {file}")),
            ("a.ps1", "#!/usr/bin/env pwsh -NoLogo\n", &[POWERSHELL], &format!("{POWERSHELL} {file}")),
            ("a.cmd", "", &[], "itself"),
            ("a.BAT", "", &[], "itself"),
            ("a.js", "", &[node], node),
            ("a.js", "#!/usr/bin/env node --no-warnings\n", &[node], node),
            ("a.mjs", "", &[r"C:\bun.exe"], r"C:\bun.exe"),
            ("a.ts", "#!/usr/bin/env -S deno run -A\n", &[r"C:\deno.exe"], r"C:\deno.exe [run] [-A]"),
            ("a.rb", "#!/usr/bin/ruby -w\n", &[r"C:\Ruby\bin\ruby.exe"], r"C:\Ruby\bin\ruby.exe [-w]"),
        ] {
            check(path, head, programs, expected);
        }
        let perl = r"C:\Program Files\Git\usr\bin\perl.exe";
        check_with("a.pl", "", (&[GIT], &[perl]), &[], Ok(perl));
        let none = "could not find `ruby` to run `a.rb`; ask the user to install this program";
        check_with("a.rb", "", (&[], &[]), &[], Err(none));
        let unknown = "could not find a program to run `a.md`: expected a `#!` line or a known extension";
        check_with("a.md", "", (&[], &[]), &[], Err(unknown));
        check_with(
            "a",
            "#!/usr/bin/lua\n",
            (&[], &[]),
            &[],
            Err("could not find `/usr/bin/lua` to run `a`; ask the user to install this program"),
        );
    }
}
