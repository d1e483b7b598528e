//! [`OwnSkills`]: the directories from which a client loads skills itself.

use std::path::{Path, PathBuf};

use acp_skills_intercept::{McpClient, Workspace};
use skills_core::{Scope, Skill, discovery::project_roots};

/// The directories of one session from which its client loads skills, without links. The value is true if a link of a project leads to
/// the directory, which then counts for skills of the project only.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnSkills(Vec<(PathBuf, bool)>);

impl OwnSkills {
    /// Finds the directories. Reads the disk.
    pub(super) fn of(client: &McpClient, workspace: &Workspace, home: Option<&Path>) -> Self {
        // Each directory, and the directory that a link must not lead out of. The user's own links can lead anywhere.
        let mut bases: Vec<(PathBuf, Option<PathBuf>)> =
            home.map(|home| (home.to_owned(), None)).into_iter().collect();
        for root in workspace.roots() {
            let root = dunce::canonicalize(root).unwrap_or_else(|_| root.to_owned());
            let project = project_roots(&root).into_iter().find_map(|root| root.boundary);
            let project = project.unwrap_or_else(|| root.clone());
            let dirs = root.ancestors().take_while(|dir| dir.starts_with(&project));
            bases.extend(dirs.map(|dir| (dir.to_owned(), Some(project.clone()))));
        }
        let own = client.own_skills;
        let all =
            bases.iter().flat_map(|(base, project)| own.iter().map(move |dir| (project, base.join(dir))));
        // A directory that doesn't exist has no skills. One to which a link leads out of the project can be a directory of the user, and a
        // project must not hide skills of the user. One that contains the project would hide all skills of the project.
        let real = |(project, dir): (&Option<PathBuf>, PathBuf)| {
            let real = dunce::canonicalize(&dir).ok()?;
            let is_link = project.is_some() && real != dir;
            let is_within = |project: &PathBuf| real.starts_with(project) && real != *project;
            project.as_ref().is_none_or(is_within).then_some((real, is_link))
        };
        Self(all.filter_map(real).collect())
    }

    /// Returns true if the client loads this skill. Reads the disk.
    pub(super) fn has(&self, skill: &Skill) -> bool {
        if self.0.is_empty() {
            return false;
        }
        // The client loads no skills of sources, whatever a link in a project leads to.
        let Some(dir) = skill.dir().filter(|_| skill.scope != Scope::Remote) else { return false };
        let dir = dunce::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let counts = |is_link: bool| !is_link || skill.scope == Scope::Project;
        self.0.iter().any(|(own, is_link)| dir.starts_with(own) && counts(*is_link))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use acp_skills_intercept::mcp_client;
    use skills_core::discovery::load_dir;

    use super::*;

    #[test]
    fn skills_in_the_directories_of_a_client() {
        let base = tempfile::tempdir().unwrap();
        let skill = |place: &str| {
            let dir = base.path().join(place);
            fs::create_dir_all(&dir).unwrap();
            let name = dir.file_name().unwrap().to_str().unwrap();
            fs::write(dir.join("SKILL.md"), format!("---\nname: {name}\ndescription: Does it.\n---\nDo it."))
                .unwrap();
            load_dir(&dir).unwrap().0
        };
        fs::create_dir_all(base.path().join("repo/.git")).unwrap();
        fs::create_dir_all(base.path().join("repo/sub")).unwrap();
        let workspace = Workspace::of(base.path().join("repo/sub"));
        let home = base.path().join("home");
        for (place, claude, codex) in [
            ("home/.claude/skills/a", true, false),
            ("home/.agents/skills/b", false, true),
            ("home/skills/c", false, false),
            ("repo/.claude/skills/d", true, false),
            ("repo/sub/.agents/skills/e", false, true),
            ("repo/other/.claude/skills/f", false, false),
            (".claude/skills/g", false, false),
        ] {
            let skill = skill(place);
            for (client, expected) in
                [("claude-code", claude), ("codex-mcp-client", codex), ("some-client", false)]
            {
                let own = OwnSkills::of(mcp_client(client), &workspace, Some(&home));
                assert_eq!(own.has(&skill), expected, "{place} {client}");
            }
        }
        // The home directory can be a repository that contains the project.
        #[cfg(unix)]
        {
            fs::create_dir_all(home.join(".git")).unwrap();
            let root = home.join("work/p");
            fs::create_dir_all(root.join(".claude")).unwrap();
            std::os::unix::fs::symlink("../../../skills", root.join(".claude/skills")).unwrap();
            let own = OwnSkills::of(mcp_client("claude-code"), &Workspace::of(root), Some(&home));
            assert!(!own.has(&skill("home/skills/mine")));
        }
        // A link in a project must not hide all skills.
        #[cfg(unix)]
        for (number, target) in ["/", "../..", "../../..", "../../elsewhere"].into_iter().enumerate() {
            let root = base.path().join(format!("project{number}"));
            fs::create_dir_all(root.join(".claude")).unwrap();
            std::os::unix::fs::symlink(target, root.join(".claude/skills")).unwrap();
            let own = OwnSkills::of(mcp_client("claude-code"), &Workspace::of(root), Some(&home));
            assert!(!own.has(&skill("elsewhere/h")), "{target}");
        }
    }
}
