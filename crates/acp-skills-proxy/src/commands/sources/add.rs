//! `add`: adds a source. Shows its skills, asks for approval, and writes the configuration and the lock file.

use std::{mem, path::Path, process::ExitCode};

use acp_skills::config::{ConfigError, SourceEntry, Verify, edit, expand_home};
use clap::Args;
use serde::Serialize;
use skills_core::{
    SkillName,
    discovery::{Filter, FilterError},
    text::{shown, shown_path},
};
use skills_sources::{Address, AddressError, Decision, LockFile, Offer, OfferedSkill, Pinned, SkillChange};

use super::{
    ApprovalArgs, CommonArgs, FetchArgs, Target, fetching_updater, filter, findings, keep_unseen,
    known::note_unused,
    lock_error,
    shadowed::{Shadowed, shadowed},
    show, source_error,
};
use crate::{error::UsageError, output, progress::Progress, words};

/// The flags of `add`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy add github:acme/skills
  acp-skills-proxy add github:acme/skills --only review,release-notes
  acp-skills-proxy add github:acme/skills@^2.1
      Use the highest version 2 from 2.1 on. `@latest` is the highest version of all.
  acp-skills-proxy add github:acme/skills/writing@v2 --exclude 'draft-*'
  acp-skills-proxy add git@git.example.com:team/skills.git --config ./skills.yaml
  acp-skills-proxy add https://example.com/skills.tar.gz
  acp-skills-proxy add npm:@acme/skills@^1
      Use an npm package from the registry in your .npmrc.")]
pub(crate) struct AddArgs {
    /// The address of the source, as for --source.
    source: String,
    /// Use only skills of the source whose name matches a glob. Repeatable.
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// Use only the skills with these names, now and after updates. Separate names by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "include")]
    only: Vec<String>,
    /// Skip skills of the source whose name matches a glob. Repeatable.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Accept versions only if your git accepts the signature of the commit or the tag (`git`), with your GPG keys, or with the SSH keys
    /// in the file of `git config gpg.ssh.allowedSignersFile`.
    #[arg(long, value_name = "HOW")]
    verify: Option<Verify>,
    /// Use a SKILL.md within the directory of another skill as a skill, too.
    #[arg(long)]
    nested: bool,
    #[command(flatten)]
    approval: ApprovalArgs,
    #[command(flatten)]
    fetch: FetchArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// The maximum number of skills in a hint.
const MAX_NAMES: usize = 20;

/// The JSON of `add`.
#[derive(Serialize)]
struct Added<'a> {
    source: &'a str,
    config: &'a Path,
    lock: &'a Path,
    pinned: &'a Pinned,
    skills: &'a [OfferedSkill],
    shadowed: &'a [Shadowed],
    notes: &'a [String],
    approved: bool,
    changes: &'a [SkillChange],
    findings: &'a show::FindingsBySkill,
}

