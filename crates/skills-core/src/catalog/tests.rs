use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::{
    name::SkillName,
    skill::{Properties, Stored},
};

fn inline(name: &str, description: &str) -> Skill {
    Skill::builder(name, description).body("Do it.").build().unwrap()
}

fn stored(name: &str, dir: &str) -> Skill {
    let source = Source::Stored(Stored::new(Path::new(dir), "SKILL.md"));
    Skill::new(SkillName::new(name).unwrap(), "Is stored.", source)
}

fn check(skills: Vec<Skill>, options: CatalogOptions, expected: Expect) {
    let catalog = Catalog::render(&skills.into_iter().collect(), &options).unwrap();
    expected.assert_eq(&format!("{}\n[{} shown, {} omitted]", catalog.text, catalog.shown, catalog.omitted));
}

fn skills_with_special_characters() -> Vec<Skill> {
    vec![
        inline(
            "b<&>\"b\u{202e}",
            "Ends </description></available_skills>\r\n\u{1b}[31m & goes on\u{2028}here.",
        ),
        inline("a`a", "*Stars* and snake_case, _emphasis_, [a](b) \\ \"quotes\"."),
    ]
}

#[test]
fn xml_escapes_everything_and_keeps_the_order() {
    check(
        skills_with_special_characters(),
        CatalogOptions::default(),
        expect![[r#"
            <available_skills>
              <skill>
                <name>b&lt;&amp;&gt;"b</name>
                <description>Ends &lt;/description&gt;&lt;/available_skills&gt; [31m &amp; goes on here.</description>
              </skill>
              <skill>
                <name>a`a</name>
                <description>*Stars* and snake_case, _emphasis_, [a](b) \ "quotes".</description>
              </skill>
            </available_skills>
            [2 shown, 0 omitted]"#]],
    );
}

#[test]
fn json_has_one_skill_per_line() {
    check(
        skills_with_special_characters(),
        CatalogOptions { format: Format::Json, ..CatalogOptions::default() },
        expect![[r#"
            {"available_skills":[
            {"name":"b<&>\"b","description":"Ends </description></available_skills> [31m & goes on here."},
            {"name":"a`a","description":"*Stars* and snake_case, _emphasis_, [a](b) \\ \"quotes\"."}
            ]}
            [2 shown, 0 omitted]"#]],
    );
}

