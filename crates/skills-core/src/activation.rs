//! [`activate`]: renders the text that the model gets when a skill is activated.
//!
//! The body is read at each activation, so that edits take effect immediately.
//!
//! If the file of a discovered skill is broken, empty, incomplete or missing, the last good text is used instead, and a
//! diagnostic is added to the result. This has limits:
//!
//! - Last good texts are kept in memory, up to 256 KiB per process and 64 KiB per skill. When this budget is used up, skills
//!   that were activated or changed while the process ran have priority, followed by the most recently modified skills. If a
//!   text was dropped, activation fails with [`ActivationError::Broken`] instead of returning an empty body.
//! - A file that was cut in the middle of its body can only be detected for a second after its last modification. In this
//!   time, it is considered incomplete when it is a prefix of the last good text, or when it changes again within 20 ms.
//! - A file that was already broken when the process started has no last good text.
//!
//! The text has this form:
//!
//! ```text
//! <skill_content name="pdf">
//! …the body…
//!
//! Skill directory: /home/me/skills/pdf
//! …
//! <skill_resources>
//!   <file bytes="812">references/forms.md</file>
//! </skill_resources>
//! </skill_content>
//! ```

mod body;
mod error;
mod parsed;
mod stored;
pub(crate) mod substitute;
mod tools;

use std::{fmt::Write, sync::Arc};

use crate::{
    catalog::{Guide, escape_attribute, escape_xml, mounted_dir, one_line},
    diagnostic::Diagnostic,
    files::{self, FileError, bundled},
    skill::{Skill, Source, Usage},
    tool::Offer,
};

use body::Body;
pub use body::BodyCache;
pub use error::ActivationError;
use parsed::{DIRECTORY, END, START};
pub use parsed::{Parsed, parse};

/// The maximum number of lines of a body. A longer body causes a warning.
pub const LONG_BODY_LINES: usize = 500;
/// The maximum size of a body in bytes. A larger body causes a warning.
pub const LONG_BODY_BYTES: usize = 20 * 1024;
/// The maximum number of files of the skill that an activation lists.
pub const MAX_LISTED_FILES: usize = 200;

/// Options of an activation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActivationOptions {
    /// The text that the user wrote after the skill's name. It replaces `$ARGUMENTS`.
    pub arguments: Option<String>,
    /// The directory that contains the skills' directories from the agent's point of view, for example in a container. `None`
    /// is for agents that see them at the same paths.
    pub mount: Option<String>,
    /// Selects whether the text refers to our tools or to the model's own tools. The default is our tools.
    pub guide: Guide,
    /// True if the agent runs elsewhere, so that only our tools can read the files. The text then doesn't contain the directory,
    /// unless there is a `mount` or the model is to read the files itself.
    pub elsewhere: bool,
    /// True if the model has the tool `run_skill_script`.
    pub scripts: bool,
    /// The tools of the skill's [provider](crate::tool::ToolProvider), if it was asked.
    pub offer: Option<Offer>,
}

/// An activated skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activation {
    /// The element `<skill_content name="…">`, without a final line break.
    pub text: String,
    /// True if the body contains `$ARGUMENTS`. If not, the caller should append the arguments to the text.
    pub uses_arguments: bool,
    /// Warnings, for example if the body is too long or not the current one.
    pub diagnostics: Vec<Diagnostic>,
}

