//! Benchmarks the search over 1,000 and 10,000 skills, and compares it with the `bm25` crate. Also benchmarks the search of
//! instructions that are stored on disk, and prints how much memory their index needs.
//!
//! If `SKILLS_CORPUS` is set, the words come from real descriptions. Otherwise, they are generated. The texts are the same in
//! each run.

use std::{alloc::System, env, fmt::Write, fs, hint::black_box, path::Path};

use bm25::{Document, Language, SearchEngineBuilder};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use skills_core::{
    Skill, SkillSet,
    discovery::{Discovery, Root},
    instructions,
    search::{Query, SearchIndex},
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The mean length of instructions in words. A real skill has about 1,300.
const INSTRUCTION_WORDS: usize = 1_300;

const QUERIES: [&str; 4] = [
    "package my kubernetes app as a helm chart",
    "terrafrom modulse",
    "merge two pdf files",
    "use this when the user asks for code",
];

/// Returns the number of skills for a measurement, or a hundredth of it if `cargo test` only checks that the bench works.
fn size(measured: usize) -> usize {
    if env::args().any(|argument| argument == "--bench") { measured } else { measured / 100 }
}

/// Generates text whose words are distributed as in real text: the n-th word has a frequency of about 1/n.
struct Text {
    words: Vec<String>,
    state: u64,
}

impl Text {
    fn new() -> Self {
        let words = match env::var_os("SKILLS_CORPUS") {
            Some(root) => corpus(Path::new(&root)),
            None => (0..8_000_u32).map(generated_word).collect(),
        };
        Self { words, state: 1 }
    }

    fn number(&mut self, below: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % below
    }

    fn word(&mut self) -> String {
        let below = 1 + self.number(self.words.len());
        let at = self.number(below);
        self.words[at].clone()
    }

    fn words(&mut self, count: usize, between: &str) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(between)
    }
}

/// Returns the words of all descriptions, most frequent first.
fn corpus(root: &Path) -> Vec<String> {
    let list = fs::read_to_string(root.join("expected.jsonl")).expect("the corpus has a list");
    let mut counts = std::collections::HashMap::<String, usize>::new();
    for line in list.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        for word in entry["description"].as_str().unwrap_or_default().split(|c: char| !c.is_alphanumeric()) {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    counts.remove("");
    let mut words: Vec<_> = counts.into_iter().collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    words.into_iter().map(|(word, _)| word).collect()
}

fn generated_word(mut number: u32) -> String {
    let mut word = String::new();
    loop {
        let consonant = b"bcdfgklmnprstvw"[number as usize % 15];
        let vowel = b"aeiou"[number as usize / 15 % 5];
        let _ = write!(word, "{}{}", consonant as char, vowel as char);
        number /= 75;
        if number == 0 {
            return word;
        }
    }
}

fn skills(count: usize) -> Vec<Skill> {
    let mut text = Text::new();
    let skill = |number: usize| {
        let name = format!("{}-{number}", text.words(2, "-"));
        let length = 15 + text.number(30);
        Skill::builder(name, text.words(length, " ")).body("x").build().expect("a skill")
    };
    (0..count).map(skill).collect()
}

fn search(c: &mut Criterion) {
    for count in [1_000, 10_000].map(size) {
        let skills = skills(count);
        let set: SkillSet = skills.iter().cloned().collect();
        let document =
            |(skill, id): (&Skill, u32)| Document::new(id, format!("{} {}", skill.name, skill.description));
        let documents: Vec<Document<u32>> = skills.iter().zip(0..).map(document).collect();
        let build =
            |documents| SearchEngineBuilder::<u32>::with_documents(Language::English, documents).build();

        let mut group = c.benchmark_group(format!("{count} skills"));
        group.sample_size(10);
        group.bench_function("build, ours", |b| b.iter(|| SearchIndex::new(black_box(set.iter().cloned()))));
        group.bench_function("build, bm25", |b| {
            b.iter_batched(|| documents.clone(), build, BatchSize::LargeInput);
        });
        let index = SearchIndex::new(set.iter().cloned());
        let engine = build(documents.clone());
        for query in QUERIES {
            let ours = Query { text: query.into(), ..Query::default() };
            group.bench_function(format!("{query:?}, ours"), |b| b.iter(|| index.search(black_box(&ours))));
            group.bench_function(format!("{query:?}, bm25"), |b| {
                b.iter(|| engine.search(black_box(query), 10));
            });
        }
        group.finish();
    }
}

/// Writes skills with long instructions to `root`.
fn write(root: &Path, count: usize) {
    let mut text = Text::new();
    for number in 0..count {
        let dir = root.join(format!("skill-{number}"));
        fs::create_dir(&dir).expect("a directory");
        let description = text.words(30, " ");
        let mut file = format!("---\nname: skill-{number}\ndescription: {description}\n---\n");
        let sections = 2 * INSTRUCTION_WORDS / 65;
        for _ in 0..=text.number(sections) {
            let _ = write!(file, "## {}\n\n{}.\n\n", text.words(5, " "), text.words(60, " "));
        }
        fs::write(dir.join("SKILL.md"), file).expect("a skill");
    }
}

#[expect(clippy::print_stderr, reason = "prints the measured memory")]
fn search_instructions(c: &mut Criterion) {
    let root = tempfile::tempdir().expect("a directory");
    let count = size(10_000);
    write(root.path(), count);
    let discovery = Discovery::new([Root::scanned(root.path())]);
    let set = discovery.find();
    let build = |set: SkillSet| {
        instructions::prepare_search(&set);
        set
    };
    let region = Region::new(ALLOCATOR);
    let index = build(set.clone());
    let change = region.change();
    let kept = change.bytes_allocated - change.bytes_deallocated;
    eprintln!("{} skills with instructions: the index has {} KiB", index.len(), kept / 1024);

    let mut group = c.benchmark_group(format!("{count} skills with instructions"));
    group.sample_size(10);
    group.bench_function("build", |b| {
        b.iter_batched(|| discovery.find(), build, BatchSize::PerIteration);
    });
    for query in QUERIES {
        let query = Query { text: query.into(), instructions: true, ..Query::default() };
        group.bench_function(format!("{:?}", query.text), |b| b.iter(|| index.search(black_box(&query))));
    }
    group.finish();
}

criterion_group!(benches, search, search_instructions);
criterion_main!(benches);
