use super::*;

fn codes(skills: &[(&str, &str)]) -> Vec<Vec<&'static str>> {
    let skills: Vec<Described<'_>> =
        skills.iter().map(|&(name, description)| Described { name, description }).collect();
    find(&skills).iter().map(|found| found.iter().map(|warning| warning.code).collect()).collect()
}

#[test]
fn vague_descriptions_lack_specific_words_and_an_occasion() {
    for (description, is_vague) in [
        ("Helps with various tasks.", true),
        ("A powerful tool for projects.", true),
        ("Reads files.", true),
        ("Use when the user needs help.", true),
        ("Helps with PDFs.", true),
        ("Prompt for X.", true),
        ("Merges PDFs.", false),
        ("Use for PDF forms when asked.", false),
        ("Reads PDF files. Use when a PDF comes up.", false),
        ("Erstellt Rechnungen für Kunden.", false),
        ("翻译技术文档。", false),
    ] {
        let expected: &[&str] = if is_vague { &["vague-description"] } else { &[] };
        assert_eq!(codes(&[("x", description)])[0], expected, "{description}");
    }
}

#[test]
fn broad_descriptions_claim_every_task() {
    for (description, is_broad) in [
        ("Use when starting any conversation, to find skills.", true),
        ("Finds skills. Use before ANY response including questions.", true),
        ("Plans work. Use for every request.", true),
        ("You MUST use this before any creative work - creating features.", true),
        ("Use for ALL web searches and research.", true),
        ("A loop for any programming task.", true),
        ("Deliberates on any question, decision, or challenge.", true),
        ("Use when implementing any feature or bugfix.", true),
        ("Use for any task that involves spreadsheets.", false),
        ("Use for any question framed as `is this compliant?`.", false),
        ("Adds an entry to the changelog for each change.", false),
        ("Applies fixes, reviews each change, and asks before each response.", false),
        ("Sets up servers for any programming language.", false),
        ("Replays all requests of a log file.", false),
        ("Use when the user asks any question about Kubernetes.", false),
        ("Lists all tasks in Jira for a sprint.", false),
        ("Closes all tasks of a sprint board.", false),
    ] {
        let found = codes(&[("x", description), ("pdf", "Merges PDF documents for printing.")]);
        assert_eq!(found[0].contains(&"broad-description"), is_broad, "{description}");
        assert!(found[1].is_empty());
    }
}

#[test]
fn similar_descriptions_are_told_with_their_words() {
    let review = "Reviews code changes for bugs, style and missing tests.";
    let skills = [
        Described { name: "code-review", description: review },
        Described {
            name: "review-helper",
            description: "Reviews changes for bugs, missing tests and style of code.",
        },
        Described { name: "pdf", description: "Merges PDF documents for printing." },
    ];
    let found = find(&skills);
    assert!(found[0].is_empty() && found[2].is_empty());
    let warning = &found[1][0];
    assert_eq!(warning.code, "similar-descriptions");
    assert!(!warning.is_error());
    for part in ["% similar to that of `code-review`", "`bugs`", "`missing`", "a query such as `"] {
        assert!(warning.message.contains(part), "{}", warning.message);
    }
}

#[test]
fn names_can_tell_similar_descriptions_apart() {
    let text = |language: &str| {
        format!("Generates a complete MCP server project in {language} with tools and tests.")
    };
    let (php, ruby) = (text("PHP"), text("Ruby"));
    assert_eq!(codes(&[("php-server", &php), ("ruby-server", &ruby)])[1], [""; 0]);
    assert_eq!(codes(&[("server-a", &php), ("server-b", &ruby)])[1], ["similar-descriptions"]);
    assert_eq!(codes(&[("server", &php), ("server", &php)])[1], [""; 0]);
}

#[test]
fn descriptions_tell_skills_apart() {
    let test = "Tests code with fixtures, mocks, coverage, assertions and test doubles";
    let fight = |skills: [(&str, &str); 2]| codes(&skills)[1].contains(&"similar-descriptions");
    let other = format!("{test}.");
    assert!(fight([("unit-tests", &other), ("checks", &format!("{test} and snapshots."))]));
    // One of them sends the model to the other.
    for end in ["For snapshots, use checks.", "See `checks` for snapshots."] {
        assert!(!fight([("unit-tests", &format!("{test}. {end}")), ("checks", &other)]), "{end}");
    }
    // Siblings are told apart by the word that one of them adds.
    let [java, csharp] = ["Java", "C#"].map(|language| format!("{test} in {language} for builds."));
    assert!(!fight([("java-tests", &java), ("csharp-tests", &csharp)]));
    // A description that has only words of the other one takes its tasks.
    assert!(fight([("java-tests", &format!("{test} in Java.")), ("unit-tests", &other)]));
    assert!(!fight([("java-tests", "Tests Java code."), ("unit-tests", "Tests code.")]));
}
