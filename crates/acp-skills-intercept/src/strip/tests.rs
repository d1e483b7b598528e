//! Tests with the injected text in every form in which agents send it back.

use proptest::prelude::*;

use super::*;

const MARK: &str = "<acp-skills-proxy:00000001c5cdf960>";
const END: &str = "</acp-skills-proxy:00000001c5cdf960>";

fn ours() -> String {
    Mark::new(1).wrap("<available_skills>…\nUse them.")
}

fn command() -> String {
    Mark::new(1).wrap("<typed>/review <rest>src/main.rs</rest></typed>\nDo it.")
}

#[test]
fn titles() {
    let ours = ours();
    let command = command();
    let flat = ours.replace('\n', " ");
    for (title_text, clean) in [
        ("Fix the bug", None),
        ("a < b and <acp", None),
        // A user could have written these, so we should not remove them.
        ("<acp-skills-proxy>", None),
        ("What is <acp-skills-proxy> for?", None),
        ("<acp-skills-proxy:00000001c5cdf961> and more", None),
        ("What does </acp-skills-prox", None),
        (&format!("{ours}Fix the bug"), Some("Fix the bug")),
        (&format!("{ours}Fix <acp-skills-proxy> now"), Some("Fix <acp-skills-proxy> now")),
        (&format!("{flat} Fix the bug"), Some("Fix the bug")),
        (&format!("{MARK} <available_skills> <skill> <na"), Some("")),
        (&format!("{MARK} <available_skills> … </acp-skills-pro"), Some("")),
        ("<acp-skills-pr…", Some("")),
        ("<acp-skills-proxy:00000001c5…", Some("")),
        ("<acp-skills-proxy:00000001c4…", None),
        (&format!("Fix it {MARK}..."), Some("Fix it")),
        (&format!("Fix it {}...", &MARK[..20]), Some("Fix it")),
        (MARK, Some("")),
        (&format!("{command}src/main.rs"), Some("/review src/main.rs")),
        (&format!("{ours}{command}src/main.rs"), Some("/review src/main.rs")),
        (
            &format!("{MARK} <typed>/review <rest>src/main.rs</rest></typed> The user inv…"),
            Some("/review src/main.rs"),
        ),
        (&format!("{MARK} <typed>/review <rest>src/ma…"), Some("/review src/ma…")),
        (&format!("{MARK} <typed>/rev"), Some("/rev")),
        (&format!("{MARK} <typ…"), Some("")),
    ] {
        assert_eq!(title(title_text, None).as_deref(), clean, "{title_text}");
    }
    // A title that matches the user's words does not change.
    assert_eq!(title("What is <acp-skil…", Some("What is <acp-skills> for?")), None);
    assert_eq!(title("What is <acp-skil…", Some("What is it?")).as_deref(), Some("What is"));
    for end in MIN_CUT_BYTES..ours.len() {
        if ours.is_char_boundary(end) {
            assert_eq!(title(&ours[..end], None).as_deref(), Some(""), "{end}");
        }
    }
}

