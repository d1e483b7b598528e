//! Skills that come from elsewhere: git repositories and web sites, pinned, kept on this disk, and approved by hash.
//!
//! | file | owns |
//! |---|---|
//! | `address` | what people write, and what it means |

mod address;

pub use self::address::{Address, AddressError, GitPlace, Place, Transport};
