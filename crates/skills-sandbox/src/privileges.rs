//! [`unconfined`]: finds the privileges that a process still has in a sandbox.

/// Returns what is wrong with the first field of a `/proc/self/status` that shows a privilege. `None` if the process has none.
#[must_use]
pub fn unconfined(status: &str) -> Option<String> {
    let expected = [
        ("CapInh", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
        ("CapEff", "0000000000000000"),
        ("CapBnd", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
    ];
    expected.into_iter().find_map(|(field, expected)| {
        let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let value = value.map_or("missing", str::trim);
        (value != expected).then(|| format!("{field} is {value} inside the sandbox"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unexpected_privileges_are_found_in_a_status() {
        let zero = "0000000000000000";
        let good = format!(
            "Name:\tcat\nUid:\t0\t0\t0\t0\nCapInh:\t{zero}\nCapPrm:\t{zero}\nCapEff:\t{zero}\nCapBnd:\t{zero}\n\
             CapAmb:\t{zero}\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n"
        );
        for (from, to, expected) in [
            ("", "", None),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0", Some("NoNewPrivs is 0 inside the sandbox")),
            ("Seccomp:\t2\n", "", Some("Seccomp is missing inside the sandbox")),
            ("CapBnd:\t0", "CapBnd:\t1", Some("CapBnd is 1000000000000000 inside the sandbox")),
        ] {
            let status = if from.is_empty() { good.clone() } else { good.replace(from, to) };
            assert_eq!(unconfined(&status).as_deref(), expected);
        }
        assert_eq!(unconfined("").as_deref(), Some("CapInh is missing inside the sandbox"));
    }
}
