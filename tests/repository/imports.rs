//! Imports between the modules of a crate: siblings must not import each other in a circle, at any level.
//!
//! A module and its children count as one when they are compared with their siblings. Therefore a module and its own
//! children may use each other, but `a/b` must not use `c` if `c` uses `a`.

mod reader;

use std::collections::{BTreeMap, BTreeSet};

use self::reader::{Path, paths};
use crate::{assert_none, crate_dirs, files, is_test, read};

/// A module by the names on the way to it; the crate's root is empty.
type Module = Vec<String>;

/// A file of a crate.
struct File {
    /// The path relative to the root of the repository.
    path: String,
    module: Module,
    paths: Vec<Path>,
}

/// Reads the files of a crate, without those of tests.
fn read_crate(dir: &str) -> Vec<File> {
    let src = format!("{dir}/src");
    let sources: Vec<_> = files(&src, ".rs")
        .into_iter()
        .map(|path| {
            let inner = path.strip_prefix(&src).unwrap().trim_start_matches('/').trim_end_matches(".rs");
            let module: Module = match inner {
                "lib" | "main" => Vec::new(),
                inner => inner.split('/').map(str::to_owned).collect(),
            };
            let text = read(&path);
            (path, module, text)
        })
        .collect();
    let tests: BTreeSet<Module> = sources
        .iter()
        .flat_map(|(_, module, text)| test_modules(text).map(|name| below(module, name)))
        .collect();
    let code = sources.into_iter().filter(|(path, module, _)| !is_test(path) && !tests.contains(module));
    code.map(|(path, module, text)| File { module, paths: paths(&text), path }).collect()
}

/// Returns the names of the modules that a file declares for tests only.
fn test_modules(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[cfg(test)]\nmod ").skip(1).filter_map(|rest| rest.lines().next()?.strip_suffix(';'))
}

/// Returns the path of a child.
fn below(module: &[String], child: &str) -> Module {
    [module, &[child.to_owned()]].concat()
}

/// The modules of a crate, and the names that each of them imports.
struct Names {
    modules: BTreeSet<Module>,
    imported: BTreeMap<(Module, String), Module>,
}

impl Names {
    fn new(files: &[File]) -> Self {
        // We also need the modules that only have a directory, because their children are declared in the parent.
        let modules = files
            .iter()
            .flat_map(|file| (0..=file.module.len()).map(|end| file.module[..end].to_vec()))
            .collect();
        let mut names = Self { modules, imported: BTreeMap::new() };
        // We need to do this twice, because a name could be imported from a module that imports it as well.
        for _ in 0..2 {
            for file in files {
                for path in file.paths.iter().filter(|path| path.is_use) {
                    if let Some((name, target)) = path.name().zip(names.resolve(&file.module, &path.segments))
                    {
                        names.imported.insert((file.module.clone(), name.to_owned()), target);
                    }
                }
            }
        }
        names
    }

    /// Returns the module that a path in the module `from` leads to, or `None` if it leaves the crate.
    fn resolve(&self, from: &Module, segments: &[String]) -> Option<Module> {
        let mut module = from.clone();
        let mut rest = segments;
        match segments.first().map(String::as_str) {
            Some("crate") => {
                module.clear();
                rest = &segments[1..];
            }
            Some("self") => rest = &segments[1..],
            Some("super") => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    module.pop()?;
                    rest = &rest[1..];
                }
            }
            // This is either a child of this module or another crate.
            Some(first) => {
                if !self.modules.contains(&below(&module, first)) {
                    return None;
                }
            }
            None => return None,
        }
        for segment in rest {
            let child = below(&module, segment);
            if self.modules.contains(&child) {
                module = child;
            } else if let Some(target) = self.imported.get(&(module.clone(), segment.clone())) {
                // Use the module that this name was imported from.
                if *target == module {
                    break;
                }
                module.clone_from(target);
            } else {
                break;
            }
        }
        Some(module)
    }
}

/// The edges between the children of one module, each with the file and the line of one import.
type Edges = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the edges between siblings, by their parent.
fn edges(files: &[File]) -> BTreeMap<Module, Edges> {
    let names = Names::new(files);
    let mut levels: BTreeMap<Module, Edges> = BTreeMap::new();
    for file in files {
        for path in &file.paths {
            let Some(target) = names.resolve(&file.module, &path.segments) else { continue };
            let shared = file.module.iter().zip(&target).take_while(|(one, other)| one == other).count();
            // Otherwise, one of them is above the other, which is allowed.
            if let Some((from, to)) = file.module.get(shared).zip(target.get(shared)) {
                let level = levels.entry(target[..shared].to_vec()).or_default();
                let place = format!("{}:{}: {}", file.path, path.line, path.segments.join("::"));
                level.entry(from.clone()).or_default().entry(to.clone()).or_insert(place);
            }
        }
    }
    levels
}

