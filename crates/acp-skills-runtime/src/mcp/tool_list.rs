//! [`ToolList`]: the list of tools that the agent has received.
//!
//! The tools come first in what the provider of the model caches. If a single byte of them changes, the whole conversation has to be
//! read again. So the list stays as it is until the session is set up again, even if skills come and go: the model learns about them
//! with the next prompt, and can use a skill that the schema doesn't list. The list only changes if the model could not do without
//! the change.

use skills_core::{ToolDefinition, Toolbox, instructions, toolbox::BUILT_IN_TOOLS};

/// The list of tools that the agent has received.
#[derive(Debug, Default)]
pub(super) struct ToolList {
    /// The list, if the agent has received one.
    received: Option<Vec<ToolDefinition>>,
    /// True if the session was set up after the agent received the list.
    is_old: bool,
    /// True if the agent always gets the current list.
    follows: bool,
}

impl ToolList {
    /// Returns the list for an agent that asks for it.
    pub(super) fn received(&mut self, toolbox: &Toolbox) -> Vec<ToolDefinition> {
        if self.follows {
            return self.received.insert(toolbox.definitions()).clone();
        }
        if self.is_old {
            *self = Self::default();
        }
        self.received.get_or_insert_with(|| toolbox.definitions()).clone()
    }

    /// Gives the agent the current list from now on.
    pub(super) fn follow(&mut self) {
        self.follows = true;
    }

    /// Returns true if the agent always gets the current list.
    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    /// Notes that the session is being set up. The next time that the agent asks for the list, it gets the current one.
    pub(super) fn set_up(&mut self) {
        self.is_old = true;
    }

    /// Notes that there are other skills. Returns true if the agent has to ask for the list again.
    pub(super) fn changed(&mut self, toolbox: &Toolbox) -> bool {
        let Some(received) = &self.received else { return false };
        let now = toolbox.definitions();
        let is_same = if self.follows { *received == now } else { !must_change(received, &now) };
        if is_same {
            return false;
        }
        self.received = Some(now);
        true
    }
}

/// Returns true if a tool is missing in the list, or if one of the tools that belong to no skill differs.
fn must_change(received: &[ToolDefinition], now: &[ToolDefinition]) -> bool {
    let is_built_in = |tool: &&ToolDefinition| BUILT_IN_TOOLS.contains(&&*tool.name);
    let is_received = |tool: &ToolDefinition| received.iter().any(|other| other.name == tool.name);
    let mut others = received.iter().filter(|tool| !is_built_in(tool));
    let mut others_now = now.iter().filter(|tool| !is_built_in(tool));
    !now.iter().all(is_received) || !others.by_ref().eq(others_now.by_ref())
}

/// Builds the search index in the background if the model has the search tool, so that its first search doesn't have to wait.
pub(super) fn prepare_search(toolbox: &Toolbox) {
    if toolbox.options().search {
        let skills = toolbox.skills().clone();
        drop(tokio::task::spawn_blocking(move || instructions::prepare_search(&skills)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use skills_core::{Skill, SkillSet, SkillTool};

    use super::*;

    /// Creates a toolbox of skills, such as `a`, of skills with a tool, such as `a+`, and of tools that belong to no skill, such as
    /// `-a`.
    fn toolbox(names: &str) -> Toolbox {
        let mut set = SkillSet::builder();
        let echo = |input: Value| async move { Ok(input) };
        for name in names.split_whitespace() {
            if let Some(name) = name.strip_prefix('-') {
                set.add_tool(SkillTool::new(name, format!("Is {names}."), echo)).unwrap();
                continue;
            }
            let skill = Skill::builder(name.trim_end_matches('+'), "Does it.").body("Do it.");
            let skill = if name.ends_with('+') { skill.tool("echo", "Says it.", echo) } else { skill };
            set.add(skill.build().unwrap(), Vec::new());
        }
        Toolbox::new(set.build())
    }

    /// Describes a list: its tools, and the names that `activate_skill` lists.
    fn shown(list: &[ToolDefinition]) -> String {
        let tools: Vec<_> = list
            .iter()
            .map(|tool| {
                let names = tool.input_schema.get("properties").map(|all| all["name"]["enum"].to_string());
                match &*tool.name {
                    "activate_skill" => format!("activate{}", names.unwrap_or_default()),
                    "call_skill_tool" => "call".to_owned(),
                    other => other.to_owned(),
                }
            })
            .collect();
        tools.join(" ")
    }

    #[test]
    fn the_list_stays_as_it_is() {
        for (first, then, changes, listed) in [
            ("a", "a", false, r#"activate["a"]"#),
            ("a", "a b", false, r#"activate["a"]"#),
            ("a b", "b", false, r#"activate["a","b"]"#),
            ("a", "", false, r#"activate["a"]"#),
            ("a b+", "a", false, r#"activate["a","b"] call"#),
            ("a+", "b+", false, r#"activate["a"] call"#),
            // The model could not use these skills and tools.
            ("", "a", true, r#"activate["a"]"#),
            ("a", "a b+", true, r#"activate["a","b"] call"#),
            ("a -x", "a b -x", true, r#"activate["a","b"] x"#),
            ("a", "a -x", true, r#"activate["a"] x"#),
            ("a -x", "a", true, r#"activate["a"]"#),
        ] {
            let mut list = ToolList::default();
            let before = list.received(&toolbox(first));
            assert_eq!(list.changed(&toolbox(then)), changes, "{first} → {then}");
            let after = list.received(&toolbox(then));
            assert_eq!(shown(&after), listed, "{first} → {then}");
            assert!(changes || before == after, "{first} → {then}");
            // It changes only once.
            assert!(!list.changed(&toolbox(then)), "{first} → {then}");
        }
    }

    #[test]
    fn a_session_that_is_set_up_again_gets_the_current_list() {
        let mut list = ToolList::default();
        list.set_up();
        assert!(!list.changed(&toolbox("a")), "nothing was received");
        assert_eq!(shown(&list.received(&toolbox("a"))), r#"activate["a"]"#);
        assert_eq!(shown(&list.received(&toolbox("a b"))), r#"activate["a"]"#);
        list.set_up();
        // The agent may keep its list, so it still learns what it needs.
        assert!(!list.changed(&toolbox("a b")) && list.changed(&toolbox("a b+")));
        list.set_up();
        assert_eq!(shown(&list.received(&toolbox("b"))), r#"activate["b"]"#);
        assert_eq!(shown(&list.received(&toolbox("c"))), r#"activate["b"]"#);
    }

    #[test]
    fn a_list_can_follow_the_skills() {
        let mut list = ToolList::default();
        list.follow();
        assert!(!list.changed(&toolbox("a")), "nothing was received");
        assert_eq!(shown(&list.received(&toolbox("a"))), r#"activate["a"]"#);
        assert!(list.changed(&toolbox("a b")) && !list.changed(&toolbox("a b")));
        assert_eq!(shown(&list.received(&toolbox("b"))), r#"activate["b"]"#);
    }

    #[test]
    fn names_can_be_left_out() {
        let open = toolbox("a b").with_open_names();
        assert_eq!(shown(&open.definitions()), "activatenull");
        assert_eq!(open.definitions(), open.with_skills(toolbox("c").skills().clone()).definitions());
    }
}
