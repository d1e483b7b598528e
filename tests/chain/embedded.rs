//! Runs [`SkillsProxy`] in chains within one process.

use acp_skills::{
    SkillsProxy,
    config::{Config, ConfigError},
    intercept::Policy,
};
use agent_client_protocol::{Conductor, DynConnectTo, Proxy, v1::schema::McpCapabilities};
use agent_client_protocol_conductor::{ConductorImpl, ProxiesAndAgent};

use crate::fixture::{Log, agent, agent_with_transports, skills, with_client, within};

/// Returns a policy without a wait for the agent's MCP connection, because the scripted agent connects only for a call.
pub(crate) fn without_mcp_wait() -> Policy {
    Policy { mcp_wait: std::time::Duration::ZERO, ..Policy::default() }
}

fn proxy(name: &str) -> SkillsProxy {
    SkillsProxy::new(skills(name)).policy(without_mcp_wait())
}

/// Returns a proxy as a boxed component, because all components of a chain must have the same type.
fn link(name: &str) -> DynConnectTo<Conductor> {
    DynConnectTo::new(proxy(name))
}

fn chain(log: &Log, links: Vec<DynConnectTo<Conductor>>) -> ConductorImpl<agent_client_protocol::Agent> {
    let chain = links.into_iter().fold(ProxiesAndAgent::new(agent(log.clone())), ProxiesAndAgent::proxy);
    ConductorImpl::new_agent("conductor", chain)
}

