//! MCP servers, and the variables that a skill may set for them.

use super::*;

#[test]
fn mcp_servers() {
    let check = |pattern: &str, words: &str, expected: bool| {
        let policy = policy(&format!("mcp: {{allow: ['{pattern}']}}"));
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let server = match &*words {
            [url] if url.contains("://") => Server::Url(url),
            _ => Server::Program(&words[0], &words[1..]),
        };
        assert_eq!(policy.server("a", &server, iter::empty()).is_ok(), expected, "{words:?} with {pattern}");
    };
    for (pattern, words, expected) in [
        ("@playwright/mcp", "npx @playwright/mcp", true),
        ("@playwright/mcp", "npx -y @playwright/mcp@latest --headless", true),
        ("@playwright/mcp", "bunx @playwright/mcp@1.2.3-beta", true),
        ("pypi:mcp-server-fetch", "uvx mcp-server-fetch==1.0", true),
        ("npm:@playwright/mcp", "npx @playwright/mcp", true),
        ("npm:srv", "bunx srv", true),
        ("npm:srv", "uvx srv", false),
        ("pypi:srv", "npx srv", false),
        // npm takes this as a directory.
        ("@playwright/mcp", "npx @playwright/mcp==1.0", false),
        ("@playwright/mcp", "npx @playwright/mcp-evil", false),
        ("@playwright/mcp", "npx @playwright/mcp@npm:evil@1", false),
        ("@playwright/mcp", "npx @playwright/mcp@file:../evil", false),
        ("@playwright/mcp", "npx @playwright/mcp@evil/repository", false),
        ("@playwright/mcp", "npx @playwright/mcp@.", false),
        ("@playwright/mcp", "npx @playwright/mcp@..", false),
        ("@playwright/mcp", "npx @playwright/mcp@v1.tgz", false),
        ("@playwright/mcp", "npx @playwright/mcp@v1.TAR.GZ", false),
        ("pypi:mcp-server-fetch", "uvx mcp-server-fetch@evil.whl", false),
        ("@playwright/mcp", "npx @playwright/mcp@^1.2", true),
        ("@playwright/mcp", "npx -p evil @playwright/mcp", false),
        ("@playwright/mcp", "npx --package=evil @playwright/mcp", false),
        ("@playwright/mcp", "npx --registry=https://evil.example @playwright/mcp", false),
        ("@playwright/mcp", "npx evil @playwright/mcp", false),
        ("@playwright/mcp", "npx", false),
        ("@playwright/mcp", "/home/me/npx @playwright/mcp", false),
        ("@playwright/mcp", "./npx @playwright/mcp", false),
        ("@playwright/mcp", "sh -c @playwright/mcp", false),
        ("@playwright/mcp", "https://evil.example/@playwright/mcp", false),
        ("pypi:mcp-server-fetch", "uvx --from evil mcp-server-fetch", false),
        ("pypi:mcp-server-fetch", "mcp-server-fetch", false),
        ("/opt/mcp/server", "/opt/mcp/server", true),
        ("/opt/mcp/server", "/opt/mcp/server --evil", false),
        ("/opt/mcp/server", "/opt/mcp/../server", false),
        ("/opt/mcp/server --safe", "/opt/mcp/server --safe", true),
        ("/opt/mcp/server --safe", "/opt/mcp/server --safe --evil", false),
        ("/opt/mcp/server --safe *", "/opt/mcp/server --safe --more", true),
        ("/opt/mcp/server --safe *", "/opt/mcp/server --evil", false),
        ("https://mcp.acme.example/*", "https://MCP.acme.example:443/a", true),
        ("https://mcp.acme.example/*", "https://mcp.acme.example", true),
        ("https://mcp.acme.example/*", "https://mcp.acme.example@evil.example/a", false),
        ("https://mcp.acme.example/*", "https://mcp.acme.example/../a", false),
        ("https://mcp.acme.example/*", "https://mcp.acme.example/a?b", false),
        ("https://mcp.acme.example/*", "http://mcp.acme.example/a", false),
        ("https://mcp.acme.example/a", "https://mcp.acme.example/a/b", false),
    ] {
        check(pattern, words, expected);
    }
}

#[test]
fn versions_lead_to_the_registry() {
    let policy = policy("mcp: {allow: ['npm:srv', 'pypi:srv']}");
    let runs = |program: &str, arg: &str| {
        policy.server("a", &Server::Program(program, &[arg.to_owned()]), iter::empty()).is_ok()
    };
    for (arg, npx, uvx) in [
        ("srv", true, true),
        ("srv@latest", true, true),
        ("srv@1", true, true),
        ("srv@1.2.3", true, true),
        ("srv==2025.1.14", false, true),
        ("srv@1.0rc1.post2.dev3", true, true),
        ("srv@1.0a1", true, true),
        ("srv@^1", true, false),
        ("srv@~1.2", true, false),
        ("srv@next", true, false),
        ("srv@evil", true, false),
        ("srv@1x", true, false),
        ("srv@1.", true, false),
        ("srv@1.0a", true, false),
        ("srv@1-evil", true, false),
        ("srv@", false, false),
        ("srv@.", false, false),
        ("srv@./x", false, false),
        ("srv@x/y", false, false),
        ("srv@x.tgz", false, false),
        ("srv@npm:other", false, false),
        ("srv-other", false, false),
    ] {
        assert_eq!((runs("npx", arg), runs("uvx", arg)), (npx, uvx), "{arg}");
        assert_eq!(runs("bunx", arg), npx, "{arg}");
        assert!(!runs("sh", arg));
    }
}

#[test]
fn variables_of_mcp_servers() {
    let args = ["@playwright/mcp".to_owned()];
    let decided = |text: &str, name: &str| {
        policy(text)
            .server("a", &Server::Program("npx", &args), iter::once(name))
            .map_err(|refusal| refusal.rule)
    };
    let refused = Err("mcp.env".to_owned());
    for name in ["PLAYWRIGHT_HEADLESS", "NODE_OPTIONS", "HTTPS_PROXY", "GEMINI_API_KEY", "A=B", ""] {
        assert_eq!(decided("mcp: {allow: ['@playwright/mcp']}", name), refused, "{name}");
        assert_eq!(decided("mcp: {env: []}", name), refused, "{name}");
        assert_eq!(decided("scripts: never", name), Ok(()), "{name}");
    }
    let text = "mcp: {allow: ['@playwright/mcp'], env: [GEMINI_API_KEY, 'PLAYWRIGHT_*']}";
    for (name, is_allowed) in [
        ("GEMINI_API_KEY", true),
        ("PLAYWRIGHT_HEADLESS", true),
        ("PLAYWRIGHT_", true),
        ("gemini_api_key", false),
        ("GEMINI_API_KEY2", false),
        ("PLAYWRIGHT_X=1 NODE_OPTIONS", false),
        ("PLAYWRIGHT", false),
        ("NODE_OPTIONS", false),
    ] {
        assert_eq!(decided(text, name), if is_allowed { Ok(()) } else { refused.clone() }, "{name}");
    }
}