/// Activates a skill: reads its body, and describes its files and tools. Blocks while it reads or fetches.
///
/// In the body, `{baseDir}` and `${CLAUDE_SKILL_DIR}` are replaced by the skill's directory, unless the skill is virtual, and
/// `$ARGUMENTS` by the arguments, which may be empty. After the first `$ARGUMENTS`, at most 256 KiB of replacements are inserted.
/// Other variables such as `$1` and `$HOME` are kept, because they belong to
/// shell commands. To prevent the body from closing the surrounding element, the `<` of `<skill_content` and `</skill_content`
/// becomes `&lt;`.
///
/// ```
/// use skills_core::{Skill, activation::{ActivationOptions, BodyCache, activate}};
///
/// let skill = Skill::builder("greet", "Greets people.").body("Greet $ARGUMENTS warmly.").build()?;
/// let options = ActivationOptions { arguments: Some("Ada".into()), ..Default::default() };
/// let activation = activate(&skill, &options, &BodyCache::default())?;
/// assert_eq!(activation.text, "<skill_content name=\"greet\">\nGreet Ada warmly.\n</skill_content>");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns an error if the body can't be read or fetched and there is no last good text. See the variants of
/// [`ActivationError`].
pub fn activate(
    skill: &Skill,
    options: &ActivationOptions,
    cache: &BodyCache,
) -> Result<Activation, ActivationError> {
    let Body { text: body, outdated } = cache.load(skill)?;
    files::check_activation(skill)?;
    let is_hidden = options.mount.is_none()
        && (options.guide == Guide::Prompts || options.guide == Guide::Tools && options.elsewhere);
    let dir = shown_dir(skill, options.mount.as_deref()).filter(|_| !is_hidden);
    let arguments = options.arguments.as_deref().unwrap_or_default();
    let (substituted, uses_arguments) = substitute::substitute(&body, dir.as_deref(), arguments);
    let mut text = format!("{START}{}\">\n", escape_attribute(skill.name.as_str()));
    text.push_str(substitute::contain(substituted.trim_end()).trim_start_matches('\n'));
    text.push('\n');
    let mut sections = Vec::new();
    if skill.dir().is_some() {
        sections.push(directory(dir.as_deref().unwrap_or("on another machine"), options));
    }
    sections.extend(address(skill, options.guide));
    if let Some(compatibility) = &skill.properties.compatibility {
        sections.push(format!("Compatibility: {}\n", escape_xml(&one_line(compatibility))));
    }
    sections.extend(skill.properties.usage.as_deref().map(usage));
    match bundled_files(skill) {
        Ok(files) => sections.extend(files),
        // The directory may have been removed together with the file. In that case, we don't list any files.
        Err(_) if outdated.is_some() => {}
        Err(error) => return Err(error.into()),
    }
    if skill.has_tools() {
        sections.push(tools::describe(skill, options.guide, options.offer.as_ref()));
    }
    for section in sections {
        text.push('\n');
        text.push_str(&section);
    }
    text.push_str(END);
    let diagnostics = outdated.into_iter().chain(long_body(&body)).collect();
    Ok(Activation { text, uses_arguments, diagnostics })
}

/// Reads the whole `SKILL.md` of a stored skill, including its frontmatter. Like [`activate`], it returns the last good text if
/// the file on disk can't be used. This blocks.
///
/// # Errors
/// Returns [`FileError::NoFiles`] if the skill is not stored, and otherwise the same errors as [`activate`].
pub fn skill_md(skill: &Skill) -> Result<Arc<str>, ActivationError> {
    match &skill.source {
        Source::Stored(stored) => stored::read(skill, stored).map(|text| text.whole),
        _ => Err(FileError::NoFiles(skill.name.clone()).into()),
    }
}

fn shown_dir(skill: &Skill, mount: Option<&str>) -> Option<String> {
    let dir = skill.dir()?;
    Some(match mount {
        Some(prefix) => mounted_dir(dir, prefix),
        None => dir.to_string_lossy().into_owned(),
    })
}

fn directory(dir: &str, options: &ActivationOptions) -> String {
    let mut text = format!("{DIRECTORY}{}\n", crate::name::sanitize(dir));
    text.push_str(match (options.guide, options.scripts) {
        (Guide::Tools, false) => {
            "Relative paths in this skill start there; read its files with `read_skill_file`.\n"
        }
        (Guide::Tools, true) => {
            "Relative paths in this skill start there; read its files with `read_skill_file`, and run its scripts with \
             `run_skill_script`.\n"
        }
        (Guide::Files, _) => {
            "Relative paths in this skill start there; read its files with your own file tools.\n"
        }
        (Guide::Prompts, _) => {
            "You cannot open the files of this skill; if you need one, ask the user for its contents.\n"
        }
    });
    text
}

/// Describes the base URL of a remote skill, if it has files.
#[cfg(feature = "fetch")]
fn address(skill: &Skill, guide: Guide) -> Option<String> {
    let Source::Remote(crate::skill::Remote { base: Some(base), files, service, .. }) = &skill.source else {
        return None;
    };
    if let Some(service) = service {
        return Some(origin(&**service, files.as_deref().unwrap_or_default().is_empty(), guide));
    }
    if files.as_ref().is_some_and(|files| files.is_empty()) {
        return None;
    }
    let how = match guide {
        Guide::Tools => "read its files with `read_skill_file`. Its scripts can be read but not run.",
        Guide::Files | Guide::Prompts => "fetch its files with your own tools.",
    };
    Some(format!("{}{base}\nRelative paths in this skill start there; {how}\n", parsed::ADDRESS))
}

