//! Measures the ranking on real skills, with queries that we wrote and the skill that each should find.
//!
//! The skills are not part of this repository. Set the environment variable `SKILLS_CORPUS` to a directory that contains an
//! `expected.jsonl`. Each line is an object whose `path` is the path of a `SKILL.md` in that directory.

use std::{collections::HashSet, fs, path::Path};

use serde_json::Value;

use super::{inline, *};
use crate::frontmatter::{ParseContext, body, parse};

/// Queries that a user might type, each with the name of the skill that should be found.
const QUERIES: &[(&str, &str)] = &[
    ("package my kubernetes app as a helm chart", "helm-chart-scaffolding"),
    ("compile a java service to a native binary", "java-add-graalvm-native-image-support"),
    ("simulate turbulent flow with navier stokes", "fluidsim"),
    ("edit cells in an excel workbook", "xlsx"),
    ("take card payments and subscriptions with stripe", "stripe-integration"),
    ("put this website online on vercel", "deploy-to-vercel"),
    ("resize a batch of pictures on the command line", "image-manipulation-image-magick"),
    ("send invoices and handle failed recurring payments", "billing-automation"),
    ("what happens if we raise prices, explore scenarios", "what-if-oracle"),
    ("scan a ton blockchain contract for bugs", "ton-vulnerability-scanner"),
    ("usage based or per seat pricing", "gtm-technical-product-pricing"),
    ("start a new fastapi backend", "fastapi-templates"),
    ("reusable terraform modules for aws", "terraform-module-library"),
    ("predict toxicity of molecules", "deepchem"),
    ("write a matlab or octave script", "matlab"),
    ("script for rhino 3d", "rhino3d-scripts"),
    ("async await in c#", "csharp-async"),
    ("crystal structures and phase diagrams", "pymatgen"),
    ("jest and vitest unit tests with mocks", "javascript-testing-patterns"),
    ("turn an excel file into markdown", "convert-excel-to-md"),
    ("anthropic logo colors and fonts", "brand-guidelines"),
    ("create a word document", "docx"),
    ("spike sorting of neural recordings", "neuropixels-analysis"),
    ("prepare me for tomorrow's meetings", "daily-prep"),
    ("convert oracle pl/sql procedures to postgres", "migrating-oracle-to-postgres-stored-procedures"),
    ("disassemble an executable", "binary-analysis-patterns"),
    ("which embedding model for rag and how to chunk", "embedding-strategies"),
    ("study for an exam from my notes", "exam-ready"),
    ("mvvm with observable properties in dotnet", "mvvm-toolkit"),
    ("compare tables between two sql server instances", "sql-server-table-reconciliation"),
    ("forecast a time series without training", "timesfm-forecasting"),
    ("upgrade javax imports to jakarta", "javax-to-jakarta-migration"),
    ("draw on a whiteboard together", "napkin"),
    ("change the database schema without downtime", "database-migration"),
    ("playwright or cypress browser tests", "e2e-testing-patterns"),
    ("record an architecture decision", "architecture-decision-records"),
    ("discrete event simulation of queues", "simpy"),
    ("swiftui screens that follow apple's guidelines", "mobile-ios-design"),
    ("improve this prompt for a chat model", "prompt-optimizer"),
    ("add application insights telemetry", "appinsights-instrumentation"),
    ("is this security bug a false positive", "fp-check"),
    ("estimate the total addressable market", "market-sizing-analysis"),
    ("time zones and daylight saving in .net", "dotnet-timezone"),
    ("bayesian hierarchical model with mcmc", "pymc"),
    ("design tokens and theming", "design-system-patterns"),
    ("write javadoc comments", "java-docs"),
    ("split a monolith into services", "microservices-patterns"),
    ("merge two pdf files", "pdf"),
    ("manage my zotero library", "pyzotero"),
    ("yaml for deployments, services and configmaps", "k8s-manifest-generator"),
    ("survival analysis with censored data", "scikit-survival"),
    ("fuzz a c library with clang", "libfuzzer"),
    ("identify peptides from mass spectrometry", "pyopenms"),
    ("run python on cloud gpus", "modal"),
    ("turborepo or nx with pnpm workspaces", "monorepo-management"),
    ("smaller docker image with several build stages", "multi-stage-dockerfile"),
    ("raise test coverage with pytest", "pytest-coverage"),
    ("game with unity entity component system", "unity-ecs-patterns"),
    ("tokio and async traits in rust", "rust-async-patterns"),
    ("push an image to azure container registry", "azure-container-registry-cli"),
    ("upgrade pester tests for powershell", "pester-migration"),
    ("mcp server in php", "php-mcp-server-generator"),
    ("multi objective optimization, pareto front", "pymoo"),
    ("lint bash scripts", "shellcheck-configuration"),
    ("combine keyword and vector retrieval", "hybrid-search-implementation"),
    ("gene expression of single cells from a census", "cellxgene-census"),
    ("answer review comments on my github pull request", "gh-address-comments"),
    ("expire old vectors in qdrant", "qdrant-sliding-time-window"),
    ("data contracts and great expectations", "data-quality-frameworks"),
    ("move a uwp app to winui", "winui3-migration-guide"),
    ("custom colors for slides and reports", "theme-factory"),
    ("diagrams in markdown with mermaid", "markdown-mermaid-writing"),
    // Names with typos, and names that were not typed completely.
    ("kuberentes manifest", "k8s-manifest-generator"),
    ("terrafrom", "terraform-module-library"),
    ("shellchek", "shellcheck-configuration"),
    ("neuropix", "neuropixels-analysis"),
];

