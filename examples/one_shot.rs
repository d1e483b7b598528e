//! Two prompts from a program. The first answer is printed while it arrives, and the second one is parsed as a Rust value.
//!
//!     cargo run --example one_shot                        # with the built-in agent
//!     cargo run --example one_shot -- claude-agent-acp    # with a real agent

#![expect(clippy::print_stdout, reason = "an example for the terminal")]

use std::{env, path::Path};

use acp_skills::one_shot::{OneShot, Piece};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city, or words in which it occurs.
    city: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Weather {
    city: String,
    degrees: f64,
}

/// Returns an agent with a skill from a directory and a function of this program as a tool.
fn agent() -> OneShot {
    let skills = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills");
    OneShot::default().agent(env::args_os().skip(1)).skill_dir(skills.join("code-review")).tool(
        "weather",
        "Tells the weather in a city.",
        async |place: Place| {
            let city = if place.city.contains("Bern") { "Bern" } else { "Chur" };
            Ok(Weather { city: city.to_owned(), degrees: 21.5 })
        },
    )
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut turn = agent().prompt("Review this code: let x = x;").stream();
    while let Some(piece) = turn.next().await {
        match piece? {
            Piece::Text(text) => print!("{text}"),
            Piece::Update(update) => println!("({})", update["sessionUpdate"]),
            _ => {}
        }
    }

    let weather: Weather = agent().prompt("How is the weather in the city of Bern?").parse().await?;
    println!("\n{}: {} degrees", weather.city, weather.degrees);
    Ok(())
}
