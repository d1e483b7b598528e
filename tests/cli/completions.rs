//! Completion with our script in bash. All systems on which the tests run have bash, but not the other shells.

use std::process::Command;

use crate::fixture::Fixture;

/// Returns the completions that bash offers for the last of `words`.
fn completions(script: &str, words: &[&str]) -> Vec<String> {
    let (Some(last), Some(before)) = (words.last(), words.iter().rev().nth(1)) else { panic!("{words:?}") };
    let function = script.split_once('(').unwrap().0;
    let command = format!(
        "{script}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n{function} {} '{last}' '{before}'\necho \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words.len() - 1,
        words[0],
    );
    let output = Command::new("bash").args(["--norc", "-c", &command]).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    stdout.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_their_flags() {
    let script = String::from_utf8(Fixture::new().run(&["completions", "bash"]).stdout).unwrap();
    for (line, expected) in [
        (&["acp-skills-proxy", "se"][..], &["search", "setup"][..]),
        (&["acp-skills-proxy", "--catalog-b"], &["--catalog-budget"]),
        (&["acp-skills-proxy", "setup", "--ag"], &["--agent", "--agents"]),
        (&["acp-skills-proxy", "try", "--skill", "x", "--promp"], &["--prompt"]),
        (&["acp-skills-proxy", "try", "--catalog-in", "sy"], &["system"]),
    ] {
        assert_eq!(completions(&script, line), expected, "{line:?}");
    }
}
