//! Classifies files for a scan.

use super::rules::Detector;
use crate::files::content::{Kind, sniff};

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Text in UTF-8, or in an encoding that is mostly compatible with ASCII.
    Text,
    /// Text in UTF-16.
    Utf16 { is_big_endian: bool },
    /// An image, audio, font or document. It is scanned for lines of scripts, but not reported.
    Media,
    /// Another binary file, or a script that begins like an image. Contains the detector that reports it, and a description of
    /// its type.
    Binary(Detector, &'static str),
}

/// Extensions of compiled programs that the content doesn't reveal.
const PROGRAMS: [&str; 9] = ["pyc", "pyo", "pyd", "class", "dll", "so", "dylib", "node", "jar"];

/// Extensions of scripts. Their interpreters don't look at magic numbers.
const SCRIPTS: [&str; 30] = [
    "awk", "bash", "bat", "cjs", "cmd", "coffee", "csh", "fish", "groovy", "hta", "jl", "js", "ksh", "lua",
    "mjs", "mts", "php", "pl", "pm", "ps1", "psm1", "py", "pyw", "r", "rb", "sh", "tcl", "ts", "vbs", "zsh",
];

/// Classifies a file by its path and first bytes.
pub(super) fn content(path: &str, start: &[u8]) -> Content {
    match start {
        [0xFF, 0xFE, ..] if start.get(2..4) != Some(&[0, 0]) => {
            return Content::Utf16 { is_big_endian: false };
        }
        [0xFE, 0xFF, ..] => return Content::Utf16 { is_big_endian: true },
        _ => {}
    }
    if let Some(program) = program(start) {
        return Content::Binary(Detector::ProgramFile, program);
    }
    match sniff(start) {
        Kind::Text => Content::Text,
        Kind::Image(media_type) if is_script(path) => Content::Binary(Detector::BinaryFile, media_type),
        Kind::Image(_) => Content::Media,
        Kind::Binary(media_type) => {
            if PROGRAMS.contains(&extension(path).as_str()) {
                return Content::Binary(Detector::ProgramFile, "compiled code");
            }
            match infer::get(start).map(|kind| kind.matcher_type()) {
                Some(infer::MatcherType::App) => Content::Binary(Detector::ProgramFile, media_type),
                Some(infer::MatcherType::Archive) if media_type != "application/pdf" => {
                    Content::Binary(Detector::ArchiveFile, media_type)
                }
                Some(_) if !is_script(path) => Content::Media,
                _ => Content::Binary(Detector::BinaryFile, media_type),
            }
        }
    }
}

/// Returns a description of the program that starts with these bytes, or `None` if they are not a compiled program.
pub(super) fn program(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x7F, b'E', b'L', b'F', ..] => Some("a program for Linux (ELF)"),
        // Don't just check for `MZ`, because a text can start with these two letters, too.
        [b'M', b'Z', rest @ ..] if rest.get(..64).is_some_and(|rest| rest.contains(&0)) => {
            Some("a program for Windows (PE)")
        }
        [0xCE | 0xCF, 0xFA, 0xED, 0xFE, ..] | [0xFE, 0xED, 0xFA, 0xCE | 0xCF, ..] => {
            Some("a program for macOS (Mach-O)")
        }
        [0xCA, 0xFE, 0xBA, 0xBE, ..] => Some("a program (Java or Mach-O)"),
        [0, b'a', b's', b'm', ..] => Some("a program (WebAssembly)"),
        _ => None,
    }
}

/// Returns true if the extension of a file says that an interpreter runs it, such as `.sh` or `.py`.
pub fn is_script(path: &str) -> bool {
    SCRIPTS.contains(&extension(path).as_str())
}

/// Returns true if a file contains instructions for agents, and not for programs.
pub(super) fn is_instructions(path: &str) -> bool {
    matches!(
        extension(path).as_str(),
        "md" | "mdx" | "markdown" | "mdc" | "txt" | "rst" | "adoc" | "html" | "htm" | "xml" | "svg" | ""
    )
}

fn extension(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or_else(String::new, |(_, extension)| extension.to_ascii_lowercase())
}
