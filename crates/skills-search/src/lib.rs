#![doc = include_str!("../README.md")]

mod common;
mod field;
mod language;
mod names;
mod split;
mod words;

pub use self::{
    common::is_common,
    field::{Field, idf},
    language::Language,
    names::{Names, Similarity},
    split::split,
    words::{Asked, Words},
};
