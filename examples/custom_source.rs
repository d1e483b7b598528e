//! Skills from a custom source: here a list in memory, but it could also be a database or an API.
//!
//!     cargo run --example custom_source
//!
//! The source is read in pages. An agent loop only needs the toolbox for the resulting set of skills.

use std::sync::Arc;

use serde_json::json;
use skills_core::{
    CallContext, Catalog, CatalogOptions, Skill, SkillSet, SkillSource, Toolbox, source::SourceError,
};

/// The runbooks of a team. Each has a name, a description and instructions.
struct Runbooks(&'static [(&'static str, &'static str, &'static str)]);

impl SkillSource for Runbooks {
    fn count(&self) -> Result<usize, SourceError> {
        Ok(self.0.len())
    }

    fn list(&self, offset: usize, limit: usize) -> Result<Vec<Arc<Skill>>, SourceError> {
        let page = self.0.iter().skip(offset).take(limit);
        page.map(|(name, when, what)| Ok(Arc::new(Skill::builder(*name, *when).body(*what).build()?)))
            .collect()
    }
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example for the terminal")]
async fn main() -> Result<(), SourceError> {
    let runbooks = Runbooks(&[
        (
            "disk-full",
            "Frees disk space. Use when a host reports a full disk.",
            "Delete what is older than a week.",
        ),
        (
            "roll-back",
            "Rolls a release back. Use when a release misbehaves.",
            "Deploy the tag before this one.",
        ),
    ]);

    let mut skills = SkillSet::builder();
    let added = skills.add_source(&runbooks, 1_000)?;
    let skills = skills.build();
    println!("{added} skills of {}; the model sees:\n", runbooks.count()?);
    println!("{}\n", Catalog::render(&skills, &CatalogOptions::default()).ok_or("there are skills")?.text);

    let arguments = json!({ "name": "roll-back" }).as_object().cloned().unwrap_or_default();
    let output = Toolbox::new(skills).call("activate_skill", arguments, &CallContext::default()).await;
    println!("and when it activates one:\n\n{}", output.to_text());
    assert!(!output.is_error);
    Ok(())
}
