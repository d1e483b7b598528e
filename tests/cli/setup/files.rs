//! Settings files of all kinds: broken, linked, read-only, with the line ends of Windows.

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
fn settings_that_are_left_alone() {
    let machine = Machine::new();
    for (text, expected) in [
        (
            "{\n  \"theme\": \"One\"\n  \"vim_mode\": true\n}\n",
            expect![[r#"
            error: …/home/.config/zed/settings.json:2:17: this is no valid JSON: expected comma
            hint: nothing was changed; correct it in the editor, then run this again
            exit 2
        "#]],
        ),
        (
            "{ \"agent_servers\": [] }",
            expect![[r#"
            error: …/home/.config/zed/settings.json:1:20: `agent_servers` is not an object `{ … }`
            hint: nothing was changed; correct it in the editor, then run this again
            exit 2
        "#]],
        ),
        (
            "{\n\"agent_servers\": {},\n\"agent_servers\": {}\n}",
            expect![[r#"
            error: …/home/.config/zed/settings.json:3:1: `agent_servers` is here a second time; the first is in line 2
            hint: nothing was changed; correct it in the editor, then run this again
            exit 2
        "#]],
        ),
        (
            "[]",
            expect![[r#"
            error: …/home/.config/zed/settings.json:1:1: the settings are not an object `{ … }`
            hint: nothing was changed; correct it in the editor, then run this again
            exit 2
        "#]],
        ),
        (
            "{ \"agent_servers\": { \"claude\": { \"command\": {\"path\": \"x\"} } } }",
            expect![[r#"
            error: …/home/.config/zed/settings.json:1:45: `command` of the agent `claude` is not a text
            hint: nothing was changed; correct it in the editor, then run this again
            exit 2
        "#]],
        ),
        (
            "{ \"agent_servers\": { \"Claude with skills\": { \"command\": \"x\" } } }",
            expect![[r#"
            error: there is an agent `Claude with skills` in line 1
            hint: `--agent 'Claude with skills'` puts the proxy in front of that one; `--name` calls the new one something else
            exit 2
        "#]],
        ),
    ] {
        machine.write(ZED_FILE, text);
        machine.check(&["setup", "zed", "--agent", "claude", "--yes"], expected);
        assert_eq!(machine.read(ZED_FILE), text);
    }
    // A file that a program makes, such as home-manager.
    machine.write(ZED_FILE, "{}");
    let path = machine.path(ZED_FILE);
    set_read_only(&path);
    let said = machine.said(&["setup", "zed", "--agent", "claude", "--yes"]);
    let expected = here("error: …/home/.config/zed/settings.json is read-only\nhint: where a program");
    assert!(said.contains(&expected), "{said}");
    assert_eq!(machine.read(ZED_FILE), "{}");
    // Elsewhere, so that it need not be removed.
    fs::rename(&path, path.with_extension("old")).unwrap();
    // To make one takes a privilege on Windows.
    #[cfg(unix)]
    {
        symlink("nowhere", &path).unwrap();
        let said = machine.said(&["setup", "zed", "--agent", "claude", "--yes"]);
        assert!(said.contains("settings.json is a link to nowhere, which is not there"), "{said}");
        fs::remove_file(&path).unwrap();
    }
    fs::create_dir(&path).unwrap();
    let said = machine.said(&["setup", "zed", "--agent", "claude", "--yes"]);
    let expected = here("cannot read …/home/.config/zed/settings.json: it is no file");
    assert!(said.contains(&expected), "{said}");
}

/// Files that are not there, are empty, or lie in a repository of dotfiles.
#[test]
fn files_of_all_kinds() {
    let machine = Machine::new();
    let setup = |flag| machine.said(&["setup", "jetbrains", "--agent", "claude", "--yes", flag]);
    let (there, file) = ("home/.jetbrains/acp.json", machine.path("home/.jetbrains/acp.json"));
    let undo = || machine.said(&["setup", "jetbrains", "--undo", "--yes"]);
    assert!(setup("--strict").ends_with("exit 0\n"));
    let settings: Value = serde_json::from_str(&machine.read(there)).unwrap();
    let agent = &settings["agent_servers"]["Claude with skills"];
    // A flag that names no skills leaves those of the user.
    assert_eq!(agent["args"].as_array().unwrap()[..3], ["--discover", "user", "--strict"]);
    let program = dunce::canonicalize(PROGRAM).unwrap();
    assert_eq!((&agent["command"], &agent["env"]), (&program.to_str().into(), &serde_json::json!({})));
    assert!(undo().contains("the file was made by `setup`, so it goes"));
    assert!(!file.exists());
    for text in ["", "\n", "\u{feff}{\r\n}\r\n", "{}", "// nothing yet\n"] {
        machine.write(there, text);
        assert!(setup("--strict").ends_with("exit 0\n"), "{text:?}");
        assert!(machine.read(there).contains("Claude with skills"), "{text:?}");
        assert!(undo().ends_with("exit 0\n"), "{text:?}");
        assert_eq!(machine.read(there), text);
    }
}

#[cfg(unix)]
#[test]
fn a_file_in_a_repository_of_dotfiles() {
    let machine = Machine::new();
    let setup = || machine.said(&["setup", "jetbrains", "--agent", "claude", "--yes"]);
    let file = machine.path("home/.jetbrains/acp.json");
    machine.write("dotfiles/acp.json", "{}\n");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink("../../dotfiles/acp.json", &file).unwrap();
    set_mode(&machine.path("dotfiles/acp.json"), 0o600);
    assert!(setup().ends_with("exit 0\n"));
    assert_eq!(fs::read_link(&file).unwrap(), Path::new("../../dotfiles/acp.json"));
    assert!(machine.read("dotfiles/acp.json").contains("Claude with skills"));
    assert_eq!(mode(&file), 0o600);
    assert!(machine.said(&["setup", "jetbrains", "--undo", "--yes"]).ends_with("exit 0\n"));
    assert_eq!(machine.read("dotfiles/acp.json"), "{}\n");
    let files: Vec<_> = fs::read_dir(machine.path("dotfiles")).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing is left lying about: {files:?}");
}

/// Line ends are kept, and what is added has them too.
#[test]
fn line_ends() {
    let machine = Machine::new();
    let ends = |text: &str| (text.matches("\r\n").count(), text.matches('\n').count());
    for (before, is_windows) in [(ZED.replace('\n', "\r\n"), true), (ZED.to_owned(), false)] {
        machine.write(ZED_FILE, &before);
        let said = machine.said(&["setup", "zed", "--agent", "claude", "--yes"]);
        assert!(said.ends_with("exit 0\n"), "{said}");
        let after = machine.read(ZED_FILE);
        let (windows, all) = ends(&after);
        assert!(all > ends(&before).1, "{after}");
        assert_eq!(windows, if is_windows { all } else { 0 }, "{after:?}");
        assert!(machine.said(&["setup", "zed", "--undo", "--yes"]).ends_with("exit 0\n"));
        assert_eq!(machine.read(ZED_FILE), before);
    }
}
