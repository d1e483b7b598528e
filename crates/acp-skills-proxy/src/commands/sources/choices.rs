//! The user's answers about single skills: the flags that select skills, and the question for each of them on a terminal.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    str::FromStr,
};

use clap::Args;
use skills_core::{SkillName, order, text::shown};
use skills_sources::{Answer, REMOVED, SkillChange};

use super::{
    approval::ApprovalArgs,
    show::{self, FindingsBySkill},
};
use crate::{error, output};

/// The minimum number of digits of a checksum in `--yes-to`. With fewer digits, another version with the same digits could be found.
const MIN_DIGITS: usize = 32;

/// The flags that select skills of an update.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ChoiceArgs {
    /// Decide only about the skills with these names, even if their change was declined before. Separate names by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Postpone the decision about the skills with these names. Separate names by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    except: Vec<String>,
    /// Approve the version of a skill with this checksum without asking. The checksum is `sha256` in the JSON output, at least its
    /// first 32 digits, or `removed` to approve that the skill is gone. Repeatable.
    #[arg(long, value_name = "NAME@HASH", value_delimiter = ',', group = "approving")]
    yes_to: Vec<Version>,
}

/// A version of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    name: String,
    digest: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum VersionError {
    #[error("expected NAME@HASH, for example review@0f3a…")]
    NoHash,
    #[error("a hash has at least 32 hexadecimal digits, as `update --json` prints it")]
    Hash,
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let (name, digest) = text.rsplit_once('@').ok_or(VersionError::NoHash)?;
        let digest = digest.to_ascii_lowercase();
        let is_hash =
            (MIN_DIGITS..=64).contains(&digest.len()) && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hash && digest != REMOVED {
            return Err(VersionError::Hash);
        }
        Ok(Self { name: name.to_owned(), digest })
    }
}

impl Version {
    fn is(&self, change: &SkillChange) -> bool {
        let digest = change.after.as_ref().map_or(REMOVED, |skill| &skill.sha256);
        is_named(change, &self.name) && digest.starts_with(&self.digest)
    }
}

/// Returns the name of a changed skill.
pub(super) fn name(change: &SkillChange) -> &str {
    change.after.as_ref().or(change.before.as_ref()).map_or(&change.path, |skill| &skill.name)
}

/// Returns true if a skill has this name before or after a change.
fn is_named(change: &SkillChange, name: &str) -> bool {
    let key = SkillName::key_of(name);
    names(change).any(|name| SkillName::key_of(name) == key)
}

/// Returns the names of a skill before and after a change, or its path if it has none.
fn names(change: &SkillChange) -> impl Iterator<Item = &str> {
    let skills = change.before.iter().chain(&change.after);
    let names: Vec<_> = skills.map(|skill| skill.name.as_str()).collect();
    let path = names.is_empty().then_some(change.path.as_str());
    names.into_iter().chain(path)
}

impl ChoiceArgs {
    /// Returns the names of skills that the user decides about even if the change was declined before.
    pub(super) fn reconsidered(&self) -> Vec<String> {
        let versions = self.yes_to.iter().map(|version| version.name.clone());
        self.only.iter().cloned().chain(versions).collect()
    }

    /// Returns true if the user decides about this change.
    pub(super) fn selects(&self, change: &SkillChange) -> bool {
        // The author of a skill can rename it to a name that the user has selected, or from one that the user has left out.
        let is_one = |name: &str, of: &[String]| {
            of.iter().any(|listed| SkillName::key_of(listed) == SkillName::key_of(name))
        };
        let is_selected = self.only.is_empty() || names(change).all(|name| is_one(name, &self.only));
        let is_left_out = names(change).any(|name| is_one(name, &self.except));
        is_selected && !is_left_out || self.yes_to.iter().any(|version| version.is(change))
    }

    /// Returns true if `--yes-to` names this version.
    fn approves(&self, change: &SkillChange) -> bool {
        self.yes_to.iter().any(|version| version.is(change))
    }

