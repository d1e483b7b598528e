//! Narrows a configuration by the policy of this machine.
//!
//! All settings pass through [`narrow`], wherever they come from: flags, variables, the configuration file, or code. It removes what the
//! policy refuses. The library of the session decides about skills on disk, because links can change later.

use std::{collections::BTreeMap, iter, path::Path, sync::Arc};

use acp_skills_runtime::{
    library::Rules,
    telemetry::{self, SettingsError},
};
use skills_core::{Scope, discovery::Limits, exec::Sandbox, set::Skipped, text::markdown_code};
use skills_sources::{
    Address, Options, Sources, Spec,
    policy::{Policy, Refusal, Scripts, Server, check_protection},
    required_lock,
};

use super::{
    Config, ConfigError, SandboxKind, SkillEntry, SourceAccess, SourceEntry, VirtualSkill, servers,
    tool_server::ServerEntry,
};

/// Removes everything from the configuration that the policy refuses. Returns a record for each refusal.
pub(super) fn narrow(config: &mut Config, policy: &Policy) -> Vec<Skipped> {
    let mut refused = Vec::new();
    narrow_scripts(config, policy, &mut refused);
    if config.drafts
        && let Err(refusal) = policy.skill("--drafts", Scope::Session, None)
    {
        config.drafts = false;
        refused.push(refusal.skipped("--drafts"));
    }
    for (setting, value) in [("--mount", &mut config.mount), ("--listen-url", &mut config.listen_url)] {
        if value.is_some()
            && let Err(refusal) = policy.other_place(setting)
        {
            *value = None;
            refused.push(refusal.skipped(setting));
        }
    }
    let is_trusting =
        !config.trust.is_empty() || config.projects.iter().any(|project| !project.trust.is_empty());
    if is_trusting && policy.restricts_local_skills() {
        config.trust.clear();
        config.projects.iter_mut().for_each(|project| project.trust.clear());
        refused.push(policy.trust_in_advance().skipped("--trust"));
    }
    if config.mcp_skills.is_some()
        && let Err(refusal) = policy.server_skills("`--mcp-skills`", Some(Scope::Session))
    {
        config.mcp_skills = None;
        refused.push(refusal.skipped("--mcp-skills"));
    }
    narrow_entries(&mut config.sources, &mut config.skills, policy, &mut refused);
    for project in &mut config.projects {
        narrow_entries(&mut project.sources, &mut project.skills, policy, &mut refused);
    }
    refused
}

/// Returns the settings of telemetry, if the user or the policy has turned it on.
///
/// # Errors
/// Returns an error if the variables of telemetry are invalid, or if the policy requires telemetry that is off.
pub(super) fn telemetry(
    config: &Config,
    policy: Option<&Policy>,
) -> Result<Option<telemetry::Settings>, ConfigError> {
    let required = policy.filter(|policy| policy.requires_telemetry());
    if config.telemetry.is_none() && required.is_none() {
        return Ok(None);
    }
    let settings = match required {
        Some(policy) => telemetry::Settings::required_from_env(policy.collector()),
        None => telemetry::Settings::from_env(),
    };
    match (settings, required) {
        (Ok(settings), _) => Ok(Some(settings)),
        (Err(error), Some(policy)) => Err(policy.without_telemetry(error.to_string()).into()),
        (Err(SettingsError::Off(why)), None) => {
            tracing::info!("telemetry is off: {why}");
            Ok(None)
        }
        (Err(error), None) => Err(error.into()),
    }
}

/// Returns the rules for the skills on disk. `options` are those of the user's sources.
pub(super) fn rules(policy: Option<Arc<Policy>>, refused: Vec<Skipped>, options: &Options) -> Rules {
    // No setting of the user limits the sources that an administrator requires. No configuration chooses their registry or sends headers
    // to them, because it can be that of a project.
    let options = Options {
        credentials: Some(Arc::new(SourceAccess::default())),
        max_skills: Limits::default().max_skills,
        max_fetch_bytes: None,
        locked: false,
        ..options.clone()
    };
    let required = policy.as_deref().map(required).unwrap_or_default();
    Rules { policy, required: Sources::start(required, options), refused }
}

/// Returns the sources that each session uses.
fn required(policy: &Policy) -> Vec<Spec> {
    let spec = |address: &Address| Spec {
        address: address.clone(),
        filters: Vec::new(),
        lock: required_lock(),
        nested: false,
        is_named: true,
    };
    let mut specs: Vec<_> = policy.required().iter().map(spec).collect();
    lock(specs.iter_mut(), policy);
    specs
}

/// Makes sources use the lock file of the administrator, if there is one. Naming a source then approves nothing.
pub(super) fn lock<'s>(sources: impl Iterator<Item = &'s mut Spec>, policy: &Policy) {
    let Some(lock) = policy.lock() else { return };
    for spec in sources {
        lock.clone_into(&mut spec.lock);
        spec.is_named = false;
    }
}

fn narrow_scripts(config: &mut Config, policy: &Policy, refused: &mut Vec<Skipped>) {
    match policy.scripts() {
        Scripts::Never if config.allow_scripts => {
            config.allow_scripts = false;
            refused.push(policy.script("`--allow-scripts`", "").skipped("--allow-scripts"));
        }
        Scripts::Never | Scripts::Allowed => {}
        Scripts::Sandbox => {
            config.sandbox = Some(SandboxKind::Bwrap);
            if config.allow_scripts && config.sandbox_net {
                refused.push(policy.script("`--sandbox-net`", "").skipped("--sandbox-net"));
            }
            config.sandbox_net = false;
            // If there is none, that is an error later.
            let bwrap = which::which("bwrap").ok().filter(|_| config.allow_scripts);
            if let Some(refusal) = bwrap.and_then(|bwrap| bwrap_refusal(&bwrap, policy)) {
                config.allow_scripts = false;
                refused.push(refusal.skipped("--allow-scripts"));
            }
        }
    }
}

