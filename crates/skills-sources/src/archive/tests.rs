//! Hostile and harmless archives.

mod build;

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use self::build::{Tar, Zip, gzip, pax};
use super::*;

const SKILL: &[u8] = b"---\nname: a\ndescription: d\n---\n";

/// Limits with 1 MiB, which allow 2,048 files.
fn limits() -> Limits {
    Limits { total: Duration::from_secs(10), ..Limits::of_bytes(Some(1024 * 1024)) }
}

/// Returns all files below a directory, and links and other entries with a mark.
fn files(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|path| format!("{name}/{path}")));
        } else {
            found.insert(if kind.is_file() { name } else { format!("{name} (special)") });
        }
    }
    found
}

/// Unpacks an archive. Returns the files and the notes, or the error. Nothing may be written elsewhere, and no file may be special.
fn unpacked(archive: &[u8]) -> Result<(BTreeSet<String>, Vec<String>), String> {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("a/b/out");
    fs::create_dir_all(&target).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(archive).unwrap();
    let notes = unpack(&mut file, &target, &limits());
    let all = files(dir.path());
    assert!(all.iter().all(|path| path.starts_with("a/b/out/") && !path.ends_with("(special)")), "{all:?}");
    let of_target = |path: &String| path["a/b/out/".len()..].to_owned();
    Ok((all.iter().map(of_target).collect(), notes.map_err(|error| error.to_string())?))
}

fn check_error(name: &str, archive: &[u8], expected: &str) {
    let error = unpacked(archive).expect_err(name);
    assert!(error.contains(expected), "{name}: {error}");
}

