//! [`Hidden`]: the values of a server's configuration that are not shown in its errors and descriptions, because they can be secrets.

use std::{cmp::Reverse, env, fmt};

use skills_core::text::shown;

use super::values::Resolved;

/// The minimum length of a value that is hidden because it could be a secret, in bytes.
const MIN_HIDDEN: usize = 8;
/// The maximum length of the text of an error, in characters.
const MAX_ERROR: usize = 2_000;

/// Values that are not shown, and so must not appear in debug output either.
#[derive(Default)]
pub(super) struct Hidden(Vec<String>);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hidden").field(&self.0.len()).finish()
    }
}

impl Hidden {
    /// Returns the secrets in these variables or headers, their longer values, and the values of the proxy's own variables that look
    /// like secrets.
    pub(super) fn of(env: &Resolved) -> Self {
        let names = ["TOKEN", "KEY", "SECRET", "PASSW", "CREDENTIAL"];
        let own = env::vars_os().filter_map(|(name, value)| {
            let name = name.to_str()?.to_ascii_uppercase();
            names.iter().any(|part| name.contains(part)).then(|| value.into_string().ok())?
        });
        let values = own.chain(env.values.iter().map(|(_, value)| value.clone()));
        // The secret of a header is its last word, as in `Bearer TOKEN`.
        let last = env.values.iter().filter_map(|(_, value)| value.rsplit_once(' '));
        let values = values.chain(last.map(|(_, word)| word.to_owned()));
        let long = values.filter(|value| value.len() >= MIN_HIDDEN);
        // A value with several lines may be printed line by line.
        let mut hidden = Vec::new();
        for value in long.chain(env.secrets.iter().cloned()) {
            hidden.extend(value.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
        }
        // A value can contain another one.
        hidden.sort_unstable_by_key(|value| Reverse(value.len()));
        Self(hidden)
    }

    /// Replaces the values in a text.
    pub(super) fn hide(&self, mut text: String) -> String {
        for value in &self.0 {
            if text.contains(value) {
                text = text.replace(value, "***");
            }
        }
        text
    }

    /// Returns the text of a server's error on one line, shortened and without the values.
    pub(super) fn error(&self, text: String) -> String {
        let text = self.hide(text);
        let text: String = text.chars().take(MAX_ERROR).collect();
        shown(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_short_and_hide_secrets() {
        let hidden = Hidden::of(&Resolved {
            values: vec![("Authorization".into(), "Bearer long-token".into()), ("A".into(), "short".into())],
            secrets: vec!["abc".into()],
        });
        for (text, expected) in [
            ("401 bad token long-token", "401 bad token ***"),
            ("sent Bearer long-token, abc and short", "sent ***, *** and short"),
            ("a\n\u{1b}[31mb\u{202e}", "a \\u{1b}[31mb\\u{202e}"),
        ] {
            assert_eq!(hidden.error(text.to_owned()), expected);
        }
        assert_eq!(hidden.error("x".repeat(1 << 20)).len(), MAX_ERROR);
    }
}
