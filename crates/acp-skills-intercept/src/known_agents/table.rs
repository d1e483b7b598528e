//! The rows. The order is the one in which lists show the agents: the most used ones first.

use std::time::Duration;

use super::{
    Agent, Quirks,
    Recognition::{Meta, NamePart},
    Seen, reports,
};

/// The grace period for agents that exit two to five seconds after the client has disconnected.
const SLOW_EXIT: Duration = Duration::from_secs(6);

/// The grace period for agents that never exit on their own, or that did so only in some of the test runs.
const NO_EXIT: Duration = Duration::from_millis(500);

/// All known agents.
pub(super) static AGENTS: &[Agent] = &[
    Agent::new("claude-acp", "Claude", &["claude-agent-acp"])
        .aliases(&["claude", "claude-agent-acp", "claude-code"])
        .npx("@agentclientprotocol/claude-agent-acp")
        .home("https://github.com/agentclientprotocol/claude-agent-acp")
        .own_skills(&[".claude/skills"])
        .node(22)
        .info("@agentclientprotocol/claude-agent-acp")
        .recognized_by(&[NamePart("claude-agent-acp"), NamePart("claude-code-acp")])
        .seen(Seen::of("claude-agent-acp").version("0.100").server("HTTP").catalog("system prompt").tools())
        .quirks(Quirks {
            gives_tools: true,
            takes_system_prompt_in_meta: true,
            takes_allowed_tools_in_meta: true,
            compact_commands: &["compact"],
            calls: Some(&reports::CLAUDE),
            ..Quirks::NONE
        }),
    Agent::new("codex-acp", "Codex", &["codex-acp"])
        .aliases(&["codex"])
        .npx("@agentclientprotocol/codex-acp")
        .home("https://github.com/agentclientprotocol/codex-acp")
        .own_skills(&[".agents/skills"])
        .info("@agentclientprotocol/codex-acp")
        .recognized_by(&[NamePart("codex-acp")])
        .seen(Seen::of("codex-acp").version("2.6").server("HTTP").catalog("system prompt").tools())
        .quirks(Quirks {
            gives_tools: true,
            compact_commands: &["compact"],
            keeps_prompts: true,
            shutdown_grace: Some(SLOW_EXIT),
            calls: Some(&reports::CODEX),
            ..Quirks::NONE
        }),
    Agent::new("gemini", "Gemini", &["gemini", "--acp"])
        .aliases(&["gemini-cli"])
        .npx("@google/gemini-cli")
        .home("https://github.com/google-gemini/gemini-cli")
        .own_skills(&[".agents/skills"])
        .info("gemini-cli")
        .recognized_by(&[NamePart("gemini")])
        .seen(Seen::of("gemini-cli").version("0.61").server("HTTP").catalog("first prompt").tools())
        .notes(
            "includes a tool named `activate_skill`, so the catalog names the MCP server to use; in untrusted \
             folders, MCP servers are not started, and the catalog names the files instead",
        )
        .quirks(Quirks {
            gives_tools: true,
            checks_names: true,
            own_tools: &["activate_skill"],
            shutdown_grace: Some(NO_EXIT),
            calls: Some(&reports::GEMINI),
            ..Quirks::NONE
        }),
    Agent::new("github-copilot-cli", "GitHub Copilot", &["copilot", "--acp"])
        .aliases(&["copilot", "github-copilot"])
        .npx("@github/copilot")
        .home("https://github.com/github/copilot-cli")
        .own_skills(&[".agents/skills", ".claude/skills"])
        .info("Copilot")
        .recognized_by(&[NamePart("copilot")])
        .seen(Seen::of("copilot").version("1.0").server("HTTP").catalog("first prompt").tools())
        .notes("only supports MCP servers over HTTP")
        .quirks(Quirks {
            gives_tools: true,
            compact_commands: &["compact"],
            keeps_prompts: true,
            calls: Some(&reports::COPILOT),
            ..Quirks::NONE
        }),
    Agent::new("opencode", "OpenCode", &["opencode", "acp"])
        .aliases(&["opencode-ai"])
        .npx("opencode-ai")
        .home("https://opencode.ai")
        .own_skills(&[".agents/skills", ".claude/skills"])
        .info("OpenCode")
        .seen(Seen::of("opencode").version("1.18").server("HTTP").catalog("first prompt").tools())
        .notes("drops unknown slash commands")
        .quirks(Quirks {
            gives_tools: true,
            compact_commands: &["compact"],
            calls: Some(&reports::OPENCODE),
            ..Quirks::NONE
        }),
    Agent::new("qwen-code", "Qwen Code", &["qwen", "--acp"])
        .aliases(&["qwen"])
        .npx("@qwen-code/qwen-code")
        .home("https://github.com/QwenLM/qwen-code")
        .info("qwen-code")
        .seen(Seen::of("qwen").version("0.24").server("HTTP").catalog("first prompt").tools())
        .notes(
            "offers MCP tools to the model only after a search; shows MCP prompts as slash commands",
        )
        .quirks(Quirks {
            gives_tools: true,
            hides_tools: true,
            checks_names: true,
            compact_commands: &["compress"],
            calls: Some(&reports::QWEN),
            ..Quirks::NONE
        }),
    Agent::new("fast-agent", "fast-agent", &["fast-agent", "acp"])
        .aliases(&["fast-agent-mcp"])
        .uvx("fast-agent-mcp")
        .home("https://fast-agent.ai")
        .info("fast-agent-acp")
        .recognized_by(&[NamePart("fast-agent")])
        .seen(Seen::of("fast-agent").version("0.10").server("HTTP").catalog("first prompt").tools())
        .quirks(Quirks {
            gives_tools: true,
            reads_through_client: true,
            calls: Some(&reports::FAST_AGENT),
            ..Quirks::NONE
        }),
    Agent::new("elizacp", "elizacp", &["elizacp", "acp"])
        .home("https://crates.io/crates/elizacp")
        .unregistered()
        .info("elizacp")
        .recognized_by(&[NamePart("elizacp")])
        .seen(Seen::of("elizacp").version("12.0").server("stdio").catalog("first prompt").tools())
        .notes("connects only to call a tool, so the first prompt names the files")
        .quirks(Quirks { gives_tools: true, shutdown_grace: Some(NO_EXIT), ..Quirks::NONE }),
    Agent::new("cline", "Cline", &["cline", "--acp"])
        .npx("cline")
        .home("https://cline.bot/cli")
        .info("cline")
        .seen(Seen::of("cline").version("3.0").server("stdio").catalog("first prompt").files())
        .notes("accepts MCP servers, but does not start any; the first prompt names the files instead"),
    Agent::new("crow-cli", "crow-cli", &["crow-cli", "acp"])
        .aliases(&["crow"])
        .uvx("crow-cli")
        .home("https://crow-ai.dev")
        .info("crow-cli")
        .recognized_by(&[NamePart("crow")])
        .seen(Seen::of("crow-cli").version("0.1").server("stdio").catalog("first prompt").tools())
        .quirks(Quirks { gives_tools: true, ..Quirks::NONE }),
    Agent::new("deepagents", "DeepAgents", &["deepagents-acp"])
        .aliases(&["deepagents-acp"])
        .npx("deepagents-acp")
        .home("https://github.com/langchain-ai/deepagentsjs")
        .seen(Seen::of("deepagents-acp").version("0.0.13").server("stdio").catalog("first prompt").files())
        .notes("accepts MCP servers, but does not start any; the first prompt names the files instead"),
    Agent::new("factory-droid", "Factory Droid", &["droid", "exec", "--output-format", "acp"])
        .aliases(&["droid"])
        .npx("droid")
        .home("https://factory.ai/product/cli")
        .info("@factory/cli")
        .seen(Seen::of("droid").version("0.215").server("stdio").catalog("first prompt").tools())
        .notes("offers MCP tools to the model only after a search")
        .quirks(Quirks {
            gives_tools: true,
            hides_tools: true,
            words_first: true,
            calls: Some(&reports::DROID),
            ..Quirks::NONE
        }),
    Agent::new("goose", "goose", &["goose", "acp"]).home("https://block.github.io/goose"),
    Agent::new("grok-build", "Grok Build", &["grok", "agent", "stdio"])
        .aliases(&["grok"])
        .npx("@xai-official/grok")
        .home("https://x.ai/cli")
        .recognized_by(&[Meta("x.ai/capabilities")])
        .seen(Seen::of("grok").version("1.0").server("HTTP").catalog("first prompt").tools())
        .notes("offers MCP tools to the model only after a search")
        .quirks(Quirks { gives_tools: true, hides_tools: true, calls: Some(&reports::GROK), ..Quirks::NONE }),
    Agent::new("junie", "Junie", &["junie", "--acp=true"]).home("https://junie.jetbrains.com"),
    Agent::new("kilo", "Kilo", &["kilo", "acp"])
        .aliases(&["kilocode"])
        .npx("@kilocode/cli")
        .home("https://kilo.ai")
        .info("Kilo")
        .seen(Seen::of("kilo").version("7.7").server("HTTP").catalog("first prompt").tools())
        .quirks(Quirks { gives_tools: true, calls: Some(&reports::OPENCODE), ..Quirks::NONE }),
    Agent::new("kimi", "Kimi CLI", &["kimi", "acp"])
        .aliases(&["kimi-cli"])
        .uvx("kimi-cli")
        .home("https://moonshotai.github.io/kimi-cli")
        .recognized_by(&[NamePart("kimi")])
        .seen(Seen::of("kimi-cli").version("1.9").server("HTTP").catalog("first prompt").tools())
        .notes("asks for permission for every call")
        .quirks(Quirks {
            gives_tools: true,
            copies_servers: true,
            calls: Some(&reports::KIMI),
            ..Quirks::NONE
        }),
    Agent::new("minion-code", "Minion Code", &["minion-code", "acp"])
        .aliases(&["minion"])
        .uvx("minion-code")
        .home("https://github.com/femto/minion-code")
        .info("minion-code")
        .seen(Seen::of("minion-code").version("0.1").server("stdio").catalog("first prompt").files())
        .notes("accepts MCP servers, but does not start any; the first prompt names the files instead"),
    Agent::new("mistral-vibe", "Mistral Vibe", &["vibe-acp"])
        .aliases(&["vibe", "vibe-acp"])
        .uvx("mistral-vibe")
        .home("https://mistral.ai/products/vibe")
        .info("@mistralai/mistral-vibe")
        .recognized_by(&[NamePart("mistral-vibe")])
        .seen(Seen::of("vibe-acp").version("3.0").server("stdio").catalog("first prompt").files())
        .notes("lists MCP tools, but does not offer any to the model; the catalog names the files instead")
        .quirks(Quirks { shutdown_grace: Some(SLOW_EXIT), ..Quirks::NONE }),
    Agent::new("nanocoder", "Nanocoder", &["nanocoder", "--acp"])
        .npx("@nanocollective/nanocoder")
        .home("https://github.com/Nano-Collective/nanocoder")
        .unregistered()
        .info("nanocoder")
        .seen(Seen::of("nanocoder").version("1.30").server("stdio").catalog("first prompt").files())
        .notes("accepts MCP servers, but does not start any; the first prompt names the files instead"),
    Agent::new("openhands", "OpenHands", &["openhands", "acp"])
        .uvx("openhands")
        .home("https://docs.openhands.dev")
        .unregistered()
        .info("OpenHands CLI ACP Agent")
        .recognized_by(&[NamePart("openhands")])
        .seen(Seen::of("openhands").version("1.16").server("stdio").catalog("first prompt").tools())
        .notes("advertises MCP over HTTP, but fails to use such servers; the proxy uses stdio instead")
        .quirks(Quirks { gives_tools: true, fails_on_http: true, ..Quirks::NONE }),
    Agent::new("pi-acp", "pi", &["pi-acp"])
        .aliases(&["pi"])
        .npx("pi-acp")
        .home("https://github.com/svkozak/pi-acp")
        .seen(Seen::of("pi-acp").catalog("first prompt").files())
        .notes("ignores MCP servers; the first prompt names the files instead"),
    Agent::new("hermes", "Hermes", &["hermes-acp"])
        .aliases(&["hermes-agent"])
        .uvx("hermes-agent[acp]")
        .home("https://pypi.org/project/hermes-agent")
        .unregistered()
        .info("hermes-agent")
        .seen(Seen::of("hermes-agent").version("0.19").server("stdio").catalog("first prompt").tools())
        .notes(
            "uses the start of the first prompt as session title, so the catalog comes after your words",
        )
        .quirks(Quirks { gives_tools: true, words_first: true, shares_servers: true, ..Quirks::NONE }),
    Agent::new("agentao", "Agentao", &["agentao", "--acp", "--stdio"])
        .uvx("agentao[cli]")
        .home("https://github.com/jin-bo/agentao")
        .unregistered()
        .info("agentao")
        .seen(Seen::of("agentao").version("0.5").server("HTTP").catalog("first prompt").tools())
        .quirks(Quirks { gives_tools: true, calls: Some(&reports::AGENTAO), ..Quirks::NONE }),
    Agent::new("auggie", "Auggie", &["auggie", "--acp"])
        .npx("@augmentcode/auggie")
        .home("https://augmentcode.com")
        .info("auggie")
        .seen(Seen::of("@augmentcode/auggie").version("0.36").login())
        .notes("requires an account to open a session; only startup and error messages were tested"),
    Agent::new("bub", "Bub", &["bub", "acp"])
        .uvx("bub")
        .home("https://bub.build")
        .unregistered()
        .info("bub")
        .seen(Seen::of("bub").version("0.5").server("HTTP").catalog("first prompt").tools()),
    Agent::new("gptme", "gptme", &["gptme-acp"])
        .uvx("gptme-acp")
        .home("https://gptme.org")
        .unregistered()
        .info("gptme")
        .seen(Seen::of("gptme-acp").version("0.35").server("stdio").catalog("first prompt").files()),
    Agent::new("kimi-code", "Kimi Code", &["kimi", "acp"])
        .npx("@moonshot-ai/kimi-code")
        .home("https://github.com/MoonshotAI/kimi-code")
        .unregistered()
        .info("Kimi Code CLI")
        .seen(
            Seen::of("@moonshot-ai/kimi-code").version("2.1").server("HTTP").catalog("first prompt").tools(),
        )
        .quirks(Quirks {
            gives_tools: true,
            copies_servers: true,
            calls: Some(&reports::KIMI),
            ..Quirks::NONE
        }),
    Agent::new("mastracode", "Mastra Code", &["mastracode", "--acp"])
        .npx("mastracode")
        .home("https://mastra.ai")
        .unregistered()
        .info("mastracode")
        .seen(
            Seen::of("mastracode")
                .version("0.32")
                .says("0.1")
                .server("stdio")
                .catalog("first prompt")
                .files(),
        ),
    Agent::new("nooa", "NOOA", &["nooa-acp"])
        .uvx("nooa-acp")
        .home("https://github.com/NVIDIA-NeMo/labs-OO-Agents")
        .unregistered()
        .info("nooa-acp")
        .seen(Seen::of("nooa-acp").version("0.0.10").server("HTTP")),
    Agent::new("qoder", "Qoder", &["qodercli", "--acp"])
        .aliases(&["qodercli"])
        .npx("@qoder-ai/qodercli")
        .home("https://qoder.com/cli")
        .info("qoder-cli")
        .seen(Seen::of("@qoder-ai/qodercli").version("1.1").login())
        .notes("requires an account to open a session; only startup and error messages were tested"),
    Agent::new("reasonix", "Reasonix", &["reasonix", "acp"])
        .npx("reasonix")
        .home("https://github.com/esengine/DeepSeek-Reasonix")
        .unregistered()
        .info("reasonix")
        .recognized_by(&[NamePart("reasonix")])
        .seen(Seen::of("reasonix").version("1.38").server("HTTP").catalog("first prompt").tools())
        .quirks(Quirks { gives_tools: true, hides_tools: true, ..Quirks::NONE }),
    Agent::new("superqode", "SuperQode", &["superqode", "serve", "acp"])
        .uvx("superqode")
        .home("https://superqode.dev")
        .unregistered()
        .info("superqode")
        .seen(Seen::of("superqode").version("2.25").server("stdio").catalog("first prompt").files()),
];
