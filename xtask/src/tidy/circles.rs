//! Modules inside a crate form no import circle.
//!
//! An arrow goes from a file to the file its `use` or path ends in, re-exports followed to where
//! the name is defined. A parent that declares a child and re-exports from it is no arrow; a parent
//! that uses its child, and a child that uses its parent, are.
//! Never: looks over the border of a crate; see `layers`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::finding::{Exceptions, Finding, excuse};
use crate::lexer::tokens;
use crate::modules::{module_of, test_files};
use crate::source::{Reference, declared, production, references};
use crate::tree::Tree;

type Path = Vec<String>;
/// From each module to those it leads to, with the line that does.
type Arrows<'a> = BTreeMap<&'a Path, BTreeMap<Path, usize>>;

/// Files that may stand in a circle, with the reason.
const EXCEPTIONS: Exceptions = &[];

/// One module: its file, its children, what it names.
struct Module {
    file: String,
    children: BTreeSet<String>,
    references: Vec<Reference>,
}

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for krate in tree.crates() {
        let modules = modules(tree, krate, &tests);
        findings.extend(circles(&modules));
    }
    excuse(findings, EXCEPTIONS)
}

fn modules(tree: &Tree, krate: &str, tests: &BTreeSet<String>) -> BTreeMap<Path, Module> {
    let mut modules = BTreeMap::new();
    for (file, text) in tree.rust().filter(|(file, _)| !tests.contains(*file)) {
        let Some(module) = module_of(krate, file) else { continue };
        let code = production(&tokens(text));
        let children = declared(&code).into_iter().map(|child| child.name).collect();
        let references = references(&code);
        modules.insert(module, Module { file: file.to_owned(), children, references });
    }
    modules
}

/// A shortest way back to itself for every module that has one.
fn circles(modules: &BTreeMap<Path, Module>) -> Vec<Finding> {
    let arrows: Arrows<'_> =
        modules.iter().map(|(path, module)| (path, arrows(modules, path, module))).collect();
    let mut findings = Vec::new();
    for (path, module) in modules {
        let Some(way) = way_back(&arrows, path) else { continue };
        let names: Vec<String> = way.iter().map(|path| name(path)).collect();
        let text = format!("circle: {}", names.join(" -> "));
        findings.push(Finding::new(&module.file, arrows[path][way[1]], text));
    }
    findings
}

fn name(path: &[String]) -> String {
    if path.is_empty() { "crate".to_owned() } else { path.join("::") }
}

/// A shortest way from a module back to itself, breadth first.
fn way_back<'a>(arrows: &'a Arrows<'_>, home: &'a Path) -> Option<Vec<&'a Path>> {
    let mut seen = BTreeSet::new();
    let mut ways = VecDeque::from([vec![home]]);
    while let Some(way) = ways.pop_front() {
        let last = *way.last()?;
        for to in arrows.get(last)?.keys() {
            if to == home {
                return Some(way.into_iter().chain([home]).collect());
            }
            if seen.insert(to) && arrows.contains_key(to) {
                ways.push_back(way.iter().copied().chain([to]).collect());
            }
        }
    }
    None
}

/// The modules that one module leads to, itself left out, each with the first line that does.
fn arrows(modules: &BTreeMap<Path, Module>, own: &Path, module: &Module) -> BTreeMap<Path, usize> {
    let mut found = BTreeMap::new();
    for reference in &module.references {
        let Some(target) = absolute(own, module, &reference.path) else { continue };
        let to = resolve(modules, target, 8);
        let child = to.len() == own.len() + 1 && to.starts_with(own);
        if to != *own && !(child && reference.exported) {
            found.entry(to).or_insert(reference.line);
        }
    }
    found
}

/// A path from the crate root; none when it leaves the crate.
fn absolute(own: &Path, module: &Module, path: &[String]) -> Option<Path> {
    let mut at = own.clone();
    let mut rest = path.iter().peekable();
    match path[0].as_str() {
        "crate" => at.clear(),
        "self" | "super" => {}
        first if module.children.contains(first) => {
            return Some(at.into_iter().chain(path.iter().cloned()).collect());
        }
        _ => return None,
    }
    while let Some(part) = rest.next_if(|part| matches!(part.as_str(), "crate" | "self" | "super"))
    {
        if part == "super" {
            at.pop();
        }
    }
    Some(at.into_iter().chain(rest.cloned()).collect())
}

/// The module that a path ends in, re-exports followed at most `steps` times.
fn resolve(modules: &BTreeMap<Path, Module>, path: Path, steps: usize) -> Path {
    let mut depth = path.len();
    while depth > 0 && !modules.contains_key(&path[..depth]) {
        depth -= 1;
    }
    let (at, rest) = path.split_at(depth);
    let Some((name, module)) = rest.first().zip(modules.get(at)) else { return at.to_vec() };
    let exports = |found: &&Reference| found.exported && found.name.as_ref() == Some(name);
    let Some(export) = module.references.iter().find(exports).filter(|_| steps > 0) else {
        return at.to_vec();
    };
    match absolute(&at.to_vec(), module, &export.path) {
        Some(next) => resolve(modules, next, steps - 1),
        None => at.to_vec(),
    }
}

#[cfg(test)]
mod tests;
