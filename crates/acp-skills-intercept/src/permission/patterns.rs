//! Matches calls, as an agent reports them, with the patterns of `allowed-tools`.
//!
//! | pattern | matches |
//! |---|---|
//! | `Read`, `mcp__docs__*`, `mcp__docs` | the tool, those tools, every tool of that server |
//! | `Bash(git:*)`, `Bash(git *)` | commands that are `git` or begin with `git ` |
//! | `Bash(npm run *:fast)` | `*` matches any text |
//! | `Edit(src/**)` | files, relative to the session's directory or one of its additional roots |
//! | `WebFetch(domain:example.org)` | addresses on that host or below it |
//!
//! The result is unsure if the pattern is not supported, if the input could do more than it shows (`git status; rm -rf ~`), if a pattern
//! with a `*` matches a command that is not known to be harmless, or if a path differs from the pattern only in case, which some file
//! systems ignore. We never allow or refuse a call by guessing.
//!
//! | file | owns |
//! |---|---|
//! | `commands` | patterns for shell commands |
//! | `paths` | patterns for files |
//! | `programs` | commands that a pattern with a `*` allows |

mod commands;
mod paths;
mod programs;

use crate::{
    tool_paths::{names_file, names_place, only_path},
    workspace::Workspace,
};
use acp_skills_wire::Node;

/// The result of matching a call with patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    /// Certainly no pattern matches.
    Outside,
    /// It is not certain if a pattern matches.
    Unsure,
    /// Certainly a pattern matches.
    Inside,
}

/// Matches a call of the tool `name` with `patterns`. If `real` is given, it replaces the path in the input, because it is the
/// target of that path. `has_moved` is true if the agent's shell may be in another directory than the session.
pub(super) fn match_call<'p>(
    patterns: impl Iterator<Item = &'p str>,
    name: Option<&str>,
    input: Option<Node<'_>>,
    real: Option<&str>,
    workspace: &Workspace,
    has_moved: bool,
) -> Match {
    let Some(name) = name else { return Match::Unsure };
    patterns
        .map(|pattern| one(pattern.trim(), name, input, real, workspace, has_moved))
        .max()
        .unwrap_or(Match::Outside)
}

fn one(
    pattern: &str,
    name: &str,
    input: Option<Node<'_>>,
    real: Option<&str>,
    workspace: &Workspace,
    has_moved: bool,
) -> Match {
    let (tool, argument) = match pattern.split_once('(') {
        Some((tool, argument)) => match argument.strip_suffix(')') {
            Some(argument) => (tool.trim(), Some(argument.trim())),
            None => return Match::Unsure,
        },
        None => (pattern, None),
    };
    let tool_match = names(tool, name);
    if tool_match != Match::Inside {
        return tool_match;
    }
    let Some(argument) = argument.filter(|argument| !matches!(*argument, "" | ":*")) else {
        return Match::Inside;
    };
    let is_any = matches!(argument, "*" | "**");
    // The announcement of the call may name a path that the request doesn't repeat.
    let Some(input) = input else { return Match::Unsure };
    if is_any && (!names_place(input) || is_shell(input)) {
        return Match::Inside;
    }
    if let Some(domain) = argument.strip_prefix("domain:") {
        return domains(domain, input);
    }
    if input.get("command").is_some() {
        return commands::match_command(argument, input, workspace.cwd.as_deref(), has_moved);
    }
    let path = real.map(str::to_owned).or_else(|| only_path(input));
    let pattern = if is_any { "**" } else { argument };
    match path.map_or(Match::Unsure, |path| paths::match_path(pattern, &path, workspace)) {
        // The author may mean every file, or the files of the project.
        Match::Outside if is_any => Match::Unsure,
        matched => matched,
    }
}

/// Returns true if an input has a command, and no path except for a working directory.
fn is_shell(input: Node<'_>) -> bool {
    input.get("command").is_some_and(|command| !command.is_null()) && !names_file(input)
}

