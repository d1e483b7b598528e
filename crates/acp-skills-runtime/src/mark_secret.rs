//! The secret from which the marks around texts for the model are derived.
//!
//! It is kept on disk, so that the same text has the same marks in every process, and the provider of the model can reuse what it has
//! cached for an earlier one.

use std::{
    hash::{BuildHasher, RandomState},
    path::Path,
    sync::LazyLock,
};

use acp_skills_intercept::MarkKey;
use skills_sources::disk::{SECRET_BYTES, secret};

/// The random bytes of this process.
static RANDOM: LazyLock<[u8; SECRET_BYTES]> = LazyLock::new(|| {
    let mut bytes = [0; SECRET_BYTES];
    if getrandom::fill(&mut bytes).is_err() {
        // The keys of the standard library's hashes are random, and each hash has its own.
        bytes.as_chunks_mut().0.iter_mut().for_each(|part| {
            *part = RandomState::new().hash_one(()).to_ne_bytes();
        });
    }
    bytes
});

/// Returns the secret in the directory `dir`, which is created if necessary. If there is no directory or the secret can't be kept,
/// returns one that is random, and the same for the whole process.
pub(crate) fn load(dir: Option<&Path>) -> MarkKey {
    let kept = dir.map(|dir| {
        secret(dir, *RANDOM).inspect_err(|error| {
            tracing::info!("cannot keep the secret of marks: {error}: {}", dir.display());
        })
    });
    MarkKey::new(kept.and_then(Result::ok).unwrap_or(*RANDOM))
}