    /// Returns a sentence for each name or version in the flags that none of the changes has.
    pub(super) fn unmatched(&self, changes: &[&SkillChange]) -> Vec<String> {
        let names = self.only.iter().chain(&self.except);
        let names = names.filter(|name| !changes.iter().any(|change| is_named(change, name)));
        let names = names.map(|name| format!("`{}` has no change that needs a decision", shown(name)));
        let versions = self.yes_to.iter().filter(|version| !changes.iter().any(|change| version.is(change)));
        let versions = versions.map(|Version { name, digest }| {
            let now = changes.iter().find(|change| is_named(change, name));
            let now = now.map_or_else(
                || "the skill has no change that needs a decision".to_owned(),
                |change| {
                    let now = change.after.as_ref().map_or(REMOVED, |skill| &skill.sha256);
                    format!("its current version is `{now}`")
                },
            );
            format!("`{}@{digest}` was not approved: {now}", shown(name))
        });
        names.chain(versions).collect()
    }

    /// Returns true if `--yes-to` is used.
    pub(super) fn names_versions(&self) -> bool {
        !self.yes_to.is_empty()
    }

    /// Returns the answers that the flags give, by the path of the skill.
    pub(super) fn answers(
        &self,
        approval: &ApprovalArgs,
        changes: &[SkillChange],
    ) -> BTreeMap<String, Answer> {
        if self.yes_to.is_empty() {
            let is_approved = approval.approve_or_explain(changes);
            let approved = changes.iter().filter(|_| is_approved);
            return order::map(approved.map(|change| (change.path.clone(), Answer::Yes)));
        }
        let (named, others): (Vec<_>, Vec<_>) =
            changes.iter().cloned().partition(|change| self.approves(change));
        let is_seen = |change: &SkillChange| show::unseen(std::slice::from_ref(change)).is_empty();
        let (mut approved, unseen): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|change| approval.unseen || is_seen(change));
        if !unseen.is_empty() {
            approval.explain_unseen(&unseen);
        }
        if approval.approve_or_explain(&others) {
            approved.extend(others);
        }
        order::map(approved.into_iter().map(|change| (change.path, Answer::Yes)))
    }
}

/// Asks about each skill on the terminal, after it was shown. Without a terminal, explains how to approve the changes, and postpones
/// all of them.
///
/// # Errors
/// Returns an error if stdout can't be written.
pub(super) fn ask(
    approval: &ApprovalArgs,
    changes: &[SkillChange],
    findings: &FindingsBySkill,
) -> anyhow::Result<BTreeMap<String, Answer>> {
    let mut answers = BTreeMap::new();
    if !io::stdin().is_terminal() {
        output::page(false, |text| show::changes(text, changes, findings, &[]))?;
        if let Err(error) = approval.ask("Approve?", changes) {
            // Continue with the next source.
            output::complain(&error::message(&error), error::hint(&error).as_deref());
        }
        return Ok(answers);
    }
    for change in changes {
        let change = std::slice::from_ref(change);
        output::page(true, |text| show::changes(text, change, findings, &[]))?;
        answers.insert(change[0].path.clone(), ask_about(change));
    }
    Ok(answers)
}

/// Asks about one skill. Files that cannot be shown take a word.
fn ask_about(change: &[SkillChange]) -> Answer {
    let name = shown(name(&change[0]));
    let unseen = show::unseen(change);
    for line in &unseen {
        output::note(line);
    }
    let (yes, question) = if unseen.is_empty() {
        ("yes", format!("Approve `{name}`? [y]es, [n]o, or [l]ater:"))
    } else {
        let why = "cannot be shown or pinned";
        ("unseen", format!("Approve `{name}`? Some files {why} (see above). `unseen`, [n]o, or [l]ater:"))
    };
    match output::answer(&question).as_str() {
        "y" if yes == "yes" => Answer::Yes,
        answer if answer == yes => Answer::Yes,
        "n" | "no" => Answer::No,
        _ => Answer::Later,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_needs_enough_digits() {
        let digits = "0f".repeat(16);
        for (text, expected) in [
            (format!("a@{digits}"), Ok(())),
            (format!("a@b@{}", digits.to_uppercase()), Ok(())),
            ("a@removed".to_owned(), Ok(())),
            (format!("a@{}", &digits[1..]), Err(VersionError::Hash)),
            (format!("a@{}x", &digits[1..]), Err(VersionError::Hash)),
            ("a@".to_owned(), Err(VersionError::Hash)),
            ("a".to_owned(), Err(VersionError::NoHash)),
        ] {
            assert_eq!(Version::from_str(&text).map(drop), expected, "{text}");
        }
    }
}
