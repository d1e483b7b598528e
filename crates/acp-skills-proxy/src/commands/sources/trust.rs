//! `trust` and `untrust`: approve the skills of a project in a terminal, or take the approval back.

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

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
        Self { name: skill.name.to_string(), path: skill.dir().map(Path::to_owned), sha256: None }
    }

    fn of_unapproved(unapproved: &Unapproved) -> Self {
        Self { sha256: Some(unapproved.digest.clone()), ..Self::new(&unapproved.skill) }
    }

    fn of_directory(dir: &TrustedDir) -> Self {
        Self { name: dir.name().to_owned(), path: Some(dir.path()), sha256: None }
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

    /// Returns the skills that are trusted in some version, with their directories. A skill that has changed since is one of them. A
    /// skill that was not found, for example because it is on another branch, has the name that it had when it was trusted.
    fn trusted(&self) -> Vec<(Row, TrustedDir)> {
        let unapproved = self.here.unapproved().iter().map(|unapproved| &unapproved.skill);
        let found: Vec<_> = self.here.iter().chain(unapproved).collect();
        let row = |dir: TrustedDir| {
            let skill = found.iter().find(|skill| skill.scope == Scope::Project && dir.has(skill));
            let row = skill.map_or_else(|| Row::of_directory(&dir), |skill| Row::new(skill));
            (row, dir)
        };
        self.library.trusted(&self.workspace).into_iter().map(row).collect()
    }
}

/// Returns the skills with these names, or all. `names_of` returns the names of a skill, the current one first.
///
/// # Errors
/// Returns an error if no skill has one of the names.
fn named<T: Clone>(
    skills: &[T],
    names: &[String],
    names_of: impl Fn(&T) -> [&str; 2],
    what: &str,
) -> Result<Vec<T>, UsageError> {
    let is = |skill: &T, other: &String| {
        names_of(skill).iter().any(|name| SkillName::key_of(name) == SkillName::key_of(other))
    };
    if let Some(missing) = names.iter().find(|other| !skills.iter().any(|skill| is(skill, other))) {
        let all: Vec<_> = skills.iter().map(|skill| format!("`{}`", shown(names_of(skill)[0]))).collect();
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
    let project = Project::find(&flags)?;
    let unapproved = named(
        project.here.unapproved(),
        &flags.names,
        |unapproved: &Unapproved| [unapproved.skill.name.as_str(); 2],
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
    // The decision applies to the versions that were shown, and not to skills that could not be shown.
    let decided =
        if agreed { project.library.decide(&project.workspace, &shown, true) } else { Decided::default() };
    let is_done = decided.done.len() == unapproved.len() && decided.unsaved.is_none();
    report(&decided);
    if flags.json {
        let skills = unapproved.iter().map(Row::of_unapproved).collect();
        output::print_json(&Report { skills, trusted: is_done, changes: &changes })?;
    } else if is_done {
        output::print("Trusted until the next change.\n")?;
    } else if !decided.done.is_empty() {
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
    let project = Project::find(&flags)?;
    let trusted = project.trusted();
    let skills = named(&trusted, &flags.names, |(row, dir)| [&row.name, dir.name()], "is trusted")?;
    let dirs: Vec<_> = skills.iter().map(|(_, dir)| dir.clone()).collect();
    let unsaved = project.library.revoke_dirs(&dirs);
    let is_done = unsaved.is_none();
    report(&Decided { unsaved, ..Decided::default() });
    let rows: Vec<_> = skills.into_iter().map(|(row, _)| row).collect();
    if flags.json {
        output::print_json(&json!({ "skills": rows, "trusted": !is_done }))?;
    } else if rows.is_empty() {
        output::print("No skill of the project is trusted.\n")?;
    } else if is_done {
        let names: Vec<_> = rows.iter().map(|row| format!("`{}`", shown(&row.name))).collect();
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
