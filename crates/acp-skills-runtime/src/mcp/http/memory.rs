//! [`Share`]: the part of the memory for requests that one of them uses. Clients decide how many calls wait for an answer, for example for the
//! user or for a server, so all of them together have a limit.

use std::time::Duration;

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// The memory for all requests in units of [`UNIT`]: 128 MiB.
static MEMORY: Semaphore = Semaphore::const_new(128 * 1024);
/// The size of a unit in bytes.
const UNIT: u64 = 1024;
/// The memory that a value needs while a call is handled, in bytes.
const VALUE: u64 = 256;
/// The time that a request waits for memory.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A part of the memory for requests, which is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Share(SemaphorePermit<'static>);

impl Share {
    /// Returns a share of this number of bytes, or `None` if there is none in time.
    pub(super) async fn of(bytes: u64) -> Option<Self> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).ok()?;
        let acquired = timeout(TIMEOUT, MEMORY.acquire_many(units)).await;
        Some(Self(acquired.ok()?.ok()?))
    }

    /// Adds this number of bytes to the share. Returns `None` if there are none in time.
    pub(super) async fn add(&mut self, bytes: u64) -> Option<()> {
        self.0.merge(Self::of(bytes).await?.0);
        Some(())
    }
}

/// Returns the memory that the values of a JSON text need, in bytes. Commas in a long text count as well, so this is at most half of all memory.
pub(super) fn of_values(json: &[u8]) -> u64 {
    let values = memchr::memchr3_iter(b',', b'[', b'{', json).count();
    u64::try_from(values).unwrap_or(u64::MAX).saturating_mul(VALUE).min(64 * 1024 * UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_memory_is_limited() {
        let all = 128 * 1024 * UNIT;
        let mut first = Share::of(all - UNIT).await.expect("a share");
        assert!(Share::of(2 * UNIT).await.is_none() && first.add(2 * UNIT).await.is_none());
        let second = Share::of(1).await.expect("a share");
        assert!(Share::of(1).await.is_none());
        drop((first, second));
        assert!(Share::of(all).await.is_some());
        assert_eq!(of_values(br#"{"a":[{},{},1]}"#), 6 * VALUE);
    }
}