/// The places of `bwrap` on Linux, including NixOS and Guix.
const BWRAP: [&str; 5] = [
    "/usr/bin/bwrap",
    "/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
    "/run/current-system/profile/bin/bwrap",
];

/// Returns the refusal of scripts if the policy needs the sandbox, and a user can change `bwrap`. Users can put another program in `PATH`,
/// also from a disk that the system mounts for them, where any file can belong to root. So only a `bwrap` of the system is used.
fn bwrap_refusal(bwrap: &Path, policy: &Policy) -> Option<Refusal> {
    let real = bwrap.canonicalize().ok();
    let is_of_system =
        || real.is_some() && BWRAP.iter().any(|path| Path::new(path).canonicalize().ok() == real);
    let is_refused =
        policy.scripts() == Scripts::Sandbox && (check_protection(bwrap).is_err() || !is_of_system());
    let why = "`bwrap` must be in a system directory such as /usr/bin, and only root may change it";
    is_refused.then(|| policy.script("`--allow-scripts`", why))
}

/// Checks the `bwrap` that scripts will use. Since [`narrow`] has looked for it, the user may have put another one in `PATH`.
///
/// # Errors
/// Returns the refusal if the policy needs the sandbox, and a user can change `bwrap`.
pub(super) fn check_sandbox(sandbox: &Sandbox, policy: Option<&Policy>) -> Result<(), Refusal> {
    policy.and_then(|policy| bwrap_refusal(sandbox.program(), policy)).map_or(Ok(()), Err)
}

fn narrow_entries(
    sources: &mut Vec<SourceEntry>,
    skills: &mut Vec<SkillEntry>,
    policy: &Policy,
    refused: &mut Vec<Skipped>,
) {
    sources.retain(|entry| {
        if let Some(url) = entry.server_url() {
            // An invalid URL is an error later.
            let Ok(name) = servers::name(url) else { return true };
            let refusal = of_server(&name, url, policy).err();
            refused.extend(refusal.iter().map(|refusal| refusal.skipped(&name)));
            return refusal.is_none();
        }
        // An invalid address is an error later.
        let Ok(address) = Address::parse(&entry.source) else { return true };
        let refusal = policy.source(&address).err();
        refused.extend(refusal.iter().map(|refusal| refusal.skipped(&entry.source)));
        refusal.is_none()
    });
    skills.retain_mut(|entry| {
        let (place, refusal) = match entry {
            SkillEntry::Directory(_) => return true,
            SkillEntry::Stored(stored) => {
                let name = stored.skill.file_name().unwrap_or_default().to_string_lossy();
                let server = stored.mcp.as_ref();
                let decided = server.map(|server| of_tool_server(&name, server, &stored.env, policy));
                (stored.skill.clone(), decided.and_then(Result::err))
            }
            SkillEntry::Virtual(skill) => (skill.name.as_str().into(), of_virtual(skill, policy).err()),
        };
        refused.extend(refusal.iter().map(|refusal| refusal.skipped(&place)));
        if refusal.is_none() {
            // The tools of the server stay.
            refused.extend(keep_from_asking(entry, policy).map(|refusal| refusal.skipped(&place)));
        }
        refusal.is_none()
    });
}

/// Decides about a source that is an MCP server.
///
/// # Errors
/// Returns the refusal if the policy doesn't allow the URL as a source and as an MCP server, or none of the skills of a server.
fn of_server(source: &str, url: &str, policy: &Policy) -> Result<(), Refusal> {
    policy.instructions(source, url)?;
    policy.server(source, &Server::Url(url), iter::empty())?;
    policy.server_skills(&format!("source {}", markdown_code(source)), None)
}

/// Decides about the server behind a skill. `env` are the variables of the skill.
///
/// # Errors
/// Returns the refusal if the policy doesn't allow the server.
fn of_tool_server(
    skill: &str,
    server: &ServerEntry,
    env: &BTreeMap<String, String>,
    policy: &Policy,
) -> Result<(), Refusal> {
    policy.server(skill, &server.server(), server.variables(env))
}

/// Keeps the server behind a skill from being asked for skills that would all be refused. Returns the refusal.
fn keep_from_asking(entry: &mut SkillEntry, policy: &Policy) -> Option<Refusal> {
    let (name, server) = match entry {
        SkillEntry::Directory(_) => return None,
        SkillEntry::Stored(stored) => {
            (stored.skill.file_name().unwrap_or_default().to_string_lossy(), stored.mcp.as_mut())
        }
        SkillEntry::Virtual(skill) => (skill.name.as_str().into(), skill.mcp.as_mut()),
    };
    let server = server.filter(|server| server.skills)?;
    let what = format!("`mcp.skills` of skill {}", markdown_code(&name));
    let refusal = policy.server_skills(&what, Some(Scope::Named)).err()?;
    server.skills = false;
    Some(refusal)
}

/// Decides about a skill that is defined in the configuration.
///
/// # Errors
/// Returns the refusal if the policy doesn't allow the skill, its commands, its server, or the URL of its instructions.
fn of_virtual(skill: &VirtualSkill, policy: &Policy) -> Result<(), Refusal> {
    policy.skill(&skill.name, Scope::Named, None)?;
    if !skill.tools.is_empty() {
        policy.commands(&skill.name)?;
    }
    if let Some(server) = &skill.mcp {
        of_tool_server(&skill.name, server, &skill.env, policy)?;
    }
    skill.body_url.iter().try_for_each(|url| policy.instructions(&skill.name, url))
}

#[cfg(test)]
mod tests;
