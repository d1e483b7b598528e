//! The line before a prompt that names a skill which may fit it (`--hint`). The host ranks the skills.

use acp_skills_wire::Message;
use skills_core::SkillName;

use crate::{
    policy::Policy,
    queries::Wanted,
    session::Session,
    words::{is_command, words},
};

/// Returns the query for the skill to name before a prompt. Active skills and skills that were named before are left out. Commands
/// get no hint.
pub(crate) fn wanted(session: &Session, message: &Message<'_>, policy: &Policy) -> Option<Wanted> {
    let blocks = message.param(&["prompt"])?;
    if !policy.hint || session.skills.is_empty() || is_command(blocks) {
        return None;
    }
    let active = session.activations.iter().map(|(name, _)| name);
    let except = active.chain(&session.hinted).cloned().collect();
    words(message).map(|words| Wanted::Hint { words, except })
}

impl Session {
    /// Returns the line about a skill. It is not named again in this session. Returns `None` if it is gone or active by now.
    pub(crate) fn hint(&mut self, name: &SkillName) -> Option<String> {
        let is_active = self.activations.iter().any(|(active, _)| active.key() == name.key());
        let is_listed = self.skills.get(name.as_str()).is_some_and(|skill| skill.is_listed());
        if is_active || !is_listed {
            return None;
        }
        self.hinted.push(name.clone());
        Some(format!("Skill `{name}` may fit this task."))
    }
}
