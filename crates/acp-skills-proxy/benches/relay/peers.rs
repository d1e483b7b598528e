//! The connections between client and agent: a direct pipe; `socat`, which copies bytes (if it is installed); the proxy with
//! different numbers of skills; and the published `agent-client-protocol-conductor` with one pass-through proxy (if it is
//! installed; `CONDUCTOR` names the binary).

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::Context;

use crate::ROLE;

/// Returns the path of the program to measure: `PROXY`, or the one that cargo built for this bench. The latter is larger than a
/// release, because cargo builds benches with unwinding.
pub(crate) fn proxy() -> String {
    env::var("PROXY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_acp-skills-proxy").to_owned())
}

/// The numbers of skills of the proxy.
pub(crate) const SKILLS: [usize; 3] = [10, 1_000, 10_000];

/// A connection between client and agent.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    /// True if this is the proxy.
    pub(crate) is_ours: bool,
}

impl Peer {
    /// Starts the peer with pipes for stdin and stdout, under the command `wrapper` if it is not empty.
    pub(crate) fn start(&self, wrapper: &[&str]) -> anyhow::Result<Child> {
        let words = self.command.iter().map(String::as_str);
        let words: Vec<&str> = wrapper.iter().copied().chain(words).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env(ROLE, "agent");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().with_context(|| self.name.clone())
    }
}

/// Returns all peers. Skills for the proxy are written to `dir`.
pub(crate) fn all(dir: &Path) -> anyhow::Result<Vec<Peer>> {
    let me = env::current_exe()?.to_str().context("a path")?.to_owned();
    let peer = |name: &str, command: Vec<String>| Peer { name: name.to_owned(), command, is_ours: false };
    let mut peers = vec![peer("direct pipe", vec![me.clone()])];
    match find("socat") {
        Some(socat) => peers.push(peer("socat", vec![socat, "-".into(), format!("EXEC:{me},pipes")])),
        None => eprintln!("socat is not installed; skipping it"),
    }
    for count in SKILLS {
        let root = dir.join(count.to_string());
        for number in 0..count {
            let skill = root.join(format!("skill-{number}"));
            fs::create_dir_all(&skill)?;
            let text = format!("---\nname: skill-{number}\ndescription: Does {number}.\n---\nDo it.\n");
            fs::write(skill.join("SKILL.md"), text)?;
        }
        let root = root.to_str().context("a path")?;
        let words = [&proxy(), "--skills", root, "--mcp-wait", "0", "--", &me];
        let peer = peer(&format!("this, {count} skills"), words.map(Into::into).to_vec());
        peers.push(Peer { is_ours: true, ..peer });
    }
    match env::var("CONDUCTOR").ok().or_else(|| find("agent-client-protocol-conductor")) {
        Some(conductor) => {
            let proxy = format!("env {ROLE}=pass-through {me}");
            peers.push(peer("conductor", vec![conductor, "agent".into(), proxy, me]));
        }
        None => eprintln!("agent-client-protocol-conductor is not installed; skipping it"),
    }
    Ok(peers)
}

/// Finds a program in `PATH`.
pub(crate) fn find(program: &str) -> Option<String> {
    let found =
        env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| path.is_file());
    found.and_then(|path: PathBuf| path.to_str().map(str::to_owned))
}
