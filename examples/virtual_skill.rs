//! A skill that is defined in code, and an agent that uses it.
//!
//!     cargo run --example virtual_skill                        # with the built-in agent
//!     cargo run --example virtual_skill -- claude-agent-acp    # with a real agent

#![expect(clippy::print_stdout, reason = "an example for the terminal")]

use acp_skills::{
    activity::Activity,
    one_shot::{OneShot, Trace},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skills_core::Skill;

#[derive(Deserialize, JsonSchema)]
struct CountLines {
    /// The text whose lines are counted.
    text: String,
}

#[derive(Serialize)]
struct LineCount {
    lines: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let skill = Skill::builder("line-count", "Counts lines. Use when the user asks how long a text is.")
        .body("# Counting\nCall the tool `count` with the whole text. Do not count yourself.")
        .tool("count", "Counts the lines of a text.", async |input: CountLines| {
            Ok(LineCount { lines: input.text.lines().count() })
        })
        .build()?;

    let answer = OneShot::new([skill].into_iter().collect())
        .agent(std::env::args_os().skip(1))
        .prompt("How long is this text?\none\ntwo")
        .trace(|trace| {
            if let Trace::Activity(Activity::Called(call)) = trace {
                println!("model called {}: {}", call.tool, call.output.to_text());
            }
        })
        .run()
        .await?;
    println!("{}", answer.text);
    Ok(())
}
