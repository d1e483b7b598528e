//! Decides from the security descriptor of a file on Windows if only administrators can change it. The descriptor is written in the
//! [language for descriptors](https://learn.microsoft.com/en-us/windows/win32/secauthz/security-descriptor-string-format).

/// SYSTEM, the group Administrators and TrustedInstaller. Their names in the language and their identifiers are the same everywhere.
const ADMINISTRATORS: [&str; 5] = [
    "SY",
    "S-1-5-18",
    "BA",
    "S-1-5-32-544",
    "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464",
];

/// The rights of the owner. The owner is checked.
const RIGHTS_OF_OWNER: [&str; 2] = ["OW", "S-1-3-4"];

/// The rights to delete or rename, to change the access control list, to take the ownership, and the generic rights that contain them.
const CONTROL: u32 = 0x0001_0000 | 0x0004_0000 | 0x0008_0000 | 0x1000_0000 | 0x4000_0000;
/// The rights to write, to append and to change attributes of a file.
const OF_FILE: u32 = CONTROL | 0x2 | 0x4 | 0x10 | 0x100;
/// The right to delete the entries of a directory. By default, users may create other entries in `ProgramData` and below.
const OF_DIRECTORY: u32 = CONTROL | 0x40;

/// The names of rights.
const RIGHTS: [(&str, u32); 20] = [
    ("CC", 0x1),
    ("DC", 0x2),
    ("LC", 0x4),
    ("SW", 0x8),
    ("RP", 0x10),
    ("WP", 0x20),
    ("DT", 0x40),
    ("LO", 0x80),
    ("CR", 0x100),
    ("SD", 0x0001_0000),
    ("RC", 0x0002_0000),
    ("WD", 0x0004_0000),
    ("WO", 0x0008_0000),
    ("FR", 0x0012_0089),
    ("FW", 0x0012_0116),
    ("FX", 0x0012_00a0),
    ("GA", 0x1000_0000),
    ("GX", 0x2000_0000),
    ("GW", 0x4000_0000),
    ("GR", 0x8000_0000),
];

/// Returns the reason if a file or directory can be changed by a user who is not an administrator. A descriptor that is not understood is
/// a reason as well.
pub(super) fn judge(descriptor: &str, is_directory: bool) -> Option<&'static str> {
    let Some((owner, list)) = descriptor.strip_prefix("O:").and_then(|rest| rest.split_once("D:")) else {
        return Some("its owner or its access control list is missing");
    };
    if !ADMINISTRATORS.contains(&owner) {
        return Some("the owner is neither Administrators nor SYSTEM nor TrustedInstaller");
    }
    let changes = if is_directory { OF_DIRECTORY } else { OF_FILE };
    let mut entries = list.split('(');
    let is_missing = entries.next().is_none_or(|flags| flags.contains("NO_ACCESS_CONTROL"));
    let can_change = is_missing || entries.any(|entry| grants(entry, changes));
    can_change.then_some("a user who is not an administrator can change it")
}

/// Returns true if an entry of an access control list gives one of these rights to others than administrators, or is not understood.
fn grants(entry: &str, changes: u32) -> bool {
    let Some(entry) = entry.trim_end().strip_suffix(')') else { return true };
    let [kind, flags, rights, _, _, who] = *entry.split(';').collect::<Vec<_>>() else { return true };
    let pairs =
        |text: &'static str, names: &str| names.as_bytes().chunks(2).any(|pair| pair == text.as_bytes());
    // These entries don't apply to the directory itself, but to what is created in it.
    if matches!(kind, "D" | "OD") || pairs("IO", flags) {
        return false;
    }
    !ADMINISTRATORS.contains(&who) && !RIGHTS_OF_OWNER.contains(&who) && bits(rights) & changes != 0
}

/// Returns the bits of rights, which are written as a number or as names of two letters. An unknown name stands for all rights.
fn bits(rights: &str) -> u32 {
    if let Some(digits) = rights.strip_prefix("0x") {
        return u32::from_str_radix(digits, 16).unwrap_or(u32::MAX);
    }
    let bits = |pair: &[u8]| {
        let known = RIGHTS.iter().find(|(name, _)| name.as_bytes() == pair);
        known.map_or(u32::MAX, |(_, bits)| *bits)
    };
    rights.as_bytes().chunks(2).fold(0, |all, pair| all | bits(pair))
}

#[cfg(test)]
mod tests {
    use super::judge;

    const SERVICE: &str = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464";

    #[test]
    fn only_administrators_may_own_the_policy() {
        for (owner, is_protected) in [
            ("BA", true),
            ("SY", true),
            ("S-1-5-32-544", true),
            ("S-1-5-18", true),
            (SERVICE, true),
            ("BU", false),
            ("WD", false),
            ("", false),
            ("S-1-5-21-1004336348-1177238915-682003330-1001", false),
            ("S-1-5-21-1004336348-1177238915-682003330-544", false),
            ("S-1-5-80-1-2-3-4-5", false),
        ] {
            for is_directory in [true, false] {
                let descriptor = format!("O:{owner}D:PAI(A;;FA;;;SY)(A;;FA;;;BA)(A;;FR;;;BU)");
                assert_eq!(judge(&descriptor, is_directory).is_none(), is_protected, "{descriptor}");
            }
        }
    }

    /// The columns are true if the list is accepted for a file and for a directory.
    #[test]
    fn only_administrators_may_change_the_policy() {
        for (list, of_file, of_directory) in [
            // A directory in `ProgramData`, and a file in it, with the rights that they inherit.
            (
                "D:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIIOID;GA;;;CO)(A;OICIID;0x1200a9;;;BU)(A;CIID;DCLCRPCR;;;BU)",
                false,
                true,
            ),
            ("D:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;0x1200a9;;;BU)", true, true),
            ("D:P(A;;FA;;;S-1-5-18)(A;;FA;;;S-1-5-32-544)(A;;FA;;;OW)(A;;FRFX;;;WD)", true, true),
            ("D:", true, true),
            ("D:(D;;FA;;;BU)(A;;GRGX;;;WD)", true, true),
            // The right of the user who created the directory before the administrator took it.
            ("D:AI(A;;FA;;;BA)(A;;FA;;;S-1-5-21-1-2-3-1001)", false, false),
            ("D:AI(A;ID;FA;;;CO)", false, false),
            ("D:(A;;0x1301bf;;;AU)", false, false),
            ("D:(A;;SD;;;BU)", false, false),
            ("D:(A;;WD;;;BU)", false, false),
            ("D:(A;;WO;;;BU)", false, false),
            ("D:(A;;GA;;;BU)", false, false),
            ("D:(A;;GW;;;BU)", false, false),
            ("D:(A;;DT;;;BU)", true, false),
            ("D:(A;;FW;;;BU)", false, true),
            ("D:(A;;CR;;;BU)", false, true),
            ("D:(OA;;WD;;;BU)", false, false),
            ("D:(XA;;WD;;;BU;(Exists Title))", false, false),
            ("D:(A;;KA;;;BU)", false, false),
            ("D:(A;;0x1_0000;;;BU)", false, false),
            ("D:(A;;FR;;;BU", false, false),
            ("D:NO_ACCESS_CONTROL", false, false),
            ("", false, false),
        ] {
            let descriptor = format!("O:BA{list}");
            assert_eq!(judge(&descriptor, false).is_none(), of_file, "file {descriptor}");
            assert_eq!(judge(&descriptor, true).is_none(), of_directory, "directory {descriptor}");
        }
    }
}