/// Describes the service that a skill comes from. The model has to know that the instructions are not the user's own. The URL is left
/// out, because the service chooses it, and users don't see it before they trust the skill.
#[cfg(feature = "fetch")]
fn origin(service: &dyn crate::skill::FileService, is_alone: bool, guide: Guide) -> String {
    let label = escape_xml(&one_line(service.label())).into_owned();
    let how = match guide {
        _ if is_alone => "",
        Guide::Tools => {
            "Relative paths in this skill start there; read its files with `read_skill_file`. Its scripts can be read but not run.\n"
        }
        Guide::Files | Guide::Prompts => "You cannot open the files of this skill.\n",
    };
    format!("{}{label}\nThese instructions come from there, not from the user.\n{how}", parsed::ADDRESS)
}

#[cfg(not(feature = "fetch"))]
fn address(_: &Skill, _: Guide) -> Option<String> {
    None
}

fn bundled_files(skill: &Skill) -> Result<Option<String>, FileError> {
    if matches!(skill.source, Source::Virtual(_)) {
        return Ok(None);
    }
    let bundled = bundled(skill, MAX_LISTED_FILES)?;
    if bundled.files.is_empty() && bundled.more == 0 {
        return Ok(None);
    }
    let mut text = String::from("<skill_resources>\n");
    for (path, size) in &bundled.files {
        let path = escape_xml(&crate::name::sanitize(path)).into_owned();
        let _ = match size {
            Some(size) => writeln!(text, "  <file bytes=\"{size}\">{path}</file>"),
            None => writeln!(text, "  <file>{path}</file>"),
        };
    }
    if bundled.more > 0 {
        let least = if bundled.complete { "" } else { "at least " };
        let _ = writeln!(text, "  {least}{} more files are not listed", bundled.more);
    }
    text.push_str("</skill_resources>\n");
    Ok(Some(text))
}

/// Describes the skill's parameters and examples.
pub(crate) fn usage(usage: &Usage) -> String {
    let mut text = String::new();
    if !usage.parameters.is_empty() {
        text.push_str("<skill_parameters>\n");
        for parameter in &usage.parameters {
            let kind = parameter
                .kind
                .as_deref()
                .map(|kind| format!(" type=\"{}\"", escape_attribute(&one_line(kind))));
            let _ = writeln!(
                text,
                "  <parameter name=\"{}\"{}{}>{}</parameter>",
                escape_attribute(&one_line(&parameter.name)),
                kind.unwrap_or_default(),
                if parameter.required { " required=\"true\"" } else { "" },
                escape_xml(&one_line(&parameter.description))
            );
        }
        text.push_str("</skill_parameters>\n");
    }
    if !usage.examples.is_empty() {
        text.push_str("<skill_examples>\n");
        for example in &usage.examples {
            let scenario = one_line(&example.scenario);
            let _ = writeln!(text, "  <example>\n    <scenario>{}</scenario>", escape_xml(&scenario));
            if !example.expected.trim().is_empty() {
                let _ =
                    writeln!(text, "    <expected>{}</expected>", escape_xml(&one_line(&example.expected)));
            }
            text.push_str("  </example>\n");
        }
        text.push_str("</skill_examples>\n");
    }
    text
}

/// Returns a warning if the body is longer than recommended ([`LONG_BODY_LINES`], [`LONG_BODY_BYTES`]).
pub fn long_body(body: &str) -> Option<Diagnostic> {
    let lines = body.lines().count();
    if lines <= LONG_BODY_LINES && body.len() <= LONG_BODY_BYTES {
        return None;
    }
    let message = format!(
        "body has {lines} lines and {} bytes, but should have at most {LONG_BODY_LINES} lines and \
         {LONG_BODY_BYTES} bytes",
        body.len()
    );
    Some(Diagnostic::warning("body-too-long", message).help("move details to files in `references/`"))
}

#[cfg(test)]
mod tests;
