//! Classifies files for a scan.

use memchr::memmem;

use super::rules::Detector;
use crate::files::content::{Kind, char_boundary, sniff};

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Text in UTF-8, or in an encoding that is mostly compatible with ASCII.
    Text,
    /// Text in UTF-16.
    Utf16,
    /// An image, audio, font or document. It is scanned for lines of scripts, but not reported.
    Media,
    /// Another binary file, or one whose first bytes are those of an image but whose extension isn't. Contains the detector that reports
    /// it, and a description of its type.
    Binary(Detector, &'static str),
}

/// Extensions of compiled programs that the content doesn't reveal.
const PROGRAMS: [&str; 9] = ["pyc", "pyo", "pyd", "class", "dll", "so", "dylib", "node", "jar"];

/// Extensions of scripts. Their interpreters don't look at magic numbers.
const SCRIPTS: [&str; 30] = [
    "awk", "bash", "bat", "cjs", "cmd", "coffee", "csh", "fish", "groovy", "hta", "jl", "js", "ksh", "lua",
    "mjs", "mts", "php", "pl", "pm", "ps1", "psm1", "py", "pyw", "r", "rb", "sh", "tcl", "ts", "vbs", "zsh",
];

/// Extensions of images, audio, fonts and documents. The first bytes alone say little: two are enough for some of these types.
const MEDIA: [&str; 55] = [
    "3gp", "aac", "ai", "aif", "aiff", "amr", "avi", "avif", "bmp", "cur", "doc", "docx", "eot", "epub",
    "flac", "flv", "gif", "heic", "heif", "ico", "jfif", "jpeg", "jpg", "jxl", "m4a", "m4v", "mid", "midi",
    "mkv", "mov", "mp3", "mp4", "mpeg", "mpg", "odt", "ogg", "opus", "otf", "pdf", "png", "ppt", "pptx",
    "psd", "tif", "tiff", "ttc", "ttf", "wav", "webm", "webp", "wmv", "woff", "woff2", "xls", "xlsx",
];

/// Classifies a file by its path and first bytes.
pub(super) fn content(path: &str, start: &[u8]) -> Content {
    let is_utf32 = start.starts_with(&[0xFF, 0xFE, 0, 0]);
    if !is_utf32 && matches!(start, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) {
        return Content::Utf16;
    }
    if let Some(program) = program(start) {
        return Content::Binary(Detector::ProgramFile, program);
    }
    match sniff(start) {
        Kind::Text => Content::Text,
        Kind::Image(_) if is_media(path) => Content::Media,
        Kind::Image(media_type) => Content::Binary(Detector::BinaryFile, media_type),
        // File managers of macOS leave these files in many repositories.
        Kind::Binary(_) if start.starts_with(b"\0\0\0\x01Bud1") && path.ends_with(".DS_Store") => {
            Content::Media
        }
        Kind::Binary(_) if start.starts_with(&[0x5D, 0, 0]) => {
            Content::Binary(Detector::ArchiveFile, "application/x-lzma")
        }
        // For example text that was copied from a PDF file. It is scanned like any other text, which reports control characters.
        Kind::Binary(_) if is_text_with_controls(start) => Content::Text,
        Kind::Binary(media_type) => {
            if PROGRAMS.contains(&extension(path).as_str()) {
                return Content::Binary(Detector::ProgramFile, "compiled code");
            }
            match infer::get(start).map(|kind| kind.matcher_type()) {
                Some(infer::MatcherType::App) => Content::Binary(Detector::ProgramFile, media_type),
                Some(infer::MatcherType::Archive) if media_type != "application/pdf" => {
                    Content::Binary(Detector::ArchiveFile, media_type)
                }
                Some(_) if is_media(path) => Content::Media,
                _ => Content::Binary(Detector::BinaryFile, media_type),
            }
        }
    }
}

/// Returns true if the bytes are UTF-8 without zero bytes and without the magic number of a known type, although they contain control
/// characters.
fn is_text_with_controls(start: &[u8]) -> bool {
    let text = &start[..char_boundary(start)];
    infer::get(start).is_none() && memchr::memchr(0, start).is_none() && str::from_utf8(text).is_ok()
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
        // The first two bytes are the version of Python. The zero excludes texts with such line breaks.
        [_, 0x0C..=0x0F | 0xF2 | 0xF3, b'\r', b'\n', rest @ ..]
            if rest.get(..12).is_some_and(|rest| rest.contains(&0)) =>
        {
            Some("a program (Python bytecode)")
        }
        [0x1B, b'L', b'u' | b'J', b'a' | 1..=2, ..] => Some("a program (Lua bytecode)"),
        [b'd', b'e', b'x', b'\n', _, _, _, 0, ..] => Some("a program for Android (DEX)"),
        _ => None,
    }
}

