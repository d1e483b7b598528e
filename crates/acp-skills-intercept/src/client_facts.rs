//! [`ClientFacts`]: the client's capabilities and quirks.

use acp_skills_wire::Message;

use crate::version::Version;

/// The facts about the client that the interceptor needs, from its `initialize` request.
#[expect(clippy::struct_excessive_bools, reason = "all fields are independent facts")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientFacts {
    /// True if the client is CodeCompanion. It shortens titles at a colon, and names each shared file in a block of its own.
    is_code_companion: bool,
    /// True if the client announces that it shows boolean options.
    says_booleans: bool,
    /// True if the client can show a form to its user, for a request of the agent.
    shows_forms: bool,
    /// True if the client shows notices to its user.
    shows_notices: bool,
    /// True if the client reads text files for the agent.
    reads_files: bool,
    /// True if the client says its name. avante doesn't.
    is_named: bool,
    /// True if the client is Jupyter AI, which puts a note before the first message.
    is_jupyter: bool,
}

impl ClientFacts {
    /// Reads the facts from an `initialize` request of either version of the protocol.
    pub(crate) fn read(request: &Message<'_>) -> Self {
        let mut names = [["clientInfo", "name"], ["info", "name"]].into_iter();
        let name = names.find_map(|path| request.param(&path)?.as_str());
        let booleans = request.param(&["clientCapabilities", "session", "configOptions", "boolean"]);
        let mut forms = ["clientCapabilities", "capabilities"].into_iter();
        let form = forms.find_map(|place| request.param(&[place, "elicitation", "form"]));
        let mut notices = ["clientCapabilities", "capabilities"].into_iter();
        let notices = notices.find_map(|place| request.param(&[place, "session", "notices"]));
        let reads_files = request.param(&["clientCapabilities", "fs", "readTextFile"]);
        Self {
            reads_files: reads_files.and_then(|reads| reads.as_bool()) == Some(true),
            shows_forms: form.is_some_and(|form| form.is_object()),
            shows_notices: notices.is_some_and(|notices| notices.is_object()),
            is_named: name.is_some(),
            is_jupyter: name.as_ref().is_some_and(|name| name == "Jupyter AI"),
            is_code_companion: name.is_some_and(|name| name == "CodeCompanion.nvim"),
            says_booleans: booleans.is_some_and(|node| !node.is_null() && node.as_bool() != Some(false)),
        }
    }

    /// Returns true if the client shows boolean options. In the draft of version 2, all clients do.
    pub(crate) fn shows_booleans(self, version: Version) -> bool {
        self.says_booleans || version.has_booleans()
    }

    /// Returns true if the client can show a form to its user.
    pub(crate) fn shows_forms(self) -> bool {
        self.shows_forms
    }

    /// Returns true if the client shows notices to its user.
    pub(crate) fn shows_notices(self) -> bool {
        self.shows_notices
    }

    /// Returns true if the client reads text files for the agent.
    pub(crate) fn reads_files(self) -> bool {
        self.reads_files
    }

    /// Returns true if the client may repeat earlier messages in a prompt, as avante does.
    pub(crate) fn may_repeat_messages(self) -> bool {
        !self.is_named
    }

    /// Returns true if the client puts a note before a message, in the same block.
    pub(crate) fn adds_note(self) -> bool {
        self.is_jupyter
    }

    /// Returns true if the client names each shared file in a block of its own.
    pub(crate) fn names_files(self) -> bool {
        self.is_code_companion
    }

    /// Returns the separator between the parts of a title. CodeCompanion shows `Read: Skill` for `Skill: code-review`.
    pub(crate) fn separator(self) -> &'static str {
        if self.is_code_companion { " " } else { ": " }
    }
}
