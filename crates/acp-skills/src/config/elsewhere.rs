//! The settings for agents that run elsewhere, resolved into the policy.

use std::{net::SocketAddr, time::Duration};

use acp_skills_intercept::{Listen, McpMode, Policy};

use super::{Config, ConfigError, Elsewhere};
use crate::elsewhere;

/// The connect timeout for an agent elsewhere. A connection over a network takes longer than one on this machine.
const CONNECT: Duration = Duration::from_secs(1);

/// Applies the settings to `policy`, for the agent of the configuration.
///
/// # Errors
/// Returns [`ConfigError::Value`] if the agent could not connect to `listen`, or if `listen_url` is not a URL or has no `listen`.
pub(super) fn apply(config: &Config, policy: &mut Policy) -> Result<(), ConfigError> {
    let choice = config.elsewhere.unwrap_or_default();
    policy.elsewhere = match choice {
        Elsewhere::Auto => elsewhere::place(&config.agent.0).is_some(),
        Elsewhere::Yes | Elsewhere::Files => true,
        Elsewhere::No => false,
    };
    policy.reads_through_client = choice == Elsewhere::Files;
    policy.listen = listen(config.listen, config.listen_url.as_deref())?;
    if policy.elsewhere && policy.listen.is_some() && policy.mcp == McpMode::Auto && config.mcp_wait.is_none()
    {
        policy.mcp_connect = CONNECT;
    }
    Ok(())
}

fn listen(address: Option<SocketAddr>, url: Option<&str>) -> Result<Option<Listen>, ConfigError> {
    let invalid = |text: String| Err(ConfigError::Value(text));
    let Some(address) = address else {
        if url.is_some() {
            return invalid(
                "the URL for the agent (`listen_url`) needs an address to listen on (`listen`)".to_owned(),
            );
        }
        return Ok(None);
    };
    let Some(url) = url else {
        if address.ip().is_unspecified() {
            return invalid(format!(
                "the agent cannot connect to {} (`listen`): listen on an address of a single interface, or set the URL for the agent \
                 (`listen_url`)",
                address.ip()
            ));
        }
        return Ok(Some(Listen { address, url: None }));
    };
    let trimmed = url.trim_end_matches('/');
    if !is_base(trimmed) {
        return invalid(format!(
            "`{}` (`listen_url`) should be a scheme and a host, for example `http://host.docker.internal:7000`",
            url.escape_debug()
        ));
    }
    Ok(Some(Listen { address, url: Some(trimmed.to_owned()) }))
}

/// Returns true if `url` is `http://` or `https://` with a host and perhaps a port.
fn is_base(url: &str) -> bool {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    host.is_some_and(|host| {
        host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[') && host.chars().all(is_allowed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_urls() {
        for (address, url, expected) in [
            ("127.0.0.1:0", None, Ok(None)),
            ("172.17.0.1:7000", None, Ok(None)),
            ("[::1]:7000", None, Ok(None)),
            ("0.0.0.0:7000", None, Err("cannot connect to 0.0.0.0")),
            ("[::]:7000", None, Err("cannot connect to ::")),
            (
                "0.0.0.0:7000",
                Some("http://host.docker.internal:7000"),
                Ok(Some("http://host.docker.internal:7000")),
            ),
            ("127.0.0.1:0", Some("http://host.docker.internal/"), Ok(Some("http://host.docker.internal"))),
            ("127.0.0.1:0", Some("https://[fe80::1]:7"), Ok(Some("https://[fe80::1]:7"))),
            (
                "127.0.0.1:0",
                Some("host.docker.internal:7000"),
                Err("`host.docker.internal:7000` (`listen_url`)"),
            ),
            ("127.0.0.1:0", Some("http://"), Err("`http://`")),
            ("127.0.0.1:0", Some("http://a b"), Err("`http://a b`")),
            ("127.0.0.1:0", Some("http://me@host"), Err("should be a scheme and a host")),
            ("127.0.0.1:0", Some("http://host/path"), Err("should be a scheme and a host")),
            ("127.0.0.1:0", Some("http://host\n"), Err(r"`http://host\n`")),
            ("127.0.0.1:0", Some("ftp://host"), Err("`ftp://host`")),
        ] {
            let found = listen(Some(address.parse().unwrap()), url);
            match (found, expected) {
                (Ok(found), Ok(expected)) => {
                    assert_eq!(found.unwrap().url.as_deref(), expected, "{address} {url:?}");
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, _) => panic!("{address} {url:?}: {found:?}"),
            }
        }
        assert!(listen(None, Some("http://host")).is_err());
        assert_eq!(listen(None, None).unwrap(), None);
    }

    #[test]
    fn the_place_of_the_agent() {
        let docker = ["docker", "run", "-i", "image", "agent"];
        let local = ["agent"];
        for (agent, elsewhere, expected) in [
            (&docker[..], None, (true, false)),
            (&docker, Some(Elsewhere::Auto), (true, false)),
            (&docker, Some(Elsewhere::No), (false, false)),
            (&docker, Some(Elsewhere::Files), (true, true)),
            (&local, None, (false, false)),
            (&local, Some(Elsewhere::Yes), (true, false)),
            (&local, Some(Elsewhere::Files), (true, true)),
            (&[], None, (false, false)),
        ] {
            let agent = super::super::Words(agent.iter().map(Into::into).collect());
            let config = Config { agent, elsewhere, ..Config::default() };
            let mut policy = Policy::default();
            apply(&config, &mut policy).unwrap();
            assert_eq!(
                (policy.elsewhere, policy.reads_through_client),
                expected,
                "{:?} {elsewhere:?}",
                config.agent
            );
        }
    }
}
