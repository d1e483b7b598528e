//! [`EarlyLists`]: lists that the agent sends for a session before its response to the request that sets the session up.

use std::collections::HashMap;

/// The maximum number of sessions with lists.
const MAX_LISTS: usize = 64;
/// The maximum size of all lists together, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The last list for each session, as JSON, by the agent's id of the session. Lists beyond the limits are not kept.
#[derive(Debug, Default)]
pub(crate) struct EarlyLists(HashMap<String, Vec<u8>>);

impl EarlyLists {
    /// Keeps a list, and replaces the last one for this session.
    pub(crate) fn keep(&mut self, session: String, list: &[u8]) {
        self.0.remove(&session);
        let bytes: usize = self.0.values().map(Vec::len).sum();
        if self.0.len() < MAX_LISTS && bytes + list.len() <= MAX_BYTES {
            self.0.insert(session, list.to_vec());
        }
    }

    /// Removes and returns the list for a session.
    pub(crate) fn take(&mut self, session: &str) -> Option<Vec<u8>> {
        self.0.remove(session)
    }

    /// Drops all lists.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bounded() {
        let mut lists = EarlyLists::default();
        let half = vec![b' '; MAX_BYTES / 2];
        for (session, list) in [("a", &half[..]), ("b", &half), ("c", b"[]"), ("a", b"[]"), ("d", b"[1]")] {
            lists.keep(session.to_owned(), list);
        }
        let kept = ["a", "b", "c", "d"].map(|session| lists.take(session).map(|list| list.len()));
        assert_eq!(kept, [Some(2), Some(half.len()), None, Some(3)]);
        for number in 0..=MAX_LISTS {
            lists.keep(number.to_string(), b"[]");
        }
        assert_eq!(lists.0.len(), MAX_LISTS);
    }
}
