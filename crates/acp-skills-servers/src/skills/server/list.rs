//! [`list`]: the list of a server's skills, within limits.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skills_core::text::shown;
use tokio::{task::spawn_blocking, time::timeout};

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
    /// The time in which the entries were read, without the time of the server.
    pub(super) reading: Duration,
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
            let next;
            (tally, next) = read(tally, page).await?;
            match next {
                None => return Ok(tally),
                Some(cursor) if cursor.len() > MAX_CURSOR || cursors.contains(&cursor) => break,
                Some(cursor) => {
                    params = json!({ "cursor": cursor });
                    cursors.push(cursor);
                }
            }
        }
        tally.problems.push("its list does not end, so skills may be missing".to_owned());
        Ok(tally)
    };
    let expired = ServerError::Timeout { what: "list its skills", limit };
    timeout(limit, listing).await.unwrap_or(Err(expired))
}

/// Adds a page to the list on another thread, because a long one takes seconds, in which the runtime could do nothing else. Also returns
/// the cursor of the next page.
async fn read(tally: Tally, page: Value) -> Result<(Tally, Option<String>), ServerError> {
    let reading = spawn_blocking(move || tally.with_page(&page));
    reading.await.unwrap_or(Err(ServerError::Ended))
}

impl Tally {
    /// Adds the entries of a page. Also returns the cursor of the next page, if there is one and there is room for it.
    fn with_page(mut self, page: &Value) -> Result<(Self, Option<String>), ServerError> {
        let started = Instant::now();
        let listed = page["skills"].as_array().ok_or(ServerError::Invalid("no list of skills"))?;
        let has_room = listed.iter().all(|entry| self.add(entry));
        self.reading += started.elapsed();
        let next = page["nextCursor"].as_str().filter(|_| has_room).map(str::to_owned);
        Ok((self, next))
    }

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

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    /// All calls of the agent wait for the runtime.
    #[tokio::test]
    async fn a_long_list_does_not_occupy_the_runtime() {
        let metadata: serde_json::Map<_, _> = (0..100).map(|key| (format!("k{key}"), "v".into())).collect();
        let entry = |number: usize| {
            let name = format!("s{number}");
            let uri = format!("skill://{name}/SKILL.md");
            let digest = format!("sha256:{}", "0".repeat(64));
            json!({
                "uri": uri,
                "frontmatter": { "name": name, "description": "x", "metadata": metadata },
                "resources": [{ "uri": uri, "digest": digest, "size": 1 }],
            })
        };
        let skills: Vec<_> = (0..MAX_SKILLS).map(entry).collect();
        let page = json!({ "skills": skills, "nextCursor": "more" });
        let mut turns = 0;
        let (tally, next) = tokio::select! {
            biased;
            read = read(Tally::default(), page) => read.unwrap(),
            () = async { loop { turns += 1; yield_now().await } } => unreachable!(),
        };
        assert_eq!(
            (tally.entries.len(), tally.problems, next.as_deref()),
            (MAX_SKILLS, Vec::new(), Some("more"))
        );
        assert!(tally.reading > Duration::ZERO && turns > 10, "{turns} turns in {:?}", tally.reading);
    }
}
