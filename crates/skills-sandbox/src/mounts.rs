//! [`Expected`]: checks the mounts of a sandbox before its program starts.
//!
//! bubblewrap finds the directories by their paths, and another process may exchange a part of a path for a link in between. Then a
//! directory of the host could be writable inside, or be mounted in the wrong place. The table of mounts tells what is really mounted.

use std::{
    collections::HashSet,
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// The devices of a sandbox. They are mounts of those of the host.
const DEVICES: [&str; 6] = ["/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"];

/// The file systems whose paths are unknown.
const NETWORK: [&[u8]; 2] = [b"nfs", b"nfs4"];

/// A line of `mountinfo` in [proc(5)](https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    /// The directory in which it is mounted.
    point: PathBuf,
    content: Content,
    is_read_only: bool,
}

/// The file or the directory that a path leads to, whatever the path is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    /// The number of the file system's device, as `MAJOR:MINOR`.
    device: String,
    /// The path in the file system. `None` for NFS, for which the kernel writes `/` in each line.
    path: Option<PathBuf>,
}

/// The mounts of a mount namespace, in the order in which they were made.
struct Table(Vec<Mount>);

/// The directories of a sandbox, by their canonical paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The only directory of the host that the program may write to.
    pub writable: Option<PathBuf>,
    /// Directories that are mounted read-only. They can be below the writable one.
    pub read_only: Vec<PathBuf>,
}

/// The result of a comparison with the expected mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// bubblewrap is still working on the mounts.
    NotFinal,
    /// The sandbox has the expected mounts, and its program may start.
    Same,
    /// The sandbox has other mounts.
    Different,
}

impl Table {
    /// Parses the text of a `mountinfo` file. Returns `None` if a line is incomplete.
    fn parse(text: &[u8]) -> Option<Self> {
        let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        lines.map(Mount::parse).collect::<Option<_>>().map(Self)
    }

    /// Returns the content of a path.
    fn content_of(&self, path: &Path) -> Option<Content> {
        let above = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        // A later mount hides an earlier one. The mount that is nearest to the path counts.
        let mount = above.max_by_key(|mount| mount.point.components().count())?;
        let rest = path.strip_prefix(&mount.point).ok()?;
        let whole =
            |above: &PathBuf| if rest.as_os_str().is_empty() { above.clone() } else { above.join(rest) };
        let path = mount.content.path.as_ref().map(whole);
        Some(Content { device: mount.content.device.clone(), path })
    }

    /// Returns the number of mounts with a content at a point.
    fn count(&self, point: &Path, content: &Content) -> usize {
        self.0.iter().filter(|mount| mount.point == point && mount.content == *content).count()
    }
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|&byte| byte == b' ').skip(2);
        let mut next = || fields.next();
        let device = String::from_utf8(next()?.to_vec()).ok()?;
        let path = unescaped(next()?);
        let point = unescaped(next()?);
        let is_read_only = next()?.split(|&byte| byte == b',').any(|option| option == b"ro");
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        let path = (!NETWORK.contains(&kind)).then_some(path);
        Some(Self { point, content: Content { device, path }, is_read_only })
    }
}

/// Replaces `\ooo`, the octal form of a byte.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| first == b'\\');
        let octal = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

impl Expected {
    /// Compares the mounts of a sandbox with the expected ones. The texts are the `mountinfo` of a process in the sandbox and of this
    /// process. `is_same_file` is called if the texts don't tell, and returns true if a path leads to the same file or directory in both.
    pub fn compare(&self, inside: &[u8], host: &[u8], is_same_file: impl Fn(&Path) -> bool) -> Comparison {
        let Some((inside, host)) = Table::parse(inside).zip(Table::parse(host)) else {
            return Comparison::NotFinal;
        };
        // Before the mounts are final, `/proc` is the one of the host, or is below another directory.
        let devices: HashSet<&str> = host.0.iter().map(|mount| &*mount.content.device).collect();
        let is_new = |mount: &Mount| !devices.contains(&*mount.content.device);
        let is_final = inside.0.iter().any(|mount| mount.point == Path::new("/proc") && is_new(mount));
        let is_of_host = |path: &Path, content: &Content| {
            let host = host.content_of(path);
            host.is_some_and(|host| host == *content && (content.path.is_some() || is_same_file(path)))
        };
        let is_expected = |path: &Path, is_read_only: bool| {
            let last = inside.0.iter().rev().find(|mount| mount.point == path);
            last.is_some_and(|mount| {
                // The writable directory is read-only if it is on the host.
                (mount.is_read_only || !is_read_only) && is_of_host(path, &mount.content)
            })
        };
        let is_same = self.read_only.iter().all(|path| is_expected(path, true))
            && self.writable.iter().all(|path| is_expected(path, false))
            && inside.0.iter().all(|mount| {
                let is_same = || is_of_host(&mount.point, &mount.content);
                mount.is_read_only || is_new(mount) || self.allows_writing(mount, &inside, &host, is_same)
            });
        match (is_final, is_same) {
            (false, _) => Comparison::NotFinal,
            (true, true) => Comparison::Same,
            (true, false) => Comparison::Different,
        }
    }

