//! [`list`]: the list of a server's skills, within limits.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use skills_core::text::shown;
use tokio::time::timeout;

use super::super::{
    super::{
        ServerError,
        connection::{Connection, MAX_PAGES},
    },
    entries::Entry,
};

/// The maximum number of skills of a server. Others are left out.
const MAX_SKILLS: usize = 500;
/// The maximum length of all entries, in bytes of JSON. Further entries are left out.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;
/// The maximum length of a cursor in bytes. The list ends at a longer one.
const MAX_CURSOR: usize = 4 * 1024;
/// The maximum number of entries that are reported as invalid.
const MAX_PROBLEMS: usize = 20;

/// The entries of a list, within the limits.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) problems: Vec<String>,
    bytes: usize,
    count: usize,
}

/// Lists all skills of a server.
pub(super) async fn list(connection: &Connection, limit: Duration) -> Result<Tally, ServerError> {
    let listing = async {
        let mut tally = Tally::default();
        let mut cursors: Vec<String> = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page = connection.request("skills/list", params, "list its skills").await?;
            let listed = page["skills"].as_array().ok_or(ServerError::Invalid("no list of skills"))?;
            let has_room = listed.iter().all(|entry| tally.add(entry));
            match page["nextCursor"].as_str().filter(|_| has_room) {
                None => return Ok(tally),
                Some(cursor) if cursor.len() > MAX_CURSOR || cursors.iter().any(|known| known == cursor) => {
                    break;
                }
                Some(cursor) => {
                    cursors.push(cursor.to_owned());
                    params = json!({ "cursor": cursor });
                }
            }
        }
        tally.problems.push("its list has no end, so that skills may be missing".to_owned());
        Ok(tally)
    };
    let expired = ServerError::Timeout { what: "list its skills", limit };
    timeout(limit, listing).await.unwrap_or(Err(expired))
}

impl Tally {
    /// Adds an entry, or the reason why it is left out. Returns false if there is no room for further entries.
    fn add(&mut self, value: &Value) -> bool {
        self.count += 1;
        self.bytes += value.to_string().len();
        if self.count > MAX_SKILLS || self.bytes > MAX_LIST_BYTES {
            self.problems.push("its list is too long, so the last skills are missing".to_owned());
            return false;
        }
        let entry = Entry::read(value);
        let is_new = |entry: &Entry| self.entries.iter().all(|known| known.uri != entry.uri);
        let why = match entry {
            Ok(entry) if is_new(&entry) => {
                self.entries.push(Arc::new(entry));
                return true;
            }
            Ok(_) => "it is listed twice".to_owned(),
            Err(error) => error.to_string(),
        };
        if self.problems.len() < MAX_PROBLEMS {
            let name: String =
                value["frontmatter"]["name"].as_str().unwrap_or("without a name").chars().take(64).collect();
            self.problems.push(format!("skill `{}` is left out: {why}", shown(&name)));
        }
        true
    }
}
