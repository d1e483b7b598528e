//! [`Elsewhere`]: the ways in which an agent in a container or on another machine gets skills.

use std::{ffi::OsString, fmt};

use acp_skills::{
    elsewhere::{Place, place},
    intercept::{McpMode, Policy},
    skills_core::catalog::Location,
};

/// An agent that runs elsewhere, and the settings for it.
pub(super) struct Elsewhere {
    /// The place. `None` if only `--elsewhere` tells it.
    place: Option<Place>,
    /// True if the user has chosen an address for the tools.
    listens: bool,
    /// True if `--mcp off` is set.
    is_off: bool,
    /// True if the model can read the files of skills.
    reads_files: bool,
}

impl Elsewhere {
    /// Returns the agent of a command if it runs elsewhere.
    pub(super) fn of(command: &[OsString], policy: &Policy) -> Option<Self> {
        policy.elsewhere.then(|| Self {
            place: place(command),
            listens: policy.listen.is_some(),
            is_off: policy.mcp == McpMode::Off,
            reads_files: policy.reads_through_client || policy.catalog.location != Location::None,
        })
    }

    /// Describes the way that works without the tools.
    pub(super) fn without_tools(&self) -> &'static str {
        if self.reads_files {
            "the model receives paths to the skills and reads the files"
        } else {
            "instructions are added to prompts that match a skill or begin with `/skill:NAME`; the model has no tools for skills"
        }
    }

    /// Says how the agent can reach the tools.
    pub(super) fn advice(&self) -> String {
        if self.is_off {
            return "remove `--mcp off` to give the model tools for skills".to_owned();
        }
        if self.listens {
            return "if the agent should have the tools, check that it supports MCP over HTTP and can connect to the address of `--listen`, \
                    or set `--listen-url`"
                .to_owned();
        }
        let place = self
            .place
            .map_or("add `--listen ADDRESS:PORT` with an address that the agent can reach", Place::advice);
        format!("to give the model tools for skills: {place}")
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.map_or("elsewhere, as `--elsewhere` says", Place::describe);
        write!(
            formatter,
            "the agent runs {place}, so it cannot reach the files or the loopback address of this machine"
        )?;
        if self.place.is_some() { formatter.write_str(" (if it does: `--elsewhere no`)") } else { Ok(()) }
    }
}
