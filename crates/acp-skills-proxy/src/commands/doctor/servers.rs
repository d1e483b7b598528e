//! The cost of MCP servers: the tokens that they take with and without `--mcp-on-demand`.

use std::path::Path;

use acp_skills_servers::{
    Address, ClientServers, ServerCost, ToolServer, processes::Processes, skills::SkillServers,
};
use acp_skills_setup::mcp;
use serde_json::Value;
use skills_sources::disk::bounded;

use super::steps::Steps;
use crate::{error::UsageError, words::count};

/// The maximum size of the settings of an editor, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The MCP servers in the settings of an editor.
pub(super) struct Servers(Vec<(String, Option<ToolServer>)>);

impl Servers {
    /// Reads settings with MCP servers.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, or if it has no servers.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = bounded::read_text(path, MAX_BYTES)
            .map_err(|error| UsageError::at("cannot read", path, error))?;
        let servers = mcp::servers(&text).map_err(|error| UsageError::at("invalid settings", path, error))?;
        if servers.is_empty() {
            let hint =
                "use the settings of an editor or client with `mcpServers`, `servers` or `context_servers`";
            return Err(UsageError::new(format!("no MCP servers in {}", path.display())).hint(hint).into());
        }
        Ok(Self(servers.into_iter().map(|(name, entry)| (name.clone(), server(name, &entry))).collect()))
    }

    /// Starts the servers one after the other, and adds a step for each of them, and one for all together.
    pub(super) async fn measure(self, processes: Processes, cwd: &Path, steps: &Steps) {
        steps.wait_for("waiting for MCP servers");
        let all = ClientServers::new(processes, None, SkillServers::default());
        let mut measured = 0_usize;
        let mut total = ServerCost::default();
        for (name, server) in self.0 {
            let Some(server) = server else {
                let why = "not a program and not a server with streamable HTTP, so the agent always gets it";
                steps.step("server", true, format!("{name}: {why}"));
                continue;
            };
            match all.cost(server, Some(cwd)).await {
                Ok(cost) => {
                    measured += 1;
                    total.tools += cost.tools;
                    total.direct += cost.direct;
                    total.on_demand += cost.on_demand;
                    steps.step("server", true, format!("{name}: {}", described(&cost)));
                }
                Err(error) => steps.step("server", false, format!("{name}: {error}")),
            }
        }
        steps.step("servers", true, format!("{}: {}", count(measured, "server"), described(&total)));
    }
}

fn described(cost: &ServerCost) -> String {
    format!(
        "{} with about {} in each request, or about {} with `--mcp-on-demand`",
        count(cost.tools, "tool"),
        count(cost.direct, "token"),
        cost.on_demand
    )
}

/// Reads the entry of a server. Returns `None` if the server can't be used on demand.
fn server(name: String, entry: &Value) -> Option<ToolServer> {
    let pairs = |key: &str| {
        let members = entry[key].as_object().into_iter().flatten();
        members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    };
    let args = entry["args"].as_array().into_iter().flatten();
    let address = match (entry["command"].as_str(), entry["url"].as_str(), entry["type"].as_str()) {
        (Some(program), ..) => Address::Command {
            program: program.to_owned(),
            args: args.filter_map(|word| word.as_str().map(str::to_owned)).collect(),
            env: pairs("env"),
            cwd: None,
        },
        (None, Some(url), kind) if kind != Some("sse") && skills_core::fetch::is_allowed(url) => {
            Address::Http { url: url.to_owned(), headers: pairs("headers") }
        }
        _ => return None,
    };
    Some(ToolServer { skill: name, address, ..ToolServer::default() })
}
