//! A server in the `config.toml` of Codex: the table `mcp_servers.NAME`.
//!
//! A table can always be added at the end of a TOML file. So the text is only searched for the headers of tables, and a library for
//! TOML would be the largest part of `setup`. Settings that define the server in another way, for example with an inline table, are
//! refused.

use super::{line_end, list, quoted, unsafe_edit};
use crate::document::SettingsError;

const TABLE: &str = "mcp_servers";

/// A line of the text that can be the header of a table or a key. Lines in strings of several lines are left out.
struct Line<'t> {
    number: usize,
    start: usize,
    text: &'t str,
}

/// Returns the lines outside of strings and lists of several lines.
fn lines(text: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    let mut open: Option<&str> = None;
    let mut depth = 0_usize;
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if open.is_none() && depth == 0 {
            found.push(Line { number: index + 1, start, text: line.trim() });
        }
        start += line.len();
        let is_header = open.is_none() && depth == 0 && line.trim_start().starts_with('[');
        if !is_header {
            scan(line, &mut open, &mut depth);
        }
    }
    found
}

/// Follows the strings and lists of a line. `open` is the quote of an open string, and `depth` the number of open brackets.
fn scan(line: &str, open: &mut Option<&'static str>, depth: &mut usize) {
    let mut rest = line;
    while !rest.is_empty() {
        if let Some(quote) = *open {
            if quote.starts_with('"') && rest.starts_with('\\') {
                let skipped = rest.chars().take(2).map(char::len_utf8).sum();
                rest = &rest[skipped..];
            } else if let Some(after) = rest.strip_prefix(quote) {
                *open = None;
                rest = after;
            } else {
                rest = &rest[rest.chars().next().map_or(1, char::len_utf8)..];
            }
            continue;
        }
        if let Some(quote) = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote)) {
            *open = Some(quote);
            rest = &rest[quote.len()..];
            continue;
        }
        match rest.as_bytes()[0] {
            b'#' => break,
            b'[' | b'{' => *depth += 1,
            b']' | b'}' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        rest = &rest[rest.chars().next().map_or(1, char::len_utf8)..];
    }
    // A string of one line ends with its line.
    if open.is_some_and(|quote| quote.len() == 1) {
        *open = None;
    }
}

/// Returns the parts of a dotted key, without quotes. `None` if it is not valid.
fn parts(key: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = key.trim();
    loop {
        let first = rest.chars().next()?;
        let (part, after) = if matches!(first, '"' | '\'') {
            rest[1..].split_once(first)?
        } else {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
            rest.split_at(end.unwrap_or(rest.len()))
        };
        parts.push(part.to_owned());
        rest = after.trim_start();
        if rest.is_empty() {
            return Some(parts);
        }
        rest = rest.strip_prefix('.')?.trim_start();
    }
}

/// Returns the parts of the name in the header of a table.
fn header(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('[')?;
    parts(&inner[..inner.rfind(']')?])
}

/// Returns the range of the server's tables, and its number of the first line. `None` if there is no such server.
fn range(text: &str, name: &str) -> Result<Option<(usize, usize)>, SettingsError> {
    let mut table: Vec<String> = Vec::new();
    let mut found: Option<(usize, Option<usize>)> = None;
    for line in lines(text) {
        let is_header = line.text.starts_with('[');
        if is_header {
            table = header(line.text.split('#').next().unwrap_or_default().trim()).unwrap_or_default();
        }
        let is_ours = table.len() >= 2 && table[0] == TABLE && table[1] == name;
        match (&mut found, is_header, is_ours) {
            // Keys can only be added to the server's own table.
            (None, true, true) if table.len() > 2 => return Err(elsewhere(&line, name)),
            (None, true, true) => found = Some((line.start, None)),
            (Some((_, end @ None)), true, false) => *end = Some(line.start),
            (Some((_, Some(_))), true, true) => return Err(elsewhere(&line, name)),
            _ => {}
        }
        // Another way to define the server, such as `acp-skills = { … }` or a dotted key.
        if let Some((key, _)) =
            line.text.split_once('=').filter(|_| !is_header && !line.text.starts_with('#'))
        {
            let whole = [table.clone(), parts(key).unwrap_or_default()].concat();
            let is_inline = whole == [TABLE];
            if !is_ours && (is_inline || (whole.len() >= 2 && whole[0] == TABLE && whole[1] == name)) {
                return Err(elsewhere(&line, name));
            }
        }
    }
    Ok(found.map(|(start, end)| {
        let end = end.unwrap_or(text.len());
        // Comments and blank lines before the next table belong to that table.
        let mut kept = start;
        let mut at = start;
        for line in text[start..end].split_inclusive('\n') {
            at += line.len();
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                kept = at;
            }
        }
        (start, kept)
    }))
}

