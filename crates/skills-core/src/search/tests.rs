mod labelled;

use super::*;
use crate::{
    skill::{Instructions, Properties, Source},
    tool::{SkillTool, ToolError},
};
use serde_json::Value;

fn skill(name: &str, description: &str, properties: Properties) -> Skill {
    Skill::builder(name, description).body("x").properties(properties).build().unwrap()
}

fn plain(name: &str, description: &str) -> Skill {
    skill(name, description, Properties::default())
}

async fn no_op(_: Value) -> Result<Value, ToolError> {
    Ok(Value::Null)
}

fn names(skills: Vec<Skill>, query: &Query) -> Vec<String> {
    let index = SearchIndex::new(skills.into_iter().map(Arc::new));
    index.search(query).hits.iter().map(|hit| hit.skill.name.to_string()).collect()
}

fn text(text: &str) -> Query {
    Query { text: text.into(), ..Query::default() }
}

fn sample() -> Vec<Skill> {
    let tagged = |tags: &[&str]| Properties {
        tags: tags.iter().map(|&tag| tag.into()).collect(),
        ..Properties::default()
    };
    vec![
        plain("pdf", "Reads, merges and fills in PDF documents."),
        plain("kubernetes-deploy", "Ships containers to a cluster."),
        skill("release-notes", "Writes what changed between two versions.", tagged(&["Git", "changelog"])),
        skill("commit-messages", "Writes messages for commits.", tagged(&["git"])),
        Skill::builder("weather", "Knows whether it rains.")
            .body("x")
            .tool("forecast", "x", no_op)
            .build()
            .unwrap(),
        plain("csharp", "Guides C# programs."),
        plain("translate", "翻译文档。"),
    ]
}

#[test]
fn every_field_and_word_form_can_be_found() {
    for (query, expected) in [
        ("merge documents", "pdf"),
        ("merging a document", "pdf"),
        ("PDF", "pdf"),
        ("kube", "kubernetes-deploy"),
        ("kuberentes", "kubernetes-deploy"),
        ("cluster", "kubernetes-deploy"),
        ("changelogs", "release-notes"),
        ("forecast", "weather"),
        ("c#", "csharp"),
        ("翻译", "translate"),
        ("commit-messages", "commit-messages"),
    ] {
        assert_eq!(names(sample(), &text(query)).first().map(String::as_str), Some(expected), "{query}");
    }
    for query in ["quantum", "!!", "zz"] {
        assert_eq!(names(sample(), &text(query)), [""; 0], "{query}");
    }
}

#[test]
fn results_have_all_tags_of_the_query() {
    let tags = |tags: &[&str], text: &str| Query {
        tags: tags.iter().map(|&tag| tag.into()).collect(),
        text: text.into(),
        ..Query::default()
    };
    assert_eq!(names(sample(), &tags(&["GIT"], "")), ["release-notes", "commit-messages"]);
    assert_eq!(names(sample(), &tags(&["git", "changelog"], "")), ["release-notes"]);
    assert_eq!(names(sample(), &tags(&["git"], "commit messages")), ["commit-messages"]);
    assert_eq!(names(sample(), &tags(&["git"], "pdf")), [""; 0]);
    assert_eq!(names(sample(), &tags(&["nope"], "")), [""; 0]);
}

#[test]
fn equal_scores_are_ordered_by_priority_then_completeness_then_position() {
    let low = Properties { priority: -1, ..Properties::default() };
    let high = Properties { priority: 5, ..Properties::default() };
    let mut tool = SkillTool::new("t", "x", no_op);
    let builder = |name: &str| Skill::builder(name, "Same words.").body("x");
    let complete = builder("e").add_tool(tool.clone()).build().unwrap();
    tool.missing = Some("gone".into());
    let incomplete = builder("d").add_tool(tool).build().unwrap();
    let skills = vec![skill("a", "Same words.", low), incomplete, complete, skill("c", "Same words.", high)];
    // The text of `d` and `e` is longer, since they have a tool. This should lead to a lower score.
    assert_eq!(names(skills, &text("same words")), ["c", "a", "e", "d"]);
}

#[test]
fn results_are_listed_skills_up_to_the_limit() {
    let hidden = Properties { hide_from_discovery: true, ..Properties::default() };
    let locked = Properties { disable_model_invocation: true, ..Properties::default() };
    let mut skills = vec![skill("hidden", "Thing.", hidden), skill("locked", "Thing.", locked)];
    skills.extend((0..60).map(|number| plain(&format!("s{number:02}"), "Thing.")));
    let index = SearchIndex::new(skills.into_iter().map(Arc::new));
    assert_eq!(index.len(), 60);
    for (limit, expected) in [(None, 10), (Some(0), 1), (Some(3), 3), (Some(1000), 50)] {
        let hits = index.search(&Query { limit, ..text("thing hidden locked") });
        assert_eq!((hits.hits.len(), hits.total), (expected, 60));
        assert!(hits.hits.iter().all(|hit| hit.skill.is_listed()));
    }
    assert!(SearchIndex::new([]).search(&text("x")).hits.is_empty());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn the_same_query_returns_the_same_result(
        words in proptest::collection::vec("[a-d]{1,3}( [a-d]{1,3}){0,4}", 1..20),
        query in "[a-d]{1,3}( [a-d]{1,3}){0,3}|\\PC{0,20}",
    ) {
        let skills = || words.iter().enumerate().map(|(n, words)| plain(&format!("s{n}"), words)).collect();
        proptest::prop_assert_eq!(names(skills(), &text(&query)), names(skills(), &text(&query)));
    }
}