fn line(text: &str) -> Vec<u8> {
    let params = serde_json::json!({ "update": { "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } } });
    acp_skills_wire::build::notification("session/update", &params)
}

fn text_of(line: &[u8]) -> String {
    Message::parse(line)
        .unwrap()
        .param(&["update", "content", "text"])
        .unwrap()
        .as_str()
        .unwrap()
        .into_owned()
}

/// Returns the texts that the client sees of these chunks.
fn seen(chunks: &[&str]) -> Vec<String> {
    let mut stream = Stream::default();
    let mut seen = Vec::new();
    for text in chunks {
        let passed = stream.chunk(text, &line(text));
        let lines = passed.lines.unwrap_or_else(|| vec![line(text)]);
        let texts: Vec<_> = lines.iter().map(|line| text_of(line)).collect();
        assert_eq!(texts.concat(), passed.clean);
        seen.extend(texts);
    }
    seen.extend(stream.flush().iter().map(|line| text_of(line)));
    assert!(stream.is_idle());
    seen
}

#[test]
fn chunks() {
    let ours = &*ours();
    let command = &*command();
    let text = |text: &str| text.replace("[[", MARK).replace("]]", END);
    let merged = format!("{ours}hello");
    let spaced = format!("{ours}\n hello");
    let around = format!("before {ours}after");
    let with_command = format!("{command}src/main.rs");
    let twice = format!("{ours}a {ours}b");
    let (front, back) = MARK.split_at(8);
    for (chunks, expected) in [
        (vec!["hello"], vec!["hello"]),
        (vec![ours, "hello"], vec!["hello"]),
        (vec![&merged], vec!["hello"]),
        (vec![&spaced], vec!["hello"]),
        (vec![&around], vec!["before after"]),
        (vec![&twice], vec!["a b"]),
        (vec![&text("[[\nskills"), "more", &text("end]]\nhello"), "you"], vec!["hello", "you"]),
        (vec![&text("[[\nskills"), "", &text("end]]\nhello")], vec!["hello"]),
        (vec![&text("[[\nskills</acp-skil"), "ls-proxy:00000001c5cdf960>\nhello"], vec!["hello"]),
        (vec![&format!("say {front}"), &text(&format!("{back}\nskills]]hello"))], vec!["say ", "hello"]),
        (vec![&text("[[\nskills]]"), "\nhello"], vec!["hello"]),
        (vec![&text("[[\nski"), &text("lls]]"), "", "\n", "\nhello"], vec!["", "\nhello"]),
        (vec![ours, "\nhello"], vec!["\nhello"]),
        // Here the injected text comes after the user's text, with the separators that agents use.
        (vec!["hello", ours], vec!["hello"]),
        (vec!["hello\n", ours, "next"], vec!["hello\n", "next"]),
        (vec![&format!("hello{ours}")], vec!["hello"]),
        (vec![&format!("hello {ours}")], vec!["hello "]),
        (vec![&format!("hello\n\n\n{}", ours.trim_end())], vec!["hello"]),
        (vec![&format!("{command}src/main.rs\n\n{ours}")], vec!["/review src/main.rs"]),
        (vec![command, "src/main.rs"], vec!["/review ", "src/main.rs"]),
        (vec![ours, command, "src/main.rs"], vec!["/review ", "src/main.rs"]),
        (vec![&with_command], vec!["/review src/main.rs"]),
        (vec![&command[..30], &command[30..60], &with_command[60..]], vec!["/review src/main.rs"]),
        // This text isn't ours, or the mark is never closed.
        (vec!["<", "acp-ski", "lled people"], vec!["<", "acp-ski", "lled people"]),
        (vec!["a <", "b"], vec!["a <", "b"]),
        (
            vec!["<acp-skills-proxy> is", "mine</acp-skills-proxy>"],
            vec!["<acp-skills-proxy> is", "mine</acp-skills-proxy>"],
        ),
        (vec![&text("[[ cut off"), "the user's"], vec![&text("[[ cut off"), "the user's"]),
        (vec![&text("x [[ cut")], vec![&text("x [[ cut")]),
        (vec![&text("]] x [["), ours, "y"], vec![&text("]] x [["), "y"]),
        (vec![&text("a [[ b"), &text("c [[ d]]e")], vec![&text("a [[ b"), "c e"]),
        (vec![&text("[[x</acp-skills-proxy:0123abcd07757998>y]]z")], vec!["z"]),
    ] {
        assert_eq!(seen(&chunks), expected, "{chunks:?}");
    }
}

#[test]
fn held_lines_have_a_maximum_size() {
    let mut stream = Stream::default();
    assert_eq!(stream.chunk(MARK, &line(MARK)).lines, Some(Vec::new()));
    let long = "x".repeat(MAX_HELD_BYTES / 2);
    assert_eq!(stream.chunk(&long, &line(&long)).lines, Some(Vec::new()));
    assert_eq!(stream.chunk(&long, &line(&long)).lines.unwrap().len(), 3);
    assert!(stream.is_idle());
}

#[test]
fn our_texts_are_reported() {
    let mut stream = Stream::default();
    let merged = format!("{}hello", ours());
    let (front, back) = merged.split_at(50);
    assert_eq!(stream.chunk(front, &line(front)).ours, [""; 0]);
    assert_eq!(stream.chunk(back, &line(back)).ours, ["\n<available_skills>…\nUse them.\n"]);
    assert!(stream.chunk(&command(), &line(&command())).awaits_arguments);
    assert!(!stream.chunk("x", &line("x")).awaits_arguments);
}

/// Generates texts that a user may write: words, marks with a wrong checksum, and pieces of real marks.
fn users() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z<>/ é…-]{0,12}",
        Just("<acp-skills-proxy>".to_owned()),
        Just("</acp-skills-proxy>".to_owned()),
        Just("<acp-skills-proxy:".to_owned()),
        "</?acp-skills-proxy:[0-9a-f]{16}>",
        // Use real marks, but make sure that an opening mark never comes before a closing one.
        Just(END.to_owned()),
        (0..MARK.len()).prop_map(|end| MARK[..end].to_owned()),
        (0..END.len()).prop_map(|end| END[..end].to_owned()),
        (0..MARK.len()).prop_map(|start| MARK[start..].to_owned()),
    ];
    let last = prop_oneof![Just(String::new()), Just(MARK.to_owned()), Just(format!("{MARK} more"))];
    (prop::collection::vec(piece, 0..6), last).prop_filter_map("a pair", |(pieces, last)| {
        let text = pieces.concat() + &last;
        // By chance, the pieces might form a complete pair of marks, so we filter these out.
        let open = text.find(MARK);
        (!open.is_some_and(|at| text[at..].contains(END))).then_some(text)
    })
}

