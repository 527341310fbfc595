//! The modules of one crate: their items, and which item a name in a module means.
//!
//! Never: leaves the crate.

use std::collections::{BTreeMap, BTreeSet};

use super::print::line;
use crate::items::{Item, items};
use crate::lexer::{Token, tokens};
use crate::modules::places;
use crate::source::{Reference, production, references};
use crate::tree::Tree;

/// Names from the crate's root down.
pub(super) type Path = Vec<String>;

/// The tokens of a crate's modules, for [`Scope`] to borrow from.
pub(super) struct Source<'a> {
    modules: Vec<(Path, Vec<Token<'a>>, Vec<String>)>,
}

impl<'a> Source<'a> {
    /// Reads the files that the crate in folder `krate` is built from, its tests left out.
    pub(super) fn read(tree: &'a Tree, krate: &str) -> Self {
        let mut modules = Vec::new();
        let root = (format!("{krate}/src/lib.rs"), true, Path::new(), Vec::new());
        let mut waiting = vec![root];
        while let Some((file, is_root, path, conditions)) = waiting.pop() {
            let Some(text) = tree.get(&file) else { continue };
            let code = production(&tokens(text));
            for item in items(&code).iter().filter(|item| item.keyword == "mod") {
                let Some(name) = item.name.filter(|_| item.body.is_none()) else { continue };
                let child: Path = path.iter().cloned().chain([name.to_owned()]).collect();
                let all: Vec<_> =
                    conditions.iter().cloned().chain(self::conditions(item)).collect();
                for place in places(&file, is_root, name) {
                    waiting.push((place, false, child.clone(), all.clone()));
                }
            }
            modules.push((path, code, conditions));
        }
        Self { modules }
    }
}

/// One module.
pub(super) struct Module<'a> {
    pub(super) items: Vec<Item<'a>>,
    /// The `cfg` attributes that it is compiled under.
    pub(super) conditions: &'a [String],
    references: Vec<Reference>,
}

/// The modules of a crate by their path.
pub(super) struct Scope<'a> {
    pub(super) modules: BTreeMap<&'a Path, Module<'a>>,
}

impl<'a> Scope<'a> {
    pub(super) fn of(source: &'a Source<'a>) -> Self {
        let modules = source.modules.iter().map(|(path, code, conditions)| {
            let module = Module { items: items(code), conditions, references: references(code) };
            (path, module)
        });
        Self { modules: modules.collect() }
    }

    /// Names that a module exports from elsewhere, each with where it comes from; none where that
    /// is another crate.
    pub(super) fn exports(&self, module: &Path) -> Vec<(String, Option<Path>)> {
        let Some(found) = self.modules.get(module) else { return Vec::new() };
        let public = found.items.iter().filter(|item| item.keyword == "use" && item.public);
        let mut exports = Vec::new();
        for item in public {
            for reference in references(item.head) {
                let Some(name) = reference.name.clone() else { continue };
                let from = self.absolute(module, &reference.path);
                exports.push((name, from.and_then(|path| self.resolve(&path))));
            }
        }
        exports
    }

    /// Where the item that `name` means in `module` is defined.
    pub(super) fn meaning(&self, module: &Path, name: &str) -> Option<Path> {
        let path: Path = module.iter().cloned().chain([name.to_owned()]).collect();
        self.resolve(&path)
    }

    /// Follows imports to where the item of this path is defined.
    fn resolve(&self, path: &Path) -> Option<Path> {
        let (mut path, mut seen) = (path.clone(), BTreeSet::new());
        while seen.insert(path.clone()) {
            let (name, parent) = path.split_last()?;
            let parent = parent.to_vec();
            if self.modules.contains_key(&path) {
                return Some(path);
            }
            let module = self.modules.get(&parent)?;
            if module.items.iter().any(|item| item.name == Some(name.as_str())) {
                return Some(path);
            }
            let import =
                module.references.iter().find(|found| found.name.as_ref() == Some(name))?;
            path = self.absolute(&parent, &import.path)?;
        }
        None
    }

    /// A path from the crate's root; none when it leaves the crate.
    fn absolute(&self, module: &Path, path: &[String]) -> Option<Path> {
        let mut at = module.clone();
        let first = path.first()?;
        let mut rest = path;
        match first.as_str() {
            "crate" => at.clear(),
            "self" | "super" => {}
            name => {
                let child: Path = at.iter().cloned().chain([name.to_owned()]).collect();
                let known = self.modules.contains_key(&child)
                    || path.len() > 1 && self.meaning(&at, name).is_some();
                return known.then(|| at.iter().chain(path).cloned().collect());
            }
        }
        while let [part, after @ ..] = rest
            && matches!(part.as_str(), "crate" | "self" | "super")
        {
            if part == "super" {
                at.pop();
            }
            rest = after;
        }
        Some(at.into_iter().chain(rest.iter().cloned()).collect())
    }
}

/// The `cfg` attributes of an item, and that it may grow.
pub(super) fn conditions(item: &Item<'_>) -> Vec<String> {
    let told = |attribute: &&&[Token<'_>]| {
        attribute.first().is_some_and(|first| first.is("cfg") || first.is("non_exhaustive"))
    };
    item.attributes.iter().filter(told).map(|attribute| format!("#[{}]", line(attribute))).collect()
}
