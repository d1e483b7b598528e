//! The agents that are known by name, one row each: how to start the agent, how it behaved in tests with the proxy, and
//! where it differs from the protocol or from other agents.
//!
//! To add an agent, add a row to `table` and record a conversation with it (`tests/recordings`). A quirk that no agent had
//! before is one more field of [`Quirks`], whose value in [`Quirks::NONE`] means that the agent follows the protocol.
//!
//! Identifiers and packages are those of the [ACP registry](https://agentclientprotocol.com/registry); `.ci/registry.mjs`
//! compares them each night. The tests with real agents (`tests/agents`) write the lines `.seen(…)`. Commands and notes come
//! from trying the agent by hand. No row names a version to install, because an old table must not hold users back.
//!
//! | file | owns |
//! |---|---|
//! | `table` | the rows |
//! | `reports` | how each agent reports calls of MCP tools |

pub(crate) mod reports;
mod table;

use std::time::Duration;

use acp_skills_wire::Node;

use self::reports::CallReports;

/// An agent that is known by name.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agent {
    /// The identifier, such as `claude-acp`. It is the same as in the ACP registry if [`registry`](Self::registry) is
    /// true.
    pub id: &'static str,
    /// Other names that users type for the agent.
    pub aliases: &'static [&'static str],
    /// The display name.
    pub name: &'static str,
    /// The installed program, followed by the arguments that make it speak ACP. Never empty.
    pub program: &'static [&'static str],
    /// The npm package of the program, to run with `npx`. At most one of `npx` and `uvx` is set.
    pub npx: Option<&'static str>,
    /// The PyPI package of the program, to run with `uvx`.
    pub uvx: Option<&'static str>,
    /// The address of the agent's documentation, which also explains how to install it.
    pub home: &'static str,
    /// True if the ACP registry lists the agent.
    pub registry: bool,
    /// The `agentInfo.name` in the agent's response to `initialize`, if it was seen.
    pub info: Option<&'static str>,
    /// Other ways to recognize the agent.
    recognized_by: &'static [Recognition],
    /// Results of running the agent behind the proxy; `None` if it was not tried.
    pub seen: Option<Seen>,
    /// The directories below the home directory from which the agent loads skills itself. Only those are listed that the proxy
    /// searches too: `.agents/skills` and `.claude/skills`.
    pub own_skills: &'static [&'static str],
    /// The oldest major version of Node.js that can run the agent's npm package. `None` if it is not known.
    pub node: Option<u32>,
    /// Advice for users: the rest of a sentence that begins with the agent's name. Empty if there is none.
    pub notes: &'static str,
    /// Differences from the protocol or from other agents.
    pub(crate) quirks: Quirks,
}

/// A way to recognize an agent that does not always give itself the same name.
#[derive(Debug, PartialEq, Eq)]
enum Recognition {
    /// `agentInfo.name` contains this text, which is in lower case.
    NamePart(&'static str),
    /// `agentCapabilities._meta` has this member. It is only used if no row matches the name.
    Meta(&'static str),
}

/// Results of running an agent behind the proxy.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// The package or program that was tried.
    pub program: &'static str,
    /// The version that was tried, without its last part.
    pub version: Option<&'static str>,
    /// The version in `agentInfo`, without its last part, if it differs from `version`.
    pub says: Option<&'static str>,
    /// True if the agent opens no session without an account. In this case, only its start and its error responses were
    /// tested.
    pub login: bool,
    /// The transport of the skills server: `HTTP` or `stdio`.
    pub server: Option<&'static str>,
    /// The place of the catalog: `system prompt` or `first prompt`.
    pub catalog: Option<&'static str>,
    /// The means by which the model used the skills.
    pub skills: Option<Means>,
}

/// The means by which a model uses skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Means {
    /// The tools of the skills server.
    Tools,
    /// The model reads the files that the catalog names, because the agent doesn't pass skill tools to the model.
    Files,
}

