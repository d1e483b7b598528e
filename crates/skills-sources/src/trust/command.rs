//! [`command`]: how a user trusts a skill in a terminal.

/// Returns the command with which a user reviews and trusts a skill of a project. The user may paste it into a shell, and the project chooses
/// the name, so a name that could be more than one word, or an option, is left out.
pub fn command(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let name = Some(name).filter(|name| !name.starts_with('-') && name.chars().all(is_plain));
    format!("acp-skills-proxy trust {}", name.unwrap_or_default()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Users paste the command into a shell, and projects choose the names of their skills.
    #[test]
    fn the_command_contains_only_plain_names() {
        for (name, expected) in [
            ("review", "acp-skills-proxy trust review"),
            ("größe_2.x", "acp-skills-proxy trust größe_2.x"),
            ("review --yes", "acp-skills-proxy trust"),
            ("--yes", "acp-skills-proxy trust"),
            ("x;y", "acp-skills-proxy trust"),
            ("$(z)", "acp-skills-proxy trust"),
            ("a`b", "acp-skills-proxy trust"),
        ] {
            assert_eq!(command(name), expected);
        }
    }
}
