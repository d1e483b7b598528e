//! The flags and the question for the approval of skills.

use std::io::{self, IsTerminal};

use clap::{
    Args,
    builder::{NonEmptyStringValueParser, TypedValueParser},
};
use skills_sources::{Decisions, SkillChange};

use super::{Target, show};
use crate::{error::UsageError, output, words::count};

/// The flags that approve without a question.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ApprovalArgs {
    /// Approve without asking. With --json, nothing is asked, so this is the only way to approve.
    #[arg(long, group = "approving")]
    pub(super) yes: bool,
    /// With --yes, also approve files that cannot be shown, such as pictures and compiled programs.
    #[arg(long, requires = "approving")]
    pub(super) unseen: bool,
    /// Record a name with the approval in the lock file, for `why`.
    #[arg(long, value_name = "NAME", value_parser = approver())]
    pub(super) approved_by: Option<String>,
}

fn approver() -> impl TypedValueParser<Value = String> {
    NonEmptyStringValueParser::new().try_map(|name| Decisions::check_name(&name).map(|()| name))
}

impl ApprovalArgs {
    /// Returns the name of the person who approves: from the flag, or else from the configuration file.
    pub(super) fn name(&self, target: &Target) -> Option<String> {
        self.approved_by.clone().or_else(|| target.config.approved_by.clone())
    }

    /// Returns true if the flags approve the changes without a question.
    pub(super) fn approve(&self, changes: &[SkillChange]) -> bool {
        self.yes && (self.unseen || show::unseen(changes).is_empty())
    }

    /// Returns true if the flags approve the changes, as [`approve`](Self::approve). If `--yes` is not enough, names the files that take
    /// `--unseen` as well.
    pub(super) fn approve_or_explain(&self, changes: &[SkillChange]) -> bool {
        let is_approved = self.approve(changes);
        if self.yes && !is_approved {
            self.explain_unseen(changes);
        }
        is_approved
    }

    /// Names the files that take `--unseen`.
    pub(super) fn explain_unseen(&self, changes: &[SkillChange]) {
        for line in show::unseen(changes) {
            output::note(&line);
        }
        let (flags, what) =
            if self.yes { ("--yes --unseen", "nothing was") } else { ("--unseen", "some skills were not") };
        let hint = format!("review the files, then use `{flags}` to approve them as well");
        output::complain(
            &format!("{what} approved, because some files cannot be shown or pinned"),
            Some(&hint),
        );
    }

    /// Asks on the terminal if the changes are approved, unless the flags say so. A `y` approves only what was shown; files that
    /// cannot be shown take a word.
    ///
    /// # Errors
    /// Returns an error if stdin is not a terminal, and a question is necessary.
    pub(super) fn ask(&self, question: &str, changes: &[SkillChange]) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(self.approve_or_explain(changes));
        }
        let unseen = show::unseen(changes);
        for line in &unseen {
            output::note(line);
        }
        if !io::stdin().is_terminal() {
            let message = "cannot ask for approval, because stdin is not a terminal";
            let flags = if unseen.is_empty() { "--yes" } else { "--yes --unseen" };
            let hint = format!("use `{flags}` to approve these changes");
            return Err(UsageError::new(message).hint(hint).into());
        }
        if unseen.is_empty() {
            return Ok(output::ask(question));
        }
        let files = count(unseen.len(), "file");
        Ok(output::ask_for("unseen", &format!("{question} {files} cannot be shown or pinned (see above).")))
    }
}
