use super::{
    super::{
        choose,
        tests::{TestMachine, line},
        unix::Unix,
        windows::Windows,
    },
    *,
};

const NONE: Surroundings = Surroundings { has_environment: false, has_registry: false };
const ENVIRONMENT: Surroundings = Surroundings { has_environment: true, ..NONE };
const NPM_CONFIG: Surroundings = Surroundings { has_registry: true, ..NONE };

/// Compares the command line for a script on a machine with these programs.
fn check(
    platform: &dyn Platform,
    machine: &TestMachine,
    (path, head): (&str, &str),
    surroundings: Surroundings,
    expected: &str,
) {
    let chosen = choose(path, head.as_bytes(), platform, machine).unwrap();
    let isolated = chosen.isolated(path, head.as_bytes(), surroundings, platform, machine);
    let actual = isolated.map_or_else(|error| error.to_string(), line);
    assert_eq!(actual, expected, "{path} {head:?} {surroundings:?}");
}

fn check_on_unix(script: (&str, &str), installed: &[&str], surroundings: Surroundings, expected: &str) {
    let programs = installed.iter().map(|name| &*format!("/bin/{name}").leak()).collect();
    let machine = TestMachine { programs, files: Vec::new(), variables: Vec::new() };
    check(&Unix, &machine, script, surroundings, expected);
}

#[test]
fn interpreters_read_no_configuration_of_a_project() {
    let bun = "/bin/bun [--config=EMPTY] [--env-file=EMPTY] [--tsconfig-override=EMPTY]";
    let r = "R_PROFILE_USER=~/.Rprofile R_ENVIRON_USER=~/.Renviron";
    for (path, head, installed, expected) in [
        ("a.ts", "", "bun", bun),
        ("a.js", "", "bun", bun),
        ("a", "#!/usr/bin/env bun\n", "bun", bun),
        ("a", "#!/usr/bin/env -S bun run --smol\n", "bun", &format!("{bun} [run] [--smol]")),
        ("a.ts", "", "deno", "/bin/deno [run] [--no-config] [--allow-all]"),
        ("a", "#!/usr/bin/env -S deno run -A\n", "deno", "/bin/deno [run] [--no-config] [-A]"),
        ("a", "#!/usr/bin/env -S deno -q run -A\n", "deno", "/bin/deno [-q] [run] [--no-config] [-A]"),
        ("a", "#!/usr/bin/env -S deno -A\n", "deno", "/bin/deno [--no-config] [-A]"),
        ("a", "#!/usr/bin/env -S deno test\n", "deno", "/bin/deno [test] [--no-config]"),
        // The user has approved a script that names a configuration.
        ("a", "#!/usr/bin/env -S deno run -c a.json\n", "deno", "/bin/deno [run] [-c] [a.json]"),
        ("a", "#!/usr/bin/env Rscript\n", "Rscript", &format!("{r} /bin/Rscript")),
        ("a", "#!/usr/bin/env tsx\n", "tsx", "TSX_TSCONFIG_PATH=EMPTY /bin/tsx"),
        (
            "a",
            "#!/usr/bin/env -S java --source 17\n",
            "java",
            "CLASSPATH=EMPTY/none /bin/java [--source] [17]",
        ),
        ("a", "#!/usr/bin/env -S CLASSPATH=x java\n", "java", "CLASSPATH=x /bin/java"),
        ("a.py", "", "python3", "/bin/python3 [-B]"),
        ("a", "#!/bin/python3.12 -E\n", "python3.12", "/bin/python3.12 [-B] [-E]"),
        // These read nothing of a project.
        ("a.js", "", "node", "/bin/node"),
        ("a.rb", "", "ruby", "/bin/ruby"),
        ("a.sh", "", "sh", "/bin/sh"),
    ] {
        check_on_unix((path, head), &[installed], NONE, expected);
    }
}

/// Otherwise, ts-node would load a compiler of the project.
/// Joined paths have other separators on Windows.
#[cfg(unix)]
#[test]
fn ts_node_uses_the_compiler_beside_it() {
    for (program, compiler, expected) in [
        (
            "/lib/node_modules/ts-node/dist/ts-node",
            "/lib/node_modules/typescript",
            "/lib/node_modules/typescript",
        ),
        ("/lib/node_modules/.bin/ts-node", "/lib/node_modules/typescript", "/lib/node_modules/typescript"),
        ("/npm/ts-node", "/npm/node_modules/typescript", "/npm/node_modules/typescript"),
        ("/bin/ts-node", "/project/node_modules/typescript", "/bin/typescript"),
    ] {
        let package = &*format!("{compiler}/package.json").leak();
        let machine = TestMachine { programs: vec![program], files: vec![package], variables: Vec::new() };
        let expected = format!("TS_NODE_SKIP_PROJECT=true TS_NODE_COMPILER={expected} {program}");
        check(&Unix, &machine, ("a", "#!/usr/bin/env ts-node\n"), NONE, &expected);
    }
}

#[test]
fn a_configuration_of_npm_keeps_bun_from_installing() {
    let expected = "/bin/bun [--config=EMPTY] [--env-file=EMPTY] [--tsconfig-override=EMPTY] [--no-install]";
    check_on_unix(("a.ts", ""), &["bun"], NPM_CONFIG, expected);
    check_on_unix(("a.ts", ""), &["deno"], NPM_CONFIG, "/bin/deno [run] [--no-config] [--allow-all]");
}

