//! The texts with the catalog: the instructions of the server, and the description of `activate_skill`.

use acp_skills_intercept::{McpClient, SERVER_NAME};
use skills_core::{
    SkillSet,
    catalog::{self, Catalog, CatalogOptions, Guide},
};

/// Returns the catalog as a part of a text. The budget is reduced if the client cuts off texts: `used` is the number of characters
/// that the rest of the text has. `None` if there is no skill to list.
pub(super) fn render(
    skills: &SkillSet,
    options: &CatalogOptions,
    client: &McpClient,
    used: usize,
) -> Option<Catalog> {
    let mut options = options.clone();
    if let Some(limit) = client.limit {
        options.budget_chars = options.budget_chars.min(limit.saturating_sub(used));
    }
    Catalog::render(skills, &options)
}

/// Returns the instructions of the server: the catalog, and how to use it. `None` if there is no skill to list.
pub(super) fn instructions(
    skills: &SkillSet,
    options: &CatalogOptions,
    client: &McpClient,
) -> Option<String> {
    let guide = catalog::guide(Guide::Tools);
    let guide = if client.names_server {
        format!("{guide} The tools are those of the MCP server `{SERVER_NAME}`.")
    } else {
        guide.to_owned()
    };
    let catalog = render(skills, options, client, guide.len() + 2)?;
    Some(format!("{}\n\n{guide}", catalog.text))
}

/// Returns the description of a tool with the catalog.
pub(super) fn description(
    description: &str,
    skills: &SkillSet,
    options: &CatalogOptions,
    client: &McpClient,
) -> String {
    match render(skills, options, client, description.len() + 2) {
        Some(catalog) => format!("{description}\n\n{}", catalog.text),
        None => description.to_owned(),
    }
}

/// Returns true if the catalog leaves out skills, in the instructions or in the description.
pub(super) fn omits(skills: &SkillSet, options: &CatalogOptions, client: &McpClient) -> bool {
    // The guide is the longer one of the two other texts.
    let used = catalog::guide(Guide::Tools).len() + 2;
    render(skills, options, client, used).is_some_and(|catalog| catalog.omitted > 0)
}

#[cfg(test)]
mod tests {
    use acp_skills_intercept::mcp_client;
    use skills_core::Skill;

    use super::*;

    fn skills(count: usize) -> SkillSet {
        let skill = |number: usize| {
            let description = format!("Does number {number}. {}", "It is long. ".repeat(20));
            Skill::builder(format!("skill-{number}"), description).body("Do it.").build().unwrap()
        };
        (0..count).map(skill).collect()
    }

    #[test]
    fn texts_stay_within_the_limit_of_the_client() {
        let options = CatalogOptions { search: true, ..CatalogOptions::default() };
        for (client, count, omits_some) in [
            ("claude-code", 1, false),
            ("claude-code", 8, false),
            ("claude-code", 30, true),
            ("codex-mcp-client", 30, false),
            ("gemini-cli-mcp-client", 500, true),
        ] {
            let client = mcp_client(client);
            let skills = skills(count);
            let limit = client.limit.unwrap_or(options.budget_chars + 400);
            for text in [
                instructions(&skills, &options, client).unwrap(),
                description("Loads it.", &skills, &options, client),
            ] {
                assert!(text.chars().count() <= limit, "{count} {client:?}: {}", text.len());
                assert!(text.contains("<name>skill-0</name>"), "{text}");
                assert_eq!(text.contains("`search_skills` finds"), omits_some, "{count} {client:?}");
            }
            assert_eq!(omits(&skills, &options, client), omits_some, "{count} {client:?}");
        }
    }

    #[test]
    fn texts_without_skills() {
        let client = mcp_client("gemini-cli-mcp-client");
        let options = CatalogOptions::default();
        assert_eq!(instructions(&SkillSet::default(), &options, client), None);
        assert_eq!(description("Loads it.", &SkillSet::default(), &options, client), "Loads it.");
        let text = instructions(&skills(1), &options, client).unwrap();
        assert!(text.ends_with("The tools are those of the MCP server `acp-skills`."), "{text}");
        assert!(!instructions(&skills(1), &options, mcp_client("opencode")).unwrap().contains("MCP server"));
    }
}
