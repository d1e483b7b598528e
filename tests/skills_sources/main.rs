//! Tests of `skills-sources` from outside of the crate, with servers on loopback.

mod site;
