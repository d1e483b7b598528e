//! The manual's table of agents, which is generated from the program's own.

use std::{env, fs, path::Path};

use acp_skills::agents::{self, Agent, Means, Seen};

const HEAD: &str = "| agent | skills server | catalog | skills by | notes |\n|---|---|---|---|---|\n";

fn row(agent: &Agent, seen: &Seen) -> String {
    let version = seen.version.unwrap_or_default();
    let program = if seen.program.eq_ignore_ascii_case(agent.name) {
        format!("{} {version}", agent.name)
    } else {
        format!("{} (`{}` {version})", agent.name, seen.program)
    };
    let open = if seen.login { "–" } else { "?" };
    let or_open = |text: Option<&'static str>| text.unwrap_or(open);
    let skills = match seen.skills {
        Some(Means::Tools) => "tools",
        Some(Means::Files) => "files",
        _ => open,
    };
    let program = program.replace(" )", ")");
    let cells = [program.trim(), or_open(seen.server), or_open(seen.catalog), skills, agent.notes];
    format!("| {} |\n", cells.join(" | ").trim_end()).replace(" |  |", " | |")
}

/// Compares the table in the manual with the program's. With `UPDATE_EXPECT=1`, the test writes the table.
#[test]
fn the_manual_shows_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("manual/src/agents.md");
    let page = fs::read_to_string(&file).unwrap();
    let seen = agents::all().iter().filter_map(|agent| Some((agent, agent.seen.as_ref()?)));
    let table: String = seen.map(|(agent, seen)| row(agent, seen)).collect();
    let (before, rest) = page.split_once(HEAD).expect("the page has the head of the table");
    // The row for all other agents isn't generated, so keep it as it is.
    let end = rest.find("| others |").expect("the page has a row for all other agents");
    if rest[..end] == table {
        return;
    }
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(file, format!("{before}{HEAD}{table}{}", &rest[end..])).unwrap();
        return;
    }
    panic!(
        "the manual's table of agents differs from the known agents (UPDATE_EXPECT=1 writes it):\n{table}"
    );
}
