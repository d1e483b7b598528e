//! A `SKILL.md`. The results of the parser are consistent.

use skills_core::{
    Diagnostic,
    frontmatter::{ParseContext, Verdict, decode, parse, parse_bytes, validate_bytes},
};

pub(super) fn run(bytes: &[u8]) {
    for directory in [None, Some("pdf")] {
        let context = ParseContext { directory, ..ParseContext::default() };
        let parsed = parse_bytes(bytes, &context);
        let has_error = parsed.diagnostics.iter().any(Diagnostic::is_error);
        assert_eq!(
            parsed.frontmatter.is_none(),
            has_error,
            "there is an error if and only if the skill does not load"
        );

        let text = decode(bytes);
        let _ = parsed.body(&text);
        assert_eq!(parse(&text, &context).frontmatter, parsed.frontmatter);
        let lines = u32::try_from(text.len()).unwrap_or(u32::MAX).saturating_add(2);
        assert!(parsed.body_line <= lines);
        assert!(parsed.diagnostics.iter().all(|problem| problem.line <= lines && problem.column <= lines));

        if let Some(frontmatter) = parsed.frontmatter {
            assert!(!frontmatter.name.as_str().chars().any(char::is_control));
            assert!(!frontmatter.description.trim().is_empty());
            assert!(!frontmatter.description.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
        }
        let spec = validate_bytes(bytes, &context, Verdict::Spec);
        assert!(
            !has_error || spec.iter().any(Diagnostic::is_error),
            "a skill that does not load breaks a rule of the specification"
        );
        let _ = validate_bytes(bytes, &context, Verdict::Reference);
    }
}
