//! Reads the entries of `mcpServers`.

use std::fmt::Write;

use acp_skills_intercept::ClientServer;
use serde_json::Value;

use super::{Address, ToolServer};

/// Reads an entry of `mcpServers`. Returns the server, and a text that identifies its configuration without secrets.
pub(super) fn described(server: &ClientServer) -> Option<(ToolServer, String)> {
    let entry: Value = serde_json::from_slice(&server.entry).ok()?;
    let text = |key: &str| entry[key].as_str().map(str::to_owned);
    // The client has resolved these values already.
    let pairs = |key: &str| -> Vec<(String, String)> {
        let list = entry[key].as_array().into_iter().flatten();
        let pair = |pair: &Value| {
            Some((pair["name"].as_str()?.to_owned(), pair["value"].as_str()?.replace('$', "$$")))
        };
        list.filter_map(pair).collect()
    };
    let mut digest = format!("{}\n", server.name);
    let address = match entry["type"].as_str() {
        None | Some("stdio") => {
            let args: Vec<_> = entry["args"].as_array().into_iter().flatten().collect();
            let args: Option<Vec<_>> = args.into_iter().map(|arg| arg.as_str().map(str::to_owned)).collect();
            let address =
                Address::Command { program: text("command")?, args: args?, env: pairs("env"), cwd: None };
            // Writing to a string never fails.
            let _ = write!(digest, "{} {}", entry["command"], entry["args"]);
            address
        }
        Some("http") => {
            let url = text("url").filter(|url| skills_core::fetch::is_allowed(url))?;
            digest.push_str(&url);
            Address::Http { url, headers: pairs("headers") }
        }
        Some(_) => return None,
    };
    Some((ToolServer { skill: server.name.clone(), address, ..ToolServer::default() }, digest))
}