/// Differences of an agent from the protocol or from other agents.
#[expect(clippy::struct_excessive_bools, reason = "all fields are independent quirks")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Quirks {
    /// True if tests have shown that the agent gives the tools of a session's MCP servers to its model.
    ///
    /// Some agents list the tools, but don't pass them on to the model. For agents without this flag, we only know that
    /// the model has the tools after it has called one.
    pub(crate) gives_tools: bool,
    /// True if the model sees a tool of an MCP server only after it has searched for it.
    pub(crate) hides_tools: bool,
    /// True if the agent refuses calls of MCP tools with arguments that the schema it has listed first doesn't allow. The schema then
    /// doesn't list the names of skills, because the model could not use a new skill.
    pub(crate) checks_names: bool,
    /// Built-in tools of the agent with the same name as a skill tool. If this is not empty, the catalog should name the server to
    /// use.
    pub(crate) own_tools: &'static [&'static str],
    /// True if the agent shows a model only the beginning of a prompt, for a title or for other reasons. The user's words then
    /// come before the catalog.
    ///
    /// Hermes sends the first 500 characters to have a title made, and Droid sends some to choose its next step. With
    /// the catalog in front, they would only send a part of the catalog. We tried a text block after the user's words
    /// with 27 agents: with each of them, the block reaches the model in this position, and the title begins with the
    /// user's words. A block of the type `resource` is not an alternative: three agents drop it, one refuses the
    /// prompt, and four use it as the title. Agents that send the whole prompt get the catalog in front, so that the
    /// last words are the user's.
    pub(crate) words_first: bool,
    /// True if the agent reads an addition to its system prompt from `_meta.systemPrompt` of session requests.
    pub(crate) takes_system_prompt_in_meta: bool,
    /// True if the agent reads tools that need no permission from `_meta.claudeCode.options.allowedTools` of session requests.
    pub(crate) takes_allowed_tools_in_meta: bool,
    /// True if the agent uses a single list of MCP servers for all sessions and ignores a server if the name is already used. In
    /// this case, the server of every session should be given a different name.
    pub(crate) shares_servers: bool,
    /// True if a copied session uses the MCP servers of the original session, even if the request lists different servers.
    pub(crate) copies_servers: bool,
    /// True if the agent advertises MCP over HTTP, but fails when given an entry that conforms to ACP.
    pub(crate) fails_on_http: bool,
    /// The agent's own commands that compact the conversation. Those with the usual names also count if the agent announces them.
    pub(crate) compact_commands: &'static [&'static str],
    /// True if the agent keeps the prompts of the user when it compacts the conversation.
    pub(crate) keeps_prompts: bool,
    /// The grace period that this agent should get to exit after the client disconnects. `None` if it was not measured.
    pub(crate) shutdown_grace: Option<Duration>,
    /// True if the agent's model reads files with `fs/read_text_file` when the client supports it.
    pub(crate) reads_through_client: bool,
    /// The reports that are used to recognize calls to skill tools. `None` if the reports are not sufficient for this.
    pub(crate) calls: Option<&'static CallReports>,
}

impl Quirks {
    /// The quirks of an agent that follows the protocol, or that is unknown.
    pub(crate) const NONE: Self = Self {
        gives_tools: false,
        hides_tools: false,
        checks_names: false,
        own_tools: &[],
        words_first: false,
        takes_system_prompt_in_meta: false,
        takes_allowed_tools_in_meta: false,
        shares_servers: false,
        copies_servers: false,
        fails_on_http: false,
        reads_through_client: false,
        compact_commands: &[],
        keeps_prompts: false,
        shutdown_grace: None,
        calls: None,
    };
}

impl Default for &'static Quirks {
    fn default() -> Self {
        &Quirks::NONE
    }
}

impl Agent {
    /// Returns true if permission requests from this agent identify the tool to call. This is used to allow calls to read-only
    /// skill tools without asking the user.
    ///
    /// ```
    /// use acp_skills_intercept::known_agent;
    ///
    /// assert!(known_agent("OpenCode").is_some_and(|agent| agent.names_calls()));
    /// assert!(known_agent("some-agent").is_none());
    /// ```
    pub fn names_calls(&self) -> bool {
        self.quirks.calls.is_some()
    }