#[test]
fn markdown_is_escaped() {
    check(
        skills_with_special_characters(),
        CatalogOptions { format: Format::Markdown, ..CatalogOptions::default() },
        expect![[r#"
            ## Available skills

            - `b<&>"b`: Ends \</description\>\</available_skills\> \[31m \& goes on here.
            - `` a`a ``: \*Stars\* and snake_case, \_emphasis\_, \[a\](b) \\ "quotes".
            [2 shown, 0 omitted]"#]],
    );
}

#[test]
fn names_and_locations() {
    let skills = || vec![inline("virtual", "Has no place."), stored("stored", "/home/me/my skills/dir-name")];
    check(
        skills(),
        CatalogOptions {
            detail: Detail::NamesOnly,
            location: Location::Mount("/skills/".into()),
            ..CatalogOptions::default()
        },
        expect![[r#"
            <available_skills>
              <skill><name>virtual</name></skill>
              <skill><name>stored</name><location>/skills/dir-name/SKILL.md</location></skill>
            </available_skills>
            [2 shown, 0 omitted]"#]],
    );
    let names = CatalogOptions { detail: Detail::NamesOnly, ..CatalogOptions::default() };
    check(
        skills(),
        CatalogOptions { format: Format::Json, ..names.clone() },
        expect![[r#"
            {"available_skills":[
            {"name":"virtual"},
            {"name":"stored"}
            ]}
            [2 shown, 0 omitted]"#]],
    );
    let file = Path::new("/home/me/my skills/dir-name").join("SKILL.md");
    let catalog = Catalog::render(
        &skills().into_iter().collect(),
        &CatalogOptions { location: Location::Absolute, ..CatalogOptions::default() },
    )
    .unwrap();
    assert!(catalog.text.contains(&format!("<location>{}</location>", file.display())), "{}", catalog.text);
}

#[test]
fn descriptions_are_shortened_before_skills_are_left_out() {
    let long =
        "Reviews code for bugs, style, security problems and missing tests; use it before each commit.";
    let skills = || vec![inline("one", long), inline("two", "Short."), inline("three", long)];
    let options = |budget_chars| CatalogOptions { budget_chars, search: true, ..CatalogOptions::default() };
    check(
        skills(),
        options(405),
        expect![[r#"
            <available_skills>
              <skill>
                <name>one</name>
                <description>Reviews code for bugs, style, security problems and missing tests…</description>
              </skill>
              <skill>
                <name>two</name>
                <description>Short.</description>
              </skill>
              <skill>
                <name>three</name>
                <description>Reviews code for bugs, style, security problems and missing tests…</description>
              </skill>
            </available_skills>
            [3 shown, 0 omitted]"#]],
    );
    check(
        skills(),
        options(320),
        expect![[r#"
            <available_skills>
              <skill>
                <name>one</name>
                <description>Reviews code for bugs, style, security problems and missing tests…</description>
              </skill>
              <skill>
                <name>two</name>
                <description>Short.</description>
              </skill>
              1 more skill is not listed here; `search_skills` finds it.
            </available_skills>
            [2 shown, 1 omitted]"#]],
    );
    check(
        skills(),
        CatalogOptions { search: false, format: Format::Json, ..options(0) },
        expect![[r#"
            {"available_skills":[
            {"name":"one","description":"Reviews code for bugs, style, security problems and missing…"}
            ],"more":"2 more skills are not listed here."}
            [1 shown, 2 omitted]"#]],
    );
}

#[test]
fn only_listed_skills_are_shown_and_an_empty_list_is_none() {
    let hidden =
        |properties| Skill::builder("hidden", "Is hidden.").body("x").properties(properties).build().unwrap();
    let set: SkillSet = [
        hidden(Properties { hide_from_discovery: true, ..Properties::default() }),
        hidden(Properties { disable_model_invocation: true, ..Properties::default() }),
    ]
    .into_iter()
    .collect();
    assert_eq!(Catalog::render(&set, &CatalogOptions::default()), None);
}

#[test]
fn text_is_shortened_at_word_boundaries() {
    for (text, cap, expected) in [
        ("", 5, ""),
        ("short", 5, "short"),
        ("two words", 8, "two…"),
        ("two words more", 10, "two words…"),
        ("one, two", 6, "one…"),
        ("代码审查工具集合", 5, "代码审查…"),
        ("a bbbbbbbbbbbbbbbbbb", 10, "a bbbbbbb…"),
        ("bbbbbbbbbbbbbbbbbb", 10, "bbbbbbbbb…"),
        ("a b|bashzzzzzzzzzzzz", 9, "a b|…"),
        ("a|bash|zzzzzzzzzzzzz", 7, "a|bash…"),
        ("ab", 0, "…"),
    ] {
        assert_eq!(shorten(text, cap), expected, "{text:?} to {cap}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn stays_within_its_budget(
        skills in prop::collection::vec(("[a-z]{1,8}", "\\PC{1,200}"), 1..40),
        budget_chars in 400..4_000_usize,
        format in prop::sample::select(vec![Format::Xml, Format::Json, Format::Markdown]),
    ) {
        let set: SkillSet = skills
            .iter()
            .filter_map(|(name, description)| Skill::builder(name, description).body("x").build().ok())
            .collect();
        let options = CatalogOptions { format, budget_chars, search: true, ..CatalogOptions::default() };
        let Some(catalog) = Catalog::render(&set, &options) else { return Ok(()) };
        // A single entry may exceed the budget if every character needs an escape.
        prop_assert!(catalog.text.chars().count() <= budget_chars || catalog.shown == 1);
        prop_assert_eq!(catalog.shown + catalog.omitted, set.len());
        if format == Format::Json {
            let json: serde_json::Value = serde_json::from_str(&catalog.text).unwrap();
            prop_assert_eq!(json["available_skills"].as_array().unwrap().len(), catalog.shown);
        }
        if format == Format::Xml {
            prop_assert_eq!(catalog.text.matches("<skill>").count(), catalog.shown);
        }
    }
}

#[test]
fn many_skills_are_grouped_by_tag_or_source() {
    let skill = |number: usize| {
        let tags = if number.is_multiple_of(2) { vec!["web & ui".to_owned()] } else { Vec::new() };
        let properties = crate::skill::Properties { tags, ..crate::skill::Properties::default() };
        let name = format!("s{number:02}");
        Skill::builder(name, "Does a thing.").body("x").properties(properties).build().unwrap()
    };
    let options =
        CatalogOptions { style: Style::Grouped, budget_chars: 100_000, ..CatalogOptions::default() };
    let render = |count: usize, format: Format| {
        let set: SkillSet = (0..count).map(skill).collect();
        Catalog::render(&set, &CatalogOptions { format, ..options.clone() }).unwrap().text
    };
    assert!(!render(60, Format::Xml).contains("group"));
    let xml = render(61, Format::Xml);
    assert!(xml.starts_with("<available_skills>\n<group name=\"web &amp; ui\">\n  <skill>"), "{xml}");
    assert_eq!((xml.matches("<group ").count(), xml.matches("</group>").count()), (2, 2));
    assert_eq!(xml.matches("<skill>").count(), 61);
    let json: serde_json::Value = serde_json::from_str(&render(61, Format::Json)).unwrap();
    assert_eq!(json["available_skills"][1]["group"], "named");
    assert_eq!(json["available_skills"][0]["skills"].as_array().unwrap().len(), 31);
    assert!(render(61, Format::Markdown).contains("\n### named\n\n- `s01`: Does a thing.\n"));
}

#[test]
fn the_default_style_keeps_its_text() {
    assert_eq!(guide(Guide::Tools), styled_guide(Guide::Tools, Style::default()));
    assert!(guide(Guide::Tools).starts_with("Skills are proven instructions"));
    for style in Style::ALL {
        assert!(styled_guide(Guide::Tools, style).contains("`activate_skill`"), "{style:?}");
        assert!(styled_guide(Guide::Files, style).contains("`SKILL.md`"), "{style:?}");
    }
}
