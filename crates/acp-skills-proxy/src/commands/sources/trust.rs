//! `trust` and `untrust`: approve the skills of a project in a terminal, or take the approval back.

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use acp_skills::{
    config::{Config, Discover, Settings},
    library::{DirectoryLibrary, Workspace},
};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use skills_core::{
    Scope, Skill, SkillName, SkillSet, order,
    set::Unapproved,
    text::{shown, shown_path},
};
use skills_sources::{
    SkillChange,
    trust::{Decided, TrustedDir},
};

use super::{ApprovalArgs, findings, show};
use crate::{
    args::{ConfigArgs, LogArgs, path},
    error::UsageError,
    log, output,
};

/// The flags that both commands share.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProjectArgs {
    /// The names of the skills. By default, all.
    names: Vec<String>,
    /// The directory of the project [default: the working directory].
    #[arg(long, value_name = "DIR", value_parser = path())]
    dir: Option<PathBuf>,
    /// The state directory of the proxy, if the editor starts it with this flag.
    #[arg(long, value_name = "DIR", value_parser = path())]
    state: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// The flags of `trust`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy trust
      Show the skills of the project that wait for your trust, and ask about them.
  acp-skills-proxy trust review --dir ~/work/api
  acp-skills-proxy untrust review

Exit codes: 0 if the skills are trusted, 1 if not.")]
pub(crate) struct TrustArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// Trust without asking. With --json, nothing is asked, so this is the only way to trust.
    #[arg(long)]
    yes: bool,
    /// With --yes, also trust files that cannot be shown, such as pictures and compiled programs.
    #[arg(long, requires = "yes")]
    unseen: bool,
}

/// The flags of `untrust`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy untrust review
  acp-skills-proxy untrust --dir ~/work/api
      Take the trust in all skills of the project back, also if they have changed or are gone.")]
pub(crate) struct UntrustArgs {
    #[command(flatten)]
    project: ProjectArgs,
}

/// A skill in the JSON output. Scripts can rely on it: later versions only add fields.
#[derive(Clone, Serialize)]
struct Row {
    name: String,
    path: Option<PathBuf>,
    /// The checksum that the trust is for. Only in the output of `trust`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// True if the user has declined this version. Only in the output of `trust`.
    #[serde(skip_serializing_if = "Option::is_none")]
    declined: Option<bool>,
}

/// The JSON of `trust`.
#[derive(Default, Serialize)]
struct Report<'a> {
    skills: Vec<Row>,
    trusted: bool,
    changes: &'a [SkillChange],
}

impl Row {
    fn new(skill: &Skill) -> Self {
        Self {
            name: skill.name.to_string(),
            path: skill.dir().map(Path::to_owned),
            sha256: None,
            declined: None,
        }
    }

    fn of_unapproved(unapproved: &Unapproved) -> Self {
        let (sha256, declined) = (Some(unapproved.digest.clone()), Some(unapproved.is_refused));
        Self { sha256, declined, ..Self::new(&unapproved.skill) }
    }

    fn of_directory(dir: &TrustedDir) -> Self {
        let name = dir.names().next().unwrap_or_default().to_owned();
        Self { name, path: Some(dir.path()), sha256: None, declined: None }
    }
}

/// The skills of a project.
struct Project {
    library: DirectoryLibrary,
    workspace: Workspace,
    here: SkillSet,
}

impl Project {
    /// Finds the skills of a project. With `in_use`, also finds all other skills that a session has.
    fn find(args: &ProjectArgs, in_use: bool) -> anyhow::Result<Self> {
        let mut config = match args.config.path_to_read() {
            Some(path) => log::with_warnings_on_stderr(|| Config::read(&path))?,
            None => Config::default(),
        };
        args.log.clone().override_in(&mut config);
        log::start(&config)?;
        let mut own = Config::default();
        own.state = args.state.clone().or_else(|| config.state.clone());
        own.nested = config.nested;
        own.max_skills = config.max_skills;
        own.discover = vec![Discover::ProjectTree];
        let dir = match &args.dir {
            Some(dir) => std::path::absolute(dir)?,
            None => env::current_dir()?,
        };
        if !dir.is_dir() {
            return Err(UsageError::new(format!("no such directory: {}", shown_path(&dir))).into());
        }
        let library = match in_use.then(|| all_skills(config, &own)).flatten() {
            Some(library) => library,
            None => Settings::resolve(own)?.skills.load()?,
        };
        let workspace = Workspace { cwd: Some(dir), ..Workspace::default() };
        let here = library.at(&workspace);
        Ok(Self { library, workspace, here })
    }

