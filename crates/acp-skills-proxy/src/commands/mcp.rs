//! `mcp`: serves the skills to MCP clients without ACP, over stdin and stdout or over HTTP.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use acp_skills::{
    config::{Config, Elsewhere, Settings},
    intercept::McpCatalog,
};
use acp_skills_runtime::{
    direct::{Direct, Listener, Options, Token},
    host::Host,
};
use clap::Args;
use skills_core::exec::TOKEN_VARIABLE;
use skills_sources::disk::private;

use super::{proxy, record, skills};
use crate::{
    args::{
        self, CatalogArgs, CatalogTextArgs, LogArgs, ProxyArgs, RecordArgs, ScriptArgs, SearchArgs,
        ServerArgs, SessionArgs, SkillArgs,
    },
    error::UsageError,
    log, output, runtime, stdio,
};

/// The maximum size of a file with a token, in bytes.
const MAX_TOKEN_BYTES: u64 = 4 * 1024;

/// Flags of `mcp`.
#[derive(Debug, Args)]
#[command(after_help = "\
A client starts this command and talks to it over stdin and stdout. `acp-skills-proxy setup mcp` adds it to the settings of a client.

Examples:
  acp-skills-proxy mcp --skills ~/skills
      Serve every skill below ~/skills to the client that starts this command.
  claude mcp add acp-skills -- acp-skills-proxy mcp --skills ~/skills
      Add the skills to Claude Code by hand.
  acp-skills-proxy mcp --skills ~/skills --listen 127.0.0.1:7300
      Serve them to several clients over HTTP. The token is printed at the start.")]
