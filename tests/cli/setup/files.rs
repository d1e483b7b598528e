//! Settings files: invalid, linked, read-only, and with Windows line ends.

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::symlink;
#[cfg(unix)]
use std::path::Path;

use expect_test::expect;
use serde_json::Value;

use super::ZED;
use super::machine::{Machine, PROGRAM, ZED_FILE, here, set_read_only};
#[cfg(unix)]
use super::machine::{mode, set_mode};

#[test]
fn invalid_settings_are_not_changed() {
    let machine = Machine::new();
    for (text, expected) in [
        (
            "{\n  \"theme\": \"One\"\n  \"vim_mode\": true\n}\n",
            expect![[r#"
                error: …/home/.config/zed/settings.json:2:17: invalid JSON: expected comma
                hint: no settings were changed; fix the error in the editor and retry
                exit 2
            "#]],
        ),
        (
            "{ \"agent_servers\": [] }",
            expect![[r#"
                error: …/home/.config/zed/settings.json:1:20: `agent_servers` must be an object `{ … }`
                hint: no settings were changed; fix the error in the editor and retry
                exit 2
            "#]],
        ),
        (
            "{\n\"agent_servers\": {},\n\"agent_servers\": {}\n}",
            expect![[r#"
                error: …/home/.config/zed/settings.json:3:1: duplicate key `agent_servers`; first used in line 2
                hint: no settings were changed; fix the error in the editor and retry
                exit 2
            "#]],
        ),
        (
            "[]",
            expect![[r#"
                error: …/home/.config/zed/settings.json:1:1: expected an object `{ … }`
                hint: no settings were changed; fix the error in the editor and retry
                exit 2
            "#]],
        ),
        (
            "{ \"agent_servers\": { \"claude\": { \"command\": {\"path\": \"x\"} } } }",
            expect![[r#"
                error: …/home/.config/zed/settings.json:1:45: `command` of agent `claude` must be a string
                hint: no settings were changed; fix the error in the editor and retry
                exit 2
            "#]],
        ),
        (
            "{ \"agent_servers\": { \"Claude with skills\": { \"command\": \"x\" } } }",
            expect![[r#"
                error: settings already contain agent `Claude with skills` in line 1
                hint: use `--agent 'Claude with skills'` to use the proxy for that agent, or `--name` to select another name
                exit 2
            "#]],
        ),
    ] {
        machine.write(ZED_FILE, text);
        machine.check(&["setup", "zed", "--agent", "claude", "--yes"], expected);
        assert_eq!(machine.read(ZED_FILE), text);
    }
}

#[test]
fn files_that_cannot_be_edited() {
    let machine = Machine::new();
    // Some programs, such as home-manager, generate files that are read-only.
    machine.write(ZED_FILE, "{}");
    let path = machine.path(ZED_FILE);
    set_read_only(&path);
    let printed = machine.output(&["setup", "zed", "--agent", "claude", "--yes"]);
    let expected = here("error: …/home/.config/zed/settings.json is read-only\nhint: if another program");
    assert!(printed.contains(&expected), "{printed}");
    assert_eq!(machine.read(ZED_FILE), "{}");
    // We can't just remove the file here, because this doesn't work for read-only files on Windows.
    fs::rename(&path, path.with_extension("old")).unwrap();
    // On Windows, we might not be allowed to create a symbolic link.
    #[cfg(unix)]
    {
        symlink("nowhere", &path).unwrap();
        let printed = machine.output(&["setup", "zed", "--agent", "claude", "--yes"]);
        assert!(printed.contains("settings.json is a broken symbolic link to nowhere"), "{printed}");
        fs::remove_file(&path).unwrap();
    }
    fs::create_dir(&path).unwrap();
    let printed = machine.output(&["setup", "zed", "--agent", "claude", "--yes"]);
    let expected = here("cannot read settings: not a regular file: ~/.config/zed/settings.json");
    assert!(printed.contains(&expected), "{printed}");
}

/// Files that do not exist, are empty, or contain only comments.
#[test]
fn missing_and_empty_files() {
    let machine = Machine::new();
    let setup = |flag| machine.output(&["setup", "jetbrains", "--agent", "claude", "--yes", flag]);
    let path = "home/.jetbrains/acp.json";
    let file = machine.path(path);
    let undo = || machine.output(&["setup", "jetbrains", "--undo", "--yes"]);
    assert!(setup("--strict").ends_with("exit 0\n"));
    let settings: Value = serde_json::from_str(&machine.read(path)).unwrap();
    let agent = &settings["agent_servers"]["Claude with skills"];
    // Without any flags for this, we default to the skills of the user.
    assert_eq!(agent["args"].as_array().unwrap()[..3], ["--discover", "agents", "--strict"]);
    let program = dunce::canonicalize(PROGRAM).unwrap();
    assert_eq!((&agent["command"], &agent["env"]), (&program.to_str().into(), &serde_json::json!({})));
    assert!(undo().contains("removing the file, because `setup` created it"));
    assert!(!file.exists());
    for text in ["", "\n", "\u{feff}{\r\n}\r\n", "{}", "// nothing yet\n"] {
        machine.write(path, text);
        assert!(setup("--strict").ends_with("exit 0\n"), "{text:?}");
        assert!(machine.read(path).contains("Claude with skills"), "{text:?}");
        assert!(undo().ends_with("exit 0\n"), "{text:?}");
        assert_eq!(machine.read(path), text);
    }
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_to_dotfiles() {
    let machine = Machine::new();
    let setup = || machine.output(&["setup", "jetbrains", "--agent", "claude", "--yes"]);
    let file = machine.path("home/.jetbrains/acp.json");
    machine.write("dotfiles/acp.json", "{}\n");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink("../../dotfiles/acp.json", &file).unwrap();
    set_mode(&machine.path("dotfiles/acp.json"), 0o600);
    assert!(setup().ends_with("exit 0\n"));
    assert_eq!(fs::read_link(&file).unwrap(), Path::new("../../dotfiles/acp.json"));
    assert!(machine.read("dotfiles/acp.json").contains("Claude with skills"));
    assert_eq!(mode(&file), 0o600);
    assert!(machine.output(&["setup", "jetbrains", "--undo", "--yes"]).ends_with("exit 0\n"));
    assert_eq!(machine.read("dotfiles/acp.json"), "{}\n");
    let files: Vec<_> = fs::read_dir(machine.path("dotfiles")).unwrap().collect();
    assert_eq!(files.len(), 1, "temporary files are removed: {files:?}");
}

/// Existing line ends are kept, and added lines have the same ones.
#[test]
fn line_ends() {
    let machine = Machine::new();
    let ends = |text: &str| (text.matches("\r\n").count(), text.matches('\n').count());
    for (before, is_windows) in [(ZED.replace('\n', "\r\n"), true), (ZED.to_owned(), false)] {
        machine.write(ZED_FILE, &before);
        let printed = machine.output(&["setup", "zed", "--agent", "claude", "--yes"]);
        assert!(printed.ends_with("exit 0\n"), "{printed}");
        let after = machine.read(ZED_FILE);
        let (windows, all) = ends(&after);
        assert!(all > ends(&before).1, "{after}");
        assert_eq!(windows, if is_windows { all } else { 0 }, "{after:?}");
        assert!(machine.output(&["setup", "zed", "--undo", "--yes"]).ends_with("exit 0\n"));
        assert_eq!(machine.read(ZED_FILE), before);
    }
}
