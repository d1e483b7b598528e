//! Compares bare and proxied runs, checks the promises of the proxy, and prints the table of results.

use std::path::Path;

use serde_json::Value;

use crate::{
    catalogue::Spec,
    visit::{Place, Seen},
};

/// The entry for an agent that opens no session without an account.
pub(crate) const WANTS_LOGIN: &str = "wants a login";

/// The maximum time that a first prompt may wait in vain, in milliseconds.
const MAX_WAIT_MS: f64 = 300.0;

/// The table's row for an agent.
pub(crate) struct Row {
    name: String,
    /// The version that the agent reports, if it does.
    pub(crate) says: Option<String>,
    pub(crate) version: String,
    /// `http`, `stdio`, `acp` or `-`.
    pub(crate) server: String,
    pub(crate) catalog: String,
    /// How the model gets skills, or why that is not known.
    pub(crate) model: &'static str,
    waited: f64,
    command: &'static str,
    asked: u32,
    load: &'static str,
    code: String,
}

/// Visits an agent bare and proxied. Returns the results and the failures.
pub(crate) fn judge(spec: &Spec, installed: &Path) -> (Row, Vec<String>) {
    let bare_place = Place::new(spec, installed, false);
    let bare = bare_place.visit();
    let mut place = Place::new(spec, installed, true);
    // The exit time depends on the machine, so an agent that exits by itself gets enough time.
    place.exit_wait = bare.code.map(|_| "20");
    let seen = place.visit();
    let mut problems = compare(spec, &bare, &seen);
    let before = bare_place.mistakes();
    let after = place.mistakes();
    for ((what, before), (_, after)) in before.iter().zip(&after) {
        // An agent that a request has crashed answers nothing. The proxy reports the crash instead.
        let has_died = before == "nothing" && after.contains("the agent exited");
        if before != after && !has_died {
            problems.push(format!("{what} is answered with {after}, bare with {before}"));
        }
    }
    if spec.model && seen.session.is_some() {
        match place.crash() {
            Ok((answer, code, left)) => {
                // The launcher was killed, and its child still reported the end of the turn.
                let was_told = answer["result"]["stopReason"] == "cancelled";
                if answer.get("error").is_none() && !was_told {
                    problems.push(format!("the agent was killed, and its turn ended with {answer}"));
                }
                if code != Some(128 + 9) {
                    problems.push(format!("the agent was killed, and the exit code is {code:?}"));
                }
                if left.len() > bare.left.len() {
                    problems.push(format!("the agent was killed, and these are left: {left:?}"));
                }
            }
            Err(why) => problems.push(format!("when the agent is killed: {why}")),
        }
    }
    if !problems.is_empty() {
        problems.push(place.logs());
    }
    (row(spec, &seen), problems)
}

