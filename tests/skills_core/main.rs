//! Tests of `skills-core` from outside of the crate, with files on disk and servers on loopback.

mod conformance;
mod corpus;
mod hostile;
mod last_good;
mod parse_properties;
#[cfg(unix)]
mod race;
#[cfg(all(feature = "exec", feature = "fetch", feature = "toolbox"))]
mod remote;
#[cfg(feature = "scan")]
mod scan;
mod shown;
mod skill_md;
