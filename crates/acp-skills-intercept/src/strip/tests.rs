//! What comes back, in every shape that agents give it.

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
    let (ours, command) = (ours(), command());
    let flat = ours.replace('\n', " ");
    for (title_text, clean) in [
        ("Fix the bug", None),
        ("a < b and <acp", None),
        // What a person writes.
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
    // A title that ends in what the user wrote is the user's.
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

/// What the client sees of these chunks.
fn seen(chunks: &[&str]) -> Vec<String> {
    let (mut stream, mut seen) = (Stream::default(), Vec::new());
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
    let (ours, command) = (ours(), command());
    let (ours, command) = (ours.as_str(), command.as_str());
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
        // Behind the user's words, with whatever the agent puts between blocks.
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
        // What is not ours, and what is not closed.
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
fn what_is_held_has_an_end() {
    let mut stream = Stream::default();
    assert_eq!(stream.chunk(MARK, &line(MARK)).lines, Some(Vec::new()));
    let long = "x".repeat(MAX_HELD_BYTES / 2);
    assert_eq!(stream.chunk(&long, &line(&long)).lines, Some(Vec::new()));
    assert_eq!(stream.chunk(&long, &line(&long)).lines.unwrap().len(), 3);
    assert!(stream.is_idle());
}

#[test]
fn what_was_told_is_known() {
    let mut stream = Stream::default();
    let merged = format!("{}hello", ours());
    let (front, back) = merged.split_at(50);
    assert_eq!(stream.chunk(front, &line(front)).ours, [""; 0]);
    assert_eq!(stream.chunk(back, &line(back)).ours, ["\n<available_skills>…\nUse them.\n"]);
    assert!(stream.chunk(&command(), &line(&command())).awaits_arguments);
    assert!(!stream.chunk("x", &line("x")).awaits_arguments);
}

/// Texts that a person may write: words, marks that do not add up, halves of real ones, and pieces of all that.
fn users() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z<>/ é…-]{0,12}",
        Just("<acp-skills-proxy>".to_owned()),
        Just("</acp-skills-proxy>".to_owned()),
        Just("<acp-skills-proxy:".to_owned()),
        "</?acp-skills-proxy:[0-9a-f]{16}>",
        // Real ones, but never one that opens before one that closes.
        Just(END.to_owned()),
        (0..MARK.len()).prop_map(|end| MARK[..end].to_owned()),
        (0..END.len()).prop_map(|end| END[..end].to_owned()),
        (0..MARK.len()).prop_map(|start| MARK[start..].to_owned()),
    ];
    let last = prop_oneof![Just(String::new()), Just(MARK.to_owned()), Just(format!("{MARK} more"))];
    (prop::collection::vec(piece, 0..6), last).prop_filter_map("a pair", |(pieces, last)| {
        let text = pieces.concat() + &last;
        // Pieces may make a whole mark by chance.
        let open = text.find(MARK);
        (!open.is_some_and(|at| text[at..].contains(END))).then_some(text)
    })
}

/// `text` in chunks.
fn split<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut cuts: Vec<_> =
        cuts.iter().map(|cut| cut % (text.len() + 1)).filter(|&cut| text.is_char_boundary(cut)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

proptest! {
    /// What a person writes comes back as it was, byte by byte and line by line.
    #[test]
    fn words_of_the_user_come_back(text in users(), cuts in prop::collection::vec(0_usize..200, 0..8)) {
        let chunks = split(&text, &cuts);
        prop_assert_eq!(seen(&chunks), chunks);
    }

    /// So it does with our text before it, between two of it, and behind it, in blocks of their own or merged.
    #[test]
    fn words_around_ours_come_back(
        before in users(),
        between in users(),
        after in users(),
        first in prop_oneof![Just(ours()), Just(command())],
        cuts in prop::collection::vec(0_usize..2000, 0..8),
    ) {
        // Behind our text, one space may be a separator; and a mark that is open in front of ours closes with nothing.
        let (between, after) = (between.trim_start(), after.trim_start());
        let typed = if first == command() { "/review " } else { "" };
        let whole = format!("{before}{first}{between}{}{after}", ours());
        let expected = format!("{before}{typed}{between}{after}");
        prop_assert_eq!(seen(&split(&whole, &cuts)).concat(), expected.clone());
        // In one line, as another run wrote it.
        let flat = |text: String| text.replace('\n', " ").replace("00000001c5cdf960", "0123abcd07757998");
        let whole = format!("{before}{}{between}{}{after}", flat(first), flat(ours()));
        prop_assert_eq!(seen(&[&whole]).concat(), expected);
    }

    /// Titles that are cut anywhere have no word of ours, and the words of the user as far as they go.
    #[test]
    fn titles_cut_anywhere(words in "[a-z]{1,8}( [a-z]{1,8}){0,4}", cut in 0_usize..200) {
        let whole = format!("{}{words}", ours().replace('\n', " "));
        let end = (cut..=whole.len()).find(|&end| whole.is_char_boundary(end)).unwrap_or(whole.len());
        let clean = title(&whole[..end], None);
        if end >= MIN_CUT_BYTES {
            prop_assert!(words.starts_with(clean.unwrap().as_str()));
        }
        // Behind the words, any part of ours is too much.
        let whole = format!("{words} {}", ours().replace('\n', " "));
        let end = (cut..=whole.len()).find(|&end| whole.is_char_boundary(end)).unwrap_or(whole.len());
        let clean = title(&whole[..end], Some(&words));
        prop_assert_eq!(clean.as_deref(), (end > words.len() + 1).then_some(words.as_str()));
    }
}
