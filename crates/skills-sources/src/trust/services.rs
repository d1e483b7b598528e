//! Skills of services, such as MCP servers. Their files are only read when they are needed, so the user approves the entry of a skill: its
//! name, its description, and the checksums of all of its files. Each file is compared with its checksum when it is read.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value};
use skills_core::{Properties, Skill, SkillSet, set::Unapproved, skill::Sha256};

use super::{Trust, place};
use crate::digest;

/// Returns the key of the decisions about the skills of the service that a skill comes from. It takes the place of a project's directory.
pub fn project_of(skill: &Skill) -> Option<PathBuf> {
    Some(PathBuf::from(skill.service()?.identity()))
}

/// Returns the checksum of the entry of a skill. The file with the instructions is only compared with the entry when it is read, so the
/// checksum contains all properties: some have an effect before, and others are sent to agents that list skills.
pub(super) fn digest_of(skill: &Skill) -> String {
    let groups: [fn(&Properties) -> String; 2] = [
        |properties| {
            let Properties { tags, paths, argument_hint, usage, compatibility, .. } = properties;
            let Properties { user_invocable, disable_model_invocation, hide_from_discovery, .. } = properties;
            let switches = (user_invocable, disable_model_invocation, hide_from_discovery);
            format!("{:?}", (tags, paths, argument_hint, usage, compatibility, switches))
        },
        |properties| {
            let Properties { license, version, allowed_tools, priority, metadata, extra, .. } = properties;
            let metadata: Option<Value> =
                metadata.as_deref().and_then(|json| serde_json::from_str(json).ok());
            let extra: Option<Map<String, Value>> =
                extra.as_deref().and_then(|json| serde_json::from_str(json).ok());
            format!("{:?}", (license, version, allowed_tools, priority, metadata, extra))
        },
    ];
    groups.iter().fold(digest::of_entry(skill), |digest, group| {
        let text = group(&skill.properties);
        // Approvals of skills without such properties stay valid.
        if text == group(&Properties::default()) {
            return digest;
        }
        Sha256::of(format!("{digest}\n{text}").as_bytes()).to_string()
    })
}

impl Trust {
    /// Returns the skills of a service that match their approved checksum. The others are in [`SkillSet::unapproved`]. `service` is the
    /// [key](project_of) of the decisions.
    pub fn sift_entries(&self, service: &Path, found: &SkillSet) -> SkillSet {
        if found.is_empty() {
            return found.clone();
        }
        let decisions = self.decisions(service);
        let mut skills = SkillSet::builder();
        let mut unnamed = Vec::new();
        for entry in found.entries() {
            let digest = digest_of(&entry.skill);
            let place = place(service, &entry.skill);
            if decisions.trusts(&place, &digest) {
                unnamed.extend(decisions.unnamed(place, digest, &entry.skill.name));
                skills.add_shared(Arc::clone(&entry.skill), entry.diagnostics.clone());
                continue;
            }
            let mut unapproved = Unapproved::new(Arc::clone(&entry.skill), digest);
            unapproved.has_changed = decisions.knows(&place);
            unapproved.is_refused = decisions.refuses(&place, &unapproved.digest);
            skills.add_unapproved(unapproved);
        }
        found.skipped().iter().for_each(|skipped| skills.skip(skipped.clone()));
        self.add_names(service, &unnamed);
        skills.build()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_checksum_contains_all_properties() {
        let changes: [fn(&mut Properties); 14] = [
            |_| {},
            |properties| properties.license = Some("x".into()),
            |properties| properties.compatibility = Some("x".into()),
            |properties| properties.version = Some("x".into()),
            |properties| properties.argument_hint = Some("x".into()),
            |properties| properties.allowed_tools = vec!["x".to_owned()],
            |properties| properties.tags = vec!["x".to_owned()],
            |properties| properties.priority = 1,
            |properties| properties.user_invocable = false,
            |properties| properties.disable_model_invocation = true,
            |properties| properties.hide_from_discovery = true,
            |properties| properties.paths = vec!["x".to_owned()],
            |properties| properties.metadata = Some(json!("x").to_string().into()),
            |properties| properties.extra = Some(json!({ "x": "x" }).to_string().into()),
        ];
        let mut seen = HashSet::new();
        for change in changes {
            let mut skill = Skill::builder("demo", "A demo.").body("x").build().unwrap();
            change(&mut skill.properties);
            assert!(seen.insert(digest_of(&skill)), "{:?}", skill.properties);
        }
    }
}
