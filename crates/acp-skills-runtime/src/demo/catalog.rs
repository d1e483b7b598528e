//! Reads the catalog from the text of the prompt, as a model does.

use serde_json::Value;

use super::tools::Tool;

/// A skill in the catalog.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Skill {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) location: Option<String>,
    /// The name of the MCP server with the skill's tools, if the catalog names one.
    pub(super) server: Option<String>,
}

/// Splits the texts of a prompt into the skills of the catalog and the user's request.
pub(super) fn read(texts: &[&str]) -> (Vec<Skill>, String) {
    let mut skills = Vec::new();
    let mut request = Vec::new();
    for text in texts {
        match text
            .split_once("<available_skills>")
            .and_then(|(_, rest)| rest.split_once("</available_skills>"))
        {
            Some((catalog, guide)) => {
                let server = guide.split_once("MCP server `").and_then(|(_, rest)| rest.split_once('`'));
                let server = server.map(|(name, _)| name.to_owned());
                let entries = catalog.split("<skill>").skip(1);
                skills.extend(entries.filter_map(|entry| skill(entry, server.clone())));
            }
            None => request.push(*text),
        }
    }
    (skills, request.join("\n"))
}

fn skill(entry: &str, server: Option<String>) -> Option<Skill> {
    let field = |tag: &str| {
        let (_, rest) = entry.split_once(&format!("<{tag}>"))?;
        let (text, _) = rest.split_once(&format!("</{tag}>"))?;
        Some(unescape(text))
    };
    Some(Skill {
        name: field("name")?,
        description: field("description").unwrap_or_default(),
        location: field("location"),
        server,
    })
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

/// Returns the skill that a hint names, or else the one that shares the most words with the request. If no skill shares a word,
/// returns the first one.
pub(super) fn choose<'a>(skills: &'a [Skill], request: &str) -> Option<&'a Skill> {
    if let Some(hinted) = skills.iter().find(|skill| is_hinted(skill, request)) {
        return Some(hinted);
    }
    // If there are several maximums, `max_by_key` returns the last one. We want the first, so use `rev` here.
    skills.iter().rev().max_by_key(|skill| score(&skill.name, &skill.description, request))
}

/// Returns true if a hint names the skill, or if it shares a word with the request.
pub(super) fn fits(skill: &Skill, request: &str) -> bool {
    is_hinted(skill, request) || score(&skill.name, &skill.description, request) > 0
}

/// Returns true if a line before the request names the skill (`--hint`).
fn is_hinted(skill: &Skill, request: &str) -> bool {
    request.contains(&format!("Skill `{}` may fit", skill.name))
}

/// Returns the tool that shares the most words with the request, if it shares more than `skill` does.
pub(super) fn choose_tool<'a>(tools: &'a [Tool], skill: Option<&Skill>, request: &str) -> Option<&'a Tool> {
    let least = skill.map_or(0, |skill| score(&skill.name, &skill.description, request));
    let score = |tool: &&Tool| score(&tool.name, &tool.description, request);
    tools.iter().rev().max_by_key(score).filter(|tool| score(tool) > least)
}

/// Counts the words of the request that occur in a name and a description.
fn score(name: &str, description: &str, request: &str) -> usize {
    let offered = words(&format!("{name} {description}"));
    words(request).iter().filter(|word| offered.contains(word)).count()
}

/// Returns the words with at least four letters, without endings such as `-ing` and `-s`, so that requests match
/// descriptions.
pub(super) fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let words = words.map(|word| word.trim_end_matches("ing").trim_end_matches(['s', 'e']).to_owned());
    words.filter(|word| word.chars().count() > 3).collect()
}

/// Returns the first file below `references/` or `assets/` that the instructions mention.
pub(super) fn mentioned_file(instructions: &str) -> Option<&str> {
    let is_path = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    instructions
        .split(|c: char| !is_path(c))
        .find(|word| (word.starts_with("references/") || word.starts_with("assets/")) && word.contains('.'))
        .map(|word| word.trim_end_matches('.'))
}

/// Returns the first tool that the instructions offer, and the schema of its input.
pub(super) fn offered_tool(instructions: &str) -> Option<(&str, Option<Value>)> {
    let (_, tools) = instructions.split_once("<skill_tools>")?;
    let (name, rest) = tools.split_once("<tool name=\"")?.1.split_once('"')?;
    let tool = rest.split_once("</tool>").map_or(rest, |(tool, _)| tool);
    let schema = tool.split_once("<input_schema>").and_then(|(_, rest)| rest.split_once("</input_schema>"));
    Some((name, schema.and_then(|(schema, _)| serde_json::from_str(&unescape(schema)).ok())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chooses_the_skill_with_most_shared_words() {
        let catalog = "<available_skills>\n<skill><name>pdf</name><description>Reads PDF &amp; forms</description></skill>\
            <skill><name>review</name><description>Reviews code for bugs</description></skill></available_skills>";
        let (skills, request) = read(&[catalog, "Review this code"]);
        assert_eq!(skills.len(), 2);
        assert_eq!(skills[0].description, "Reads PDF & forms");
        assert_eq!(choose(&skills, &request).unwrap().name, "review");
        assert_eq!(choose(&skills, "hello").unwrap().name, "pdf");
        assert_eq!(choose(&[], "hello"), None);
        let hint = "Skill `pdf` may fit this task.\nReview this code";
        assert_eq!(choose(&skills, hint).unwrap().name, "pdf");
        assert!(fits(&skills[0], hint) && !fits(&skills[0], "hello"));
    }

    #[test]
    fn finds_mentioned_files_and_offered_tools() {
        assert_eq!(mentioned_file("See [the list](references/a-b.md)."), Some("references/a-b.md"));
        assert_eq!(mentioned_file("Read assets/x.json."), Some("assets/x.json"));
        assert_eq!(mentioned_file("Nothing here/at.all"), None);
        assert_eq!(offered_tool("x <skill_tools>\n<tool name=\"count\">"), Some(("count", None)));
        let tool = "<skill_tools><tool name=\"a\"><input_schema>{&quot;x&quot;:1}</input_schema></tool>";
        assert_eq!(offered_tool(tool), Some(("a", Some(serde_json::json!({ "x": 1 })))));
        assert_eq!(offered_tool("<tool name=\"count\">"), None);
    }
}
