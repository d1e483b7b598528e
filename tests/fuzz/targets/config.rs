//! A `skills.yaml`. It is either read, or there is a readable error.

use std::{cell::OnceCell, fs};

use acp_skills::config::Config;
use tempfile::NamedTempFile;

thread_local! {
    static FILE: OnceCell<NamedTempFile> = const { OnceCell::new() };
}

pub(super) fn run(text: &[u8]) {
    FILE.with(|file| {
        let file = file.get_or_init(|| NamedTempFile::with_suffix(".yaml").expect("a file"));
        fs::write(file.path(), text).expect("a file");
        if let Err(error) = Config::read(file.path()) {
            let message = error.to_string();
            assert!(!message.trim().is_empty(), "{message:?}");
            assert!(message.len() < 4096, "{message}");
        }
    });
}
