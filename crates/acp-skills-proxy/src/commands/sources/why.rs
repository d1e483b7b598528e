//! `why`: explains where a skill comes from, who approved it, and why a session in this directory has it or not.

use std::{env, path::Path, process::ExitCode};

use acp_skills::config::{Config, Settings, state_dir};
use acp_skills_runtime::switch_store::SwitchStore;
use clap::Args;
use serde::Serialize;
use skills_core::{
    Scope, Skill, SkillName, Source,
    discovery::Filter,
    set::{REFUSED_BY_POLICY, Skipped},
    text::{shown, shown_path},
};
use skills_sources::{LockFile, Updater, trust, user_lock};

use super::{
    CommonArgs, Target,
    known::{Known, as_used, known},
    pin, source_error,
};
use crate::{
    args::{LogArgs, ProxyArgs, SessionArgs},
    commands::skills::{self, Loaded},
    error::UsageError,
    log, output,
};

/// The flags of `why`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy why review
  acp-skills-proxy why review --discover user,project --json

Exit codes: 0 if a session in this directory has the skill, 1 if not.")]
pub(crate) struct WhyArgs {
    /// The name of the skill.
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// The JSON output. Scripts can rely on it: later versions only add fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    name: String,
    /// The skill that a session has. `None` if it has no skill with this name.
    used: Option<Used>,
    /// The skills with the same name that are not used because of it.
    shadows: Vec<String>,
    /// The approved versions in lock files.
    approvals: Vec<Approval>,
    /// Sentences that explain why the skill is not in a session, or when it is offered.
    reasons: Vec<String>,
}

/// A skill of a session.
#[derive(Serialize)]
struct Used {
    scope: Scope,
    /// The address of the source. `None` for the user's own skill.
    source: Option<String>,
    /// The directory or the URL of the skill.
    place: String,
}

/// The approved version of a skill in a lock file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Approval {
    source: String,
    lock: String,
    /// The directory of the skill in the source.
    path: String,
    /// The commit, or the checksum of the index.
    version: String,
    /// The tag of the commit, if the source has a range of versions.
    tag: Option<String>,
    sha256: Option<String>,
    /// The date of the approval. `None` if an older program has approved the skill.
    approved: Option<String>,
    approved_by: Option<String>,
    pinned: bool,
    /// The checksum of a later version that was declined.
    declined: Option<String>,
}

/// Explains a skill.
///
/// # Errors
/// Returns an error if the configuration, a lock file or a selected skill is invalid.
pub(crate) fn run(args: WhyArgs) -> anyhow::Result<ExitCode> {
    let WhyArgs { name, json, session, log: messages } = args;
    let common = CommonArgs { config: session.skills.config.clone(), json, log: messages.clone() };
    let config = ProxyArgs { session, log: messages, ..ProxyArgs::default() }.config()?;
    log::start(&config)?;
    let mut reasons = filtered(&config, &name)?;
    let updater = Updater::new(None).map_err(source_error)?;
    let approved = pin::approved(sources(&common)?, &updater, &name)?;
    // With a lock file of an administrator, the approvals of the user have no effect.
    let effective = pin::approved(as_used(sources(&common)?)?, &updater, &name)?;
    let is_listed = |known: &Known| config.all_sources().any(|entry| entry.source == known.address.as_str());
    for skill in &approved {
        let source = &skill.source;
        let address = shown(source.address.as_str());
        if !is_listed(source) {
            reasons.push(format!("{address} is only used with `--source`"));
        } else if !source.uses(&name) {
            reasons.push(format!("`include` or `exclude` leaves the skill of {address} out"));
        }
    }
    let state = config.state.clone().or_else(state_dir);
    let loaded = skills::load(Settings::resolve(config)?.skills)?;
    reasons.extend(switched_off(state.as_deref(), &name));
    reasons.extend(of_session(&loaded, &name));
    reasons.extend(approved.iter().filter_map(|skill| refused(&loaded, &skill.source)));
    let used = loaded.here.get(&name);
    let shadows = loaded.here.shadowed().iter().filter(|other| is(other.name.as_str(), &name));
    let report = Report {
        used: used.map(|skill| Used {
            scope: skill.scope,
            source: source(&loaded, skill),
            place: place(skill),
        }),
        shadows: shadows.map(|other| located(&loaded, other.path.as_deref())).collect(),
        approvals: effective.iter().map(approval).collect(),
        reasons,
        name: used.map_or(name, |skill| skill.name.to_string()),
    };
    if report.used.is_none() && report.approvals.is_empty() && report.reasons.is_empty() {
        let why = format!("no skill `{}`", shown(&report.name));
        return Err(UsageError::new(why).hint("use `acp-skills-proxy list` to list the skills").into());
    }
    if json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    Ok(ExitCode::from(u8::from(report.used.is_none())))
}

fn is(one: &str, other: &str) -> bool {
    SkillName::key_of(one) == SkillName::key_of(other)
}

/// Returns the reason if the filters of the configuration leave the skill out.
fn filtered(config: &Config, name: &str) -> anyhow::Result<Vec<String>> {
    let filter = Filter::new(&config.include, &config.exclude)?;
    let is_out = SkillName::new(name).is_some_and(|name| !filter.takes(&name));
    Ok(Vec::from_iter(is_out.then(|| "`include` or `exclude` leaves it out".to_owned())))
}