pub(crate) struct McpArgs {
    /// Listen for clients over HTTP at an address of the loopback interface, such as 127.0.0.1:7300. The port 0 selects a free one. Each
    /// request needs a token, which is random and printed at the start, or comes from --token-file or the environment variable
    /// ACP_SKILLS_MCP_TOKEN.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Clients")]
    listen: Option<SocketAddr>,
    /// Read the token of --listen from a file that only you can read.
    #[arg(long, value_name = "FILE", value_parser = args::path(), requires = "listen", help_heading = "Clients")]
    token_file: Option<PathBuf>,
    /// The place of the catalog: the instructions of the server (`instructions`), the description of the tool `activate_skill` (`tool`),
    /// `both`, or `none` [default: instructions for clients that are known to show them to the model, tool for others].
    #[arg(long, value_name = "PLACE", help_heading = "Clients")]
    catalog: Option<McpCatalog>,
    /// Leave out skills that the client loads itself, for example those in ~/.claude/skills with Claude Code.
    #[arg(long, help_heading = "Clients")]
    hide_native: bool,
    #[command(flatten)]
    skills: SkillArgs,
    #[command(flatten)]
    text: CatalogTextArgs,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    scripts: ScriptArgs,
    #[command(flatten)]
    record: RecordArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// The flags that are not settings of a configuration file.
struct Serving {
    listen: Option<SocketAddr>,
    token_file: Option<PathBuf>,
    catalog: Option<McpCatalog>,
    hide_native: bool,
}

/// Serves the skills until the client disconnects. With `--listen`, serves them until a signal ends the process.
///
/// If the start fails, the error is written to stderr and to the file of `--log-file`, and is sent to the client as the response to its
/// first request.
pub(crate) fn run(args: McpArgs) -> ExitCode {
    // The server must continue even if the client doesn't read our stderr.
    output::never_block();
    let McpArgs { listen, token_file, catalog, hide_native, skills, text, search, scripts, record, log } =
        args;
    let catalog_args = CatalogArgs { text, ..CatalogArgs::default() };
    let server = ServerArgs { search, ..ServerArgs::default() };
    let session = SessionArgs { skills, catalog: catalog_args, server, scripts };
    let proxy = ProxyArgs { session, record, log, ..ProxyArgs::default() };
    // We need to do this before stdin and stdout are taken.
    let client = if listen.is_some() { None } else { stdio::spare() };
    let serving = Serving { listen, token_file, catalog, hide_native };
    let code = proxy::run_for_client(proxy, client, |config| serve(config, serving));
    output::flush();
    code
}

fn serve(mut config: Config, serving: Serving) -> anyhow::Result<ExitCode> {
    // These settings are for the agent of the proxy.
    config.elsewhere = Some(Elsewhere::No);
    config.listen = None;
    config.listen_url = None;
    log::start(&config)?;
    let events = config.events.as_deref().map(record::open).transpose()?;
    let switches = record::open_switches(config.state.as_deref())?;
    let settings = Settings::resolve(config)?;
    let telemetry = record::start_telemetry(settings.telemetry)?;
    let listening =
        serving.listen.map(|address| listen(address, serving.token_file.as_deref())).transpose()?;
    if listening.is_none() && stdio::stdin_is_terminal() {
        output::note(
            "note: waiting for an MCP client, which would start this command and send messages to it; to end it, press Ctrl+C\n  to add \
             the skills to a client: acp-skills-proxy setup mcp",
        );
    }
    let library = settings.skills.load()?;
    if library.is_empty() {
        tracing::warn!("no skills selected for the client; {}", skills::WHERE);
    }
    let options = Options {
        catalog: serving.catalog,
        text: settings.policy.catalog,
        hide_own: serving.hide_native,
        home: env::home_dir(),
        cwd: env::current_dir()?,
    };
    let host = Host::new(library.into_library())
        .toolbox(settings.toolbox)
        .bridge(env::current_exe()?)
        .sandbox(settings.sandbox)
        .processes(settings.processes)
        .observer(record::observer(events.as_ref(), telemetry.as_ref()))
        .switch_store(switches);
    // Nothing is printed on stdout after this, unless we listen.
    let client = if listening.is_none() { Some(stdio::take()?) } else { None };
    let runtime = runtime::new()?;
    let code = runtime.block_on(async {
        let direct = Direct::new(host, options);
        match (listening, client) {
            (Some((listener, text)), _) => {
                // This fails if nothing reads it.
                let announce = move || {
                    let _ = output::print(&text);
                };
                direct.listen(listener, announce).await
            }
            (None, Some(client)) => direct.run(client).await,
            (None, None) => Ok(0),
        }
    });
    // Make sure that all events are written before we exit.
    drop(events);
    drop(telemetry);
    // Exit now instead of waiting for threads, which can be blocked in a read forever.
    runtime.shutdown_background();
    let code = code?;
    output::flush();
    std::process::exit(code);
}

/// Opens the listener. Returns it with a text for the user, which has its address and a random token.
fn listen(address: SocketAddr, token_file: Option<&Path>) -> anyhow::Result<(Listener, String)> {
    if !address.ip().is_loopback() {
        let message = format!("cannot listen on {address}: not an address of the loopback interface");
        return Err(UsageError::new(message)
            .hint(
                "use 127.0.0.1; for a client on another machine, forward the port, for example with \
                 `ssh -o ExitOnForwardFailure=yes -R 127.0.0.1:PORT:127.0.0.1:PORT`",
            )
            .into());
    }
    let (token, shown) = if let Some(token) = given_token(token_file)? {
        (token, String::new())
    } else {
        let token = Token::random()?;
        let shown = format!("Authorization: Bearer {}\n", token.text());
        (token, shown)
    };
    let listener = Listener::open(address, token)
        .map_err(|error| UsageError::failed(format_args!("cannot listen on {address}"), error))?;
    let text = format!("Listening on {}\n{shown}", listener.url());
    Ok((listener, text))
}

/// Returns the token of the user, if there is one.
fn given_token(file: Option<&Path>) -> Result<Option<Token>, UsageError> {
    let (text, place) = match (file, env::var(TOKEN_VARIABLE)) {
        (Some(path), _) => {
            let failed = |error| UsageError::at("cannot read the token", path, error);
            let opened = std::fs::File::open(path).map_err(failed)?;
            if private::tighten(&opened).map_err(failed)? {
                let path = path.display();
                tracing::warn!(
                    "the token in {path} was readable by other users; changed the mode of the file to 0600"
                );
            }
            let bytes = private::read(path, MAX_TOKEN_BYTES).map_err(failed)?;
            (String::from_utf8_lossy(&bytes).trim().to_owned(), path.display().to_string())
        }
        (None, Ok(text)) => (text, TOKEN_VARIABLE.to_owned()),
        (None, Err(_)) => return Ok(None),
    };
    match Token::new(&text) {
        Some(token) => Ok(Some(token)),
        None => Err(UsageError::new(format!("the token in {place} is not valid"))
            .hint("use at least 16 letters, digits or punctuation marks, without spaces")),
    }
}
