//! Notes about skills that are installed for the evaluated agents, which they load without the proxy.

use std::env;

use acp_skills_eval::{Evaluation, Installed, installed_skills};
use skills_core::text::shown_path;

use crate::{output, words::count};

/// Notes the installed skills, and agents whose login is not known.
pub(super) fn note(evaluation: &Evaluation) {
    let Some(home) = env::home_dir() else { return };
    let skill = evaluation.skill.name.as_str();
    for installed in installed_skills(&evaluation.agents, skill, &home) {
        for text in notes(&installed, evaluation.options.isolate) {
            output::note(&text);
        }
    }
}

fn notes(installed: &Installed, is_isolated: bool) -> Vec<String> {
    let Installed { agent, same, others, is_known, has_known_login, .. } = installed;
    let mut notes = Vec::new();
    if is_isolated {
        if !has_known_login {
            notes.push(format!(
                "the files with the login of {agent} are not known, so it may ask for a login with --isolate; an API key in \
                 the environment works"
            ));
        }
        return notes;
    }
    let loads = if *is_known { "loads" } else { "may load" };
    if let Some(path) = same.first() {
        notes.push(format!(
            "{agent} {loads} a skill of the same name itself, so results without the skill may be too good; use --isolate: {}",
            shown_path(path)
        ));
    }
    if *others > 0 && *is_known {
        notes.push(format!(
            "{agent} loads {} itself in each run; use --isolate to leave them out",
            count(*others, "installed skill")
        ));
    }
    notes
}