/// Queries in other languages than those of the skills, in which names and words of code match.
const FOREIGN_QUERIES: &[(&str, &str)] = &[
    ("Kubernetes-Manifest für ein Deployment schreiben", "k8s-manifest-generator"),
    ("ein Terraform-Modul für AWS erstellen", "terraform-module-library"),
    ("Stripe-Zahlungen in den Shop einbauen", "stripe-integration"),
    ("zwei PDF zusammenfügen", "pdf"),
    ("Architektur-Entscheidung als ADR festhalten", "architecture-decision-records"),
    ("écrire des tests playwright ou cypress", "e2e-testing-patterns"),
    ("créer un chart helm pour mon application", "helm-chart-scaffolding"),
    ("modèle bayésien avec mcmc et pymc", "pymc"),
    ("migrer une application uwp vers winui", "winui3-migration-guide"),
    ("crear un backend nuevo con fastapi", "fastapi-templates"),
    ("pruebas de bash con shellcheck", "shellcheck-configuration"),
    ("subir la cobertura con pytest", "pytest-coverage"),
    ("用 mermaid 画图", "markdown-mermaid-writing"),
    ("部署到 vercel 网站", "deploy-to-vercel"),
    ("編集する excel xlsx ファイル", "xlsx"),
    ("turborepo と pnpm のモノレポ monorepo", "monorepo-management"),
    ("управлять библиотекой zotero", "pyzotero"),
    ("написать fuzz тест libfuzzer для библиотеки на c", "libfuzzer"),
    ("rust async 코드를 tokio 로 작성", "rust-async-patterns"),
    ("ตรวจ pull request github ตอบ comments", "gh-address-comments"),
];

/// Tasks that need no skill of the corpus.
const OTHER_TASKS: &[&str] = &[
    "why does this return an empty list?",
    "make the window remember its size",
    "the second argument should be optional",
    "print a warning if the folder is missing",
    "swap the two columns",
    "what did I ask you before?",
    "turn off the sound",
    "use a shorter name for this variable",
    "the page jumps when I scroll",
    "put this into its own function",
    "how many characters does this field allow?",
    "sort the menu by how often an entry is used",
    "write a thank-you note to my neighbour",
    "is 91 a prime number?",
    "wait a moment, I have to check something",
    "the arrow points in the wrong direction",
    "round the price to two digits",
    "keep the old value if the new one is empty",
    "what's a good name for a cat?",
    "the tooltip hides the button",
    "show the newest entries first",
    "why is the result negative?",
    "make it work without an internet connection",
    "delete everything below this line",
    "accept both upper and lower case",
    "when does daylight end today?",
    "we forgot to close the file",
    "tell me when you are done",
    "split the name into first and last name",
    "start the counter at one",
];

/// Loads the skills of the corpus. If two skills have the same name, the first one is kept.
fn corpus(root: &Path) -> Vec<Arc<Skill>> {
    let list = fs::read_to_string(root.join("expected.jsonl")).expect("the corpus has a list");
    let mut skills: Vec<Arc<Skill>> = Vec::new();
    let mut names = HashSet::new();
    for line in list.lines() {
        let entry: Value = serde_json::from_str(line).expect("a line of JSON");
        let path = root.join(entry["path"].as_str().expect("a path"));
        let directory =
            path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let text = String::from_utf8_lossy(&fs::read(&path).expect("a SKILL.md")).into_owned();
        let context = ParseContext { directory: directory.as_deref(), ..ParseContext::default() };
        if let (Some(skill), _) = parse(&text, &context).into_virtual(body(&text))
            && names.insert(skill.name.key())
        {
            skills.push(Arc::new(skill));
        }
    }
    skills
}