fn elsewhere(line: &Line<'_>, name: &str) -> SettingsError {
    SettingsError {
        line: line.number,
        column: 1,
        message: format!("the server `{name}` is not defined as a single table `[{TABLE}.{name}]`"),
    }
}

/// Returns the offsets of the line with a key in the server's own table, with all lines of its value. `range` is the range of the
/// server's tables.
fn member(text: &str, range: (usize, usize), key: &str) -> Option<(usize, usize)> {
    let lines = lines(text);
    let inside = lines.iter().enumerate().skip_while(|(_, line)| line.start <= range.0);
    let (index, line) = inside.take_while(|(_, line)| !line.text.starts_with('[')).find(|(_, line)| {
        let name = line.text.split_once('=').map(|(name, _)| name);
        line.start < range.1 && name.and_then(parts).is_some_and(|name| name == [key])
    })?;
    let end = lines.get(index + 1).map_or(text.len(), |next| next.start);
    Some((line.start, end.min(range.1)))
}

/// Returns the command in the server's table. Empty if it is not written as `setup` does it.
pub(super) fn server(text: &str, name: &str) -> Result<Option<Vec<String>>, SettingsError> {
    let Some(range) = range(text, name)? else { return Ok(None) };
    let value = |key: &str| {
        let (start, end) = member(text, range, key)?;
        Some(text[start..end].split_once('=')?.1.trim())
    };
    let program = value("command").and_then(|text| serde_json::from_str::<String>(text).ok());
    let arguments = value("args").map_or(Some(Vec::new()), |text| serde_json::from_str(text).ok());
    Ok(Some(match (program, arguments) {
        (Some(program), Some(arguments)) => [vec![program], arguments].concat(),
        _ => Vec::new(),
    }))
}

pub(super) fn with_server(text: &str, name: &str, command: &[String]) -> Result<String, SettingsError> {
    let (program, arguments) =
        command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let end = line_end(text);
    let members = [
        ("command", format!("command = {}{end}", quoted(program))),
        ("args", format!("args = {}{end}", list(arguments))),
    ];
    let mut edited = text.to_owned();
    if range(text, name)?.is_some() {
        // The last member comes first, because a missing one is added at the start of the table.
        for (key, line) in members.iter().rev() {
            let Some((start, stop)) = range(&edited, name)? else { return Err(unsafe_edit(name)) };
            let first = edited[start..].find('\n').map_or(edited.len(), |at| start + at + 1);
            let (from, to) = member(&edited, (start, stop), key).unwrap_or((first, first));
            edited.replace_range(from..to, line);
        }
    } else {
        let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let key = if is_bare { name.to_owned() } else { quoted(name) };
        let gap = match text {
            "" => "",
            text if text.ends_with('\n') => end,
            _ => &end.repeat(2),
        };
        let [(_, program), (_, arguments)] = members;
        edited.extend([gap, &format!("[{TABLE}.{key}]{end}"), &program, &arguments]);
    }
    let is_written = server(&edited, name)?.as_deref() == Some(command);
    if is_written { Ok(edited) } else { Err(unsafe_edit(name)) }
}

pub(super) fn without_server(text: &str, name: &str) -> Result<String, SettingsError> {
    let Some((start, end)) = range(text, name)? else { return Ok(text.to_owned()) };
    let before = &text[..start];
    // The blank line before the table was added with it.
    let gap = line_end(text);
    let before = before.strip_suffix(&gap.repeat(2)).map_or(before, |rest| &before[..rest.len() + gap.len()]);
    Ok([before, &text[end..]].concat())
}