/// Returns the modules that can be reached from `start`.
fn reachable<'a>(edges: &'a Edges, start: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut pending: Vec<_> = edges.get(start).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(module) = pending.pop() {
        if found.insert(module.as_str()) {
            pending.extend(edges.get(module).into_iter().flat_map(BTreeMap::keys));
        }
    }
    found
}

/// Returns the groups of modules that import each other in a circle.
fn circles(edges: &Edges) -> BTreeSet<BTreeSet<&str>> {
    let reached: BTreeMap<&str, _> =
        edges.keys().map(|module| (module.as_str(), reachable(edges, module))).collect();
    let in_circles = reached.iter().filter(|(module, reached)| reached.contains(*module));
    in_circles
        .map(|(module, from_here)| {
            let members = from_here
                .iter()
                .filter(|other| reached.get(*other).is_some_and(|back| back.contains(module)));
            members.copied().collect()
        })
        .collect()
}

#[test]
fn imports_do_not_form_a_circle() {
    let mut findings = Vec::new();
    for dir in crate_dirs() {
        for (parent, edges) in edges(&read_crate(&dir)) {
            let place = [&[format!("{dir}/src")], parent.as_slice()].concat().join("/");
            for circle in circles(&edges) {
                let title = format!("{place}: {}", circle.iter().copied().collect::<Vec<_>>().join(" "));
                findings.push(title);
                for from in &circle {
                    let imports = edges[*from].iter().filter(|(to, _)| circle.contains(to.as_str()));
                    findings.extend(imports.map(|(_, import)| format!("    {import}")));
                }
            }
        }
    }
    assert_none(&findings, "Move what both need into a module below them.");
}

/// Returns the circles of a made-up crate, as text.
fn check(sources: &[(&str, &str)]) -> String {
    let file = |(module, text): &(&str, &str)| File {
        path: (*module).to_owned(),
        module: module.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        paths: paths(text),
    };
    let files: Vec<_> = sources.iter().map(file).collect();
    let levels = edges(&files);
    let found = levels.iter().flat_map(|(parent, edges)| {
        let parent = parent.join("/");
        circles(edges).into_iter().map(move |circle| format!("{parent}{circle:?}"))
    });
    found.collect::<Vec<_>>().join(" ")
}

#[test]
fn circles_of_a_crate() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("a", "use crate::b::B;"), ("b", "")], ""),
        (&[("a", "use crate::b::B;"), ("b", "use crate::a::A;")], r#"{"a", "b"}"#),
        (&[("a", "use super::{b::B};"), ("b", "fn f() { super::a::g() }")], r#"{"a", "b"}"#),
        // A module and one of its children can use each other.
        (&[("a", "mod b; use self::b::B;"), ("a/b", "use super::A;")], ""),
        (&[("", "mod a; use a::A;"), ("a", "use crate::f;")], ""),
        // The import is in a child of the first module.
        (&[("a", ""), ("a/b", "use crate::c::C;"), ("c", "use crate::a::A;")], r#"{"a", "c"}"#),
        // The two modules have the same parent.
        (&[("a", ""), ("a/b", "use super::c::C;"), ("a/c", "use crate::a::b::B;")], r#"a{"b", "c"}"#),
        // The name is exported by the parent.
        (&[("", "pub use self::b::B;"), ("a", "use crate::B;"), ("b", "use crate::a::A;")], r#"{"a", "b"}"#),
        (
            &[("a", "use b::B;\npub use self::c::C;"), ("a/b", "use super::C;"), ("a/c", "use super::B;")],
            r#"a{"b", "c"}"#,
        ),
        (&[("a", "use crate::b;"), ("b", "use crate::c;"), ("c", "use crate::a;")], r#"{"a", "b", "c"}"#),
        (&[("a", "use b::c;"), ("b", "use a::d;")], ""),
    ];
    for (sources, expected) in cases {
        assert_eq!(check(sources), *expected, "{sources:?}");
    }
}