fn compare(spec: &Spec, bare: &Seen, seen: &Seen) -> Vec<String> {
    let mut problems: Vec<String> =
        seen.problems.iter().filter(|problem| !bare.problems.contains(problem)).cloned().collect();
    let mut demand = |holds: bool, what: String| {
        if !holds {
            problems.push(what);
        }
    };
    demand(
        bare.initialize == seen.initialize && !seen.initialize.is_empty(),
        format!("`initialize` is answered with {}, bare with {}", seen.initialize, bare.initialize),
    );
    demand(
        bare.session.is_some() == seen.session.is_some(),
        format!("`session/new` gives {:?}, bare {:?}", seen.session, bare.session),
    );
    let missing: Vec<_> = bare.commands.iter().filter(|name| !seen.commands.contains(name)).collect();
    demand(missing.is_empty(), format!("the agent's commands {missing:?} are lost"));
    demand(seen.leaks.is_empty(), format!("the client saw words of ours: {:#?}", seen.leaks));
    // An agent that never exits by itself was killed here.
    demand(
        spec.leaves.is_some() || bare.code.is_none() || seen.code == bare.code,
        format!("the exit code is {:?}, bare {:?}", seen.code, bare.code),
    );
    // Some agents leave a daemon running on purpose.
    demand(
        spec.leaves.is_some() || seen.left.len() <= bare.left.len(),
        format!("these are left: {:?}, bare {:?}", seen.left, bare.left),
    );
    demand(seen.stray.is_empty(), format!("lines that are no JSON-RPC: {:?}", seen.stray));
    // For an agent with a known name and version, the proxy waits in vain once, and not in the next run.
    let info = serde_json::from_str::<Value>(&seen.initialize).unwrap_or_default();
    let info = &info["result"]["agentInfo"];
    let in_vain = seen.waited.iter().filter(|&&ms| ms > 0.0).count();
    demand(
        in_vain <= 1 || info["name"].is_null() || info["version"].is_null(),
        format!("prompts waited for nothing more than once: {:?} ms", seen.waited),
    );
    let longest = seen.waited.iter().copied().fold(0.0, f64::max);
    demand(longest <= MAX_WAIT_MS, format!("prompts waited for nothing: {:?} ms", seen.waited));
    if spec.model && seen.session.is_some() {
        demand(seen.catalog.is_some(), "the catalog did not reach the model".to_owned());
        demand(seen.by_tool || seen.names_files, "neither tools nor files reached the model".to_owned());
        demand(!seen.by_tool || seen.file, "a file of the skill did not reach the model".to_owned());
        demand(seen.by_command, "the command did not bring the skill to the model".to_owned());
        demand(seen.second_session, "the second session has no catalog".to_owned());
        demand(
            seen.reloaded,
            "a skill that came later was not told, or not in the menu while it was there".to_owned(),
        );
        demand(
            (seen.forked, &seen.closed) == (bare.forked, &bare.closed),
            format!(
                "fork {:?} and close {:?}, bare {:?} and {:?}",
                seen.forked, seen.closed, bare.forked, bare.closed
            ),
        );
        demand(
            seen.forked != Some(true) || seen.told_in_fork == 1,
            format!("in a copy the model has the catalog {} times", seen.told_in_fork),
        );
        demand(
            seen.ours_alone.is_empty(),
            format!("a model was shown nothing but ours: {:#?}", seen.ours_alone),
        );
        demand(
            spec.asks.is_some() || seen.asked <= bare.asked,
            format!("the user was asked {} times", seen.asked),
        );
        demand(
            seen.cancelled == bare.cancelled,
            format!("a cancelled turn ends with {:?}, bare with {:?}", seen.cancelled, bare.cancelled),
        );
        demand(seen.loaded == bare.loaded, format!("loading: {:?}, bare {:?}", seen.loaded, bare.loaded));
        demand(
            seen.told_after_load <= 1 || spec.retold.is_some(),
            format!("after a load the model has the catalog {} times", seen.told_after_load),
        );
    }
    problems
}

fn row(spec: &Spec, seen: &Seen) -> Row {
    let info = serde_json::from_str::<Value>(&seen.initialize).unwrap_or_default();
    let info = &info["result"]["agentInfo"];
    let model = match (seen.session.is_some(), seen.by_tool, seen.names_files) {
        (false, ..) => WANTS_LOGIN,
        (true, true, _) => "tools",
        (true, false, true) => "files",
        (true, false, false) => "-",
    };
    let says = info["version"].as_str();
    Row {
        name: spec.id.clone(),
        says: says.map(str::to_owned),
        version: spec.version().to_owned(),
        server: seen.transport.clone().unwrap_or_else(|| "-".to_owned()),
        catalog: seen.catalog.unwrap_or("-").to_owned(),
        model,
        waited: seen.waited.iter().copied().fold(0.0, f64::max),
        command: if seen.by_command { "yes" } else { "no" },
        asked: seen.asked,
        load: match seen.loaded {
            Some(true) => "yes",
            Some(false) => "fails",
            None => "-",
        },
        code: seen.code.map_or_else(|| "signal".to_owned(), |code| code.to_string()),
    }
}

/// Prints the results.
pub(crate) fn table(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    println!(
        "| agent | version | server | catalog | skills by | `/demo` | asked | load | waited (ms) | exit code |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for row in rows {
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            row.version,
            row.server,
            row.catalog,
            row.model,
            row.command,
            row.asked,
            row.load,
            row.waited,
            row.code
        );
    }
    println!();
}