#[test]
#[expect(clippy::print_stderr, reason = "prints that the test was skipped, or the measured quality")]
fn the_ranking_of_real_skills_stays_good() {
    let Some(root) = std::env::var_os("SKILLS_CORPUS") else {
        eprintln!("skipped: SKILLS_CORPUS is not set");
        return;
    };
    let skills = corpus(Path::new(&root));
    let listed = || skills.iter().filter(|skill| skill.is_listed());
    let index = SearchIndex::new(skills.iter().cloned());
    let with_instructions = SearchIndex::with_instructions(skills.iter().cloned(), inline);
    let find = |query: &str, instructions: bool| {
        let query = Query { text: query.into(), limit: Some(50), instructions, ..Query::default() };
        let index = if instructions { &with_instructions } else { &index };
        index.search(&query).hits.iter().map(|hit| hit.skill.name.to_string()).collect()
    };
    let labelled = || QUERIES.iter().copied();
    let quality = measure(labelled(), |query| find(query, false));
    let deep = measure(labelled(), |query| find(query, true));
    let sentences: Vec<(String, String)> = listed().filter_map(|skill| sentence(skill)).collect();
    let from_instructions = || sentences.iter().map(|(text, name)| (text.as_str(), name.as_str()));
    let sentences_without = measure(from_instructions(), |query| find(query, false));
    let sentences_with = measure(from_instructions(), |query| find(query, true));
    let confident = |query: &str| {
        let hits = index.search(&Query { text: query.into(), ..Query::default() });
        hits.confident().map(|hit| hit.skill.name.to_string())
    };
    let named: Vec<bool> =
        QUERIES.iter().filter_map(|(query, right)| Some(confident(query)? == *right)).collect();
    let right = named.iter().filter(|&&is_right| is_right).count();
    let wrong = OTHER_TASKS.iter().filter(|task| confident(task).is_some()).count();
    eprintln!(
        "confident results: {} of {} queries, {right} right; {wrong} of {} other tasks",
        named.len(),
        QUERIES.len(),
        OTHER_TASKS.len()
    );
    assert!(right * 20 >= named.len() * 19 && right * 2 >= QUERIES.len() && wrong <= 1, "hints got worse");
    let foreign = || FOREIGN_QUERIES.iter().copied();
    let foreign_without = measure(foreign(), |query| find(query, false));
    let foreign_with = measure(foreign(), |query| find(query, true));
    let documents = listed().map(|skill| bm25::Document {
        id: skill.name.to_string(),
        contents: format!("{} {}", skill.name, skill.description),
    });
    let engine =
        bm25::SearchEngineBuilder::<String>::with_documents(bm25::Language::English, documents).build();
    let other = measure(labelled(), |query| {
        engine.search(query, 50).into_iter().map(|result| result.document.id).collect()
    });
    eprintln!(
        "{} queries over {} skills, our index without and with instructions, and the `bm25` crate:\n{quality:?}\n{deep:?}\n\
         {other:?}\n{} sentences of the instructions, without and with instructions:\n{sentences_without:?}\n\
         {sentences_with:?}\n{} queries in another language, without and with instructions:\n{foreign_without:?}\n\
         {foreign_with:?}",
        QUERIES.len(),
        index.len(),
        sentences.len(),
        FOREIGN_QUERIES.len(),
    );
    for (query, expected) in QUERIES.iter().chain(FOREIGN_QUERIES) {
        assert!(
            skills.iter().any(|skill| skill.name.as_str() == *expected),
            "there is no skill {expected} for {query:?}"
        );
    }
    assert!(sentences_with.recall_at_5 > sentences_without.recall_at_5 + 0.2, "instructions are not found");
    let Quality { recall_at_1, recall_at_5, mrr } = quality;
    assert!(recall_at_1 >= 0.87 && recall_at_5 >= 0.95 && mrr >= 0.91, "the ranking got worse");
}

#[derive(Debug)]
struct Quality {
    recall_at_1: f32,
    recall_at_5: f32,
    mrr: f32,
}

/// Returns the first ten words of a line in the middle of the instructions, with the name of the skill.
fn sentence(skill: &Skill) -> Option<(String, String)> {
    let text = inline(skill)?;
    let lines: Vec<&str> = text.lines().filter(|line| line.split_whitespace().count() >= 10).collect();
    let line = lines.get(lines.len() / 2)?;
    let words: Vec<&str> = line.split_whitespace().take(10).collect();
    Some((words.join(" "), skill.name.to_string()))
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 16 million")]
fn count(number: usize) -> f32 {
    number as f32
}

fn measure<'q>(
    queries: impl Iterator<Item = (&'q str, &'q str)>,
    search: impl Fn(&str) -> Vec<String>,
) -> Quality {
    let ranks: Vec<f32> = queries
        .map(|(query, expected)| search(query).iter().position(|name| name == expected))
        .map(|at| at.map_or(f32::INFINITY, |at| count(at + 1)))
        .collect();
    let mean =
        |worth: fn(f32) -> f32| ranks.iter().map(|&rank| worth(rank)).sum::<f32>() / count(ranks.len());
    Quality {
        recall_at_1: mean(|rank| f32::from(rank <= 1.0)),
        recall_at_5: mean(|rank| f32::from(rank <= 5.0)),
        mrr: mean(|rank| 1.0 / rank),
    }
}
