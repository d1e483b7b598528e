//! `sources`: lists sources and their approved versions. Doesn't use the network.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;
use skills_core::text::{shown, shown_path};
use skills_sources::Pinned;

use super::{
    CommonArgs, Target,
    known::{as_used, known, with_pinned},
    pin::{self, PinArgs},
    updater,
};
use crate::{
    commands::table::{Align, Table, terminal_width},
    output,
    words::count,
};

/// The flags of `sources`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy sources
  acp-skills-proxy sources --config ./skills.yaml --json
  acp-skills-proxy sources --prune
  acp-skills-proxy sources pin review
      Keep this skill at its approved version.")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SourcesArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Remove versions from the cache that no lock file refers to and no process uses, and print their paths. `update` and
    /// `remove` do this automatically with versions that were not used for 30 days.
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// The actions of `sources`.
#[derive(Debug, Subcommand)]
enum Action {
    /// Keep a skill at its approved version: `update` doesn't offer changes of it.
    Pin(PinArgs),
    /// Let a pinned skill go: the next `update` offers its changes again.
    Unpin(PinArgs),
}

/// A source in the JSON output. Scripts can rely on it: later versions only add fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    source: String,
    lock: PathBuf,
    /// The approved version. `None` if the source was not fetched yet.
    pinned: Option<Pinned>,
    /// The number of approved skills. `None` if they are not in the cache.
    skills: Option<usize>,
    /// The newer version that the last check in the background has found.
    #[serde(skip_serializing_if = "Option::is_none")]
    available: Option<String>,
}

/// The age below which `--prune` keeps a version, because another process may have fetched it and be waiting for approval.
const JUST_FETCHED: Duration = Duration::from_hours(1);

fn pruned(removed: usize) -> String {
    match removed {
        0 => "The cache contains no unused versions.\n".to_owned(),
        removed => format!("Removed {} from the cache.\n", count(removed, "version")),
    }
}

/// Lists the sources, or removes unused versions from the cache.
///
/// # Errors
/// Returns an error if the configuration or a lock file can't be read, or if stdout can't be written.
pub(crate) fn run(args: SourcesArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Some(Action::Pin(skill)) => return pin::run(skill, true),
        Some(Action::Unpin(skill)) => return pin::run(skill, false),
        None => {}
    }
    let target = Target::existing(&args.common)?;
    let updater = updater(&args.common)?;
    if args.prune {
        let removed = updater.prune(JUST_FETCHED);
        if args.common.json {
            output::print_json(&json!({ "removed": removed }))?;
        } else {
            let lines = removed.iter().map(|path| format!("removed {}\n", shown_path(path)));
            output::print(&format!("{}{}", lines.collect::<String>(), pruned(removed.len())))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    for (source, pinned) in with_pinned(as_used(known(&target)?)?)? {
        let approved = pinned.as_ref().and_then(|pinned| updater.approved(&source.address, pinned));
        let skills = approved.map(|offer| offer.skills.len());
        let available = pinned.as_ref().and_then(|pinned| updater.news(&source.address, pinned));
        rows.push(Row { source: source.address.to_string(), lock: source.lock, pinned, skills, available });
    }
    if args.common.json {
        output::print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        output::print("No sources.\nhint: use `acp-skills-proxy add github:OWNER/REPO` to add one\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new([
        ("SOURCE", Align::Left),
        ("APPROVED", Align::Left),
        ("SKILLS", Align::Right),
        ("LOCK", Align::Path),
    ]);
    let news = |row: &Row| {
        let version = row.available.as_ref()?;
        let (source, version) = (shown(&row.source), shown(version));
        Some(format!("{source} has a new version: {version}; use `acp-skills-proxy update` to review it\n"))
    };
    let news: Vec<_> = rows.iter().filter_map(news).collect();
    for row in rows {
        let pinned = match &row.pinned {
            Some(Pinned::Git(git)) => git.tag.clone().unwrap_or_else(|| git.commit[..12].to_owned()),
            Some(Pinned::Web(web)) => format!("sha256:{}", &web.index[..12]),
            _ => "not yet".to_owned(),
        };
        let skills = match (row.skills, &row.pinned) {
            (Some(skills), Some(pinned)) if !pinned.decisions().pinned.is_empty() => {
                format!("{skills} ({} pinned)", pinned.decisions().pinned.len())
            }
            (Some(skills), _) => skills.to_string(),
            (None, Some(_)) => "not in the cache".to_owned(),
            (None, None) => "-".to_owned(),
        };
        table.row([row.source, pinned, skills, shown_path(&row.lock)]);
    }
    output::print(&format!("{}\n{}", table.render(terminal_width()), news.concat()))?;
    Ok(ExitCode::SUCCESS)
}