#[test]
fn examples_and_parameters_are_found() {
    use crate::skill::Parameter;
    let taught = |name: &str, description: &str| Skill::builder(name, description).body("x");
    let skills = || {
        vec![
            taught("a", "Makes tables.")
                .example("Quarterly revenue of a shop.", "A spreadsheet.")
                .build()
                .unwrap(),
            taught("b", "Makes charts.")
                .parameter(Parameter::new("revenue").description("Numbers."))
                .build()
                .unwrap(),
            taught("c", "Makes tables.").build().unwrap(),
        ]
    };
    assert_eq!(names(skills(), &text("revenue")), ["a", "b"]);
    // The description should still have more weight.
    assert_eq!(names(skills(), &text("tables")), ["c", "a"]);
    assert!(names(skills(), &text("spreadsheet")).is_empty());
}

/// Returns the instructions of a virtual skill.
pub(super) fn inline(skill: &Skill) -> Option<Arc<str>> {
    let Source::Virtual(own) = &skill.source else { return None };
    let Instructions::Inline(text) = &own.instructions else { return None };
    Some(Arc::clone(text))
}

#[test]
fn instructions_are_searched_if_the_query_asks_for_it() {
    let with_body =
        |name: &str, body: &str| Skill::builder(name, "Makes reports.").body(body).build().unwrap();
    let skills = vec![
        with_body("text", "Sums\n\nAdd the ledger."),
        with_body("heading", "# The ledger\n\nAdd sums."),
        with_body("code", "```\n# ledger\nadd sums\n```"),
        with_body("other", "Draw a chart."),
    ];
    let index = SearchIndex::with_instructions(skills.into_iter().map(Arc::new), inline);
    let found = |text: &str, instructions: bool| {
        let hits = index.search(&Query { text: text.into(), instructions, ..Query::default() }).hits;
        hits.iter().map(|hit| (hit.skill.name.to_string(), hit.matched)).collect::<Vec<_>>()
    };
    assert!(found("ledger", false).is_empty());
    let names: Vec<String> = found("ledger", true).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["heading", "text", "code"]);
    assert_eq!(found("chart", true), [("other".to_owned(), 0)]);
}

#[test]
fn words_are_found_in_any_script_and_language() {
    let skills = || {
        vec![
            plain("rechnungen", "Erstellt Rechnungen für den Kunden und prüft die Beträge."),
            plain("otchet", "Составляет отчёт для клиента и проверяет суммы."),
            plain("fanyi", "把技术文档翻译成中文。"),
            plain("honyaku", "技術文書を日本語に翻訳します。"),
            plain("beonyeok", "기술 문서를 한국어로 번역합니다."),
            plain("plae", "แปลเอกสารทางเทคนิคเป็นภาษาไทย"),
            plain("pdf", "Reads PDF documents."),
        ]
    };
    for (query, expected) in [
        ("eine Rechnung prüfen", "rechnungen"),
        ("проверить отчеты", "otchet"),
        ("翻译技术文档", "fanyi"),
        ("译", "fanyi"),
        ("日本語の文書", "honyaku"),
        ("한국어 번역", "beonyeok"),
        ("เอกสารภาษาไทย", "plae"),
        ("ＰＤＦ を読む", "pdf"),
    ] {
        assert_eq!(names(skills(), &text(query)).first().map(String::as_str), Some(expected), "{query}");
    }
}

#[test]
fn a_confident_result_has_specific_words_and_is_far_ahead() {
    let index = SearchIndex::new(
        [
            plain(
                "csv-report",
                "Turns CSV exports into monthly sales reports. Use when a table of orders has to be read.",
            ),
            plain(
                "helm-chart",
                "Packages Kubernetes applications as Helm charts, with values for each environment.",
            ),
            plain("k8s-manifest", "Writes Kubernetes manifests for deployments and services."),
        ]
        .map(Arc::new),
    );
    let confident =
        |query: &str| index.search(&text(query)).confident().map(|hit| hit.skill.name.to_string());
    for (query, expected) in [
        ("make a monthly report from these sales", Some("csv-report")),
        ("package our app as a helm chart for staging", Some("helm-chart")),
        // Both know this word.
        ("is it running on kubernetes?", None),
        // All words are common.
        ("read the table of values when the order has changed", None),
        ("add an index to the orders table", None),
        ("which environment variables has each service?", None),
        ("thanks!", None),
    ] {
        assert_eq!(confident(query).as_deref(), expected, "{query}");
    }
}