#[test]
fn uv_uses_no_python_of_a_project() {
    let metadata = |line: &str| format!("# /// script\n{line}\n# ///\n# requires-python = '==2'\n");
    for (line, expected) in [
        ("# dependencies = []", ">=3"),
        ("# requires-python = \">=3.11, <4\"", ">=3.11, <4"),
        ("#requires-python='~=3.12' # why", "~=3.12"),
        ("# requires-python = 3", ">=3"),
        ("# requires-python = \"\"", ">=3"),
        ("# requires-pythons = \"3\"", ">=3"),
    ] {
        let expected = format!("UV_PYTHON={expected} /bin/uv [--project] [/] [run] [--script]");
        check_on_unix(("a.py", &metadata(line)), &["uv"], NONE, &expected);
    }
    let script = "#!/usr/bin/env -S uv run -p 3.12 --python=3.1 -p3 --python 3 -q --script\n";
    let expected = "UV_PYTHON=>=3 /bin/uv [--project] [/] [run] [-p] [3.12] [--python=3.1] [-p3] [--python] [3] [-q] [--script]";
    check_on_unix(("a", script), &["uv"], NONE, expected);
    let expected = "UV_PYTHON=/bin/python3 /bin/uv [--project] [/] [run] [-q] [--script]";
    check_on_unix(("a", script), &["uv", "python3"], ENVIRONMENT, expected);
    let expected = "could not find `python3` or `python` to run `a`; ask the user to install this program";
    check_on_unix(("a", script), &["uv"], ENVIRONMENT, expected);
    let script = "#!/usr/bin/env -S uv run --project=x\n";
    check_on_unix(("a", script), &["uv"], NONE, "UV_PYTHON=>=3 /bin/uv [run] [--project=x]");
}

#[test]
fn values_of_the_user_and_of_the_script_are_kept() {
    let machine = TestMachine {
        programs: vec!["/bin/uv", "/bin/Rscript", "/bin/python3"],
        files: Vec::new(),
        variables: vec![("UV_PYTHON", "3.13"), ("R_PROFILE_USER", "/me/r"), ("R_ENVIRON_USER", "")],
    };
    let uv = "/bin/uv [--project] [/] [run]";
    let check = |head: &str, surroundings, expected: &str| {
        check(&Unix, &machine, ("a", head), surroundings, expected);
    };
    check("#!/usr/bin/env -S uv run\n", NONE, &format!("UV_PYTHON=3.13 {uv}"));
    check("#!/usr/bin/env -S UV_PYTHON=3.9 uv run\n", NONE, &format!("UV_PYTHON=3.9 {uv}"));
    let python = format!("UV_PYTHON=/bin/python3 {uv}");
    check("#!/usr/bin/env -S UV_PYTHON=3.9 uv run\n", ENVIRONMENT, &python);
    let r = "R_PROFILE_USER=/me/r R_ENVIRON_USER=~/.Renviron /bin/Rscript";
    check("#!/usr/bin/env Rscript\n", NONE, r);
}

#[test]
fn programs_of_windows_are_isolated() {
    let programs = vec![r"C:\Windows\py.exe", r"C:\bin\uv.exe", r"C:\bin\bun.exe", r"C:\bin\deno.exe"];
    let machine = TestMachine { programs, files: Vec::new(), variables: vec![("SystemRoot", r"D:\Windows")] };
    for (path, head, expected) in [
        ("a.py", "", r"PYTHONUTF8=1 C:\Windows\py.exe [-3] [-B]"),
        ("a.py", "#!/usr/bin/python3 -u\n", r"PYTHONUTF8=1 C:\Windows\py.exe [-3] [-B] [-u]"),
        (
            "a.py",
            "# /// script\n# ///\n",
            r"UV_PYTHON=>=3 C:\bin\uv.exe [--project] [D:\Windows] [run] [--script]",
        ),
        ("a.ts", "", r"C:\bin\bun.exe [--config=EMPTY] [--env-file=EMPTY] [--tsconfig-override=EMPTY]"),
        ("a", "#!/usr/bin/env -S deno run -A\n", r"C:\bin\deno.exe [run] [--no-config] [-A]"),
        ("a.cmd", "", "itself"),
    ] {
        check(&Windows, &machine, (path, head), NONE, expected);
    }
}

#[test]
fn files_around_a_script() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    fs::create_dir_all(root.join("home/project/src")).unwrap();
    fs::create_dir_all(root.join("home/project/.skills/kit")).unwrap();
    let around = |cwd: &str, skill: &str| {
        Surroundings::within(Some(&root.join("home")), &root.join(cwd), &root.join(skill))
    };
    let (cwd, kit) = ("home/project/src", "home/project/.skills/kit");
    assert_eq!(around(cwd, kit), NONE);
    // Files of the user and of the skill itself are trusted.
    fs::write(root.join("home/.npmrc"), "").unwrap();
    fs::write(root.join("home/project/.skills/kit/.npmrc"), "").unwrap();
    assert_eq!(around(cwd, kit), NONE);
    assert_eq!(around("home", "home/kit"), NONE);
    fs::write(root.join("home/project/.npmrc"), "").unwrap();
    assert_eq!(around(cwd, kit), NPM_CONFIG);
    assert_eq!(around("home/project", "home/kit"), NPM_CONFIG);
    assert_eq!(around(cwd, "home/kit"), NONE);
    fs::remove_file(root.join("home/project/.npmrc")).unwrap();
    fs::write(root.join("home/project/.skills/bunfig.toml"), "").unwrap();
    assert_eq!(around(cwd, kit), NPM_CONFIG);
    fs::remove_file(root.join("home/project/.skills/bunfig.toml")).unwrap();
    for name in [".venv", "pyvenv.cfg"] {
        let file = root.join("home/project").join(name);
        fs::write(&file, "").unwrap();
        assert_eq!(around(cwd, kit), ENVIRONMENT, "{name}");
        assert_eq!(around("home", kit), NONE, "{name}");
        fs::remove_file(file).unwrap();
    }
}
