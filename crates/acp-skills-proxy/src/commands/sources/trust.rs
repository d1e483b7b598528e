//! `trust` and `untrust`: approve the skills of a project in a terminal, or take the approval back.

use std::{env, path::PathBuf, process::ExitCode, sync::Arc};

use acp_skills::{
    config::{Config, Discover, Settings},
    library::{DirectoryLibrary, Workspace},
};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use skills_core::{
    Scope, Skill, SkillName, SkillSet,
    set::Unapproved,
    text::{shown, shown_path},
};
use skills_sources::{SkillChange, trust::Decided};

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
  acp-skills-proxy untrust --dir ~/work/api")]
pub(crate) struct UntrustArgs {
    #[command(flatten)]
    project: ProjectArgs,
}

/// A skill in the JSON output. Scripts can rely on it: later versions only add fields.
#[derive(Serialize)]
struct Row {
    name: String,
    path: Option<PathBuf>,
}

impl Row {
    fn new(skill: &Skill) -> Self {
        Self { name: skill.name.to_string(), path: skill.dir().map(std::path::Path::to_owned) }
    }
}

/// The skills of a project.
struct Project {
    library: DirectoryLibrary,
    workspace: Workspace,
    here: SkillSet,
}

impl Project {
    fn find(args: &ProjectArgs) -> anyhow::Result<Self> {
        let mut config = match args.config.path_to_read() {
            Some(path) => log::with_warnings_on_stderr(|| Config::read(&path))?,
            None => Config::default(),
        };
        args.log.clone().override_in(&mut config);
        log::start(&config)?;
        let mut own = Config::default();
        own.state = args.state.clone().or(config.state);
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
        let library = Settings::resolve(own)?.skills.load()?;
        let workspace = Workspace { cwd: Some(dir), ..Workspace::default() };
        let here = library.at(&workspace);
        Ok(Self { library, workspace, here })
    }
}

/// Returns the skills with these names, or all. `name` returns the name of a skill.
///
/// # Errors
/// Returns an error if no skill has one of the names.
fn named<T: Clone>(
    skills: &[T],
    names: &[String],
    name: impl Fn(&T) -> &SkillName,
    what: &str,
) -> Result<Vec<T>, UsageError> {
    let is = |skill: &T, other: &String| name(skill).key() == SkillName::key_of(other);
    if let Some(missing) = names.iter().find(|other| !skills.iter().any(|skill| is(skill, other))) {
        let all: Vec<_> = skills.iter().map(|skill| format!("`{}`", name(skill))).collect();
        let hint = if all.is_empty() { "there is none".to_owned() } else { all.join(", ") };
        return Err(UsageError::new(format!("no skill `{}` of the project {what}", shown(missing)))
            .hint(format!("skills of which this is true: {hint}")));
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
    let project = Project::find(&flags)?;
    let waiting = named(
        project.here.unapproved(),
        &flags.names,
        |waiting: &Unapproved| &waiting.skill.name,
        "waits for your trust",
    )?;
    if waiting.is_empty() {
        if flags.json {
            output::print_json(&json!({ "skills": [], "trusted": true }))?;
        } else {
            output::print("No skill of the project waits for your trust.\n")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let changes: Vec<_> =
        waiting.iter().filter_map(|waiting| SkillChange::of_local(&waiting.skill)).collect();
    let approval = ApprovalArgs { yes, unseen, ..ApprovalArgs::default() };
    let agreed = if flags.json {
        approval.approve_or_explain(&changes)
    } else {
        let findings = findings::by_skill(&changes);
        output::page(!yes, |text| show::changes(text, &changes, &findings, &[]))?;
        approval.ask("Trust these skills?", &changes)?
    };
    // The decision applies to the versions that were found before they were shown.
    let decided =
        if agreed { project.library.decide(&project.workspace, &waiting, true) } else { Decided::default() };
    let is_done = decided.done.len() == waiting.len() && decided.unsaved.is_none();
    report(&decided);
    if flags.json {
        let skills: Vec<_> = waiting.iter().map(|waiting| Row::new(&waiting.skill)).collect();
        output::print_json(&json!({ "skills": skills, "trusted": is_done }))?;
    } else if is_done {
        output::print("Trusted until the next change.\n")?;
    } else if !agreed {
        output::print("Not trusted.\n")?;
    }
    Ok(ExitCode::from(u8::from(!is_done)))
}

/// Takes the trust in skills of a project back.
///
/// # Errors
/// Returns an error if the configuration is invalid, or if a name is unknown.
pub(crate) fn untrust(args: UntrustArgs) -> anyhow::Result<ExitCode> {
    let flags = args.project;
    let project = Project::find(&flags)?;
    let trusted: Vec<_> =
        project.here.iter().filter(|skill| skill.scope == Scope::Project).cloned().collect();
    let skills = named(&trusted, &flags.names, |skill: &Arc<Skill>| &skill.name, "is trusted")?;
    let decided = project.library.revoke(&project.workspace, &skills);
    let is_done = decided.failed.is_empty() && decided.unsaved.is_none();
    report(&decided);
    if flags.json {
        let skills: Vec<_> = skills.iter().map(|skill| Row::new(skill)).collect();
        output::print_json(&json!({ "skills": skills, "trusted": !is_done }))?;
    } else if skills.is_empty() {
        output::print("No skill of the project is trusted.\n")?;
    } else if is_done {
        let names: Vec<_> = skills.iter().map(|skill| format!("`{}`", skill.name)).collect();
        output::print(&format!("No longer trusted: {}.\n", names.join(", ")))?;
    }
    Ok(ExitCode::from(u8::from(!is_done)))
}

/// Reports failures on stderr.
fn report(decided: &Decided) {
    for (name, why) in &decided.failed {
        output::complain(&format!("`{name}`: {why}"), None);
    }
    if let Some(why) = &decided.unsaved {
        output::complain(&format!("cannot save the decision: {why}"), None);
    }
}
