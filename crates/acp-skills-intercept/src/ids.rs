//! [`OwnIds`]: ids of messages and requests that the proxy itself sends.

use acp_skills_wire::build;

/// Makes ids that no other run of the proxy and no other message of a session has.
#[derive(Debug)]
pub(crate) struct OwnIds {
    run: u64,
    messages: u64,
    questions: u64,
}

impl OwnIds {
    /// Creates the ids of one run.
    pub(crate) fn new(run: u64) -> Self {
        Self { run, messages: 0, questions: 0 }
    }

    /// Returns an id for a message to the user.
    pub(crate) fn new_message(&mut self) -> String {
        self.messages += 1;
        format!("acp-skills-{:x}-{}", self.run, self.messages)
    }

    /// Returns an id for a request to the client. No request of the agent has such an id.
    pub(crate) fn new_question(&mut self) -> String {
        self.questions += 1;
        format!("{}{:x}-{}", build::OWN_REQUEST, self.run, self.questions)
    }
}
