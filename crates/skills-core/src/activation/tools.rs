//! The part of an activation that describes the tools of a skill: its own, and those of its provider.

use std::fmt::Write;

use serde_json::Value;

use crate::{
    catalog::{Guide, escape_attribute, escape_xml, one_line},
    skill::Skill,
    tool::Offer,
};

/// A tool, as it is described.
struct Described<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Option<&'a Value>,
    missing: Option<&'a str>,
}

/// Describes the tools of a skill. `offer` contains those of its provider.
pub(super) fn describe(skill: &Skill, guide: Guide, offer: Option<&Offer>) -> String {
    if guide != Guide::Tools {
        return "The tools of this skill are not available here.\n".to_owned();
    }
    let own = skill.tools().iter().map(|tool| Described {
        name: &tool.name,
        description: &tool.description,
        input_schema: tool.input_schema.as_ref(),
        missing: tool.missing.as_deref(),
    });
    let is_own = |name: &str| skill.tool(name).is_some();
    let offered = offer.into_iter().flat_map(|offer| &offer.tools).filter(|tool| !is_own(&tool.name));
    let offered = offered.map(|tool| Described {
        name: &tool.name,
        description: &tool.description,
        input_schema: tool.input_schema.as_ref(),
        missing: None,
    });
    let tools: Vec<_> = own.chain(offered).collect();
    let problem = offer.and_then(|offer| offer.problem.as_deref());
    let problem = problem.map(|problem| {
        format!("The server with tools of this skill is not available: {}.\n", escape_xml(&one_line(problem)))
    });
    if tools.is_empty() {
        return problem.unwrap_or_else(|| "The server of this skill has no tools.\n".to_owned());
    }
    let mut text = problem.unwrap_or_default();
    let _ = writeln!(
        text,
        "<skill_tools>\n  Run these with `call_skill_tool`, `skill` being \"{}\".",
        escape_xml(skill.name.as_str())
    );
    if let Some(instructions) = offer.and_then(|offer| offer.instructions.as_deref()) {
        let instructions = escape_xml(instructions.trim());
        let _ = writeln!(text, "  <server_instructions>\n{instructions}\n  </server_instructions>");
    }
    let has_missing = tools.iter().any(|tool| tool.missing.is_some());
    for tool in tools {
        tool.write(&mut text);
    }
    if has_missing {
        text.push_str(
            "  Tools marked as missing do not work; do the task without them, or say that you cannot.\n",
        );
    }
    text.push_str("</skill_tools>\n");
    text
}

impl Described<'_> {
    // Writing to a string never fails.
    fn write(&self, text: &mut String) {
        let _ = writeln!(text, "  <tool name=\"{}\">", escape_attribute(self.name));
        let _ = writeln!(text, "    <description>{}</description>", escape_xml(&one_line(self.description)));
        if let Some(schema) = self.input_schema {
            let _ = writeln!(text, "    <input_schema>{}</input_schema>", escape_xml(&schema.to_string()));
        }
        if let Some(missing) = self.missing {
            let _ = writeln!(text, "    <missing>{}</missing>", escape_xml(&one_line(missing)));
        }
        text.push_str("  </tool>\n");
    }
}
