//! The diagnostics for the limits of a search, and for links that it doesn't follow.

use std::path::Path;

use super::progress::MAX_LINK_TIME;
use crate::diagnostic::Diagnostic;

/// The hint for searches that skip deep directories.
const CLOSER: &str = "to find deeper skills, search from a directory closer to the skills";

/// Reports that directories are more than `max` levels below the root. `example` is one of them.
pub(super) fn too_deep(max: usize, number: usize, example: &Path) -> Diagnostic {
    let message = format!(
        "skipped {number} {} more than {max} levels deep, for example {}",
        if number == 1 { "directory" } else { "directories" },
        example.display()
    );
    Diagnostic::warning("too-deep", message).help(CLOSER)
}

/// Reports that a root has more than `max` skills.
pub(super) fn too_many_skills(max: usize) -> Diagnostic {
    let message = format!("too many skills: using only the first {max}");
    Diagnostic::warning("too-many-skills", message)
        .help("increase `max_skills`, or select fewer skills by name")
}

/// Reports that `number` links lead out of the project. `link` is one of them.
pub(super) fn leading_out(number: usize, link: &Path, target: &Path) -> Diagnostic {
    let link = link.display();
    let target = target.display();
    let message = match number {
        1 => format!("skipped link {link}, because the target {target} is outside of the project"),
        _ => format!(
            "skipped {number} links to targets outside of the project, for example {link} to {target}"
        ),
    };
    Diagnostic::error("link-out-of-project", message)
        .help("to load skills from a target that you trust, add this directory to scan")
}

/// Reports that links were not followed because the time for them was over. `number` is `None` if the root itself was not resolved.
pub(super) fn slow_links(number: Option<usize>) -> Diagnostic {
    let time = MAX_LINK_TIME.as_secs();
    let message = match number {
        None => format!("skipped directory, because resolving links took more than {time} seconds"),
        Some(1) => format!("skipped 1 link, because resolving links took more than {time} seconds"),
        Some(number) => {
            format!("skipped {number} links, because resolving links took more than {time} seconds")
        }
    };
    Diagnostic::warning("slow-links", message)
        .help("remove links that lead through other links, or use `--skill` for the skills that you need")
}

/// Reports that a root has more than `max` directories of a kind, for example "without skills".
pub(super) fn too_many_directories(kind: &str, max: usize) -> Diagnostic {
    let message = format!("too many directories {kind}: searched only the first {max}");
    Diagnostic::warning("too-many-directories", message).help(CLOSER)
}