    /// Returns the skills of the project that were found.
    fn found(&self) -> impl Iterator<Item = &Arc<Skill>> {
        let unapproved = self.here.unapproved().iter().map(|unapproved| &unapproved.skill);
        self.here.iter().chain(unapproved).filter(|skill| skill.scope == Scope::Project)
    }

    /// Returns the skills that are trusted in some version, with their directories, and those that the configuration trusts. A skill that
    /// has changed since is one of them, and also a skill that was not found, for example because it is on another branch.
    fn trusted(&self) -> Vec<(Row, Option<TrustedDir>)> {
        let row = |dir: TrustedDir| {
            let skill = self.found().find(|skill| dir.has(skill));
            let row = skill.map_or_else(|| Row::of_directory(&dir), |skill| Row::new(skill));
            (row, Some(dir))
        };
        let mut rows: Vec<_> = self.library.trusted(&self.workspace).into_iter().map(row).collect();
        let in_use: Vec<_> = self.here.iter().filter(|skill| skill.scope == Scope::Project).collect();
        for skill in in_use {
            if !rows.iter().any(|(_, dir)| dir.as_ref().is_some_and(|dir| dir.has(skill))) {
                rows.push((Row::new(skill), None));
            }
        }
        rows
    }
}

/// Returns the library of a session with this configuration. `None` if it can't be loaded. `own` has the settings for the project.
fn all_skills(mut config: Config, own: &Config) -> Option<DirectoryLibrary> {
    config.state.clone_from(&own.state);
    config.discover.extend(own.discover.iter().copied());
    Settings::resolve(config).ok()?.skills.load().ok()
}

/// Returns the skills with these names, or all. `name` returns the name of a skill, and `has` returns true if a skill has another name with
/// a [key](SkillName::key).
///
/// # Errors
/// Returns an error if no skill has one of the names.
fn named<T: Clone>(
    skills: &[T],
    names: &[String],
    name: impl Fn(&T) -> &str,
    has: impl Fn(&T, &str) -> bool,
    what: &str,
) -> Result<Vec<T>, UsageError> {
    let is = |skill: &T, other: &String| {
        let key = SkillName::key_of(other);
        SkillName::key_of(name(skill)) == key || has(skill, &key)
    };
    if let Some(missing) = names.iter().find(|other| !skills.iter().any(|skill| is(skill, other))) {
        let all: Vec<_> = skills.iter().map(|skill| format!("`{}`", shown(name(skill)))).collect();
        let error = UsageError::new(format!("no skill `{}` of the project {what}", shown(missing)));
        return Err(if all.is_empty() {
            error
        } else {
            error.hint(format!("use one of {}", all.join(", ")))
        });
    }
    let is_named = |skill: &&T| names.is_empty() || names.iter().any(|other| is(skill, other));
    Ok(skills.iter().filter(is_named).cloned().collect())
}

