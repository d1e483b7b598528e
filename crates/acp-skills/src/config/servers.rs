//! The MCP servers of a configuration that are asked for skills.

use std::sync::Arc;

use acp_skills_servers::{
    Address, ToolServer,
    processes::Processes,
    skills::{Configured, SkillServers},
};
use skills_core::{Diagnostic, Scope, discovery::Filter, fetch, set::Skipped};
use skills_sources::{policy::Policy, trust::Trust};

use super::{ConfigError, SkillEntry, SourceEntry};

/// The MCP servers of a configuration that are asked for skills.
pub(super) struct Servers {
    /// The sources that are servers, with their filters.
    pub(super) sources: Vec<(SourceEntry, Vec<Filter>)>,
    /// The user's decisions about the skills of servers.
    pub(super) trust: Trust,
}

impl Servers {
    /// Creates the servers. `named` are the entries of `skills`. If `is_locked` is true, none is asked, and each is added to `refused`.
    ///
    /// # Errors
    /// Returns [`ConfigError::Value`] if a URL or a key is not allowed, and [`ConfigError::VirtualSkill`] if the entry of a server is not valid.
    pub(super) fn load(
        self,
        named: &[SkillEntry],
        is_locked: bool,
        (filter, policy, processes): (&Filter, Option<&Arc<Policy>>, &Processes),
        refused: &mut Vec<Skipped>,
    ) -> Result<SkillServers, ConfigError> {
        let mut configured = Vec::new();
        for (entry, filters) in self.sources {
            let url = entry.server_url().unwrap_or_default();
            if !fetch::is_allowed(url) {
                let text =
                    format!("source `{}`: use `mcp+https://…`, or `mcp+http://…` on loopback", entry.source);
                return Err(ConfigError::Value(text));
            }
            if entry.verify.is_some() {
                let text = format!("source `{}`: `verify` is not for MCP servers", entry.source);
                return Err(ConfigError::Value(text));
            }
            let name = name(url).map_err(ConfigError::Value)?;
            let headers = entry.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let address = Address::Http { url: url.to_owned(), headers };
            let secrets = entry.secrets.clone();
            let server = ToolServer { skill: name, address, secrets, ..ToolServer::default() };
            configured.push((server, filters, None));
        }
        for entry in named {
            let server = match entry {
                SkillEntry::Directory(_) => None,
                SkillEntry::Virtual(skill) => skill.offering()?,
                SkillEntry::Stored(skill) => skill.offering()?,
            };
            configured.extend(server.map(|server| (server, Vec::new(), Some(Scope::Named))));
        }
        if is_locked {
            refused.extend(configured.iter().map(|(server, ..)| locked(&server.skill)));
            return Ok(SkillServers::default());
        }
        let configured = configured
            .into_iter()
            .map(|(server, filters, scope)| Configured::new(server, processes, filters, scope));
        let configured = configured.collect();
        Ok(SkillServers::new(self.trust, processes.clone(), filter.clone(), policy.cloned(), configured))
    }
}

/// Returns the name of a server: its URL without the scheme and the parts that can be secret. These are the query, and a part of the path
/// that is not a word, such as the token in a personal address, which becomes `…`. The model, the user and the log read the name.
///
/// # Errors
/// Returns a message if the URL has a user name, a password or a fragment.
pub(super) fn name(url: &str) -> Result<String, String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, _) = rest.split_once('?').unwrap_or((rest, ""));
    if place.split('/').next().is_some_and(|host| host.contains('@')) || rest.contains('#') {
        let text = "the URL of an MCP server must not contain a user name, a password or a fragment; to send a token, use `headers` with \
                    `secrets`";
        return Err(text.to_owned());
    }
    let mut parts = place.trim_end_matches('/').split('/');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        name.push('/');
        name.push_str(if is_word(part) { part } else { "…" });
    }
    Ok(name)
}

/// Returns true if a part of a path is a short word or a version such as `v2`, and so can't be a secret.
fn is_word(part: &str) -> bool {
    let is_version = |digits: &str| digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    part.len() <= 20 && part.chars().all(|c| c.is_alphabetic() || "-_.@".contains(c))
        || part.strip_prefix('v').is_some_and(is_version)
}

/// Returns the record of a server that is not asked because of `--locked`.
fn locked(name: &str) -> Skipped {
    let text = format!("MCP server {name} is not asked for skills, because they can't be in `skills.lock`");
    Skipped::new(name, vec![Diagnostic::warning("source-locked", text).help("leave out `--locked`")])
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_have_no_secrets() {
        let cases = [
            ("https://docs.example.com/mcp/", Some("docs.example.com/mcp")),
            ("https://docs.example.com/mcp?token=SECRET", Some("docs.example.com/mcp")),
            ("http://127.0.0.1:80?a=b@c", Some("127.0.0.1:80")),
            ("https://docs.example.com/@team/mcp", Some("docs.example.com/@team/mcp")),
            ("https://docs.example.com/v2/servers/mcp", Some("docs.example.com/v2/servers/mcp")),
            ("https://docs.example.com/s/SECRET1/mcp", Some("docs.example.com/s/…/mcp")),
            ("https://docs.example.com/SECRETSECRETSECRETXYZ", Some("docs.example.com/…")),
            ("https://docs.example.com/a%20SECRET", Some("docs.example.com/…")),
            ("https://user:SECRET@docs.example.com/mcp", None),
            ("https://SECRET@docs.example.com", None),
            ("https://docs.example.com/mcp#SECRET", None),
        ];
        for (url, expected) in cases {
            let found = name(url);
            assert_eq!(found.as_deref().ok(), expected, "{url}");
            assert!(!format!("{found:?}").contains("SECRET"));
        }
    }
}