#[tokio::test]
async fn one_in_a_chain() {
    let log = Log::default();
    let chain = chain(&log, vec![link("alpha")]);
    within(with_client(chain, async |client| {
        let turn = client.turn("hello").await?;
        // The agent sends the prompt back with the catalog in it, so make sure that we remove it.
        assert_eq!((turn.user.as_str(), turn.agent.as_str()), ("hello", "done"));
        let turn = client.turn(r#"call acp-skills activate_skill {"name":"alpha"}"#).await?;
        assert!(turn.agent.contains("# The body of alpha"), "{turn:?}");
        let call = r#"call acp-skills call_skill_tool {"skill":"alpha","tool":"greet","input":{}}"#;
        assert_eq!(client.turn(call).await?.agent, "hello from alpha");
        let turn = client.turn("/alpha now").await?;
        assert_eq!(turn.user, "/alpha now");
        assert_eq!(client.turn("ask").await?.agent, r#"{"outcome":"selected","optionId":"yes"}"#);
        Ok(())
    }))
    .await;
    assert_eq!(log.servers(), ["acp-skills"]);
    let first = log.prompt(0);
    assert!(first[0].contains("Knows alpha.") && first[1] == "hello", "{first:?}");
    // The catalog is only sent once.
    assert_eq!(log.prompt(1).len(), 1);
    assert!(log.prompt(3)[0].contains("# The body of alpha"), "{:?}", log.prompt(3));
}

#[tokio::test]
async fn five_in_a_chain() {
    let log = Log::default();
    let names = ["alpha", "beta", "gamma", "delta", "epsilon"];
    within(with_client(chain(&log, names.map(link).into()), async |mut client| {
        let turn = client.turn("hello").await?;
        assert_eq!((turn.user.as_str(), turn.agent.as_str()), ("hello", "done"));
        for (index, name) in names.iter().enumerate() {
            let number = if index == 0 { String::new() } else { format!("-{}", index + 1) };
            let call = format!(r#"call acp-skills{number} activate_skill {{"name":"{name}"}}"#);
            let turn = client.turn(&call).await?;
            assert!(turn.agent.contains(&format!("# The body of {name}")), "{turn:?}");
            assert_eq!(client.turn(&format!("/{name}")).await?.user, format!("/{name}"));
        }
        client.shows(&names).await;
        Ok(())
    }))
    .await;
    assert_eq!(log.servers(), ["acp-skills", "acp-skills-2", "acp-skills-3", "acp-skills-4", "acp-skills-5"]);
    let first = log.prompt(0);
    assert_eq!(first.len(), 6, "{first:?}");
    assert_eq!(first[5], "hello");
    for name in names {
        let catalogs = first.iter().filter(|text| text.contains(&format!("Knows {name}.")));
        assert_eq!(catalogs.count(), 1, "{name} in {first:?}");
    }
}

#[tokio::test]
async fn before_and_after_another_proxy() {
    for place in [0, 1] {
        let log = Log::default();
        let mut links = vec![DynConnectTo::new(Proxy.v1())];
        links.insert(place, link("alpha"));
        within(with_client(chain(&log, links), async |client| {
            assert_eq!(client.turn("hello").await?.user, "hello");
            let turn = client.turn(r#"call acp-skills activate_skill {"name":"alpha"}"#).await?;
            assert!(turn.agent.contains("# The body of alpha"), "{turn:?}");
            Ok(())
        }))
        .await;
        assert!(log.prompt(0)[0].contains("Knows alpha."), "{place}");
    }
}

#[tokio::test]
async fn conductors_within_conductors() {
    let log = Log::default();
    let inner = ConductorImpl::new_proxy("inner", vec![proxy("beta"), proxy("gamma")]);
    let links = vec![link("alpha"), DynConnectTo::new(inner)];
    within(with_client(chain(&log, links), async |client| {
        assert_eq!(client.turn("hello").await?.user, "hello");
        Ok(())
    }))
    .await;
    assert_eq!(log.servers().len(), 3);
    let first = log.prompt(0).join("");
    assert!(["alpha", "beta", "gamma"].iter().all(|name| first.contains(&format!("Knows {name}."))));
}

#[tokio::test]
async fn in_front_of_an_agent_without_a_conductor() {
    let log = Log::default();
    // Use two proxies, one in front of the other.
    let agent = proxy("alpha").in_front_of(proxy("beta").in_front_of(agent(log.clone())));
    within(with_client(agent, async |client| {
        assert_eq!(client.turn("hello").await?.user, "hello");
        let turn = client.turn(r#"call acp-skills-2 activate_skill {"name":"beta"}"#).await?;
        assert!(turn.agent.contains("# The body of beta"), "{turn:?}");
        Ok(())
    }))
    .await;
    assert_eq!(log.servers(), ["acp-skills", "acp-skills-2"]);
}

#[tokio::test]
async fn cancellation_reaches_the_agent() {
    for links in [vec![], vec![link("alpha")], vec![link("alpha"), link("beta")]] {
        let log = Log::default();
        within(with_client(chain(&log, links), async |client| {
            // Send a prompt first, to get the catalog out of the way.
            client.turn("hello").await?;
            let parked = client.prompt("park");
            parked.cancel()?;
            let error = parked.block_task().await.expect_err("a cancellation");
            assert_eq!(i32::from(error.code), -32800);
            assert_eq!(client.turn("ask").await?.agent, r#"{"outcome":"selected","optionId":"yes"}"#);
            Ok(())
        }))
        .await;
    }
}

#[tokio::test]
async fn a_proxy_without_an_agent_returns_an_error() {
    // A conductor would use the last component as the agent. Here we're using a channel instead of a conductor, without an
    // agent.
    let (client, transport) = agent_client_protocol::Channel::duplex();
    let run =
        tokio::spawn(agent_client_protocol::ConnectTo::<Conductor>::connect_to(proxy("alpha"), transport));
    let error = with_client(client, async |_| Ok(())).await.expect_err("no agent");
    assert!(error.message.contains("no agent to run"), "{error:?}");
    let end = run.await.expect("no panic").expect_err("the component fails as well");
    assert!(format!("{end:?}").contains("in front of no agent"), "{end:?}");
}

#[tokio::test]
async fn skills_from_a_configuration_a_directory_and_code() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(&path, text).expect("a file");
        path
    };
    let text = |name: &str| format!("---\nname: {name}\ndescription: Knows {name}.\n---\nx\n");
    write("beta/SKILL.md", &text("beta"));
    write("gamma/SKILL.md", &text("gamma"));
    let config = write("skills.yaml", "skills:\n  - beta\nmcp_wait: 0\n");
    let log = Log::default();
    let proxy = Config::read(&config).and_then(SkillsProxy::from_config).expect("a valid configuration");
    let alpha = skills("alpha").iter().next().expect("a skill").as_ref().clone();
    let agent = proxy.skill(alpha).skill_dir(directory.path().join("gamma")).in_front_of(agent(log.clone()));
    within(with_client(agent, async |client| client.turn("hello").await.map(|_| ()))).await;
    let first = &log.prompt(0)[0];
    assert!(
        ["alpha", "beta", "gamma"].iter().all(|name| first.contains(&format!("Knows {name}."))),
        "{first}"
    );

    // If we can't find the skill, this is an error, and we should not start the chain without it.
    let none = SkillsProxy::default().skill_dir(directory.path().join("none"));
    let error = with_client(none.in_front_of(crate::fixture::agent(log)), async |_| Ok(())).await;
    assert!(error.is_err_and(|error| format!("{error:?}").contains("none")));
    assert!(matches!(Config::read(&directory.path().join("none.yaml")), Err(ConfigError::Unreadable { .. })));
}

/// If the agent supports only stdio, the library has no program to offer as the bridge. So the model reads the files, and the
/// user's commands work.
#[tokio::test]
async fn an_agent_with_only_stdio_reads_the_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let dir = dunce::canonicalize(directory.path()).expect("a path").join("beta");
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("SKILL.md");
    std::fs::write(&file, "---\nname: beta\ndescription: Knows beta.\n---\n# The body of beta\n")
        .expect("a file");
    for virtual_too in [false, true] {
        let log = Log::default();
        let skills = if virtual_too { skills("alpha") } else { skills_core::SkillSet::default() };
        let proxy = SkillsProxy::new(skills).policy(without_mcp_wait()).skill_dir(&dir);
        let agent = proxy.in_front_of(agent_with_transports(log.clone(), McpCapabilities::new()));
        within(with_client(agent, async |client| {
            assert_eq!(client.turn("hello").await?.user, "hello");
            assert_eq!(client.turn("/beta now").await?.user, "/beta now");
            Ok(())
        }))
        .await;
        assert_eq!(log.servers(), Vec::<String>::new());
        let first = log.prompt(0);
        let path = file.to_str().expect("text");
        assert!(first[0].contains(path) && !first[0].contains("activate_skill"), "{first:?}");
        // This skill doesn't have any files, so the model couldn't read it, and we don't need to list it.
        assert!(!first[0].contains("alpha"), "{first:?}");
        assert!(log.prompt(1)[0].contains("# The body of beta"), "{:?}", log.prompt(1));
    }
}
