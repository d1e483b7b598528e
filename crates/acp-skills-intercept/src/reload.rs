//! Changes of the skills while sessions are open. Servers and menus change immediately; the model gets the changes with its
//! next prompt ([`briefing`](crate::briefing)).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use skills_core::{Skill, SkillSet, order};

use crate::{
    Interceptor,
    difference::Difference,
    events::EventKind,
    keys::{SessionKey, Ticket},
    outputs::{Actions, Effect, Level},
    overview,
    queries::{Query, Reason, Refreshed},
    requests::{Purpose, Setup},
    session::Session,
    workspace::Workspace,
};

impl Interceptor {
    /// Asks for the skills of all sessions, because the library noticed changes.
    pub(crate) fn skills_changed(&mut self, took: Duration, actions: &mut Actions) {
        self.ask_for_skills(Reason::Changed(took), actions);
    }

    /// Asks for the skills of all sessions for `/skills reload`. The command is answered with `ticket`.
    pub(crate) fn ask_for_reload(&mut self, session: SessionKey, ticket: Ticket, actions: &mut Actions) {
        self.ask_for_skills(Reason::Reload(session, ticket), actions);
    }

    pub(crate) fn ask_for_skills(&mut self, reason: Reason, actions: &mut Actions) {
        let workspaces = self.workspaces().into_iter().collect();
        actions.ask(Query::Skills { workspaces, reason });
    }

    /// Returns the workspaces of all sessions, including those that are being set up.
    pub(crate) fn workspaces(&self) -> BTreeSet<Workspace> {
        let known = self.sessions.iter().map(|session| session.workspace.clone());
        order::set(known.chain(self.pending.workspaces().cloned()))
    }

    /// Applies the current skills to all sessions. Sessions without a difference are left alone.
    pub(crate) fn refreshed(&mut self, refreshed: Refreshed, actions: &mut Actions) {
        let Refreshed { skills, servers, took, reason } = refreshed;
        if let Reason::List(ticket) = reason {
            let found = skills.into_iter().next().map(|(_, skills)| skills).unwrap_or_default();
            return self.list_found(ticket, &found, actions);
        }
        let asked = match reason {
            Reason::Reload(session, ticket) => {
                self.sessions.get(session).map(|open| (open.skills.clone(), session, ticket))
            }
            Reason::Changed(_) | Reason::CatchUp(_) | Reason::Listing(..) | Reason::List(_) => None,
        };
        // Sessions that were set up after the query aren't included in the answer, so we have to make another query for them.
        let is_of_all = !matches!(reason, Reason::CatchUp(_));
        let mut missing = if is_of_all && !skills.is_empty() { self.workspaces() } else { BTreeSet::new() };
        self.memory.refreshes += u64::from(is_of_all);
        let mut with_menu = Vec::new();
        let mut changed = Vec::new();
        for (workspace, skills) in skills {
            missing.remove(&workspace);
            for session in self.sessions.iter_mut().filter(|session| session.workspace == workspace) {
                let of_servers = servers.iter().find(|(key, _)| *key == session.key()).map(|(_, set)| set);
                let of_servers = of_servers.filter(|set| !set.ptr_eq(session.switches.servers()));
                if skills.ptr_eq(session.switches.library()) && of_servers.is_none() {
                    continue;
                }
                let had_unapproved = !session.switches.all().unapproved().is_empty();
                let mut skills = session.switches.replace(skills.clone());
                if let Some(of_servers) = of_servers {
                    skills = session.switches.set_servers(of_servers.clone());
                }
                session.listed.refresh(session.switches.all().unapproved());
                self.pending.refresh_questions(session.key(), session.switches.all().unapproved());
                changed.push(session.key());
                // If there is a skill to approve, we need to add the command for this to the menu.
                let gets_unapproved = !had_unapproved && !session.switches.all().unapproved().is_empty();
                if session.set_skills(skills, took, actions) || gets_unapproved {
                    with_menu.push(session.key());
                }
            }
        }
        if !missing.is_empty() {
            let workspaces = missing.into_iter().collect();
            actions.ask(Query::Skills { workspaces, reason: Reason::CatchUp(took) });
        }
        // If a session is still being set up, we have to wait for the response before we can send a menu and ask the user.
        let open = self.requests.values().filter_map(|open| match &open.purpose {
            Purpose::SetUp(Setup { session, .. }) => Some(*session),
            _ => None,
        });
        let setting_up: Vec<_> = open.collect();
        with_menu.retain(|key| !setting_up.contains(key));
        changed.retain(|key| !setting_up.contains(key));
        order::sort(&mut changed);
        order::sort(&mut with_menu);
        for key in with_menu {
            self.menu_changed(key, actions);
            self.skill_list_changed(key, actions);
            self.options_changed(key, actions);
        }
        for key in changed {
            let question = self.question(key);
            actions.to_client.extend(question);
        }
        if let Some((before, session, ticket)) = asked {
            self.reload_answered(session, ticket, &before, took, actions);
        }
        if let Reason::Listing(session, ticket) = reason {
            self.listing_answered(session, ticket, actions);
        }
    }

    /// Answers `/skills reload` with the changes.
    fn reload_answered(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        before: &SkillSet,
        took: Duration,
        actions: &mut Actions,
    ) {
        actions.log(Level::Info, "reloaded the skills");
        let Some(session) = self.sessions.get(key) else { return };
        let difference = Difference::between(before, &session.skills);
        // We want to record a reload even if nothing has changed. If there are changes, we already did this when we applied them.
        if difference.is_empty() {
            let kind = reload(&session.skills, &difference, took);
            actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
        }
        let text = overview::reloaded(&difference, &session.skills);
        self.answer_command(key, ticket, &text, actions);
    }
}

impl Session {
    /// Sets the skills of the session. Returns true if the menu has to change.
    pub(crate) fn set_skills(&mut self, skills: SkillSet, took: Duration, actions: &mut Actions) -> bool {
        let difference = Difference::between(&self.skills, &skills);
        if !difference.is_empty() {
            let identity = |skills: &SkillSet, name: &str| skills.get(name).map(|skill| skill.identity());
            let is_other = |name: &str| identity(&self.skills, name) != identity(&skills, name);
            self.server_calls.skills_replaced(is_other);
        }
        let events = reload_events(&self.skills, &skills, &difference, took);
        self.skills = skills;
        actions.effects.push(self.serve(false));
        if self.compaction.lost().is_some() {
            self.remind(actions);
        }
        let id = self.id().map(str::to_owned);
        actions.effects.extend(events.into_iter().map(|kind| Effect::Record { session: id.clone(), kind }));
        !difference.changes_only_instructions()
    }
}

/// Returns the events of a reload for the record: the reload itself if any skill differs, and new refusals of a policy. `difference` is the
/// difference between `before` and `after`.
pub fn reload_events(
    before: &SkillSet,
    after: &SkillSet,
    difference: &Difference,
    took: Duration,
) -> Vec<EventKind> {
    let reload = (!difference.is_empty()).then(|| reload(after, difference, took));
    reload.into_iter().chain(EventKind::new_refusals(before, after)).collect()
}

fn reload(skills: &SkillSet, difference: &Difference, took: Duration) -> EventKind {
    let names = |skills: &[Arc<Skill>]| skills.iter().map(|skill| skill.name.to_string()).collect();
    EventKind::Reload {
        skills: skills.len() as u64,
        skipped: skills.skipped().len() as u64,
        added: names(&difference.added),
        removed: names(&difference.removed),
        changed: names(&difference.changed),
        ms: took.into(),
    }
}
