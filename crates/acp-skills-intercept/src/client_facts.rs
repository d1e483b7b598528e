//! What is known of the client, where its ways matter.

use acp_skills_wire::Message;

use crate::version::Version;

/// What the client said of itself in `initialize`, as far as it matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientFacts {
    /// It shows of a title what stands in front of a colon: CodeCompanion makes `Read: Skill` of `Skill: code-review`.
    cuts_titles: bool,
    /// It says that it shows options that are on or off.
    says_booleans: bool,
    /// It asks its user what an agent wants to know, with a form.
    shows_forms: bool,
}

impl ClientFacts {
    /// What the request `initialize` says, in either version of the protocol.
    pub(crate) fn read(request: &Message<'_>) -> Self {
        let mut names = [["clientInfo", "name"], ["info", "name"]].into_iter();
        let name = names.find_map(|path| request.param(&path)?.as_str());
        let booleans = request.param(&["clientCapabilities", "session", "configOptions", "boolean"]);
        let mut forms = ["clientCapabilities", "capabilities"].into_iter();
        let form = forms.find_map(|place| request.param(&[place, "elicitation", "form"]));
        Self {
            shows_forms: form.is_some_and(|form| form.is_object()),
            cuts_titles: name.is_some_and(|name| name == "CodeCompanion.nvim"),
            says_booleans: booleans.is_some_and(|it| !it.is_null() && it.as_bool() != Some(false)),
        }
    }

    /// Whether it shows options that are on or off. The draft has them for everybody.
    pub(crate) fn shows_booleans(self, version: Version) -> bool {
        self.says_booleans || version.has_booleans()
    }

    /// Whether it asks its user what an agent wants to know.
    pub(crate) fn shows_forms(self) -> bool {
        self.shows_forms
    }

    /// What stands between the parts of a title.
    pub(crate) fn separator(self) -> &'static str {
        if self.cuts_titles { " " } else { ": " }
    }
}
