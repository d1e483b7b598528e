//! Tests of `skills-core` from outside of the crate, with files on disk.

mod conformance;
mod corpus;
mod hostile;
mod last_good;
mod parse_properties;
#[cfg(unix)]
mod race;
#[cfg(feature = "scan")]
mod scan;
mod shown;
mod skill_md;