    const fn new(id: &'static str, name: &'static str, program: &'static [&'static str]) -> Self {
        Self {
            id,
            aliases: &[],
            name,
            program,
            npx: None,
            uvx: None,
            home: "",
            registry: true,
            info: None,
            recognized_by: &[],
            seen: None,
            own_skills: &[],
            node: None,
            notes: "",
            quirks: Quirks::NONE,
        }
    }

    const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn npx(mut self, package: &'static str) -> Self {
        self.npx = Some(package);
        self
    }

    const fn uvx(mut self, package: &'static str) -> Self {
        self.uvx = Some(package);
        self
    }

    const fn home(mut self, address: &'static str) -> Self {
        self.home = address;
        self
    }

    const fn unregistered(mut self) -> Self {
        self.registry = false;
        self
    }

    const fn info(mut self, name: &'static str) -> Self {
        self.info = Some(name);
        self
    }

    const fn recognized_by(mut self, ways: &'static [Recognition]) -> Self {
        self.recognized_by = ways;
        self
    }

    const fn seen(mut self, seen: Seen) -> Self {
        self.seen = Some(seen);
        self
    }

    const fn own_skills(mut self, directories: &'static [&'static str]) -> Self {
        self.own_skills = directories;
        self
    }

    const fn node(mut self, version: u32) -> Self {
        self.node = Some(version);
        self
    }

    const fn notes(mut self, notes: &'static str) -> Self {
        self.notes = notes;
        self
    }

    const fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = quirks;
        self
    }
}

impl Seen {
    /// Returns the version that was tried, as the agent reports it and without its last part.
    pub fn tried(&self) -> Option<&'static str> {
        self.says.or(self.version)
    }

    /// Returns true if an agent that reports this version is the one that was tried.
    ///
    /// ```
    /// let agent = acp_skills_intercept::known_agent("OpenCode").expect("a known agent");
    /// let seen = agent.seen.as_ref().expect("it was tried");
    /// assert!(seen.is_of("1.18.99") && !seen.is_of("1.180.0"));
    /// ```
    pub fn is_of(&self, version: &str) -> bool {
        let Some(tried) = self.tried() else { return false };
        let rest = version.trim_start_matches('v').strip_prefix(tried);
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    }

    const fn of(program: &'static str) -> Self {
        Self { program, version: None, says: None, login: false, server: None, catalog: None, skills: None }
    }

    const fn version(mut self, version: &'static str) -> Self {
        self.version = Some(version);
        self
    }

    const fn says(mut self, version: &'static str) -> Self {
        self.says = Some(version);
        self
    }

    const fn login(mut self) -> Self {
        self.login = true;
        self
    }

    const fn server(mut self, transport: &'static str) -> Self {
        self.server = Some(transport);
        self
    }

    const fn catalog(mut self, place: &'static str) -> Self {
        self.catalog = Some(place);
        self
    }

    const fn tools(mut self) -> Self {
        self.skills = Some(Means::Tools);
        self
    }

    const fn files(mut self) -> Self {
        self.skills = Some(Means::Files);
        self
    }
}

/// Returns all known agents, the most used ones first.
pub fn known_agents() -> &'static [Agent] {
    table::AGENTS
}

/// Returns the agent that gives itself this `agentInfo.name`. Case is ignored, and for some agents a part of the name is enough.
pub fn known_agent(name: &str) -> Option<&'static Agent> {
    recognize(name, None)
}

/// Recognizes an agent by its `agentInfo.name`, or by the `_meta` of its capabilities if no row matches the name.
pub(crate) fn recognize(name: &str, meta: Option<Node<'_>>) -> Option<&'static Agent> {
    let lower = name.to_ascii_lowercase();
    let find = |is_it: &dyn Fn(&Recognition) -> bool| {
        table::AGENTS.iter().find(|agent| agent.recognized_by.iter().any(is_it))
    };
    let by_name =
        table::AGENTS.iter().find(|agent| agent.info.is_some_and(|info| info.eq_ignore_ascii_case(name)));
    by_name
        .or_else(|| find(&|way| matches!(way, Recognition::NamePart(part) if lower.contains(part))))
        .or_else(|| find(&|way| matches!(way, Recognition::Meta(key) if meta.is_some_and(|meta| meta.get(key).is_some()))))
}
