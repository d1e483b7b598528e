//! The flags that decide what the model gets: the catalog and the tools.

use std::{net::SocketAddr, time::Duration};

use acp_skills::{
    config::{CatalogLocation, Config, Elsewhere, SearchTool, ServersOnDemand},
    intercept::{Activation, CatalogIn, McpMode},
    skills_core::catalog::{Detail, Format, Style},
};
use clap::Args;

use super::{Flag, number, seconds, servers};

/// The catalog: names and descriptions of skills for the model.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CatalogArgs {
    /// The place of the catalog.
    #[command(flatten)]
    pub place: CatalogPlaceArgs,
    /// The text of the catalog.
    #[command(flatten)]
    pub text: CatalogTextArgs,
}

impl CatalogArgs {
    pub(crate) fn override_in(self, config: &mut Config) {
        self.place.override_in(config);
        self.text.override_in(config);
    }
}

flags! {
    /// The place of the catalog.
    #[command(next_help_heading = "Catalog")]
    struct CatalogPlaceArgs {
        /// The place of the catalog: in the system prompt if the agent accepts one (`auto`, `system`), otherwise before the
        /// first prompt (`prompt`), or nowhere (`off`) [default: auto].
        #[arg(long, value_name = "PLACE")]
        catalog_in: Option<CatalogIn>,
        /// If one skill clearly fits a prompt best, name it in a line before the prompt, once for each skill and session.
        #[arg(long)]
        hint: bool,
        /// The maximum size of the instructions that are repeated after the agent has compacted the conversation, in tokens. A skill
        /// gets at most a fifth of it [default: 25000].
        #[arg(long, value_name = "TOKENS", value_parser = number::<usize>(), allow_negative_numbers = true)]
        restore_budget: Option<usize>,
        /// Include the paths of the SKILL.md files [default: none].
        #[arg(long, value_name = "WHICH")]
        location: Option<CatalogLocation>,
        /// Include the paths as PREFIX/NAME/SKILL.md, for agents that see the files in a different place.
        #[arg(long, value_name = "PREFIX", conflicts_with = "location")]
        mount: Option<String>,
    }
}

flags! {
    /// The text of the catalog.
    #[command(next_help_heading = "Catalog")]
    #[expect(clippy::struct_field_names, reason = "fields have the names of the flags")]
    struct CatalogTextArgs {
        /// The format of the catalog [default: xml].
        #[arg(long, value_name = "FORMAT")]
        catalog_format: Option<Format>,
        /// The wording and order: instructions that explain skills (`list`), instructions that demand to use them (`imperative`), or
        /// the list in groups if there are more than 60 skills (`grouped`) [default: list].
        #[arg(long, value_name = "STYLE")]
        catalog_style: Option<Style>,
        /// The amount of detail for each skill [default: full].
        #[arg(long, value_name = "DETAIL")]
        catalog_detail: Option<Detail>,
        /// The maximum size of the catalog in characters. Descriptions are shortened first [default: 8000].
        #[arg(long, value_name = "CHARS", value_parser = number::<usize>(), allow_negative_numbers = true)]
        catalog_budget: Option<usize>,
    }
}

/// The tools and their transport.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerArgs {
    /// The transport.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// The search tool.
    #[command(flatten)]
    pub search: SearchArgs,
}

impl ServerArgs {
    pub(crate) fn override_in(self, config: &mut Config) {
        self.transport.override_in(config);
        self.search.override_in(config);
    }
}

flags! {
    /// The transport of the tools.
    #[command(next_help_heading = "Tools")]
    struct TransportArgs {
        /// The transport between the agent and the MCP server of the skills. `auto` uses a transport that the agent advertises. With
        /// `off`, the agent reads the files with its own tools [default: auto].
        #[arg(long, value_name = "HOW")]
        mcp: Option<McpMode>,
        /// The agent runs in a container or on another machine (`yes`), where it cannot reach the files or the loopback address of
        /// the proxy. With `files`, it also reads files with requests to the editor, which are answered for files of skills. `auto`
        /// decides by the command, such as `docker run` or `ssh` [default: auto].
        #[arg(long, value_name = "WHERE", num_args = 0..=1, default_missing_value = "yes")]
        elsewhere: Option<Elsewhere>,
        /// Serve the tools over HTTP at this address instead of a free port of the loopback address, so that an agent elsewhere can
        /// connect. The port 0 selects a free one. Each session has its own token.
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: Option<SocketAddr>,
        /// The URL with which the agent reaches the address of --listen, such as http://host.docker.internal [default: the address].
        #[arg(long, value_name = "URL")]
        listen_url: Option<String>,
        /// The maximum time that the first prompt of a session waits for the agent to connect to the tools, in seconds
        /// [default: 2, or 0.3 if the agent has failed to connect before].
        #[arg(long, value_name = "SECONDS", value_parser = seconds(), allow_negative_numbers = true)]
        mcp_wait: Option<Duration>,
        /// Don't pass these MCP servers of the editor to the agent, but serve them as skills: their tools take no space in the context
        /// until the model needs them. Names are separated by commas. Without a name, this applies to all servers.
        #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", value_parser = servers())]
        mcp_on_demand: Option<ServersOnDemand>,
        /// Ask these MCP servers of the editor for skills, which wait until you trust them. Names are separated by commas. Without a name,
        /// this applies to all servers that are reached over HTTP. A named server that is a program is started a second time, beside the
        /// one of the agent.
        #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", value_parser = servers())]
        mcp_skills: Option<ServersOnDemand>,
        /// Let the model activate skills (`model`), or add the matching skills before each prompt (`prompt`, for agents
        /// without tools), or add them only if the model has no tools to activate skills (`hybrid`) [default: model].
        #[arg(long, value_name = "WHO")]
        activation: Option<Activation>,
    }
}

flags! {
    /// The search tool.
    #[command(next_help_heading = "Tools")]
    struct SearchArgs {
        /// Give the model a search tool: only if the catalog is too small for all skills (`auto`), `on` or `off`
        /// [default: auto].
        #[arg(long, value_name = "WHEN")]
        search: Option<SearchTool>,
    }
}