/// Returns the sources of the configuration and of the user.
fn sources(common: &CommonArgs) -> anyhow::Result<Vec<Known>> {
    match Target::read(common) {
        Ok(target) => known(&target),
        // With `--no-config`, there is only the user's lock file.
        Err(_) if common.config.no_config => {
            let lock = LockFile::read(&user_lock()).map_err(super::lock_error)?;
            Ok(lock.sources().filter_map(Known::of_user).collect())
        }
        Err(error) => Err(error),
    }
}

fn approval(skill: &pin::Approved) -> Approval {
    let pin::Approved { source, pinned, path } = skill;
    let decisions = pinned.decisions();
    let label = pinned.label_of(path);
    let version = pinned.version_of(path);
    Approval {
        source: source.address.to_string(),
        lock: shown_path(&source.lock),
        path: path.clone(),
        version: version.to_owned(),
        tag: (label != version).then(|| label.to_owned()),
        sha256: pinned.skills().and_then(|skills| skills.get(path).cloned()),
        approved: decisions.approved.get(path).cloned(),
        approved_by: decisions.approved_by.get(path).cloned(),
        pinned: decisions.pinned.contains(path),
        declined: decisions.declined.get(path).cloned(),
    }
}

/// Returns the reason if the user has turned the skill off in this directory.
fn switched_off(state: Option<&Path>, name: &str) -> Option<String> {
    let off = SwitchStore::open(state?).ok()?.load(&env::current_dir().ok()?).ok()?;
    let is_off = off.iter().any(|off| is(off.as_str(), name));
    is_off.then(|| format!("it is off in this directory; use `/skills on {} --here`", shown(name)))
}

/// Returns the reasons that a session gives.
fn of_session(loaded: &Loaded, name: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(skill) = loaded.here.get(name) {
        if skill.properties.disable_model_invocation {
            reasons.push("only a command loads it (`disable-model-invocation`)".to_owned());
        }
        if skill.awaits_path() {
            let globs = shown(&skill.properties.paths.join(", ")).into_owned();
            reasons.push(format!("it joins the catalog when a file matches {globs}"));
        }
    }
    for unapproved in loaded.here.unapproved().iter().filter(|other| is(other.skill.name.as_str(), name)) {
        let changed = if unapproved.has_changed { " again, because it has changed" } else { "" };
        let place = place(&unapproved.skill);
        let command = trust::command(name);
        reasons
            .push(format!("the project's skill in {place} waits for your trust{changed}; use `{command}`"));
    }
    for skipped in loaded.here.skipped() {
        let dir = if skipped.path.extension().is_some() { skipped.path.parent() } else { None };
        let dir = dir.unwrap_or(&skipped.path);
        let is_about = dir.file_name().is_some_and(|dir| is(&dir.to_string_lossy(), name));
        let quoted = format!("`{name}`");
        for finding in &skipped.diagnostics {
            if is_about || finding.message.contains(&quoted) {
                reasons.push(finding.message.clone());
            }
        }
    }
    reasons
}

/// Returns the reason if the policy of an administrator refuses a source.
fn refused(loaded: &Loaded, source: &Known) -> Option<String> {
    let is_source = |skipped: &&Skipped| skipped.path.as_os_str() == source.address.as_str();
    let mut findings =
        loaded.here.skipped().iter().filter(is_source).flat_map(|skipped| &skipped.diagnostics);
    findings.find(|finding| finding.code == REFUSED_BY_POLICY).map(|finding| finding.message.clone())
}

fn source(loaded: &Loaded, skill: &Skill) -> Option<String> {
    Some(loaded.library.address_of(skill.dir()?)?.to_string())
}

/// Returns the directory or the URL of a skill.
fn place(skill: &Skill) -> String {
    match &skill.source {
        Source::Stored(stored) => shown_path(&stored.dir),
        Source::Remote(remote) => shown(&remote.url).into_owned(),
        _ => "the configuration".to_owned(),
    }
}

/// Returns the source of a skill's file, or its path.
fn located(loaded: &Loaded, path: Option<&Path>) -> String {
    let Some(path) = path else { return "the configuration".to_owned() };
    loaded
        .library
        .address_of(path)
        .map_or_else(|| shown_path(path), |address| shown(address.as_str()).into_owned())
}

fn text(report: &Report) -> String {
    let mut lines = vec![shown(&report.name).into_owned()];
    let mut line = |label: &str, text: &str| lines.push(format!("  {:<10} {text}", format!("{label}:")));
    match &report.used {
        Some(Used { source: Some(source), .. }) => line("used", &format!("from {}", shown(source))),
        Some(Used { scope, place, source: None }) => line("used", &format!("{place} ({scope})")),
        None => line("used", "no"),
    }
    for other in &report.shadows {
        line("shadows", other);
    }
    for approval in &report.approvals {
        line("source", &format!("{}, in `{}`", shown(&approval.source), shown(&approval.path)));
        let tag = approval.tag.as_deref().map_or_else(String::new, |tag| format!("{}, ", shown(tag)));
        line("version", &format!("{tag}{}", approval.version));
        if let Some(sha256) = &approval.sha256 {
            line("sha256", sha256);
        }
        let date = approval.approved.as_deref().map_or("on an unknown date".into(), shown);
        let by = approval.approved_by.as_deref().map_or_else(String::new, |by| format!(" by {}", shown(by)));
        line("approved", &format!("{date}{by}, in {}", approval.lock));
        if approval.pinned {
            line("pinned", "until `acp-skills-proxy sources unpin`");
        }
        if let Some(declined) = &approval.declined {
            line("declined", &format!("the later version {}", shown(declined)));
        }
    }
    for reason in &report.reasons {
        line("note", &shown(reason));
    }
    lines.join("\n") + "\n"
}
