//! Skills that come from elsewhere: git repositories and web sites, pinned, kept on this disk, and approved by hash.
//!
//! | file | owns |
//! |---|---|
//! | `address` | what people write, and what it means |
//! | `git/` | what a repository has, fetched |

mod address;
mod git;

pub use self::{
    address::{Address, AddressError, GitPlace, Place, Transport},
    git::GitError,
};
