//! The system call filter (seccomp). It blocks the escapes that namespaces and missing capabilities leave open.
//!
//! - *Unix sockets.* A script can connect to a socket in the file system even through a read-only mount. Such sockets can be
//!   anywhere, for example those of SSH and GnuPG agents, container daemons and editors under the home directory. An abstract
//!   socket is reachable from every process in the same network namespace. A filter can't check the address of `connect`,
//!   because it is in memory, so we block the creation of Unix sockets, apart from pairs that stay connected to each other.
//!   Other address families can lead out of the sandbox, too (such as `AF_VSOCK`, to the host of a virtual machine).
//!   Therefore only IP and netlink are allowed.
//! - *`io_uring`* can create sockets without that system call.
//! - *User namespaces* would give the script capabilities again, over new namespaces.
//! - *Leases* make other programs wait until they can open a file, and a read-only mount doesn't prevent them.
//! - *Keys* of the session are inherited, and there is no namespace for them.
//! - *Set-user-ID programs* have no effect inside the sandbox. But if a script leaves such a program in the working directory,
//!   it runs outside with the rights of the user who ran the script. `openat2` is blocked because its mode is in memory.
//!
//! Bubblewrap installs the filters last. The rules follow flatpak's filter and, for set-user-ID programs, systemd's
//! `RestrictSUIDSGID`.

use std::{collections::BTreeMap, sync::Arc};

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, CLONE_NEWUSER, ENOSYS, EPERM, F_SETLEASE, O_CREAT, O_DIRECTORY,
    O_TMPFILE, S_ISGID, S_ISUID, SOCK_DGRAM, SOCK_RAW, SYS_add_key, SYS_clone, SYS_clone3, SYS_fchmod,
    SYS_fchmodat, SYS_fcntl, SYS_io_uring_setup, SYS_keyctl, SYS_mknodat, SYS_openat, SYS_openat2,
    SYS_request_key, SYS_socket, SYS_socketpair, SYS_unshare, c_int, c_long,
};
#[cfg(target_arch = "x86_64")]
use libc::{SYS_chmod, SYS_creat, SYS_mknod, SYS_open};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// The reason that there is no filter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// The processor architecture is not supported. Contains its name.
    #[error("unsupported processor architecture {0}")]
    Architecture(&'static str),
    /// The rules can't be compiled. Contains the message of the compiler.
    #[error("cannot compile the filter for system calls: {0}")]
    Compiler(String),
}

/// Masks the flags in the type of a socket.
const SOCK_TYPE_MASK: u64 = 0xf;
/// The bit that marks system calls of the x32 ABI. A filter for x86-64 sees these calls, too.
const X32_SYSCALL_BIT: c_long = 0x4000_0000;

/// `fchmodat2` has the same number on all architectures, but the `libc` crate doesn't define it for all of them.
const SYS_FCHMODAT2: c_long = 452;

/// Compiles the filters. Bubblewrap must install all of them.
///
/// # Errors
/// Returns [`FilterError::Architecture`] on an unsupported processor, and [`FilterError::Compiler`] if a rule can't be compiled.
pub fn programs() -> Result<Vec<Arc<[u8]>>, FilterError> {
    let unsupported = |_| FilterError::Architecture(std::env::consts::ARCH);
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(unsupported)?;
    // If a call returns `EPERM`, programs show an error message that fits. If it returns `ENOSYS`, they use a fallback instead:
    // the C library uses `clone`, whose flags we can check here, and Node.js uses threads.
    let rules = || Ok([(refused()?, EPERM), (set_user_id()?, EPERM), (absent(), ENOSYS)]);
    let compiled = |rules: [_; 3]| {
        rules.into_iter().map(|(rules, errno)| compile(rules, errno, arch)).collect::<Result<_, _>>()
    };
    rules().and_then(compiled).map_err(|error: BackendError| FilterError::Compiler(error.to_string()))
}

type Rules = Vec<(c_long, Vec<SeccompRule>)>;

/// Returns the calls that fail with `EPERM`, apart from those of [`set_user_id`].
fn refused() -> Result<Rules, BackendError> {
    let other_family =
        all([AF_INET, AF_INET6, AF_NETLINK].map(|family| condition(0, SeccompCmpOp::Ne, family)))?;
    let no_unix_pair = all([condition(0, SeccompCmpOp::Ne, AF_UNIX)])?;
    // A datagram socket of a pair can later send to another address, but a stream socket cannot. The kernel treats
    // `SOCK_RAW` as datagrams.
    let datagram_pair = |kind| all([condition(1, SeccompCmpOp::MaskedEq(SOCK_TYPE_MASK), kind)]);
    let user_namespace = || all([condition(0, SeccompCmpOp::MaskedEq(bits(CLONE_NEWUSER)), CLONE_NEWUSER)]);
    Ok(vec![
        (SYS_socket, vec![other_family]),
        (SYS_socketpair, vec![no_unix_pair, datagram_pair(SOCK_DGRAM)?, datagram_pair(SOCK_RAW)?]),
        (SYS_clone, vec![user_namespace()?]),
        (SYS_unshare, vec![user_namespace()?]),
        (SYS_fcntl, vec![all([condition(1, SeccompCmpOp::Eq, F_SETLEASE)])?]),
        (SYS_add_key, vec![]),
        (SYS_keyctl, vec![]),
        (SYS_request_key, vec![]),
    ])
}

