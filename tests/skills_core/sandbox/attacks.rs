//! The attacks of a hostile script, which run inside the sandbox. Each attempt writes one line: its description, and `done`
//! or the error.

use std::{
    env, fmt, fs,
    fs::OpenOptions,
    io::{self, Write},
    net::TcpStream,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::{OpenOptionsExt, symlink},
            net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use rustix::{
    fs::OFlags,
    mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount},
};

/// The flag in the `#!` line of the script, which names this program as the interpreter.
pub(crate) const FLAG: &str = "--sandbox-attack";
/// The text on the standard input of each script.
pub(crate) const INPUT: &str = "input\n";

pub(crate) fn run(attack: &str, args: &[&str]) -> ExitCode {
    match (attack, args) {
        ("status", []) => say(fs::read_to_string("/proc/self/status").unwrap()),
        ("mounts", [skill, outside]) => mounts(Path::new(skill), Path::new(outside)),
        ("write", paths) => paths.iter().for_each(|path| attempt(path, || write(Path::new(path)))),
        ("change", [skill]) => change(Path::new(skill)),
        ("replace", [cwd, skill]) => replace(Path::new(cwd), Path::new(skill)),
        ("connect", names) => names.iter().for_each(|name| connect(name)),
        ("tcp", [address]) => attempt(address, || TcpStream::connect(address).map(drop)),
        ("calls", []) => calls(),
        ("pairs", []) => pairs(),
        ("kernel", []) => kernel(),
        ("descriptors", []) => descriptors(),
        ("variables", []) => env::vars().for_each(|(name, value)| say(format!("{name}={value}"))),
        ("list", [dir]) => list(Path::new(dir)),
        ("terminal", []) => {
            attempt("/dev/tty", || OpenOptions::new().write(true).open("/dev/tty").map(drop));
        }
        ("signal", []) => {
            let error = Command::new("sh").args(["-c", "trap '' TERM; kill 0; echo kill 0: done"]).exec();
            say(error);
        }
        ("set-user-id", [program]) => {
            let output = Command::new(program).arg("-u").output().unwrap();
            say(String::from_utf8_lossy(&output.stdout));
        }
        ("left", []) => leave_set_user_id(),
        ("hold", [fifo]) => hold(Path::new(fifo)),
        _ => {
            say(format!("unknown attack {attack} {args:?}"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn attempt<E: fmt::Display>(what: impl fmt::Display, action: impl FnOnce() -> Result<(), E>) {
    say(match action() {
        Ok(()) => format!("{what}: done"),
        Err(error) => format!("{what}: {error}"),
    });
}

#[expect(clippy::print_stdout, reason = "what a script writes is its result")]
fn say(line: impl fmt::Display) {
    println!("{line}");
}

/// Appends to a file, or creates a file in a directory.
fn write(path: &Path) -> io::Result<()> {
    let path = if path.is_dir() { path.join("attack") } else { path.to_owned() };
    OpenOptions::new().append(true).create(true).open(path)?.write_all(b"attack\n")
}

/// Tries to change or remove the mounts.
fn mounts(skill: &Path, outside: &Path) {
    let remount = |path: &Path| mount_remount(path, MountFlags::BIND, "").map_err(io::Error::from);
    for path in [Path::new("/"), skill, outside, Path::new("/proc/sys"), Path::new("/sys"), Path::new("/run")]
    {
        attempt(format!("remount {}", path.display()), || remount(path));
        attempt(format!("unmount {}", path.display()), || unmount(path, UnmountFlags::DETACH));
        attempt(format!("tmpfs on {}", path.display()), || {
            mount("none", path, "tmpfs", MountFlags::empty(), None)
        });
    }
    attempt("bind mount", || mount_bind(outside, skill));
    attempt("proc", || mount("proc", "/tmp", "proc", MountFlags::empty(), None));
    for path in [skill, outside] {
        attempt(format!("write {} afterwards", path.display()), || write(path));
        attempt(format!("write {} through /proc", path.display()), || {
            write(&Path::new("/proc/self/root").join(path.strip_prefix("/").unwrap()))
        });
    }
    // Look at the name of process 1, because bubblewrap closes its directory of the host before this script can notice it reliably.
    attempt("process 1 is bubblewrap", || {
        let name = fs::read_to_string("/proc/1/comm")?;
        if name == "bwrap\n" { Ok(()) } else { Err(io::Error::other(name)) }
    });
    attempt("the program of process 1", || OpenOptions::new().write(true).open("/proc/1/exe").map(drop));
    for entry in fs::read_dir("/proc/1/fd").into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            attempt(format!("{} leads out", path.display()), || fs::read_dir(path.join("..")).map(drop));
        }
    }
    for (program, args) in [
        ("mount", &["-o", "remount,rw", "/"][..]),
        ("unshare", &["--user", "--map-root-user", "--mount", "true"]),
        ("unshare", &["--mount", "true"]),
        ("nsenter", &["--target", "1", "--user", "--mount", "true"]),
        ("chroot", &["/", "true"]),
    ] {
        attempt(format!("{program} {args:?}"), || succeed(Command::new(program).args(args)));
    }
}

fn succeed(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    let error = || io::Error::other(String::from_utf8_lossy(&output.stderr).trim().replace('\n', " "));
    if output.status.success() { Ok(()) } else { Err(error()) }
}

/// Tries to change the skill in every way that a directory can be changed.
fn change(skill: &Path) {
    let file = skill.join("SKILL.md");
    attempt("append", || write(&file));
    attempt("create", || write(skill));
    attempt("truncate", || OpenOptions::new().write(true).truncate(true).open(&file).map(drop));
    attempt("delete", || fs::remove_file(&file));
    attempt("rename", || fs::rename(&file, skill.join("other")));
    attempt("rename away", || fs::rename(&file, "stolen"));
    attempt("rename over", || {
        fs::write("mine", "x")?;
        fs::rename("mine", &file)
    });
    attempt("hard link", || {
        fs::hard_link(&file, "linked")?;
        write(Path::new("linked"))
    });
    attempt("symbolic link", || {
        symlink(&file, "symlinked")?;
        write(Path::new("symlinked"))
    });
    attempt("permissions", || {
        let mut permissions = fs::metadata(&file)?.permissions();
        #[expect(clippy::permissions_set_readonly_false, reason = "as bad as it gets")]
        permissions.set_readonly(false);
        fs::set_permissions(&file, permissions)
    });
    attempt("directory", || fs::create_dir(skill.join("new")));
    attempt("remove all", || fs::remove_dir_all(skill));
    attempt("through the root of process 1", || {
        write(&Path::new("/proc/1/root").join(file.strip_prefix("/").unwrap()))
    });
}

/// Tries to replace a skill under the working directory by another one.
fn replace(cwd: &Path, skill: &Path) {
    let between: Vec<&Path> = skill.ancestors().take_while(|path| *path != cwd).collect();
    for path in &between {
        attempt(format!("rename {}", path.display()), || fs::rename(path, cwd.join("away")));
        attempt(format!("remove {}", path.display()), || fs::remove_dir(path));
        attempt(format!("rename over {}", path.display()), || {
            fs::create_dir_all(cwd.join("evil"))?;
            fs::rename(cwd.join("evil"), path)
        });
        attempt(format!("replace {}", path.display()), || {
            fs::rename(path, cwd.join("away"))?;
            fs::create_dir(path)
        });
    }
    let skills = skill.parent().unwrap();
    attempt("a new skill", || fs::create_dir(skills.join("new")));
    attempt("a neighbour", || write(&skills.join("neighbour")));
    attempt("a neighbour's name", || fs::rename(skills.join("neighbour"), skills.join("other")));
}

/// Tries to connect to a socket. `name` is a path, or `@` followed by an abstract name.
fn connect(name: &str) {
    let address = || match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    };
    if name.ends_with("datagrams") {
        attempt(format!("send to {name}"), || {
            UnixDatagram::unbound()?.send_to_addr(b"attack", &address()?).map(drop)
        });
        // Even if a datagram socket is part of a pair, it can be used to send to another address.
        attempt(format!("send to {name} from a pair"), || {
            UnixDatagram::pair()?.0.send_to_addr(b"attack", &address()?).map(drop)
        });
    } else {
        attempt(format!("connect to {name}"), || UnixStream::connect_addr(&address()?).map(drop));
    }
}

/// Tries system calls that the filter must block. Perl can make a system call by its number.
fn calls() {
    const X32: u32 = 0x4000_0000;
    let x86_64 = cfg!(target_arch = "x86_64");
    let calls: &[(&str, u32, &str)] = if x86_64 {
        &[
            ("socket", 41, "1,1,0"),
            ("socket with the upper half set", 41, "0x100000001,1,0"),
            ("socket(AF_VSOCK)", 41, "40,1,0"),
            ("socket(AF_ALG)", 41, "38,5,0"),
            ("socketpair(SOCK_DGRAM)", 53, "1,2,0,$b"),
            ("socketpair(SOCK_RAW)", 53, "1,3,0,$b"),
            ("socketpair(SOCK_DGRAM|SOCK_CLOEXEC)", 53, "1,524290,0,$b"),
            ("io_uring_setup", 425, "8,$b"),
            ("clone3", 435, "$b,88"),
            ("unshare(CLONE_NEWUSER)", 272, "0x10000000"),
            ("unshare(CLONE_NEWNS)", 272, "0x20000"),
            ("clone(CLONE_NEWUSER)", 56, "0x10000011,0,0,0,0"),
            ("keyctl", 250, "0,-3,0,0,0"),
            ("add_key", 248, "'user','a','b',1,-3"),
            ("request_key", 249, "'user','a',0,0"),
            ("fcntl(F_SETLEASE)", 72, "do{open(F,'>','leased');fileno(F)},1024,1"),
            ("setns", 308, "0,0"),
            ("pivot_root", 155, "'/tmp','/tmp'"),
            ("chroot", 161, "'/tmp'"),
            ("bpf", 321, "0,$b,64"),
        ]
    } else {
        // On arm64 and riscv64, we use the generic numbers.
        &[
            ("socket", 198, "1,1,0"),
            ("socket(AF_VSOCK)", 198, "40,1,0"),
            ("socketpair(SOCK_DGRAM)", 199, "1,2,0,$b"),
            ("io_uring_setup", 425, "8,$b"),
            ("clone3", 435, "$b,88"),
            ("unshare(CLONE_NEWUSER)", 97, "0x10000000"),
            ("clone(CLONE_NEWUSER)", 220, "0x10000011,0,0,0,0"),
            ("keyctl", 219, "0,-3,0,0,0"),
            ("add_key", 217, "'user','a','b',1,-3"),
            ("request_key", 218, "'user','a',0,0"),
            ("fcntl(F_SETLEASE)", 25, "do{open(F,'>','leased');fileno(F)},1024,1"),
        ]
    };
    for (name, number, args) in calls {
        let numbers = [Some(*number), x86_64.then_some(number | X32)];
        for number in numbers.into_iter().flatten() {
            attempt(format!("{name} ({number:#x})"), || perl(number, args));
        }
    }
}

/// Tries to create set-user-ID and set-group-ID programs.
fn leave_set_user_id() {
    let x86_64 = cfg!(target_arch = "x86_64");
    // On arm64 and riscv64, we use the generic numbers.
    let number = |x86, generic| if x86_64 { x86 } else { generic };
    fs::write("plain", "x").unwrap();
    let mknodat = number(259, 33);
    let openat = number(257, 56);
    let fchmod = number(91, 52);
    let fchmodat = number(268, 53);
    let mut calls = vec![
        ("fchmod", fchmod, "fileno(F),04755"),
        ("fchmod g", fchmod, "fileno(F),02755"),
        ("fchmodat", fchmodat, "-100,$f,04755"),
        ("fchmodat2", 452, "-100,$f,04755,0"),
        ("mknodat", mknodat, "-100,$n,0104755,0"),
        ("openat", openat, "-100,$n,0101,04755"),
        ("openat g", openat, "-100,$n,0101,02755"),
        ("openat with O_TMPFILE", openat, "-100,$d,$t,04755"),
        ("openat2", 437, "-100,$n,$how,24"),
    ];
    if x86_64 {
        calls.extend([
            ("chmod", 90, "$f,04755"),
            ("chmod g", 90, "$f,02755"),
            ("creat", 85, "$n,04755"),
            ("mknod", 133, "$n,0104755,0"),
            ("open", 2, "$n,0101,04755"),
        ]);
    }
    let unnamed = (OFlags::TMPFILE | OFlags::WRONLY).bits();
    for (name, number, args) in calls {
        let set = format!(
            "open(F,'+<','plain'); $f=\"plain\"; $d=\".\"; $n=\"{name}\"; $t={unnamed}; $how=pack('QQQ',0101,04755,0);"
        );
        attempt(name, || perl_after(&set, number, args));
    }
}

fn perl(number: u32, args: &str) -> io::Result<()> {
    perl_after("$b = \"\\0\" x 256;", number, args)
}

fn perl_after(statements: &str, number: u32, args: &str) -> io::Result<()> {
    // If `clone` works, the child will run this as well, so it exits too.
    let code =
        format!("{statements} $r = syscall({number},{args}); exit 0 if $r >= 0; print STDERR $!; exit 1");
    succeed(Command::new("perl").args(["-e", &code]))
}

/// Performs operations that common programs need. All of them must succeed.
fn pairs() {
    attempt("standard input", || {
        let text = io::read_to_string(io::stdin())?;
        if text == INPUT { Ok(()) } else { Err(io::Error::other(format!("{text:?}"))) }
    });
    attempt("a pair of streams", || {
        let (mut one, other) = UnixStream::pair()?;
        one.write_all(b"x")?;
        drop(other);
        Ok::<_, io::Error>(())
    });
    attempt("a thread", || std::thread::Builder::new().spawn(|| ()).map(|thread| thread.join().unwrap()));
    attempt("a process", || succeed(&mut Command::new("true")));
    attempt("an IP socket", || std::net::UdpSocket::bind("127.0.0.1:0").map(drop));
    attempt("a temporary file", || fs::write(env::temp_dir().join("file"), "x"));
    attempt("shared memory", || fs::write("/dev/shm/file", "x"));
    attempt("the working directory", || fs::write("file", "x"));
    attempt("random numbers", || fs::File::open("/dev/urandom").map(drop));
    attempt("the null device", || fs::write("/dev/null", "x"));
    // Some programs need a Unix socket with a name, but we can't allow that. If it works, print a line, so that the test fails.
    if UnixListener::bind("socket").is_ok() {
        say("a Unix socket could be created, which the filter should prevent");
    }
}

/// Tries to open every file in `/proc` and `/sys` for writing, except those of processes.
fn kernel() {
    let own = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.parent() == Some(Path::new("/proc"))
            && (name.parse::<u32>().is_ok() || name == "self" || name == "thread-self")
    };
    let mut count = 0;
    let mut dirs: Vec<PathBuf> = vec!["/proc".into(), "/sys".into()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && !own(&path) {
                dirs.push(path);
            } else if kind.is_file() {
                count += 1;
                if OpenOptions::new().write(true).custom_flags(0o4000).open(&path).is_ok() {
                    say(format!("{}: done", path.display()));
                }
            }
        }
    }
    say(format!("{count} files"));
}

/// Lists the open descriptors with their targets.
fn descriptors() {
    let own = fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.path());
    for (path, target) in own.filter_map(|path| fs::read_link(&path).ok().map(|target| (path, target))) {
        say(format!("{} {}", path.file_name().unwrap().display(), target.display()));
    }
}

fn list(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        say(entry.file_name().display());
    }
}

/// Holds the FIFO open, together with a child process, until both are killed.
fn hold(fifo: &Path) {
    let mut writer = OpenOptions::new().write(true).open(fifo).unwrap();
    writer.write_all(b"here\n").unwrap();
    let mut child = Command::new("sleep").arg("600").stdout(writer.try_clone().unwrap()).spawn().unwrap();
    child.wait().unwrap();
}
