//! [`OpenPermissions`]: the agent's requests for permission that the client has not answered.
//!
//! The client's answer contains only the id of a request. If the agent uses an id twice, the user may have answered the other request.

use std::collections::HashMap;

use acp_skills_wire::Id;

/// The maximum number of open requests. Of further ones, no answer is certain.
const MAX_OPEN: usize = 1024;

/// The maximum length of an id in bytes. No answer to a request with a longer id is certain.
const MAX_BYTES: usize = 1024;

/// The open requests of the agent.
#[derive(Debug, Default)]
pub(crate) struct OpenPermissions(HashMap<String, Open>);

/// The requests with the same id.
#[derive(Debug, Default)]
struct Open {
    count: usize,
    is_ambiguous: bool,
}

impl OpenPermissions {
    /// Remembers a request. Returns true if its answer will be certain.
    pub(crate) fn opened(&mut self, id: &Id) -> bool {
        let key = key(id);
        if key.len() > MAX_BYTES || self.0.len() >= MAX_OPEN && !self.0.contains_key(&key) {
            return false;
        }
        let open = self.0.entry(key).or_default();
        open.count += 1;
        open.is_ambiguous |= open.count > 1;
        !open.is_ambiguous
    }

    /// Returns true if the answer to a request will be certain.
    pub(crate) fn is_certain(&self, id: &Id) -> bool {
        self.0.get(&key(id)).is_some_and(|open| !open.is_ambiguous)
    }

    /// Handles an answer. Returns true if the request that it answers is certain.
    pub(crate) fn answered(&mut self, id: &Id) -> bool {
        let key = key(id);
        let Some(open) = self.0.get_mut(&key) else { return false };
        let is_certain = !open.is_ambiguous;
        open.count -= 1;
        if open.count == 0 {
            self.0.remove(&key);
        }
        is_certain
    }
}

/// Returns the same text for ids that a client may treat as the same, such as `7`, `7.0` and `"7"`.
fn key(id: &Id) -> String {
    match id {
        Id::Text(text) => text.clone(),
        Id::Raw(raw) => raw.parse::<f64>().map_or_else(|_| raw.clone(), |number| number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_certain_if_ids_differ() {
        let raw = |text: &str| Id::Raw(text.to_owned());
        let mut open = OpenPermissions::default();
        assert!(!open.is_certain(&raw("1")) && !open.answered(&raw("1")));
        assert!(open.opened(&raw("1")) && open.opened(&raw("2")) && open.is_certain(&raw("1")));
        assert!(open.answered(&raw("1")) && !open.answered(&raw("1")));
        for same in [raw("2"), raw("2.0"), raw("20e-1"), Id::Text("2".to_owned())] {
            assert!(!open.opened(&same) && !open.is_certain(&raw("2")), "{same:?}");
        }
        // The id stays ambiguous until all requests are answered.
        for _ in 0..5 {
            assert!(!open.answered(&raw("2")));
        }
        assert!(open.opened(&raw("2")) && open.answered(&raw("2")));
    }

    #[test]
    fn the_number_and_the_size_of_ids_are_limited() {
        let mut open = OpenPermissions::default();
        assert!(!open.opened(&Id::Text("x".repeat(MAX_BYTES + 1))));
        for number in 0..MAX_OPEN {
            assert!(open.opened(&Id::Raw(number.to_string())));
        }
        let next = Id::Text("next".to_owned());
        assert!(!open.opened(&next) && !open.is_certain(&next));
        assert!(open.answered(&Id::Raw("0".to_owned())) && open.opened(&next));
    }
}
