//! Reads the user's [`.netrc`](https://everything.curl.dev/usingcurl/netrc.html) file.

use std::{env, path::PathBuf};

use crate::disk::{bounded, home::in_home};

/// The environment variable with the path of the file.
const VARIABLE: &str = "NETRC";
/// The maximum size of the file, in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// Returns the user and the password for a host, if the file contains the host. The entry `default` is not used, because it would send a
/// password to every server.
pub(super) fn login(host: &str) -> Option<(String, String)> {
    let path = env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let of_home = || in_home(if cfg!(windows) { "_netrc" } else { ".netrc" });
    let path = path.or_else(of_home)?;
    find(&bounded::read_text(&path, MAX_BYTES).ok()?, host)
}

fn find(text: &str, host: &str) -> Option<(String, String)> {
    let words = words(text);
    let mut words = words.iter();
    let mut is_host = false;
    let mut user = None;
    let mut password = None;
    while let Some(word) = words.next() {
        match word.as_str() {
            "machine" | "default" if is_host => break,
            "machine" => is_host = words.next().is_some_and(|name| name.eq_ignore_ascii_case(host)),
            "default" => is_host = false,
            "login" if is_host => user = words.next().cloned(),
            "password" if is_host => password = words.next().cloned(),
            "login" | "password" | "account" => drop(words.next()),
            _ => {}
        }
    }
    is_host.then_some(())?;
    Some((user.unwrap_or_default(), password?))
}

/// Splits the file into words. Words can have quotes. Lines that begin with `#` and the lines of macros are left out.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_macro = false;
    for line in text.lines().map(str::trim) {
        // A macro ends with an empty line.
        is_macro = (is_macro || line.starts_with("macdef")) && !line.is_empty();
        if is_macro || line.starts_with('#') {
            continue;
        }
        let mut rest = line;
        while !rest.is_empty() {
            let (word, after) = if let Some(quoted) = rest.strip_prefix('"') {
                until_quote(quoted)
            } else {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            };
            words.push(word);
            rest = after.trim_start();
        }
    }
    words
}

/// Returns the text before the next `"`, and the rest after it. A `\` stands before a character that means itself.
fn until_quote(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (word, &text[at + 1..]),
            '\\' => word.extend(characters.next().map(|(_, c)| c)),
            c => word.push(c),
        }
    }
    (word, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_of_a_host_is_found() {
        let text = "# machine comment login x password y\n\
                    machine a.example login ann password \"p w\\\"1\"\n\
                    machine b.example\n  login bob\n  account x\n  password pw2\n\
                    macdef init\nmachine c.example login eve password no\n\n\
                    machine d.example password token\n\
                    default login anonymous password guest\n";
        let found = |host: &str| find(text, host);
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(found("a.example"), pair("ann", "p w\"1"));
        assert_eq!(found("B.example"), pair("bob", "pw2"));
        assert_eq!(found("d.example"), pair("", "token"));
        for host in ["c.example", "comment", "other.example", "example"] {
            assert_eq!(found(host), None, "{host}");
        }
    }
}