/// Shows the skills of a project that wait for trust, and trusts them if the user agrees.
///
/// # Errors
/// Returns an error if the configuration is invalid, if a name is unknown, or if there is no terminal to ask on.
pub(crate) fn trust(args: TrustArgs) -> anyhow::Result<ExitCode> {
    let TrustArgs { project: flags, yes, unseen } = args;
    let project = Project::find(&flags, false)?;
    let unapproved = named(
        project.here.unapproved(),
        &flags.names,
        |unapproved: &Unapproved| unapproved.skill.name.as_str(),
        |_, _| false,
        "waits for your trust",
    )?;
    if unapproved.is_empty() {
        if flags.json {
            output::print_json(&Report { trusted: true, ..Report::default() })?;
        } else {
            output::print("No skill of the project waits for your trust.\n")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    for declined in unapproved.iter().filter(|unapproved| unapproved.is_refused) {
        output::note(&format!("you have declined `{}` before", declined.skill.name));
    }
    let (shown, changes) = readable(&unapproved);
    let approval = ApprovalArgs { yes, unseen, ..ApprovalArgs::default() };
    let agreed = if changes.is_empty() {
        false
    } else if flags.json {
        approval.approve_or_explain(&changes)
    } else {
        let findings = findings::by_skill(&changes);
        output::page(!yes, |text| show::changes(text, &changes, &findings, &[]))?;
        approval.ask("Trust these skills?", &changes)?
    };
    if flags.json {
        let skills = unapproved.iter().map(Row::of_unapproved).collect();
        let trusted = agreed && shown.len() == unapproved.len();
        output::page_json(agreed, &Report { skills, trusted, changes: &changes })?;
    }
    // The decision applies to the versions that were shown, and not to skills that could not be shown.
    let decided =
        if agreed { project.library.decide(&project.workspace, &shown, true) } else { Decided::default() };
    let is_done = decided.done.len() == unapproved.len() && decided.unsaved.is_none();
    report(&decided);
    if flags.json {
        // The JSON was printed before the decision.
        return Ok(ExitCode::from(u8::from(!is_done)));
    }
    if is_done {
        output::print("Trusted until the next change.\n")?;
    } else if !decided.done.is_empty() && decided.unsaved.is_none() {
        let names: Vec<_> = decided.done.iter().map(|name| format!("`{name}`")).collect();
        output::print(&format!("Trusted until the next change: {}.\n", names.join(", ")))?;
    } else if !agreed {
        output::print("Not trusted.\n")?;
    }
    Ok(ExitCode::from(u8::from(!is_done)))
}

/// Returns the skills of which all files can be read, and their files. The others are named on stderr with the reason.
fn readable(unapproved: &[Unapproved]) -> (Vec<Unapproved>, Vec<SkillChange>) {
    let mut shown = Vec::new();
    let mut changes = Vec::new();
    for unapproved in unapproved {
        match SkillChange::of_unapproved(unapproved) {
            Ok(change) => {
                changes.push(change);
                shown.push(unapproved.clone());
            }
            Err(error) => {
                let hint = "use `acp-skills-proxy trust` again to show the skill as it is now";
                output::complain(&format!("cannot show `{}`: {error}", unapproved.skill.name), Some(hint));
            }
        }
    }
    (shown, changes)
}

/// Takes the trust in skills of a project back.
///
/// # Errors
/// Returns an error if the configuration is invalid, or if a name is unknown.
pub(crate) fn untrust(args: UntrustArgs) -> anyhow::Result<ExitCode> {
    let flags = args.project;
    let project = Project::find(&flags, true)?;
    let has =
        |(_, dir): &(Row, Option<TrustedDir>), key: &str| dir.as_ref().is_some_and(|dir| dir.is_named(key));
    let skills = named(&project.trusted(), &flags.names, |(row, _)| &row.name, has, "is trusted")?;
    let rows: Vec<_> = skills.into_iter().map(|(row, _)| row).collect();
    let names = if flags.names.is_empty() {
        order::set(rows.iter().map(|row| row.name.clone())).into_iter().collect()
    } else {
        flags.names
    };
    let names: Vec<_> = names.iter().filter_map(|name| SkillName::new(name)).collect();
    let found: Vec<_> = project.found().cloned().collect();
    let decided = project.library.revoke(&project.workspace, &names, &found);
    let is_done = decided.unsaved.is_none() && decided.failed.is_empty() && decided.unknown.is_empty();
    report(&decided);
    for name in &decided.absent {
        let name = shown(name.as_str());
        output::note(&format!(
            "the project has no skill `{name}` at the moment; if one appears, it waits for your trust"
        ));
    }
    for name in &decided.unknown {
        output::complain(&format!("no decision about `{}` was found", shown(name.as_str())), None);
    }
    if flags.json {
        output::print_json(&json!({ "skills": rows, "trusted": !is_done }))?;
    } else if rows.is_empty() {
        output::print("No skill of the project is trusted.\n")?;
    } else if decided.unsaved.is_none() && !decided.done.is_empty() {
        let names: Vec<_> = decided.done.iter().map(|name| format!("`{}`", shown(name.as_str()))).collect();
        output::print(&format!("No longer trusted: {}.\n", names.join(", ")))?;
    }
    Ok(ExitCode::from(u8::from(!is_done)))
}

/// Reports failures on stderr.
fn report(decided: &Decided) {
    for (name, why) in &decided.failed {
        output::complain(&format!("`{name}`: {why}"), None);
    }
    for (name, place) in &decided.remaining {
        let hint =
            "change the configuration, or turn the skill off in a session with `/skills off` and its name";
        output::complain(
            &format!("a skill `{name}` {} is still in use, because it needs no trust", shown(place)),
            Some(hint),
        );
    }
    if let Some(why) = &decided.unsaved {
        output::complain(&format!("cannot save the decision: {why}"), None);
    }
}
