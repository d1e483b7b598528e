//! Compares a direct with a proxied run, checks what the proxy promises, and prints the table of results.

use std::path::Path;

use serde_json::Value;

use crate::{
    catalogue::Spec,
    conversation::{Fixture, Observations},
};

/// The entry of the table for an agent that opens no session without an account.
pub(crate) const WANTS_LOGIN: &str = "wants a login";

/// The maximum time that a first prompt may wait for an agent that never connects, in milliseconds.
const MAX_WAIT_MS: f64 = 300.0;

/// The results of an agent, as the table shows them.
pub(crate) struct Row {
    name: String,
    /// The version that the agent reports in its answer to `initialize`, if it reports one.
    pub(crate) says: Option<String>,
    pub(crate) version: String,
    /// `http`, `stdio`, `acp` or `-`.
    pub(crate) server: String,
    pub(crate) catalog: String,
    /// The way in which the model uses skills, `tools` or `files`. [`WANTS_LOGIN`] or `-` if it is unknown.
    pub(crate) model: &'static str,
    waited: f64,
    command: &'static str,
    asked: u32,
    load: &'static str,
    code: String,
}

/// Converses with an agent directly and through the proxy. Returns the row for the table, and all problems found.
pub(crate) fn judge(spec: &Spec, installed: &Path) -> (Row, Vec<String>) {
    let direct_fixture = Fixture::new(spec, installed, false);
    let direct = direct_fixture.converse();
    let mut fixture = Fixture::new(spec, installed, true);
    // If the agent exits on its own, make sure that it has enough time to do so, even if the machine is slow.
    fixture.exit_wait = direct.code.map(|_| "20");
    let seen = fixture.converse();
    let mut problems = compare(spec, &direct, &seen);
    let before = direct_fixture.invalid_requests();
    let after = fixture.invalid_requests();
    for ((what, before), (_, after)) in before.iter().zip(&after) {
        // If a request makes the agent crash, we don't get an answer from it. If we use the proxy, it will return an error
        // instead.
        let has_died = before == "nothing" && after.contains("the agent exited");
        if before != after && !has_died {
            problems.push(format!("{what} is answered with {after}, directly with {before}"));
        }
    }
    if spec.model && seen.session.is_some() {
        match fixture.crash() {
            Ok((answer, code, left)) => {
                // If we've only killed a launcher, the agent itself keeps running, and may end the turn as usual.
                let has_ended = answer["result"]["stopReason"] == "cancelled";
                if answer.get("error").is_none() && !has_ended {
                    problems.push(format!("after the agent was killed, its turn ended with {answer}"));
                }
                if code != Some(128 + 9) {
                    problems.push(format!("after the agent was killed, the exit code is {code:?}"));
                }
                if left.len() > direct.left.len() {
                    problems.push(format!("after the agent was killed, these processes still run: {left:?}"));
                }
            }
            Err(why) => problems.push(format!("cannot test a killed agent: {why}")),
        }
    }
    if !problems.is_empty() {
        problems.push(fixture.logs());
    }
    (row(spec, &seen), problems)
}

