//! [`Flags`]: the flags of the proxy that `setup` writes to settings.

use std::path::Path;

use acp_skills::{
    agents,
    config::{Discover, Settings},
};

use skills_core::discovery::{Root, user_roots};

use super::{skills, texts};
use crate::{
    args::{ConfigArgs, ProxyArgs, SkillArgs},
    error::UsageError,
};

/// Flags as words for settings, with notes for the user.
pub(super) struct Flags {
    /// The words. `None` if no flags were given.
    pub(super) words: Option<Vec<String>>,
    pub(super) notes: Vec<String>,
}

/// Returns the default flags: the user's own skills, or none if there is a configuration file.
pub(super) fn default() -> Vec<String> {
    match ConfigArgs::default().path_to_read() {
        Some(_) => Vec::new(),
        None => ["--discover", "user"].map(str::to_owned).to_vec(),
    }
}

impl Flags {
    /// Checks that the proxy would start with the flags. If they name no skills, `--discover user` is added.
    pub(super) fn new(
        mut args: SkillArgs,
        log_file: Option<&Path>,
        events: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for (flag, file) in [("--log-file", log_file), ("--events", events)] {
            if let Some(file) = file {
                files.extend([flag.into(), std::path::absolute(file)?.into_os_string()]);
            }
        }
        let has_flags = !args.words()?.is_empty() || !files.is_empty();
        let is_named = args.names_skills();
        if !is_named {
            args.discover = vec![Discover::User];
        }
        let words = if has_flags { Some(texts(&[args.words()?, files].concat())?) } else { None };
        // We may be offline now, and the sources may change later, so we don't fetch them here.
        let here = SkillArgs { sources: Vec::new(), ..args.clone() };
        let config = ProxyArgs { session: here.into(), ..ProxyArgs::default() }.config()?;
        let loaded = skills::load(Settings::resolve(config)?.skills)?;
        let notes = match loaded.here.is_empty() && args.sources.is_empty() {
            true if !is_named => vec![
                "no skills found; add skills to ~/.agents/skills, or use `--skills DIR` for another directory"
                    .to_owned(),
            ],
            true => loaded.why_none(),
            false => Vec::new(),
        };
        Ok(Self { words, notes })
    }
}

/// Flags for one agent.
pub(super) struct Chosen {
    pub(super) words: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Returns true if the user has the directory `$XDG_CONFIG_HOME/agents/skills`.
fn has_skills_in_config() -> bool {
    let is_home =
        |root: &Root| root.path.ends_with(".agents/skills") || root.path.ends_with(".claude/skills");
    user_roots().iter().any(|root| !is_home(root) && root.path.is_dir())
}

/// Leaves out the directories of `--discover user` from which the agent loads skills itself, because the model would see these skills
/// twice.
///
/// # Errors
/// Returns an error if no skills are left.
pub(super) fn without_doubles(mut words: Vec<String>, agent: &[String]) -> Result<Chosen, UsageError> {
    let own = agents::of_command(agent).filter(|agent| !agent.own_skills.is_empty());
    let at = words.iter().position(|word| word == "--discover").map(|at| at + 1);
    let (Some(own), Some(at)) = (own, at) else { return Ok(Chosen { words, notes: Vec::new() }) };
    let mut places: Vec<_> = words[at].split(',').map(str::to_owned).collect();
    let Some(user) = places.iter().position(|place| place == "user") else {
        return Ok(Chosen { words, notes: Vec::new() });
    };
    let parts = [("agents", ".agents/skills"), ("claude", ".claude/skills")];
    let is_own = |dir: &str| own.own_skills.contains(&dir);
    let mut rest: Vec<_> =
        parts.iter().filter(|part| !is_own(part.1)).map(|part| part.0.to_owned()).collect();
    // No agent loads this directory, which the part `agents` contains.
    if is_own(".agents/skills") && has_skills_in_config() {
        rest.insert(0, "config".to_owned());
    }
    places.splice(user..=user, rest);
    let dirs: Vec<_> = own.own_skills.iter().map(|dir| format!("~/{dir}")).collect();
    let dirs = dirs.join(" and ");
    let all = "`--discover agents,claude`";
    if places.is_empty() {
        words.drain(at - 1..=at);
        let selects = ["--skill", "--skills", "--source", "--config"];
        if !words.iter().any(|word| selects.contains(&word.as_str())) {
            return Err(UsageError::new(format!("{} loads the skills in {dirs} itself", own.name)).hint(format!(
                "use `--skills DIR` to add the skills of another directory, or {all} to use these through the proxy as well"
            )));
        }
    } else {
        words[at] = places.join(",");
    }
    let note = format!(
        "skills in {dirs} are left out, because {} loads them itself; use {all} to use them through the proxy as well",
        own.name
    );
    Ok(Chosen { words, notes: vec![note] })
}
