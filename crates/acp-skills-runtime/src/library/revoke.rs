//! Taking the user's trust in skills back, by name.
//!
//! The user means the name: a skill can be in several directories of a project, and some of them can be missing, invalid or shadowed at
//! the moment. Therefore all decisions about the name end. A skill that a configuration trusts is refused instead.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use acp_skills_intercept::Workspace;
use skills_core::{Scope, Skill, SkillName, discovery::project_roots, order};
use skills_sources::trust::{self, Decided, Trust, TrustedDir};

use super::{
    directories::DirectoryLibrary,
    project_searches::real,
    workspace::{decided_for, project_of},
};

impl DirectoryLibrary {
    /// Returns the directories in the projects of a workspace of which a skill is trusted in some version.
    pub fn trusted(&self, workspace: &Workspace) -> Vec<TrustedDir> {
        let Some(trust) = self.decisions() else { return Vec::new() };
        let projects = order::set(workspace.roots().map(project_of));
        projects.iter().flat_map(|project| trust.trusted(project)).collect()
    }

    /// Takes the trust in all skills with these names back, in the projects that a workspace belongs to and for MCP servers. `skills` are
    /// the known skills with these names: their trusted versions can have other names.
    pub fn revoke(&self, workspace: &Workspace, names: &[SkillName], skills: &[Arc<Skill>]) -> Decided {
        let mut known = HashSet::new();
        let names: Vec<_> = names.iter().filter(|name| known.insert(name.key())).cloned().collect();
        let mut decided = self.end_decisions(workspace, &names, skills);
        let mut refused = HashSet::new();
        // After a skill was refused, a skill of another directory of the session can take its place.
        let now = loop {
            let now = self.at(workspace);
            let next = names.iter().filter_map(|name| now.get(name.as_str())).filter(|skill| {
                let dir = skill.dir().filter(|_| skill.scope == Scope::Project);
                dir.is_some_and(|dir| refused.insert(dir.to_owned()))
            });
            let next: Vec<_> = next.collect();
            if next.is_empty() {
                break now;
            }
            for skill in next {
                let Some(project) = decided_for(workspace, skill) else { continue };
                self.refuse(&project, skill, &mut decided);
            }
        };
        for (project, skill) in left_behind(workspace, skills) {
            let is_trusted = || self.projects_at(&project).iter().any(|here| here.is_trusted);
            if self.trust.is_none() || is_trusted() {
                self.refuse(&project, skill, &mut decided);
            }
        }
        self.decline_missing(workspace, &names, &mut decided);
        for name in &names {
            let key = name.key();
            if decided.failed.iter().any(|(failed, _)| failed.key() == key) {
                decided.done.retain(|done| done.key() != key);
            } else if decided.done.iter().any(|done| done.key() == key) {
                decided.remaining.extend(now.get(name.as_str()).map(|skill| (name.clone(), place_of(skill))));
            } else if decided.absent.iter().any(|absent| absent.key() == key) {
                decided.remaining.extend(now.get(name.as_str()).map(|skill| (name.clone(), place_of(skill))));
            } else {
                decided.unknown.push(name.clone());
            }
        }
        decided
    }

    /// Ends the saved decisions to trust skills with these names.
    fn end_decisions(&self, workspace: &Workspace, names: &[SkillName], skills: &[Arc<Skill>]) -> Decided {
        let mut decided = Decided::default();
        let mut dirs = self.trusted(workspace);
        if let Some(trust) = self.servers.trust() {
            let of_session = skills.iter().filter_map(|skill| trust::project_of(skill));
            let services = self.servers.identities().into_iter().map(PathBuf::from).chain(of_session);
            dirs.extend(order::set(services).iter().flat_map(|service| trust.trusted(service)));
        }
        if let Some(trust) = self.decisions() {
            for (_, skill) in left_behind(workspace, skills) {
                let above = skill.dir().into_iter().flat_map(Path::ancestors);
                dirs.extend(above.flat_map(|project| trust.trusted(project)).filter(|dir| dir.has(skill)));
            }
        }
        let mut revoked = Vec::new();
        for name in names {
            let key = name.key();
            let named: Vec<_> = skills.iter().filter(|skill| skill.name.key() == key).collect();
            let is_meant = |dir: &&TrustedDir| dir.is_named(&key) || named.iter().any(|skill| dir.has(skill));
            let before = revoked.len();
            revoked.extend(dirs.iter().filter(is_meant).cloned());
            if revoked.len() > before {
                decided.done.push(name.clone());
            }
        }
        decided.unsaved = self.decisions().and_then(|trust| trust.revoke_dirs(&revoked));
        decided
    }

    /// Declines the names in all projects that a configuration trusts, because a skill can be missing at the moment, also if one of another
    /// project was declined. Adds the result to `decided`.
    fn decline_missing(&self, workspace: &Workspace, names: &[SkillName], decided: &mut Decided) {
        let Some(trust) = &self.trust else { return };
        let trusting =
            workspace.roots().filter(|root| self.projects_at(root).iter().any(|here| here.is_trusted));
        let projects = order::set(trusting.map(project_of));
        for project in &projects {
            let unsaved = trust.decline_names(project, names);
            decided.unsaved = decided.unsaved.take().or(unsaved);
        }
        if !projects.is_empty() {
            let is_done = |name: &SkillName| decided.done.iter().any(|done| done.key() == name.key());
            decided.absent = names.iter().filter(|name| !is_done(name)).cloned().collect();
        }
    }

    /// Refuses a skill that a configuration trusts together with its project. Adds the result to `decided`.
    fn refuse(&self, project: &Path, skill: &Skill, decided: &mut Decided) {
        let Some(trust) = &self.trust else {
            let why = "all skills of projects are trusted by `--trust project`, or by the key `trust` of the configuration";
            decided.failed.push((skill.name.clone(), why.to_owned()));
            return;
        };
        let unsaved = trust.refuse(project, skill);
        decided.unsaved = decided.unsaved.take().or(unsaved);
        if !decided.done.contains(&skill.name) {
            decided.done.push(skill.name.clone());
        }
    }

    /// Returns the decisions of the user. They exist even if a configuration trusts all skills of projects.
    fn decisions(&self) -> Option<&Trust> {
        self.trust.as_ref().or(self.servers.trust())
    }
}

/// Returns the skills of projects that the workspace doesn't belong to anymore, because a link in the path of a root now leads to another
/// project. The session still has their skills. Each skill comes with the project whose directories for skills contain it.
fn left_behind<'a>(workspace: &Workspace, skills: &'a [Arc<Skill>]) -> Vec<(PathBuf, &'a Skill)> {
    let here: Vec<_> = workspace.roots().map(|root| real(&project_of(root))).collect();
    let project_around = |skill: &Skill| {
        let dir = skill.dir().filter(|dir| here.iter().all(|project| !dir.starts_with(project)))?;
        let has = |above: &&Path| project_roots(above).iter().any(|root| dir.starts_with(&root.path));
        dir.ancestors().find(has).map(project_of)
    };
    let of_projects = skills.iter().filter(|skill| skill.scope == Scope::Project);
    of_projects.filter_map(|skill| Some((project_around(skill)?, skill.as_ref()))).collect()
}

/// Returns the place of a skill, as a phrase.
fn place_of(skill: &Skill) -> String {
    match (skill.service(), skill.dir()) {
        (Some(service), _) => format!("from the {}", service.label()),
        (None, Some(dir)) => format!("in {}", dir.display()),
        (None, None) => "of the configuration".to_owned(),
    }
}