    /// Returns true if a mount of something that exists on the host may be writable. `is_same` returns true if it is in its place.
    fn allows_writing(
        &self,
        mount: &Mount,
        inside: &Table,
        host: &Table,
        is_same: impl Fn() -> bool,
    ) -> bool {
        let is_writable = self.writable.as_ref().is_some_and(|dir| mount.point.starts_with(dir));
        let is_device = DEVICES.iter().any(|device| mount.point == Path::new(device));
        let [count, before] = [inside, host].map(|table| table.count(&mount.point, &mount.content));
        // bubblewrap leaves out mounts that other ones hide, or that the program can't access. One more in the same place would be new.
        let is_left_out = mount.point != Path::new("/") && count <= before;
        is_left_out || is_writable && (before > 0 || is_same()) || is_device && is_same()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    const HOST: &str = "\
        20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
        21 20 0:5 / /dev rw - devtmpfs udev rw\n\
        22 20 0:6 / /proc rw - proc proc rw\n\
        23 20 0:7 / /run rw - tmpfs tmpfs rw\n\
        27 21 0:9 / /dev/shm rw - tmpfs tmpfs rw\n\
        28 27 0:10 / /dev/shm rw - tmpfs tmpfs rw\n\
        24 23 0:8 / /run/user/1000/doc rw - fuse.portal portal rw\n\
        25 20 8:2 / /srv rw - ext4 /dev/sdb rw\n\
        26 25 8:3 / /srv/w/big\\040data rw - ext4 /dev/sdc rw\n\
        29 25 0:60 / /srv/w/share rw - autofs auto rw\n\
        30 29 0:61 / /srv/w/share rw - nfs server:/ rw\n";

    /// The mounts of a sandbox for a skill in `/srv/w/.skills/kit`, without the last three.
    const COMMON: &str = "\
        40 30 8:1 / / ro - ext4 /dev/root rw\n\
        41 40 0:5 / /dev ro - devtmpfs udev rw\n\
        42 40 0:6 / /proc ro - proc proc rw\n\
        43 40 0:7 / /run ro - tmpfs tmpfs rw\n\
        44 43 0:8 / /run/user/1000/doc rw - fuse.portal portal rw\n\
        45 40 8:2 / /srv ro - ext4 /dev/sdb rw\n\
        46 45 8:3 / /srv/w/big\\040data ro - ext4 /dev/sdc rw\n\
        57 41 0:9 / /dev/shm rw - tmpfs tmpfs rw\n\
        58 57 0:10 / /dev/shm ro - tmpfs tmpfs rw\n\
        47 41 0:50 / /dev rw - tmpfs tmpfs rw\n\
        48 47 0:5 /null /dev/null rw - devtmpfs udev rw\n\
        49 47 0:51 / /dev/pts rw - devpts devpts rw\n\
        50 42 0:52 / /proc rw - proc proc rw\n\
        51 50 0:52 /sys /proc/sys ro - proc proc rw\n\
        52 43 0:53 / /run rw - tmpfs tmpfs rw\n";
    const CWD: &str = "53 45 8:2 /w /srv/w rw - ext4 /dev/sdb rw\n54 53 8:3 / /srv/w/big\\040data rw - ext4 /dev/sdc rw\n\
        60 53 0:60 / /srv/w/share rw - autofs auto rw\n61 60 0:61 / /srv/w/share rw - nfs server:/ rw\n";
    const SKILLS: &str = "55 53 8:2 /w/.skills /srv/w/.skills ro - ext4 /dev/sdb rw\n";
    const SKILL: &str = "56 55 8:2 /w/.skills/kit /srv/w/.skills/kit ro - ext4 /dev/sdb rw\n";

    fn never(path: &Path) -> bool {
        panic!("{path:?} is compared")
    }

    fn expected() -> Expected {
        Expected {
            writable: Some("/srv/w".into()),
            read_only: ["/srv/w/.skills", "/srv/w/.skills/kit"].map(PathBuf::from).into(),
        }
    }

    #[test]
    fn the_mounts_of_a_sandbox_are_accepted() {
        let inside = [COMMON, CWD, SKILLS, SKILL].concat();
        assert_eq!(expected().compare(inside.as_bytes(), HOST.as_bytes(), never), Comparison::Same);
        let read_only_host = inside.replace("/w /srv/w rw", "/w /srv/w ro");
        assert_eq!(expected().compare(read_only_host.as_bytes(), HOST.as_bytes(), never), Comparison::Same);
        let only_reads = Expected { writable: None, read_only: vec!["/srv/w/.skills/kit".into()] };
        assert_eq!(
            only_reads.compare([COMMON, SKILL].concat().as_bytes(), HOST.as_bytes(), never),
            Comparison::Same
        );
    }

    #[test]
    fn other_mounts_are_rejected() {
        let whole = [COMMON, CWD, SKILLS, SKILL].concat();
        for (case, inside) in [
            ("the mounts of the host", HOST.to_owned()),
            ("before the mounts are final", whole.replace(" /proc rw", " /newroot/proc rw")),
            ("an incomplete table", format!("{whole}57 40")),
            ("no skill", [COMMON, CWD, SKILLS].concat()),
            ("a writable skill", whole.replace("kit ro", "kit rw")),
            ("another skill", whole.replace("/w/.skills/kit /srv", "/other /srv")),
            ("no protection", [COMMON, CWD, SKILL].concat()),
            ("another working directory", whole.replace("8:2 /w /srv/w ", "8:2 /home /srv/w ")),
            ("a writable system", whole.replace("8:1 / / ro", "8:1 / / rw")),
            ("a writable home directory", format!("{whole}57 40 8:1 /home/me /home/me rw - ext4 x rw\n")),
            (
                "a home directory in the working directory",
                format!("{whole}57 53 8:1 /home/me /srv/w/x rw - ext4 x rw\n"),
            ),
            ("a file as a device", format!("{whole}57 47 8:1 /home/me/.profile /dev/null rw - ext4 x rw\n")),
            (
                "a directory of the host as a device",
                format!("{whole}57 47 0:7 /user /dev/shm rw - tmpfs x rw\n"),
            ),
            ("the host's shared memory", format!("{whole}59 47 0:10 / /dev/shm rw - tmpfs x rw\n")),
            ("the host's runtime directory", format!("{whole}57 52 0:7 / /run rw - tmpfs x rw\n")),
            ("another mount in the same place", format!("{whole}57 45 8:2 / /srv rw - ext4 x rw\n")),
            ("the host's processes", format!("{whole}57 50 0:6 / /proc rw - proc proc rw\n")),
            (
                "a hidden skill",
                format!("{whole}57 56 8:2 /w/.skills/kit /srv/w/.skills/kit rw - ext4 x rw\n"),
            ),
        ] {
            assert_ne!(
                expected().compare(inside.as_bytes(), HOST.as_bytes(), never),
                Comparison::Same,
                "{case}"
            );
        }
    }

    /// The paths of these mounts are all `/`.
    #[test]
    fn files_are_compared_if_paths_are_unknown() {
        let on_nfs = |text: &str| {
            let lines = text.lines().map(|line| {
                if !line.contains(" 8:2 ") {
                    return line.to_owned();
                }
                let line = line.replace("ext4 /dev/sdb", "nfs4 server:/srv");
                let mut fields: Vec<_> = line.split(' ').collect();
                fields[3] = "/";
                fields.join(" ")
            });
            lines.collect::<Vec<_>>().join("\n") + "\n"
        };
        let whole = on_nfs(&[COMMON, CWD, SKILLS, SKILL].concat());
        let in_place = ["/srv/w", "/srv/w/.skills", "/srv/w/.skills/kit"].map(Path::new);
        let compare = |inside: &str, is_same_file: &dyn Fn(&Path) -> bool| {
            expected().compare(inside.as_bytes(), on_nfs(HOST).as_bytes(), is_same_file)
        };
        assert_eq!(compare(&whole, &|path| in_place.contains(&path)), Comparison::Same);
        for path in in_place {
            assert_eq!(compare(&whole, &|other| other != path), Comparison::Different, "{path:?}");
        }
        for more in ["/srv", "/srv/home"] {
            let inside = format!("{whole}70 45 8:2 / {more} rw - nfs4 server:/srv rw\n");
            assert_eq!(compare(&inside, &|path| in_place.contains(&path)), Comparison::Different, "{more}");
        }
    }

    #[test]
    fn paths_are_unescaped() {
        for (text, expected) in [
            ("/a\\040b", "/a b"),
            ("/a\\134040", "/a\\040"),
            ("/a\\", "/a\\"),
            ("/a\\9", "/a\\9"),
            ("/ü", "/ü"),
        ] {
            assert_eq!(unescaped(text.as_bytes()).as_os_str().as_bytes(), expected.as_bytes(), "{text}");
        }
    }
}