/// Matches the name of a tool with the pattern `tool`. Case is ignored. The server of a pattern such as `mcp__docs` must not be the beginning
/// of another server's name, such as `docs__evil`.
fn names(tool: &str, name: &str) -> Match {
    let mut tool = tool.to_lowercase();
    let name = name.to_lowercase();
    if tool.starts_with("mcp__") && tool.matches("__").count() == 1 && !tool.contains('*') && tool != name {
        tool.push_str("__*");
    }
    if !wild(&tool, &name) {
        return Match::Outside;
    }
    let after_server = tool.split_once('*').filter(|(literal, _)| literal.matches("__").count() > 1);
    match after_server.and_then(|(literal, _)| name.get(literal.len()..)) {
        Some(rest) if tool.starts_with("mcp__") && rest.contains("__") => Match::Unsure,
        _ => Match::Inside,
    }
}

/// Returns true if `text` matches `pattern`, in which `*` matches any text.
fn wild(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// Members that may accompany the address in an input.
const BESIDE_URL: [&str; 6] = ["format", "max_length", "prompt", "raw", "start_index", "timeout"];

fn domains(domain: &str, input: Node<'_>) -> Match {
    let is_known = |key: Node<'_>| key.is_str("url") || BESIDE_URL.iter().any(|known| key.is_str(known));
    let is_plain = input.members().all(|(key, value)| is_known(key) || value.is_null());
    match input.str("url").map_or(Match::Unsure, |url| address(domain, &url)) {
        Match::Inside if !is_plain => Match::Unsure,
        result => result,
    }
}

fn address(domain: &str, url: &str) -> Match {
    let Some((scheme, rest)) = url.split_once("://") else { return Match::Unsure };
    // Patterns for domains should only match web addresses, but not `file://domain/`.
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return Match::Outside;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // If there is anything else in here, such as a user name, `\\`, or a letter that is mapped to `/`, programs don't agree on
    // which host it is.
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !host.chars().all(is_name) || !port.chars().all(|c| c.is_ascii_digit()) {
        return Match::Unsure;
    }
    let host = host.to_lowercase();
    let domain = domain.trim().trim_start_matches("*.").to_lowercase();
    let below = host.strip_suffix(&domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if !domain.is_empty() && below { Match::Inside } else { Match::Outside }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_inputs() {
        use Match::{Inside, Outside, Unsure};
        for (pattern, name, input, expected) in [
            ("Read", "Read", "{}", Inside),
            ("read", "Read", "{}", Inside),
            ("Read", "Write", "{}", Outside),
            ("mcp__docs", "mcp__docs__find", "{}", Inside),
            ("mcp__docs__*", "mcp__docs__find", "{}", Inside),
            ("mcp__docs", "mcp__docs2__find", "{}", Outside),
            ("mcp__docs", "mcp__docs", "{}", Inside),
            // These can be tools of a server `docs__evil`.
            ("mcp__docs", "mcp__docs__evil__find", "{}", Unsure),
            ("mcp__docs__*", "mcp__docs__evil__find", "{}", Unsure),
            ("mcp__docs__f*", "mcp__docs__f__find", "{}", Unsure),
            ("mcp__*", "mcp__docs__evil__find", "{}", Inside),
            ("*", "Anything", "{}", Inside),
            ("Bash", "Bash", r#"{"command":"rm -rf /"}"#, Inside),
            ("Bash(*)", "Bash", r#"{"command":"rm -rf /"}"#, Inside),
            ("Bash(ls:*)", "Bash", r#"{"command":"ls -l"}"#, Inside),
            ("Bash(ls:*)", "Bash", r#"{"command":"ls"}"#, Inside),
            ("Bash(ls:*)", "Bash", r#"{"command":" ls\tsrc "}"#, Inside),
            // For a shell, this white space is a part of the program's name or of an argument.
            ("Bash(./a.sh)", "Bash", r#"{"command":"./a.sh\u00a0"}"#, Outside),
            ("Bash(./a.sh:*)", "Bash", r#"{"command":"\u3000./a.sh x"}"#, Outside),
            ("Bash(*./a.sh)", "Bash", r#"{"command":"\u3000./a.sh"}"#, Unsure),
            ("Bash(ls:*)", "Bash", r#"{"command":"ls \u2003a"}"#, Unsure),
            ("Bash(git:*)", "Bash", r#"{"command":"gitx status"}"#, Outside),
            ("Bash(git:*)", "Bash", r#"{"command":"rm git"}"#, Outside),
            ("Bash(ls *)", "Bash", r#"{"command":"ls -1"}"#, Inside),
            ("Bash(gh issue:*)", "Bash", r#"{"command":"gh issue list"}"#, Unsure),
            ("Bash(gh issue:*)", "Bash", r#"{"command":"gh pr list"}"#, Outside),
            ("Bash(npm test)", "Bash", r#"{"command":"npm test"}"#, Inside),
            ("Bash(npm test)", "Bash", r#"{"command":"npm test -- x"}"#, Outside),
            ("Bash(npm run *)", "Bash", r#"{"command":"npm run fast"}"#, Unsure),
            // The pattern allows only harmless commands of this program.
            ("Bash(git:*)", "Bash", r#"{"command":"git status"}"#, Inside),
            ("Bash(git:*)", "Bash", r#"{"command":"git push"}"#, Unsure),
            ("Bash(git:*)", "Bash", r#"{"command":"git -c core.sshCommand=evil fetch"}"#, Unsure),
            ("Bash(git *)", "Bash", r#"{"command":"git grep --open-files-in-pager=evil x"}"#, Unsure),
            ("Bash(/usr/bin/git:*)", "Bash", r#"{"command":"/usr/bin/git log"}"#, Unsure),
            ("Bash(git status:*)", "Bash", r#"{"command":"git status --short"}"#, Inside),
            ("Bash(git grep:*)", "Bash", r#"{"command":"git grep -Oevil x"}"#, Unsure),
            ("Bash(git grep:*)", "Bash", r#"{"command":"git grep --open-files-in-pager=evil x"}"#, Unsure),
            ("Bash(git -c:*)", "Bash", r#"{"command":"git -c a=b status"}"#, Unsure),
            ("Bash(git status)", "Bash", r#"{"command":"git status"}"#, Inside),
            ("Bash(find:*)", "Bash", r#"{"command":"find . -exec rm x"}"#, Unsure),
            ("Bash(env:*)", "Bash", r#"{"command":"env evil"}"#, Unsure),
            // These commands do more than it seems.
            ("Bash(git:*)", "Bash", r#"{"command":"git status; rm -rf ~"}"#, Unsure),
            ("Bash(git:*)", "Bash", r#"{"command":"git status && rm -rf ~"}"#, Unsure),
            ("Bash(git:*)", "Bash", r#"{"command":"git log $(rm x)"}"#, Unsure),
            ("Bash(git:*)", "Bash", r#"{"command":"git log\nrm x"}"#, Unsure),
            ("Bash(git:*)", "Bash", r#"{"command":"git log > ~/.bashrc"}"#, Unsure),
            ("Bash(ls:*)", "Bash", r#"{"command":["ls","src"]}"#, Inside),
            ("Bash(git:*)", "Bash", r#"{"command":["git","log; rm"]}"#, Unsure),
            ("Bash(git:*)", "Bash", r#"{"command":["bash","-c","git log"]}"#, Outside),
            ("Bash(git:*)", "Bash", "{}", Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"/project/src/a/b.rs"}"#, Inside),
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/b.rs"}"#, Inside),
            ("Edit(src/**)", "Edit", r#"{"file_path":"./src/b.rs"}"#, Inside),
            ("Edit(/src/**)", "Edit", r#"{"file_path":"/project/src/b.rs"}"#, Inside),
            // It is not certain if these patterns mean the project or the whole machine.
            ("Edit(**)", "Edit", r#"{"file_path":"/project/src/b.rs"}"#, Inside),
            ("Edit(*)", "Edit", r#"{"file_path":"/project/src/b.rs"}"#, Inside),
            ("Edit(**)", "Edit", r#"{"file_path":"/etc/passwd"}"#, Unsure),
            ("Edit(*)", "Edit", r#"{"file_path":"/etc/passwd"}"#, Unsure),
            ("Edit(*)", "Edit", r#"{"file_path":"a","path":"b"}"#, Unsure),
            ("Edit(/**)", "Edit", r#"{"file_path":"/etc/passwd"}"#, Unsure),
            ("Edit(/etc/*)", "Edit", r#"{"file_path":"/etc/passwd"}"#, Unsure),
            ("Edit(//etc/*)", "Edit", r#"{"file_path":"/etc/passwd"}"#, Inside),
            ("Edit(**)", "Edit", r#"{"filePath":"/etc/passwd"}"#, Unsure),
            ("Edit(**)", "Edit", r#"{"edits":[{"target_file":"/etc/passwd"}]}"#, Unsure),
            ("Edit(**)", "Edit", r#"{"changes":{"/etc/passwd":{}}}"#, Unsure),
            ("Edit(**)", "Edit", r#"{"command":"create","path":"/etc/passwd"}"#, Unsure),
            ("Edit(**)", "Edit", r#"{"command":"x","file_path":"/etc/passwd"}"#, Unsure),
            ("Edit(**)", "Edit", r#"{"command":null,"file_path":"/etc/passwd"}"#, Unsure),
            ("Edit(**)", "Edit", r#"{"uris":["/etc/passwd"]}"#, Unsure),
            ("Edit(**)", "Edit", r#"{"pathname":"/etc/passwd"}"#, Unsure),
            ("Edit(**)", "Edit", r#"{"url":"file:///etc/passwd"}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/a","targets":["/etc/passwd"]}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/a","url":"FILE:///etc/passwd"}"#, Unsure),
            ("Bash(*)", "Bash", r#"{"command":"ls","cwd":"/project"}"#, Inside),
            ("Fetch(*)", "Fetch", r#"{"id":"a"}"#, Inside),
            ("Fetch(*)", "Fetch", r#"{"url":"https://example.org/a"}"#, Inside),
            ("Edit(src/*)", "Edit", r#"{"file_path":"src/a/b.rs"}"#, Outside),
            ("Edit(src/**)", "Edit", r#"{"file_path":"/project/src/../.git/config"}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"/etc/passwd"}"#, Outside),
            ("Edit(src/**)", "Edit", r#"{"file_path":"/project2/src/x"}"#, Outside),
            ("Edit(a/**/b/**/c/**/d/**/e/**/f/**/g/**/h/**/i/**/j)", "Edit", r#"{"file_path":"a"}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"/project/src\\x"}"#, Unsure),
            ("Read(//etc/*)", "Read", r#"{"file_path":"/etc/hosts"}"#, Inside),
            ("Read(~/notes/**)", "Read", r#"{"file_path":"/home/me/notes/a"}"#, Unsure),
            (
                "WebFetch(domain:example.org)",
                "WebFetch",
                r#"{"url":"https://docs.example.org:443/x"}"#,
                Inside,
            ),
            ("WebFetch(domain:example.org)", "WebFetch", r#"{"url":"https://badexample.org/"}"#, Outside),
            (
                "WebFetch(domain:example.org)",
                "WebFetch",
                r#"{"url":"https://example.org@evil.org/"}"#,
                Unsure,
            ),
            (
                "WebFetch(domain:example.org)",
                "WebFetch",
                r#"{"url":"https://evil.org/?x=example.org"}"#,
                Outside,
            ),
            (
                "WebFetch(domain:example.org)",
                "WebFetch",
                r#"{"url":"file://example.org/etc/passwd"}"#,
                Outside,
            ),
            ("WebFetch(domain:example.org)", "WebFetch", r#"{"url":"HTTP://example.org/"}"#, Inside),
            (
                "WebFetch(domain:example.org)",
                "WebFetch",
                r#"{"url":"https://example.org/","prompt":"Read https://x."}"#,
                Inside,
            ),
            // Programs don't agree on which host these addresses refer to.
            (
                "WebFetch(domain:example.org)",
                "WebFetch",
                r#"{"url":"https://example.org\\@evil.org/"}"#,
                Unsure,
            ),
            (
                "WebFetch(domain:example.org)",
                "WebFetch",
                r#"{"url":"https://evil.org\u2044.example.org/"}"#,
                Unsure,
            ),
            (
                "WebFetch(domain:example.org)",
                "WebFetch",
                r#"{"url":"https://example.org:80:evil.org/"}"#,
                Unsure,
            ),
            // We can't tell whether the tool will use these members.
            (
                "WebFetch(domain:example.org)",
                "WebFetch",
                r#"{"url":"https://example.org/","uri":"https://evil.org/"}"#,
                Unsure,
            ),
            (
                "WebFetch(domain:example.org)",
                "WebFetch",
                r#"{"url":"https://evil.org/","command":"domain:example.org"}"#,
                Outside,
            ),
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/a","path":"/etc/passwd"}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"/etc/passwd","file_path":"src/a"}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"/etc/passwd","command":"src/a"}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/a","path":"src/b","command":"x"}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/a","edits":[{"filePath":"/etc/x"}]}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/a","edits":[{"old_string":"/etc/x"}]}"#, Inside),
            // This call also includes a directory to start in, to write to, or to search in.
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/a","cwd":"/etc"}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/a","base_dir":"/etc"}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/a","filePath2":"/etc/x"}"#, Unsure),
            ("Edit(src/**)", "Edit", r#"{"file_path":"src/a","path":"\ud800/etc/x"}"#, Unsure),
            ("Move(src/**)", "Move", r#"{"path":"src/a","to":"/etc/x"}"#, Unsure),
            ("Copy(src/**)", "Copy", r#"{"path":"src/a","destination":"/etc/x"}"#, Unsure),
            ("Glob(src/**)", "Glob", r#"{"path":"src/a","pattern":"/etc/*"}"#, Unsure),
            ("Glob(src/**)", "Glob", r#"{"path":"src/a","pattern":"../../*"}"#, Unsure),
            ("Grep(src/**)", "Grep", r#"{"path":"src/a","glob":["*.rs","~/.ssh/*"]}"#, Unsure),
            ("Glob(src/**)", "Glob", r#"{"path":"src/a","pattern":"{*.rs,/etc/*}"}"#, Unsure),
            ("Glob(src/**)", "Glob", r#"{"path":"src/a","pattern":"{x,}/etc/*"}"#, Unsure),
            ("Glob(src/**)", "Glob", r#"{"path":"src/a","pattern":".{.,x}/*"}"#, Unsure),
            ("Glob(src/**)", "Glob", r#"{"path":"src/a","pattern":"{a,b}/*.{ts,tsx}"}"#, Inside),
            ("Grep(src/**)", "Grep", r#"{"path":"src/a","glob":"**/*.rs","pattern":"\\bfn\\b"}"#, Inside),
            ("NotebookEdit(src/**)", "NotebookEdit", r#"{"notebook_path":"src/a","new_source":"/"}"#, Inside),
            ("WebFetch(domain:example.org)", "WebFetch", r#"{"url":"example.org/x"}"#, Unsure),
            ("Task(reviewer)", "Task", r#"{"prompt":"x"}"#, Unsure),
            ("Bash(git", "Bash", r#"{"command":"git"}"#, Unsure),
        ] {
            let node = Node::parse(input.as_bytes());
            let found =
                match_call([pattern].into_iter(), Some(name), node, None, &Workspace::of("/project"), false);
            assert_eq!(found, expected, "{pattern} {name} {input}");
        }
        assert_eq!(match_call(["Read"].into_iter(), None, None, None, &Workspace::default(), false), Unsure);
        let without_input =
            match_call(["Edit(**)"].into_iter(), Some("Edit"), None, None, &Workspace::default(), false);
        assert_eq!(without_input, Unsure);
        assert_eq!(
            match_call(
                ["Read", "Write"].into_iter(),
                Some("Write"),
                None,
                None,
                &Workspace::default(),
                false
            ),
            Inside
        );
        assert_eq!(
            match_call(std::iter::empty(), Some("Write"), None, None, &Workspace::default(), false),
            Outside
        );
    }

    #[test]
    fn a_deep_input_is_never_inside() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let open = open.repeat(100_000);
            let close = close.repeat(100_000);
            let input = format!(r#"{{"file_path":"src/a","x":{open}1{close}}}"#);
            let node = Node::parse(input.as_bytes());
            let found = match_call(
                ["Edit(src/**)"].into_iter(),
                Some("Edit"),
                node,
                None,
                &Workspace::default(),
                false,
            );
            assert_ne!(found, Match::Inside);
        }
    }
}
