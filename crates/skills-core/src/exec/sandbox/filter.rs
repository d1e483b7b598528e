//! The filter of system calls: what namespaces and missing capabilities leave open.
//!
//! *Unix sockets.* A socket in the file system can be connected to through a read-only mount, wherever it lies (agents of
//! SSH and GnuPG, container daemons and editors have theirs below the home directory too), and an abstract one by whoever
//! shares the network namespace. The address of `connect` is in memory, which a filter cannot read. So no Unix socket can
//! be made at all, apart from pairs that are connected to each other for good. Other families can lead out as well
//! (`AF_VSOCK` to the host of a virtual machine), so the list is of what is allowed: IP and netlink.
//!
//! *`io_uring`* makes sockets without the system call.
//!
//! *User namespaces* would give capabilities over new namespaces back.
//!
//! *Keys* of the session are inherited, and no namespace holds them.
//!
//! *Set-user-ID programs* do nothing inside, but one that a script leaves in the working directory would run outside as
//! whoever ran the script. `openat2` has its mode in memory.
//!
//! The rules are applied by bubblewrap, last; flatpak's filter was the model, and for set-user-ID programs systemd's
//! (`RestrictSUIDSGID`).

use std::{collections::BTreeMap, sync::Arc};

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, CLONE_NEWUSER, ENOSYS, EPERM, O_CREAT, O_DIRECTORY, O_TMPFILE,
    S_ISGID, S_ISUID, SOCK_DGRAM, SOCK_RAW, SYS_add_key, SYS_clone, SYS_clone3, SYS_fchmod, SYS_fchmodat,
    SYS_io_uring_setup, SYS_keyctl, SYS_mknodat, SYS_openat, SYS_openat2, SYS_request_key, SYS_socket,
    SYS_socketpair, SYS_unshare, c_int, c_long,
};
#[cfg(target_arch = "x86_64")]
use libc::{SYS_chmod, SYS_creat, SYS_mknod, SYS_open};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::SandboxError;

/// The bits of a socket's type that are not flags.
const SOCK_TYPE_MASK: u64 = 0xf;
/// Set in the number of a system call of the x32 ABI, which filters for x86-64 see beside their own.
const X32_SYSCALL_BIT: c_long = 0x4000_0000;

/// The same number everywhere; the C library's bindings do not have it everywhere.
const SYS_FCHMODAT2: c_long = 452;

/// The compiled filters, each to be loaded.
pub(super) fn programs() -> Result<Vec<Arc<[u8]>>, SandboxError> {
    let unsupported = |_| SandboxError::Architecture(std::env::consts::ARCH);
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(unsupported)?;
    // `EPERM` is what a program reports in words that fit. `ENOSYS` is what makes a program do without: the C library
    // with `clone`, whose flags can be looked at, and Node.js with threads.
    let rules = || Ok([(refused()?, EPERM), (set_user_id()?, EPERM), (absent(), ENOSYS)]);
    let compiled = |rules: [_; 3]| {
        rules.into_iter().map(|(rules, errno)| compile(rules, errno, arch)).collect::<Result<_, _>>()
    };
    rules().and_then(compiled).map_err(|error: BackendError| SandboxError::NotWorking(error.to_string()))
}

type Rules = Vec<(c_long, Vec<SeccompRule>)>;

fn refused() -> Result<Rules, BackendError> {
    let other_family =
        all([AF_INET, AF_INET6, AF_NETLINK].map(|family| condition(0, SeccompCmpOp::Ne, family)))?;
    let no_unix_pair = all([condition(0, SeccompCmpOp::Ne, AF_UNIX)])?;
    // A datagram socket can be given another address at any time, a stream cannot. The kernel takes `SOCK_RAW` for one.
    let datagram_pair = |kind| all([condition(1, SeccompCmpOp::MaskedEq(SOCK_TYPE_MASK), kind)]);
    let user_namespace = || all([condition(0, SeccompCmpOp::MaskedEq(bits(CLONE_NEWUSER)), CLONE_NEWUSER)]);
    Ok(vec![
        (SYS_socket, vec![other_family]),
        (SYS_socketpair, vec![no_unix_pair, datagram_pair(SOCK_DGRAM)?, datagram_pair(SOCK_RAW)?]),
        (SYS_clone, vec![user_namespace()?]),
        (SYS_unshare, vec![user_namespace()?]),
        (SYS_add_key, vec![]),
        (SYS_keyctl, vec![]),
        (SYS_request_key, vec![]),
    ])
}

fn absent() -> Rules {
    vec![(SYS_clone3, vec![]), (SYS_io_uring_setup, vec![]), (SYS_openat2, vec![])]
}

/// Everything that gives a file a mode; the argument that has it, and before it the flags of what opens.
fn set_user_id() -> Result<Rules, BackendError> {
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
    // Without these there is no mode, and anything may be in its place.
    let making = [O_CREAT, O_TMPFILE & !O_DIRECTORY];
    let has = |argument, bit: c_int| condition(argument, SeccompCmpOp::MaskedEq(bits(bit)), bit);
    let wrong = [S_ISUID, S_ISGID].map(u32::cast_signed);
    let mut rules = Rules::new();
    for (call, mode) in modes {
        let each = wrong.into_iter().map(|bit| all([has(mode, bit)]));
        rules.push((call, each.collect::<Result<_, _>>()?));
    }
    for (call, mode) in opened {
        let pairs = making.into_iter().flat_map(|flag| wrong.map(|bit| (flag, bit)));
        let each = pairs.map(|(flag, bit)| all([has(mode - 1, flag), has(mode, bit)]));
        rules.push((call, each.collect::<Result<_, _>>()?));
    }
    Ok(rules)
}

fn compile(rules: Rules, errno: c_int, arch: TargetArch) -> Result<Arc<[u8]>, BackendError> {
    let mut by_number: BTreeMap<_, _> = rules.into_iter().collect();
    if arch == TargetArch::x86_64 {
        let x32: Vec<_> =
            by_number.iter().map(|(call, rules)| (call | X32_SYSCALL_BIT, rules.clone())).collect();
        by_number.extend(x32);
    }
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(by_number, SeccompAction::Allow, refuse, arch)?;
    let program: BpfProgram = filter.try_into()?;
    // As `struct sock_filter` lies in memory.
    let instruction = |it: seccompiler::sock_filter| {
        let ([c0, c1], [k0, k1, k2, k3]) = (it.code.to_ne_bytes(), it.k.to_ne_bytes());
        [c0, c1, it.jt, it.jf, k0, k1, k2, k3]
    };
    Ok(program.into_iter().flat_map(instruction).collect())
}

fn all(
    conditions: impl IntoIterator<Item = Result<SeccompCondition, BackendError>>,
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: c_int) -> Result<SeccompCondition, BackendError> {
    // The kernel reads these arguments as `int`: what is in the upper half does not count.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, bits(value))
}

fn bits(value: c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numbers_of_a_call_are_known() {
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
    fn programs_for_every_architecture() {
        for arch in [TargetArch::x86_64, TargetArch::aarch64, TargetArch::riscv64] {
            for rules in [refused().unwrap(), set_user_id().unwrap(), absent()] {
                let program = compile(rules, EPERM, arch).unwrap();
                assert_eq!(program.len() % 8, 0);
                // Below the capacity of any pipe, so that it can be written before anybody reads.
                assert!((8..=4096).contains(&program.len()), "{arch:?}: {}", program.len());
            }
        }
    }
}
