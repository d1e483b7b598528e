//! [`turn`]: limits the threads that wait for a server. A runtime has a limited number of threads for blocking work, and a server that
//! doesn't answer would otherwise take them all.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::skill::{Instructions, Skill, Source};

/// The maximum number of threads of this process that wait for the same server.
const MAX_THREADS: usize = 4;

static SERVERS: LazyLock<Mutex<HashMap<String, Weak<Semaphore>>>> = LazyLock::new(Mutex::default);

/// The permission to read the instructions or a file of a skill on a thread. The default is for skills on this machine.
#[derive(Debug, Default)]
#[must_use]
pub struct Turn(Option<OwnedSemaphorePermit>);

impl Turn {
    /// Runs `read`, which may block. Call this on the thread, because the turn has to last as long as the thread waits for the server, even
    /// if the call is cancelled.
    pub fn run<T>(self, read: impl FnOnce() -> T) -> T {
        let result = read();
        drop(self.0);
        result
    }
}

/// Waits until a thread may read from the server of a skill. Doesn't wait if the skill is on this machine.
pub async fn turn(skill: &Skill) -> Turn {
    let Some(server) = server(skill) else { return Turn::default() };
    let turns = {
        let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = servers.get(&server).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            servers.retain(|_, turns| turns.strong_count() > 0);
            let turns = Arc::new(Semaphore::new(MAX_THREADS));
            servers.insert(server, Arc::downgrade(&turns));
            turns
        })
    };
    // This never fails, because the semaphore is never closed.
    Turn(turns.acquire_owned().await.ok())
}

/// Returns a text that identifies the server of a skill: the identity of its service, or the scheme and the host of its URL. `None` if the
/// skill has none.
fn server(skill: &Skill) -> Option<String> {
    if let Some(service) = skill.service() {
        return Some(service.identity().to_owned());
    }
    let url = match &skill.source {
        #[cfg(feature = "fetch")]
        Source::Remote(remote) => &*remote.url,
        Source::Virtual(skill) => match &skill.instructions {
            Instructions::Url(url) => url,
            _ => return None,
        },
        Source::Stored(_) => return None,
    };
    Some(url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn skills_of_a_server_share_their_turns() {
        let remote = |url: &str| {
            let skill = Skill::builder("a", "d").body_url(url).build().unwrap();
            server(&skill)
        };
        assert_eq!(remote("https://a.example/x/SKILL.md").as_deref(), Some("https://a.example"));
        assert_eq!(remote("https://a.example"), remote("https://a.example/y?z"));
        assert_eq!(server(&Skill::builder("a", "d").body("text").build().unwrap()), None);
    }

    /// A service that answers after the other end of a channel was dropped.
    #[cfg(feature = "fetch")]
    #[derive(Debug)]
    struct Hangs(Mutex<std::sync::mpsc::Receiver<()>>);

    #[cfg(feature = "fetch")]
    impl crate::skill::FileService for Hangs {
        fn label(&self) -> &'static str {
            "hangs"
        }

        fn identity(&self) -> &'static str {
            "hangs"
        }

        fn read(&self, _path: &str) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
            let _ = self.0.lock().unwrap().recv();
            Err("gone".into())
        }
    }

    #[cfg(feature = "fetch")]
    #[test]
    fn a_server_that_hangs_takes_few_threads() {
        use std::{sync::mpsc::channel, time::Duration};

        use crate::{
            catalog::Guide,
            name::SkillName,
            skill::{Remote, Sha256},
            toolbox::Toolbox,
        };

        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.max_blocking_threads(MAX_THREADS + 1).build().unwrap();
        let (end, ended) = channel();
        let service = Arc::new(Hangs(ended.into()));
        let remote = Remote::of_service("skill://a/SKILL.md", Sha256::of(b""), Vec::new(), service);
        let skill = Arc::new(Skill::new(SkillName::new("a").unwrap(), "d", Source::Remote(remote)));
        let local = Arc::new(Skill::builder("b", "d").body("text").build().unwrap());
        let toolbox = Toolbox::new(crate::set::SkillSet::default());
        let (sender, activated) = channel();
        std::thread::spawn(move || {
            runtime.block_on(async {
                let hanging = || Box::pin(toolbox.activate(&skill, None, Guide::Tools));
                // A cancelled call doesn't end its thread.
                for _ in 0..4 * MAX_THREADS {
                    assert!(hanging().now_or_never().is_none());
                }
                let mut waiting: Vec<_> = (0..4 * MAX_THREADS).map(|_| hanging()).collect();
                for call in &mut waiting {
                    assert!(call.now_or_never().is_none());
                }
                sender.send(toolbox.activate(&local, None, Guide::Tools).await).unwrap();
            });
        });
        let activated = activated.recv_timeout(Duration::from_mins(1));
        drop(end);
        assert!(activated.expect("a thread is free").is_ok());
    }
}