/// Adds the source.
///
/// # Errors
/// Returns an error if the source is invalid, is already in the configuration, contains no skills or can't be fetched, or if the
/// configuration or the lock file can't be written.
pub(crate) fn run(args: AddArgs) -> anyhow::Result<ExitCode> {
    let AddArgs { source, include, only, exclude, verify, nested, approval, fetch, common } = args;
    let address = Address::parse(&source).map_err(|error| not_an_address(&source, error))?;
    let mut target = Target::read(&common)?;
    let path = shown_path(&target.path);
    let is_there = |entry: &SourceEntry| entry.has_place_of(&address);
    if target.config.all_sources().any(is_there) {
        let hint = format!("use `acp-skills-proxy update '{address}'` to fetch changes");
        return Err(UsageError::new(format!("`{address}` is already in {path}")).hint(hint).into());
    }
    let mut entry = SourceEntry::new(address.as_str());
    entry.include = [include, only.clone()].concat();
    entry.exclude = exclude;
    entry.nested = nested;
    entry.verify = verify;
    let add = |text: &str| {
        if edit::sources(text).is_some_and(|sources| sources.iter().any(is_there)) {
            return Ok(text.to_owned());
        }
        edit::add_source(text, &entry).map_err(|error| {
            UsageError::new(format!("cannot add source to {path}: {error}"))
                .hint(format!("add these lines to the file:\n{}", error.lines))
        })
    };
    let invalid = |error: FilterError| UsageError::new(error.to_string());
    let filters = [target.filter().map_err(invalid)?, filter(&entry).map_err(invalid)?];
    // If we can't edit the file, fail here, before the source is fetched.
    add(&target.text)?;
    note_unused([&*target.lock()].into_iter())?;
    let updater = fetching_updater(&common, &fetch, &target)?;
    let updater = if verify.is_some() { updater.verifying() } else { updater };
    let mut offer = {
        let _progress = Progress::spinner("fetching");
        updater.latest_with(&address, None, nested || target.config.nested).map_err(source_error)?
    };
    select(&mut offer, &address, &only, &filters)?;
    offer.notes.extend(replaced(&target, &address)?);
    let decision = Decision::approve_all().by(approval.name(&target));
    let config = mem::take(&mut target.config);
    let shadowed = shadowed(&target, config, &updater, &offer);
    let progress = Progress::spinner("reading files");
    let changes = offer.changes_since(None);
    let findings = findings::by_skill(&changes);
    drop(progress);
    let approved = if common.json {
        let approved = approval.approve_or_explain(&changes);
        output::page_json(
            approved,
            &Added {
                source: address.as_str(),
                config: &target.path,
                lock: &target.lock(),
                pinned: &offer.pinned,
                skills: &offer.skills,
                shadowed: &shadowed,
                notes: &offer.notes,
                approved,
                changes: &changes,
                findings: &findings,
            },
        )?;
        approved
    } else {
        output::page(!approval.yes, |text| show::offer(text, &changes, &findings, &shadowed, &offer.notes))?;
        approval.ask(&format!("Add `{address}` to {path}?"), &changes)?
    };
    if approved {
        // Write the lock file first, because an unused entry in it does no harm. A source without an approved version would be approved
        // automatically in the next session.
        updater.approve(&target.lock(), &address, &offer, &decision).map_err(lock_error)?;
        target.change(&updater, add)?;
    } else {
        keep_unseen(&offer, &changes);
    }
    if !common.json {
        let added = format!("Added to {path} and approved in {}.\n", shown_path(&target.lock()));
        output::print(if approved { &added } else { "Nothing was added.\n" })?;
    }
    Ok(ExitCode::from(u8::from(!approved && (!common.json || approval.yes))))
}

/// Returns a note if the lock file has an entry for a source that is not in the configuration. Another configuration file in the same
/// directory may use it.
fn replaced(target: &Target, address: &Address) -> anyhow::Result<Option<String>> {
    let lock = LockFile::read(&target.lock()).map_err(lock_error)?;
    let Some(pinned) = lock.get(address.as_str()) else { return Ok(None) };
    let count = pinned.decisions().pinned.len();
    let pins =
        if count == 0 { String::new() } else { format!(", with {}", words::count(count, "pinned skill")) };
    Ok(Some(format!(
        "the entry for this source in {} will be replaced{pins}; it can be of another configuration file in this directory",
        shown_path(&target.lock())
    )))
}

/// Explains that `source` is not an address.
fn not_an_address(source: &str, error: AddressError) -> anyhow::Error {
    if !expand_home(Path::new(source)).is_dir() {
        return ConfigError::from(error).into();
    }
    let hint = format!(
        "use `--skills {source}` for a directory, or `git+file://` with an absolute path for a local git repository"
    );
    UsageError::new(error.to_string()).hint(hint).into()
}

/// Removes the skills that a filter doesn't take.
///
/// # Errors
/// Returns an error if the source has no skill with a name in `only`, or if no skill is left.
fn select(
    offer: &mut Offer,
    address: &Address,
    only: &[String],
    filters: &[Filter],
) -> Result<(), UsageError> {
    let found: Vec<_> = offer.skills.iter().map(|skill| skill.name.clone()).collect();
    let is_missing =
        |name: &&String| !found.iter().any(|found| SkillName::key_of(found) == SkillName::key_of(name));
    if let Some(missing) = only.iter().find(is_missing) {
        return Err(UsageError::new(format!("`{address}` has no skill `{}`", shown(missing)))
            .hint(format!("its skills are {}", names(&found))));
    }
    offer.retain(|name| filters.iter().all(|filter| filter.takes(name)));
    if offer.skills.is_empty() { Err(nothing(address, &found)) } else { Ok(()) }
}

/// Returns the error for a source without skills, or without skills that the filters select. `found` are the names of its skills.
fn nothing(address: &Address, found: &[String]) -> UsageError {
    if found.is_empty() {
        return UsageError::new(format!("no skills found in `{address}`"))
            .hint("name the directory that contains the skills, such as `github:OWNER/REPO/PATH`");
    }
    UsageError::new(format!("`include` and `exclude` select no skill of `{address}`"))
        .hint(format!("its skills are {}", names(found)))
}

/// Lists names of skills.
fn names(found: &[String]) -> String {
    let names = found.iter().take(MAX_NAMES).map(|name| shown(name)).collect::<Vec<_>>().join(", ");
    match found.len().saturating_sub(MAX_NAMES) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}