/// The first bytes of programs and archives that are long enough not to occur in pictures by chance.
const HIDDEN: [(&[u8], Detector, &str); 15] = [
    (b"\x7FELF\x01", Detector::ProgramFile, "a program for Linux (ELF)"),
    (b"\x7FELF\x02", Detector::ProgramFile, "a program for Linux (ELF)"),
    (b"PE\0\0\x4C\x01", Detector::ProgramFile, "a program for Windows (PE)"),
    (b"PE\0\0\x64\x86", Detector::ProgramFile, "a program for Windows (PE)"),
    (b"PE\0\0\x64\xAA", Detector::ProgramFile, "a program for Windows (PE)"),
    (b"\xCF\xFA\xED\xFE\x07\0\0\x01", Detector::ProgramFile, "a program for macOS (Mach-O)"),
    (b"\xCF\xFA\xED\xFE\x0C\0\0\x01", Detector::ProgramFile, "a program for macOS (Mach-O)"),
    (b"\0asm\x01\0\0\0", Detector::ProgramFile, "a program (WebAssembly)"),
    (b"\xCA\xFE\xBA\xBE\0\0\0", Detector::ProgramFile, "a program (Java or Mach-O)"),
    (b"\r\r\n\0\0\0\0", Detector::ProgramFile, "a program (Python bytecode)"),
    (b"Rar!\x1A\x07", Detector::ArchiveFile, "a RAR archive"),
    (b"MSCF\0\0\0\0", Detector::ArchiveFile, "a CAB archive"),
    (b"\xFD7zXZ\0", Detector::ArchiveFile, "xz data"),
    (b"1AY&SY", Detector::ArchiveFile, "bzip2 data"),
    (b"7z\xBC\xAF\x27\x1C", Detector::ArchiveFile, "a 7z archive"),
];

/// Returns the detector and a description of the program or the archive that a file of another type contains. In a text, only archives
/// are searched for that programs find at any position; the zero bytes of others are reported.
pub(super) fn hidden(bytes: &[u8], is_text: bool) -> Option<(Detector, &'static str)> {
    if contains_archive(bytes) {
        Some((Detector::ArchiveFile, "a ZIP archive"))
    } else if contains_gzip(bytes) {
        Some((Detector::ArchiveFile, "gzip data"))
    } else if is_text {
        None
    } else {
        let (_, detector, what) = HIDDEN.iter().find(|(start, ..)| memmem::find(bytes, start).is_some())?;
        Some((*detector, what))
    }
}

/// Returns true if the bytes contain the header of gzip data at any position. We also check the values that common programs write,
/// because the three bytes of the magic number occur in pictures by chance.
fn contains_gzip(bytes: &[u8]) -> bool {
    memmem::find_iter(bytes, b"\x1F\x8B\x08")
        .any(|at| matches!(bytes[at..], [_, _, _, 0..=0x1F, _, _, _, _, 0 | 2 | 4, 0..=13 | 255, ..]))
}

/// Returns true if the bytes contain a ZIP archive at any position. Interpreters and `unzip` search for the end of an archive, so they
/// find it in any other file.
///
/// Office documents are archives as well. Of these, only documents that contain a script or compiled code count.
fn contains_archive(bytes: &[u8]) -> bool {
    const ENTRY: &[u8] = b"PK\x01\x02";
    const END: &[u8] = b"PK\x05\x06";
    let Some(end) = memmem::rfind(bytes, END) else { return false };
    let is_document = bytes.starts_with(b"PK\x03\x04");
    memmem::find_iter(&bytes[..end], ENTRY)
        .any(|at| !is_document || name_in_archive(&bytes[at..]).is_none_or(|name| is_code(&name)))
}

/// Returns the name in an entry of the directory of a ZIP archive.
fn name_in_archive(entry: &[u8]) -> Option<String> {
    let length = u16::from_le_bytes([*entry.get(28)?, *entry.get(29)?]);
    let name = entry.get(46..)?.get(..usize::from(length))?;
    Some(String::from_utf8_lossy(name).into_owned())
}

fn is_code(path: &str) -> bool {
    is_script(path) || PROGRAMS.contains(&extension(path).as_str())
}

/// Returns true if the extension of a file says that an interpreter runs it, such as `.sh` or `.py`.
pub fn is_script(path: &str) -> bool {
    SCRIPTS.contains(&extension(path).as_str())
}

fn is_media(path: &str) -> bool {
    MEDIA.contains(&extension(path).as_str())
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