fn compare(spec: &Spec, direct: &Observations, seen: &Observations) -> Vec<String> {
    let mut problems: Vec<String> =
        seen.problems.iter().filter(|problem| !direct.problems.contains(problem)).cloned().collect();
    let mut demand = |holds: bool, what: String| {
        if !holds {
            problems.push(what);
        }
    };
    demand(
        direct.initialize == seen.initialize && !seen.initialize.is_empty(),
        format!("`initialize` is answered with {}, directly with {}", seen.initialize, direct.initialize),
    );
    demand(
        direct.session.is_some() == seen.session.is_some(),
        format!("`session/new` is answered with {:?}, directly with {:?}", seen.session, direct.session),
    );
    let missing: Vec<_> = direct.commands.iter().filter(|name| !seen.commands.contains(name)).collect();
    demand(missing.is_empty(), format!("the agent's commands {missing:?} are missing behind the proxy"));
    demand(
        seen.leaks.is_empty(),
        format!("the client received text that is meant for the model: {:#?}", seen.leaks),
    );
    // If the agent doesn't exit on its own, we had to kill it when we ran it directly, which means that we can't compare the
    // exit code.
    demand(
        spec.leaves.is_some() || direct.code.is_none() || seen.code == direct.code,
        format!("the exit code is {:?}, directly {:?}", seen.code, direct.code),
    );
    // Some agents start a daemon on purpose, which is allowed.
    demand(
        spec.leaves.is_some() || seen.left.len() <= direct.left.len(),
        format!("processes still run: {:?}, directly {:?}", seen.left, direct.left),
    );
    demand(seen.stray.is_empty(), format!("lines on stdout that aren't JSON-RPC: {:?}", seen.stray));
    // If the agent doesn't connect, the proxy will remember this for the name and version of the agent, so we should only have
    // to wait once.
    let info = serde_json::from_str::<Value>(&seen.initialize).unwrap_or_default();
    let info = &info["result"]["agentInfo"];
    let in_vain = seen.waited.iter().filter(|&&ms| ms > 0.0).count();
    demand(
        in_vain <= 1 || info["name"].is_null() || info["version"].is_null(),
        format!("prompts waited more than once for an agent that does not connect: {:?} ms", seen.waited),
    );
    let longest = seen.waited.iter().copied().fold(0.0, f64::max);
    demand(
        longest <= MAX_WAIT_MS,
        format!("a prompt waited too long for an agent that does not connect: {:?} ms", seen.waited),
    );
    if spec.model && seen.session.is_some() {
        demand(seen.catalog.is_some(), "the catalog did not reach the model".to_owned());
        demand(seen.by_tool || seen.names_files, "neither tools nor files reached the model".to_owned());
        demand(!seen.by_tool || seen.file, "a file of the skill did not reach the model".to_owned());
        demand(seen.by_command, "the skill did not reach the model through its command".to_owned());
        demand(seen.second_session, "the second session got no catalog".to_owned());
        demand(
            seen.reloaded,
            "a skill that was added later did not reach the model, or did not appear in and disappear from the menu".to_owned(),
        );
        demand(
            (seen.forked, &seen.closed) == (direct.forked, &direct.closed),
            format!(
                "fork {:?} and close {:?}, directly {:?} and {:?}",
                seen.forked, seen.closed, direct.forked, direct.closed
            ),
        );
        demand(
            seen.forked != Some(true) || seen.catalogs_in_fork == 1,
            format!("the model got the catalog {} times in a forked session", seen.catalogs_in_fork),
        );
        demand(
            seen.ours_alone.is_empty(),
            format!("a request to the model had only the proxy's text: {:#?}", seen.ours_alone),
        );
        demand(
            spec.asks.is_some() || seen.permission_requests <= direct.permission_requests,
            format!("the user was asked for permission {} times", seen.permission_requests),
        );
        demand(
            seen.cancelled == direct.cancelled,
            format!("a cancelled turn ends with {:?}, directly with {:?}", seen.cancelled, direct.cancelled),
        );
        demand(
            seen.loaded == direct.loaded,
            format!("`session/load` succeeds: {:?}, directly {:?}", seen.loaded, direct.loaded),
        );
        demand(
            seen.catalogs_after_load <= 1 || spec.retold.is_some(),
            format!("the model got the catalog {} times after `session/load`", seen.catalogs_after_load),
        );
    }
    problems
}

fn row(spec: &Spec, seen: &Observations) -> Row {
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
        asked: seen.permission_requests,
        load: match seen.loaded {
            Some(true) => "yes",
            Some(false) => "fails",
            None => "-",
        },
        code: seen.code.map_or_else(|| "signal".to_owned(), |code| code.to_string()),
    }
}

/// Prints the results as a Markdown table.
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