/// Checks the files. Each word of `noted` is in a note.
fn check_files(name: &str, archive: &[u8], expected: &[&str], noted: &[&str]) {
    let (files, notes) = unpacked(archive).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(files.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{name}: {notes:?}");
    assert_eq!(notes.len(), noted.len(), "{name}: {notes:?}");
    for (note, word) in notes.iter().zip(noted) {
        assert!(note.contains(word), "{name}: {note}");
    }
}

/// A tar archive with a skill and one more file.
fn tar_with(path: &str) -> Vec<u8> {
    Tar::default().file("a/SKILL.md", SKILL).file(path, b"x").end()
}

#[test]
fn paths_out_of_the_directory_are_rejected() {
    for path in [
        "../x",
        "a/../../x",
        "a/..",
        "/etc/x",
        "//host/share/x",
        "./../x",
        "C:/x",
        "c:x",
        "..\\x",
        "a\\..\\..\\x",
        "\\\\host\\x",
        "a/b\\c",
        "C:\\x",
    ] {
        let expected = if path == "a/b\\c" || path == "\\\\host\\x" { "not allowed" } else { "leads out of" };
        check_error(path, &tar_with(path), expected);
        check_error(path, &Zip::default().file("a/SKILL.md", SKILL).file(path, b"x").end(), expected);
    }
    let directory = Tar::default().entry("../x/", b'5', b"").file("a/SKILL.md", SKILL).end();
    check_error("a directory", &directory, "leads out of");
    let long = pax(&[("path", "../../x")]);
    let renamed = Tar::default().file("a/SKILL.md", SKILL).entry("p", b'x', &long).file("a/x", b"x").end();
    check_error("a pax path", &renamed, "leads out of");
    let renamed = Tar::default().entry("p", b'L', b"../../x\0").file("a/x", b"x").end();
    check_error("a GNU path", &renamed, "leads out of");
    let local = Zip::default().file("a/SKILL.md", SKILL).named("../x", "a/x", b"x").end();
    check_error("a local name", &local, "another name");
    let central = Zip::default().file("a/SKILL.md", SKILL).named("a/x", "../x", b"x").end();
    check_error("a central name", &central, "another name");
}

#[test]
fn unusual_paths_are_left_out() {
    let deep = format!("a/{}x", "d/".repeat(40));
    let long = format!("a/{}", "n".repeat(300));
    for (path, noted) in [
        ("a/con.txt", "some operating systems"),
        ("a/x:y", "some operating systems"),
        ("a/x ", "some operating systems"),
        ("a/.git/config", "reserved for git"),
        ("a/x\u{202e}y", "invisible"),
        ("a/x\ny", "invisible"),
        ("a//x", "leads out"),
        ("a/./x", "leads out"),
        (&*deep, "too many directories"),
        (&*long, "too long"),
        ("a/skill.MD", "only in case"),
    ] {
        let archive = Tar::default()
            .entry("p", b'x', &pax(&[("path", path)]))
            .file("short", b"x")
            .file("a/SKILL.md", SKILL);
        let archive = if path.ends_with("skill.MD") {
            Tar::default().file("a/SKILL.md", SKILL).file(path, b"x")
        } else {
            archive
        };
        // Two directories at the top, so that none is removed.
        check_files(path, &archive.file("top", b"").end(), &["a/SKILL.md"], &[noted]);
    }
    let forms = Zip::default().file("a/SKILL.md", SKILL).file("a/\u{e9}", b"x").file("a/e\u{301}", b"x");
    check_files(
        "normal forms",
        &forms.file("top", b"").end(),
        &["a/SKILL.md", "a/\u{e9}"],
        &["normalization"],
    );
    let latin = Zip::default().file("a/SKILL.md", SKILL).named_bytes(b"a/\xe9", b"a/\xe9", b"x");
    check_files("code page 437", &latin.file("top", b"").end(), &["a/SKILL.md"], &["not valid UTF-8"]);
}

#[test]
fn only_regular_files_are_written() {
    for (kind, noted) in [
        (b'1', "is a link"),
        (b'2', "is a link"),
        (b'3', "unknown type"),
        (b'4', "unknown type"),
        (b'6', "unknown type"),
        (b'V', "unknown type"),
    ] {
        let archive =
            Tar::default().file("a/SKILL.md", SKILL).linked("a/x", kind, "/etc/passwd").file("top", b"");
        check_files("special", &archive.end(), &["a/SKILL.md"], &[noted]);
    }
    for (mode, noted) in
        [(0o120_777_u32, "is a link"), (0o020_666, "unknown type"), (0o010_666, "unknown type")]
    {
        let archive =
            Zip::default().file("a/SKILL.md", SKILL).with_mode("a/x", mode, b"/etc/passwd").file("top", b"");
        check_files("special", &archive.end(), &["a/SKILL.md"], &[noted]);
    }
    // A file below a link, which a naive reader would write to the target of the link.
    let through =
        Tar::default().file("a/SKILL.md", SKILL).linked("a/x", b'2', "/tmp").file("a/x/y", b"x").end();
    check_error("through a link", &through, "file and a directory");
    check_error("sparse", &Tar::default().entry("a/x", b'S', b"").end(), "sparse");
    let sparse = pax(&[("GNU.sparse.major", "1")]);
    check_error("sparse", &Tar::default().entry("p", b'x', &sparse).file("a/x", b"").end(), "sparse");
}

#[test]
fn ambiguous_archives_are_rejected() {
    let tar = || Tar::default().file("a/SKILL.md", SKILL);
    let zip = || Zip::default().file("a/SKILL.md", SKILL);
    check_error("twice", &tar().file("a/SKILL.md", b"other").end(), "twice");
    check_error("twice", &tar().file("./a/SKILL.md", b"other").end(), "twice");
    check_error("twice", &zip().file("a/SKILL.md", b"other").end(), "twice");
    check_error("file and directory", &tar().file("a", b"x").end(), "file and a directory");
    let two =
        tar().entry("p", b'L', b"a/x\0").entry("p", b'x', &pax(&[("path", "a/y")])).file("a/z", b"").end();
    check_error("two names", &two, "two names");
    let size = tar().entry("p", b'x', &pax(&[("size", "0")])).file("a/z", &[b'x'; 512]).end();
    check_error("two sizes", &size, "two sizes");
    let twice = tar().entry("p", b'x', &pax(&[("path", "a/x"), ("path", "a/y")])).file("a/z", b"").end();
    check_error("two paths", &twice, "twice");
    check_error(
        "global",
        &tar().entry("p", b'g', &pax(&[("path", "a/x")])).file("a/z", b"").end(),
        "all files",
    );
    check_error(
        "pax",
        &tar().entry("p", b'x', b"99 path=a\n").file("a/z", b"").end(),
        "pax header is invalid",
    );
    check_error("content", &tar().linked_with("a/x", b'2', "t", &[b'x'; 512]).end(), "has a content");
    check_error("local header", &zip().local_size("a/x", 3, b"xy").end(), "two different headers");
    check_error("overlap", &zip().overlapping().end(), "overlaps");
    check_error("unicode path", &zip().unicode_path("a/x", "a/y").end(), "another name");
    check_error("prefix", &[b"MZ".as_slice(), &zip().end()].concat(), "neither");
    check_error("hidden", &zip().hidden(b"hidden").end(), "outside of its files");
    check_error("trailing", &[&zip().end(), b"x".as_slice()].concat(), "after its end");
    check_error("trailing", &[&tar().end(), b"x".as_slice()].concat(), "invalid archive");
    let second = [tar().raw(), tar().raw()].concat();
    check_error("second archive", &gzip(&second), "after its end");
    check_error("parts", &zip().parts().end(), "several files");
    check_error("count", &zip().count(7).end(), "7 files");
}

#[test]
fn damaged_archives_are_rejected() {
    let tar = Tar::default().file("a/SKILL.md", SKILL);
    let zip = Zip::default().file("a/SKILL.md", SKILL);
    let packed = tar.clone().end();
    check_error("truncated", &packed[..packed.len() - 9], "invalid archive");
    check_error("truncated", &packed[..30], "invalid archive");
    check_error("truncated", &gzip(&tar.clone().raw()[..700]), "truncated");
    check_error("truncated", &zip.clone().end()[..50], "truncated");
    check_error("empty", b"", "neither");
    check_error("text", b"<html>", "neither");
    check_error("tar", &tar.clone().raw(), "neither");
    let mut wrong = tar.raw();
    wrong[0] = b'b';
    check_error("header", &gzip(&wrong), "wrong checksum");
    let mut wrong = packed.clone();
    let at = wrong.len() - 8;
    wrong[at] ^= 1;
    check_error("gzip", &wrong, "invalid archive");
    check_error("crc", &zip.clone().wrong_crc("a/x", b"xyz").end(), "wrong checksum");
    check_error("size", &zip.clone().wrong_size("a/x", 2, b"xyz").end(), "larger than its header");
    check_error("size", &zip.clone().wrong_size("a/x", 4, b"xyz").end(), "truncated");
    check_error("encrypted", &zip.clone().flags("a/x", 1).end(), "encrypted");
    check_error("compression", &zip.clone().method("a/x", 14).end(), "compression 14");
    check_error("deflate", &zip.method("a/x", 8).end(), "invalid archive");
}

#[test]
fn limits_are_named() {
    let tar = || Tar::default().file("a/SKILL.md", SKILL);
    let zip = || Zip::default().file("a/SKILL.md", SKILL);
    let zeros = vec![0; 2 * 1024 * 1024];
    check_error("bomb", &tar().file("a/x", &zeros).end(), "unpacks to more than 1 MiB");
    check_error("bomb outside of a skill", &tar().file("x", &zeros).end(), "unpacks to more than 1 MiB");
    check_error(
        "bomb after the end",
        &gzip(&[tar().raw(), zeros.clone()].concat()),
        "unpacks to more than 1 MiB",
    );
    check_error("bomb", &zip().deflated("a/x", &zeros).end(), "skills are larger than 1 MiB");
    let small = vec![0; 600 * 1024];
    check_error("two", &zip().deflated("a/x", &small).deflated("a/y", &small).end(), "larger than 1 MiB");
    check_error("hidden size", &zip().lying("a/x", 100, &zeros).end(), "larger than its header");
    let many = (0..2_100).fold(tar(), |tar, number| tar.entry(&format!("a/{number}"), b'2', b""));
    check_error("count", &many.end(), "unpacks to more than 1 MiB");
    let many = (0..2_100).fold(zip(), |zip, number| zip.file(&format!("x/{number}"), b""));
    check_error("count", &many.end(), "more than 2048 files");
    let long = "d/".repeat(500);
    let paths = (0..600).fold(tar(), |tar, number| {
        tar.entry("p", b'x', &pax(&[("path", &format!("{long}{number}"))])).file("x", b"")
    });
    check_error("paths", &paths.end(), "file paths are larger than 262144 bytes");
    let paths = (0..400).fold(zip(), |zip, number| zip.file(&format!("{long}{number}"), b""));
    check_error("paths", &paths.end(), "the list of files is larger than 262144 bytes");
    check_error("header", &tar().entry("p", b'L', &vec![b'x'; 70_000]).end(), "header is larger than 64 KiB");
    check_error("size", &tar().sized("a/x", 1 << 33).end(), "truncated");
    // With its padding, this size is larger than any number.
    check_error("size", &tar().sized("x", u64::MAX).file("y", b"").end(), "invalid size");
    check_error("zip64", &zip().zip64().end(), "zip64");
    check_error("zip64", &zip().wrong_size("a/x", 0xffff_ffff, b"x").end(), "zip64");
}

/// The paths of this archive have more than a hundred thousand directories, but it has only a few hundred bytes.
#[test]
fn paths_with_many_directories_take_little_time() {
    let started = Instant::now();
    let long = "d/".repeat(30_000);
    let tar = (0..4).fold(Tar::default().file("a/SKILL.md", SKILL), |tar, number| {
        tar.entry("p", b'x', &pax(&[("path", &format!("{long}{number}"))])).file("x", b"")
    });
    let too_long = ["path that is too long"; 4];
    check_files("many directories", &tar.end(), &["a/SKILL.md"], &too_long);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

/// Each part of this archive unpacks to nothing.
#[test]
fn the_time_is_limited() {
    let archive = [gzip(b"").repeat(1_000), Tar::default().file("a/SKILL.md", SKILL).end()].concat();
    let unpacked = |total| {
        let dir = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&archive).unwrap();
        let notes = unpack(&mut file, dir.path(), &Limits { total, ..limits() });
        notes.map_err(|error| error.to_string())
    };
    assert_eq!(unpacked(Duration::from_mins(1)), Ok(Vec::new()));
    let error = unpacked(Duration::ZERO).unwrap_err();
    assert_eq!(error, "archive is too large: it takes more than 0 s to unpack");
}

#[test]
fn harmless_archives_are_unpacked() {
    let tar = |start: &str| {
        Tar::default()
            .entry("g", b'g', &pax(&[("comment", "commit")]))
            .entry(start, b'5', b"")
            .file(&format!("{start}review/SKILL.md"), SKILL)
            .file(&format!("{start}review/scripts/run.sh"), b"#!/bin/sh\n")
            .file(&format!("{start}README.md"), b"text")
            .end()
    };
    let expected = ["review/SKILL.md", "review/scripts/run.sh"];
    for start in ["", "./", "package/", "skills-1.0/", "./skills/"] {
        if !start.is_empty() {
            check_files(start, &tar(start), &expected, &[]);
        }
    }
    let root = Tar::default().file("./SKILL.md", SKILL).file("./refs/x.md", b"x").end();
    check_files("root", &root, &["SKILL.md", "refs/x.md"], &[]);
    let zip = Zip::default()
        .file("top/review/SKILL.md", SKILL)
        .deflated("top/review/scripts/run.sh", &[b'x'; 5_000]);
    check_files("zip", &zip.clone().directory("top/").file("top/README.md", b"").end(), &expected, &[]);
    check_files(
        "streamed",
        &zip.streamed("top/review/z", b"abc").end(),
        &[expected[0], expected[1], "review/z"],
        &[],
    );
    let members = [
        gzip(&Tar::default().file("a/SKILL.md", SKILL).raw()[..512]),
        gzip(&Tar::default().file("a/SKILL.md", SKILL).raw()[512..]),
    ];
    check_files("members", &members.concat(), &["SKILL.md"], &[]);
    let empty = Tar::default().end();
    check_files("empty", &empty, &[], &[]);
}
