//! The ssh command of git: the user's own, or `ssh`. It must fail instead of asking a question, because there is no terminal to
//! answer it.

/// Options of OpenSSH that make it fail instead of asking, and that limit the time for a connection. Options of the user's command come first, so
/// they take precedence.
const OPTIONS: &str = "-oBatchMode=yes -oConnectTimeout=20";

/// Returns the value of `GIT_SSH_COMMAND` for git, or `None` to leave the choice to git.
///
/// Git uses the first of `GIT_SSH_COMMAND` (`variable`), the setting `core.sshCommand` (`configured`) and the program in `GIT_SSH`
/// (`has_program`). Options are added to a command only if it starts OpenSSH by its name, because other programs may not know them.
pub(super) fn command(variable: Option<&str>, configured: Option<&str>, has_program: bool) -> Option<String> {
    match variable.or(configured) {
        Some(command) => is_openssh(command).then(|| format!("{command} {OPTIONS}")),
        None => (!has_program).then(|| format!("ssh {OPTIONS}")),
    }
}

/// Returns true if the first word of a command is a path to `ssh`.
fn is_openssh(command: &str) -> bool {
    let command = command.trim_start();
    let program = match command.chars().next() {
        Some(quote @ ('"' | '\'')) => command[1..].split(quote).next().unwrap_or_default(),
        _ => command.split_whitespace().next().unwrap_or_default(),
    };
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name == "ssh" || name.eq_ignore_ascii_case("ssh.exe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_command_is_used() {
        for (variable, configured, has_program, expected) in [
            (None, None, false, Some("ssh -oBatchMode=yes -oConnectTimeout=20")),
            (None, None, true, None),
            (
                None,
                Some("ssh -i ~/.ssh/work"),
                false,
                Some("ssh -i ~/.ssh/work -oBatchMode=yes -oConnectTimeout=20"),
            ),
            (None, Some("ssh"), true, Some("ssh -oBatchMode=yes -oConnectTimeout=20")),
            (
                None,
                Some("C:/Windows/System32/OpenSSH/ssh.exe"),
                false,
                Some("C:/Windows/System32/OpenSSH/ssh.exe -oBatchMode=yes -oConnectTimeout=20"),
            ),
            (
                None,
                Some("\"C:\\Program Files\\OpenSSH\\SSH.EXE\" -v"),
                false,
                Some("\"C:\\Program Files\\OpenSSH\\SSH.EXE\" -v -oBatchMode=yes -oConnectTimeout=20"),
            ),
            (None, Some("plink -batch"), false, None),
            (None, Some("/opt/my ssh"), false, None),
            (None, Some("/opt/sshwrap"), false, None),
            (Some("/opt/sshwrap"), Some("ssh"), false, None),
            (Some("ssh -4"), Some("/opt/sshwrap"), false, Some("ssh -4 -oBatchMode=yes -oConnectTimeout=20")),
        ] {
            assert_eq!(command(variable, configured, has_program).as_deref(), expected, "{configured:?}");
        }
    }
}