/// Returns the calls that fail with `ENOSYS`, so that programs use a fallback.
fn absent() -> Rules {
    vec![(SYS_clone3, vec![]), (SYS_io_uring_setup, vec![]), (SYS_openat2, vec![])]
}

/// Returns the calls that would set the set-user-ID or set-group-ID bit of a file. They fail with `EPERM`.
fn set_user_id() -> Result<Rules, BackendError> {
    // Each call with the index of its mode argument.
    let modes = [
        (SYS_fchmod, 1),
        (SYS_fchmodat, 2),
        (SYS_FCHMODAT2, 2),
        (SYS_mknodat, 2),
        #[cfg(target_arch = "x86_64")]
        (SYS_chmod, 1),
        #[cfg(target_arch = "x86_64")]
        (SYS_creat, 1),
        #[cfg(target_arch = "x86_64")]
        (SYS_mknod, 1),
    ];
    let opened = [
        (SYS_openat, 3),
        #[cfg(target_arch = "x86_64")]
        (SYS_open, 2),
    ];
    // These calls use the mode only if one of these flags is set in the argument before it. Otherwise the mode can have any
    // value, so we don't check it.
    let creating = [O_CREAT, O_TMPFILE & !O_DIRECTORY];
    let has = |argument, bit: c_int| condition(argument, SeccompCmpOp::MaskedEq(bits(bit)), bit);
    let wrong = [S_ISUID, S_ISGID].map(u32::cast_signed);
    let mut rules = Rules::new();
    for (call, mode) in modes {
        let each = wrong.into_iter().map(|bit| all([has(mode, bit)]));
        rules.push((call, each.collect::<Result<_, _>>()?));
    }
    for (call, mode) in opened {
        let pairs = creating.into_iter().flat_map(|flag| wrong.map(|bit| (flag, bit)));
        let each = pairs.map(|(flag, bit)| all([has(mode - 1, flag), has(mode, bit)]));
        rules.push((call, each.collect::<Result<_, _>>()?));
    }
    Ok(rules)
}

fn compile(rules: Rules, errno: c_int, arch: TargetArch) -> Result<Arc<[u8]>, BackendError> {
    let mut by_number = BTreeMap::new();
    by_number.extend(rules);
    if arch == TargetArch::x86_64 {
        let x32: Vec<_> =
            by_number.iter().map(|(call, rules)| (call | X32_SYSCALL_BIT, rules.clone())).collect();
        by_number.extend(x32);
    }
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(by_number, SeccompAction::Allow, refuse, arch)?;
    let program: BpfProgram = filter.try_into()?;
    // The memory layout of `struct sock_filter`.
    let instruction = |filter: seccompiler::sock_filter| {
        let [c0, c1] = filter.code.to_ne_bytes();
        let [k0, k1, k2, k3] = filter.k.to_ne_bytes();
        [c0, c1, filter.jt, filter.jf, k0, k1, k2, k3]
    };
    Ok(program.into_iter().flat_map(instruction).collect())
}

fn all(
    conditions: impl IntoIterator<Item = Result<SeccompCondition, BackendError>>,
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: c_int) -> Result<SeccompCondition, BackendError> {
    // The kernel reads these arguments as `int` and ignores the upper half.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, bits(value))
}

fn bits(value: c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_both_abis_are_filtered() {
        let program = compile(absent(), ENOSYS, TargetArch::x86_64).unwrap();
        let compared: Vec<u32> = program
            .chunks(8)
            .map(|instruction| u32::from_ne_bytes(instruction[4..].try_into().unwrap()))
            .collect();
        for call in [SYS_io_uring_setup, SYS_io_uring_setup | X32_SYSCALL_BIT] {
            assert!(compared.contains(&u32::try_from(call).unwrap()), "{call:#x}");
        }
    }

    #[test]
    fn filters_compile_for_all_architectures() {
        for arch in [TargetArch::x86_64, TargetArch::aarch64, TargetArch::riscv64] {
            for rules in [refused().unwrap(), set_user_id().unwrap(), absent()] {
                let program = compile(rules, EPERM, arch).unwrap();
                assert_eq!(program.len() % 8, 0);
                // Each filter must fit in the buffer of a pipe, because it is written before bubblewrap reads it.
                assert!((8..=4096).contains(&program.len()), "{arch:?}: {}", program.len());
            }
        }
    }
}