/// Splits `text` into chunks.
fn split<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut cuts: Vec<_> =
        cuts.iter().map(|cut| cut % (text.len() + 1)).filter(|&cut| text.is_char_boundary(cut)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

proptest! {
    /// The user's text is unchanged, in the same chunks.
    #[test]
    fn texts_of_the_user_are_unchanged(text in users(), cuts in prop::collection::vec(0_usize..200, 0..8)) {
        let chunks = split(&text, &cuts);
        prop_assert_eq!(seen(&chunks), chunks);
    }

    /// The user's text is also unchanged before, between and after the injected texts, in separate blocks or merged.
    #[test]
    fn texts_around_ours_are_unchanged(
        before in users(),
        between in users(),
        after in users(),
        first in prop_oneof![Just(ours()), Just(command())],
        cuts in prop::collection::vec(0_usize..2000, 0..8),
    ) {
        // A space right after the injected text might be a separator, so we ignore it here.
        let between = between.trim_start();
        let after = after.trim_start();
        let typed = if first == command() { "/review " } else { "" };
        let whole = format!("{before}{first}{between}{}{after}", ours());
        let expected = format!("{before}{typed}{between}{after}");
        prop_assert_eq!(seen(&split(&whole, &cuts)).concat(), expected.clone());
        // Do the same with everything on one line, as if it was written by a different run.
        let flat = |text: String| text.replace('\n', " ").replace("00000001c5cdf960", "0123abcd07757998");
        let whole = format!("{before}{}{between}{}{after}", flat(first), flat(ours()));
        prop_assert_eq!(seen(&[&whole]).concat(), expected);
    }

    /// Truncated titles contain none of the injected text, and keep the user's words.
    #[test]
    fn truncated_titles_are_cleaned(words in "[a-z]{1,8}( [a-z]{1,8}){0,4}", cut in 0_usize..200) {
        let whole = format!("{}{words}", ours().replace('\n', " "));
        let end = (cut..=whole.len()).find(|&end| whole.is_char_boundary(end)).unwrap_or(whole.len());
        let clean = title(&whole[..end], None);
        if end >= MIN_CUT_BYTES {
            prop_assert!(words.starts_with(clean.unwrap().as_str()));
        }
        // If the injected text comes after the user's words, any piece of it should be removed.
        let whole = format!("{words} {}", ours().replace('\n', " "));
        let end = (cut..=whole.len()).find(|&end| whole.is_char_boundary(end)).unwrap_or(whole.len());
        let clean = title(&whole[..end], Some(&words));
        prop_assert_eq!(clean.as_deref(), (end > words.len() + 1).then_some(words.as_str()));
    }
}
