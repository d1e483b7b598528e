//! Properties that hold for [`parse`] and any input.

use proptest::prelude::*;
use skills_core::{
    Diagnostic, NameRule,
    frontmatter::{MAX_FRONTMATTER_BYTES, ParseContext, Verdict, body, parse, parse_bytes, validate_bytes},
};

/// Generates texts from pieces that are special to YAML, fences and recovery, so that many code paths are reached.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "---\n", "\n", "\r\n", "\r", "  ", "\t", "name: ", "description: ", "metadata:\n  ", "license: ", "name:",
            "allowed-tools: ", "tags: [a, b]", "userInvocable: false", ": ", " #", "\"", "'", "- ", "? ", "[", "]",
            "{", "}", "&a ", "*a", "!t ", "|\n  ", ">-\n  ", "...", "%YAML 1.2\n", "\u{FEFF}", "\0", "\u{85}", "\u{202E}",
            "é", "日本", "\\", "<<: ", "~", "1.10", "# Title\n", "Text: more\n",
        ])
        .prop_map(str::to_owned),
        1 => "[ -~]{0,12}",
        1 => any::<char>().prop_map(String::from),
    ];
    (any::<bool>(), prop::collection::vec(piece, 0..40)).prop_map(|(fenced, pieces)| {
        let text = pieces.concat();
        if fenced { format!("---\nname: a\ndescription: b\n{text}") } else { text }
    })
}

/// Generates plain prose, similar to a description.
fn prose() -> impl Strategy<Value = String> {
    "[A-Za-zÀ-ÿ][A-Za-zÀ-ÿ0-9 ,.;()/-]{0,80}[a-z]"
        .prop_map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    for directory in [None, Some("a")] {
        let context = ParseContext { directory, ..ParseContext::default() };
        let parsed = parse_bytes(bytes, &context);
        let is_refused = parsed.diagnostics.iter().any(Diagnostic::is_error);
        prop_assert_eq!(
            parsed.frontmatter.is_none(),
            is_refused,
            "there is an error if and only if nothing was loaded"
        );
        let spec = validate_bytes(bytes, &context, Verdict::Spec);
        prop_assert!(!is_refused || spec.iter().any(Diagnostic::is_error));
        let _ = validate_bytes(bytes, &context, Verdict::Reference);
        for diagnostic in parsed.diagnostics.iter().chain(&spec) {
            prop_assert!(!diagnostic.message.is_empty() && (diagnostic.line > 0 || diagnostic.column == 0));
        }
        if let Some(frontmatter) = parsed.frontmatter {
            prop_assert!(!frontmatter.name.as_str().trim().is_empty());
            prop_assert!(!frontmatter.name.as_str().chars().any(char::is_control));
            let allowed = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
            prop_assert!(frontmatter.description.chars().all(allowed));
            prop_assert_eq!(frontmatter.description.trim(), &frontmatter.description);
            prop_assert!(!frontmatter.description.is_empty());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_parsed(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes)?;
    }

    #[test]
    fn any_combination_of_special_pieces_is_parsed(text in pieces()) {
        check(text.as_bytes())?;
    }

    /// Discovery reads only the beginning of a file, and must get the same result.
    #[test]
    fn the_beginning_of_a_file_is_enough(text in pieces(), filler in "[a-z: \n]{1,30}") {
        let mut text = text;
        text += &filler.repeat(2 * MAX_FRONTMATTER_BYTES / filler.len());
        let whole = parse(&text, &ParseContext::default());
        let bytes = &text.as_bytes()[..MAX_FRONTMATTER_BYTES];
        let context = ParseContext { file_bytes: Some(text.len() as u64), ..ParseContext::default() };
        let beginning = parse_bytes(bytes, &context);
        prop_assert_eq!(&whole.frontmatter, &beginning.frontmatter);
        prop_assert_eq!((whole.body_start, whole.body_line), (beginning.body_start, beginning.body_line));
    }

    /// A description with special characters of YAML reaches the model unchanged.
    #[test]
    fn prose_with_special_characters_is_kept(before in prose(), after in prose(), separator in prop::sample::select(vec![": ", " - ", " [x] ", " {y} ", " 'z' "])) {
        let description = format!("{before}{separator}{after}");
        let text = format!("---\nname: a\ndescription: {description}\n---\n{before}\n");
        let parsed = parse(&text, &ParseContext::default());
        prop_assert_eq!(&parsed.frontmatter.as_ref().expect("the description is recovered").description, &description);
        prop_assert_eq!(parsed.body(&text), format!("{before}\n"));
        prop_assert_eq!(body(&text), format!("{before}\n"));
    }

    /// A quoted name follows the rules if and only if there are no diagnostics.
    #[test]
    fn invalid_names_are_reported(name in "[a-zA-Z0-9éß日_-]{1,70}") {
        let text = format!("---\nname: \"{name}\"\ndescription: d\n---\nBody\n");
        let context = ParseContext::in_directory(&name);
        let spec = validate_bytes(text.as_bytes(), &context, Verdict::Spec);
        let reference = validate_bytes(text.as_bytes(), &context, Verdict::Reference);
        let broken = NameRule::broken_by(&name, Some(&name));
        prop_assert_eq!(spec.len(), broken.len());
        // The reference implementation splits the file at `---`, even if this is part of the name, so we can't compare those.
        prop_assert!(name.contains("---") || reference.len() == broken.len());
        let well_formed = name.chars().count() <= 64
            && name.split('-').all(|part| !part.is_empty())
            && name.chars().all(|c| c == '-' || (c.is_alphanumeric() && !c.is_uppercase()));
        prop_assert_eq!(broken.is_empty(), well_formed);
    }
}
