//! Skills that join the catalog of a session because a file came up for which they are meant (`paths`): in a prompt, or in the
//! locations of a tool call. The model is told in the next ordinary prompt ([`briefing`](crate::briefing)).

use acp_skills_wire::{Message, Node};

use crate::{
    events::EventKind,
    mentions,
    outputs::{Actions, Effect, Level},
    session::Session,
};

impl Session {
    /// Handles the files that a prompt of the user mentions.
    pub(crate) fn prompt_mentions(&mut self, prompt: &Message<'_>, actions: &mut Actions) {
        if self.awaits_files() {
            self.files_came_up(&mentions::in_prompt(prompt), actions);
        }
    }

    /// Handles the files that a tool call names as its locations.
    pub(crate) fn call_touches(&mut self, call: Node<'_>, actions: &mut Actions) {
        if self.awaits_files() {
            self.files_came_up(&mentions::in_call(call), actions);
        }
    }

    /// Returns true if a skill of the session waits for a file.
    fn awaits_files(&mut self) -> bool {
        self.awaited.is_any(&self.skills)
    }

    fn files_came_up(&mut self, paths: &[String], actions: &mut Actions) {
        let names = self.awaited.matching(&self.skills, &self.workspace, paths);
        if names.is_empty() {
            return;
        }
        for name in &names {
            actions.log(
                Level::Info,
                format!("skill `{name}` joins the catalog, because a file matches its `paths`"),
            );
        }
        self.skills = self.switches.join_for_files(&names);
        actions.effects.push(self.serve(false));
        let kind = EventKind::SkillsJoined { skills: names.iter().map(ToString::to_string).collect() };
        actions.effects.push(Effect::Record { session: self.id().map(str::to_owned), kind });
    }
}
