//! Tests of the output of the examples with the built-in agent.

use std::{env, process::Command};

use expect_test::{Expect, expect};
use libtest_mimic::Trial;

/// The tests of this file.
pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn()| {
        Trial::test(format!("examples::{name}"), move || {
            test();
            Ok(())
        })
    };
    vec![trial("one_shot", one_shot), trial("virtual_skill", virtual_skill), trial("chain", chain)]
}

/// An update that can appear at any time.
const MENU: &str = "(\"available_commands_update\")\n";

/// Runs an example that `cargo test` has built.
fn check(name: &str, expected: Expect) {
    let this = env::current_exe().unwrap();
    let target = this.parent().and_then(|deps| deps.parent()).unwrap();
    let program = target.join("examples").join(format!("{name}{}", env::consts::EXE_SUFFIX));
    let output = Command::new(&program).output().unwrap_or_else(|error| {
        panic!("{}: {error}; build it with `cargo build --workspace --examples`", program.display())
    });
    assert!(output.status.success(), "{name}: {output:?}");
    expected.assert_eq(&String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n").replace(MENU, ""));
}

fn one_shot() {
    check(
        "one_shot",
        expect![[r#"
        ("tool_call")
        ("tool_call_update")
        ("tool_call")
        ("tool_call_update")
        I activated the skill `code-review`: Code review. It told me to read `references/checklist.md`, which begins: Checklist
        Bern: 21.5 degrees
    "#]],
    );
}

fn virtual_skill() {
    check(
        "virtual_skill",
        expect![[r#"
        model called activate_skill: <skill_content name="line-count">
        # Counting
        Call the tool `count` with the whole text. Do not count yourself.

        <skill_tools>
          Run these with `call_skill_tool`, `skill` being "line-count".
          <tool name="count">
            <description>Counts the lines of a text.</description>
            <input_schema>{"type":"object","properties":{"text":{"type":"string","description":"The text whose lines are counted."}},"required":["text"]}</input_schema>
          </tool>
        </skill_tools>
        </skill_content>
        model called call_skill_tool: {"lines":3}
        I activated the skill `line-count`: Counting. Its tool `count` answered: {"lines":3}
    "#]],
    );
}

fn chain() {
    check(
        "chain",
        expect![[r#"
        I activated the skill `release`: Release.
        (EndTurn)
    "#]],
    );
}
