//! [`parse`]: reads the text of an activation.

/// The start of the text.
pub(super) const START: &str = "<skill_content name=\"";
/// The end of the text.
pub(super) const END: &str = "</skill_content>";
/// The start of the section with the directory of a stored skill.
pub(super) const DIRECTORY: &str = "Skill directory: ";
/// The start of the section with the base URL of a remote skill.
pub(super) const ADDRESS: &str = "Skill address: ";

/// The parts of an activation's text, for programs that show it to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parsed<'a> {
    /// The name of the skill, with the escapes of XML.
    pub name: &'a str,
    /// The text before the section with the directory or the address: the body, and for a virtual skill also the sections after
    /// it. `None` if the text is truncated, or if another text follows.
    pub instructions: Option<&'a str>,
}

/// Reads the text that [`activate`](super::activate) has written. White space around the text is ignored. Returns `None` for any
/// other text.
///
/// ```
/// use skills_core::activation::parse;
///
/// let parsed = parse("<skill_content name=\"greet\">\nGreet Ada.\n</skill_content>").unwrap();
/// assert_eq!((parsed.name, parsed.instructions), ("greet", Some("Greet Ada.\n")));
/// assert_eq!(parse("<skill_content name=\"greet\">\nGreet A").unwrap().instructions, None);
/// assert_eq!(parse("Greet Ada."), None);
/// ```
pub fn parse(text: &str) -> Option<Parsed<'_>> {
    let (name, rest) = text.trim_start().strip_prefix(START)?.split_once('"')?;
    let instructions = rest.trim_end().strip_suffix(END).and_then(|rest| rest.split_once('\n'));
    Some(Parsed { name, instructions: instructions.map(|(_, text)| before_files(text)) })
}

/// Returns the text before the section with the directory or the address. The text itself can mention these, so the last one
/// counts.
fn before_files(text: &str) -> &str {
    let starts = [DIRECTORY, ADDRESS].into_iter().filter_map(|start| {
        let mut found = text.rmatch_indices(start).map(|(at, _)| at);
        found.find(|&at| text[..at].ends_with("\n\n"))
    });
    starts.max().map_or(text, |end| &text[..end - "\n\n".len()])
}
