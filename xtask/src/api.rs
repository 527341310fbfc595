//! The public interface of the library crates as text, an item to a line, in `docs/api/`.
//!
//! It is read from the sources: what `lib.rs` leads to, with its signatures, the implemented traits
//! and the features it needs. `cargo xtask api` writes it; the rule `api` holds it to the code, so
//! that no change of an interface goes unseen.
//! Never: expands a macro; a public item that only a macro makes is not listed.

mod print;
mod scope;

use std::collections::{BTreeMap, BTreeSet};

use self::print::line;
use self::scope::{Path, Scope, Source, conditions};
use crate::items::{Item, attributes, items, split, visibility};
use crate::lexer::{Kind, Token};
use crate::manifest::entries;
use crate::tree::Tree;

/// The crates that others may use as libraries.
const LIBRARIES: [&str; 6] = [
    "crates/http",
    "crates/receiver",
    "crates/resilience",
    "crates/shared",
    "crates/webhook",
    "crates/worker",
];

/// Each listing: the file it belongs into, and its text.
pub(crate) fn listings(tree: &Tree) -> Vec<(String, String)> {
    let known = LIBRARIES.iter().filter(|krate| tree.holds(&format!("{krate}/src/lib.rs")));
    known
        .map(|krate| {
            let folder = krate.rsplit('/').next().unwrap_or(krate);
            (format!("docs/api/{folder}.txt"), listing(tree, krate))
        })
        .collect()
}

fn listing(tree: &Tree, krate: &str) -> String {
    let manifest = entries(tree.get(&format!("{krate}/Cargo.toml")).unwrap_or_default());
    let name = manifest.iter().find(|entry| entry.section == "lib" && entry.key == "name");
    let name = name.map_or(krate, |entry| entry.value.trim_matches('"'));
    let source = Source::read(tree, krate);
    let mut api = Api { scope: Scope::of(&source), name, seen: BTreeMap::new(), lines: Vec::new() };
    api.module(&Path::new(), &Path::new());
    api.implementations();
    api.lines.sort();
    api.lines.dedup();
    let mut text = String::new();
    for (_, line) in api.lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// A listing as it grows.
struct Api<'a> {
    scope: Scope<'a>,
    name: &'a str,
    /// Where each item that was listed is defined, and the path it was listed under.
    seen: BTreeMap<Path, String>,
    /// What a line is sorted by, and the line.
    lines: Vec<(String, String)>,
}

impl Api<'_> {
    /// What the module defines and exports, as seen under `shown`.
    fn module(&mut self, module: &Path, shown: &Path) {
        let Some(found) = self.scope.modules.get(module) else { return };
        let conditions = found.conditions.to_vec();
        let defined: Vec<_> = found.items.iter().filter(|item| item.public).cloned().collect();
        let mut inner = Vec::new();
        for item in defined {
            let Some(name) = item.name else { continue };
            let path: Path = module.iter().cloned().chain([name.to_owned()]).collect();
            let under: Path = shown.iter().cloned().chain([name.to_owned()]).collect();
            if item.keyword == "mod" {
                inner.push((path, under));
            } else {
                self.item(&item, &path, &under, &conditions);
            }
        }
        for (path, under) in inner {
            self.put(&under, &[], format!("pub mod {}", self.path(&under)));
            self.module(&path, &under);
        }
        for (name, from) in self.scope.exports(module) {
            let under: Path = shown.iter().cloned().chain([name]).collect();
            self.export(from, &under);
        }
    }

    fn export(&mut self, from: Option<Path>, under: &Path) {
        let Some(from) = from else {
            self.put(under, &[], format!("pub use {}", self.path(under)));
            return;
        };
        if let Some(first) = self.seen.get(&from) {
            let text = format!("pub use {} = {first}", self.path(under));
            self.put(under, &[], text);
            return;
        }
        let Some((name, parent)) = from.split_last() else { return };
        let Some(module) = self.scope.modules.get(&parent.to_vec()) else { return };
        let conditions = module.conditions.to_vec();
        let defined = module.items.iter().find(|item| item.name == Some(name.as_str())).cloned();
        if let Some(item) = defined {
            self.item(&item, &from, under, &conditions);
        }
    }

    fn item(&mut self, item: &Item<'_>, path: &Path, under: &Path, outer: &[String]) {
        let shown = self.path(under);
        if let Some(first) = self.seen.get(path) {
            let text = format!("pub use {shown} = {first}");
            self.put(under, &[], text);
            return;
        }
        self.seen.insert(path.clone(), shown.clone());
        let told: Vec<_> = outer.iter().cloned().chain(conditions(item)).collect();
        self.put(under, &told, format!("pub {}", signature(item, &shown)));
        let derived = item.attributes.iter().filter(|attribute| attribute[0].is("derive"));
        for name in derived.flat_map(|derive| split(&derive[2..derive.len() - 1])) {
            self.put(under, outer, format!("impl {} for {shown}", line(name)));
        }
        let Some(body) = item.body else { return };
        match item.keyword {
            "struct" | "union" => self.fields(body, under),
            "enum" => self.variants(body, under),
            "trait" => self.methods(&items(body), under, outer, true),
            _ => {}
        }
    }

    fn fields(&mut self, body: &[Token<'_>], under: &Path) {
        for field in split(body) {
            let (public, from) = visibility(field, attributes(field, 0).1);
            if public {
                self.put(under, &[], format!("pub {}::{}", self.path(under), line(&field[from..])));
            }
        }
    }

    fn variants(&mut self, body: &[Token<'_>], under: &Path) {
        for variant in split(body) {
            let from = attributes(variant, 0).1;
            self.put(under, &[], format!("pub {}::{}", self.path(under), line(&variant[from..])));
        }
    }

    fn methods(&mut self, all: &[Item<'_>], under: &Path, outer: &[String], in_trait: bool) {
        for item in all.iter().filter(|item| item.public || in_trait) {
            let Some(name) = item.name else { continue };
            let told: Vec<_> = outer.iter().cloned().chain(conditions(item)).collect();
            let given = if in_trait && item.body.is_some() { " { .. }" } else { "" };
            let shown = format!("{}::{name}", self.path(under));
            self.put(under, &told, format!("pub {}{given}", signature(item, &shown)));
        }
    }

    /// What is implemented for the items that were listed.
    fn implementations(&mut self) {
        let mut found = Vec::new();
        for (path, module) in &self.scope.modules {
            for item in module.items.iter().filter(|item| item.keyword == "impl") {
                found.push(((*path).clone(), module.conditions.to_vec(), item.clone()));
            }
        }
        for (module, outer, item) in found {
            let (interface, subject) = interface_and_subject(item.head);
            // What is implemented for types of others belongs to the trait, if that is ours.
            let mut places = [Some(subject), interface]
                .into_iter()
                .flatten()
                .filter_map(|part| self.seen.get(&self.scope.meaning(&module, last_name(part)?)?));
            let Some(shown) = places.next() else { continue };
            let under: Path = shown.split("::").skip(1).map(str::to_owned).collect();
            let told: Vec<_> = outer.iter().cloned().chain(conditions(&item)).collect();
            if interface.is_some() {
                self.put(&under, &told, line(item.head));
            } else {
                self.methods(&items(item.body.unwrap_or_default()), &under, &told, false);
            }
        }
    }

    fn path(&self, under: &Path) -> String {
        [self.name]
            .into_iter()
            .chain(under.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join("::")
    }

    fn put(&mut self, under: &Path, conditions: &[String], text: String) {
        let unique: BTreeSet<_> = conditions.iter().collect();
        let conditions: String = unique.iter().map(|condition| format!("{condition} ")).collect();
        self.lines.push((format!("{}\u{0}", under.join("::")), format!("{conditions}{text}")));
    }
}

/// The head of an item with its whole path for its name; of a value not what it is, of a tuple no
/// private field.
fn signature(item: &Item<'_>, shown: &str) -> String {
    let valued = matches!(item.keyword, "const" | "static");
    let end = item.head.iter().position(|token| valued && token.is("="));
    let head = item.head.get(..end.unwrap_or(item.head.len())).unwrap_or_default();
    let is_name = |token: &Token<'_>| token.kind == Kind::Word && Some(token.text) == item.name;
    let Some(name) = head.iter().position(is_name) else { return line(head) };
    let mut named: Vec<Token<'_>> = head.to_vec();
    named[name].text = shown;
    let generics = after_angles(head, name + 1);
    if item.keyword != "struct" || !head.get(generics).is_some_and(|token| token.is("(")) {
        return line(&named);
    }
    let close = head.iter().rposition(|token| token.is(")")).unwrap_or(head.len());
    let fields = split(head.get(generics + 1..close).unwrap_or_default());
    let fields: Vec<_> = fields
        .into_iter()
        .map(|field| match visibility(field, attributes(field, 0).1) {
            (true, from) => line(&field[from..]),
            (false, _) => "_".to_owned(),
        })
        .collect();
    format!("{}({})", line(&named[..generics]), fields.join(", "))
}

/// The index after the angle brackets that open at `at`; `at` if none do.
fn after_angles(tokens: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        if token.is("<") {
            depth += 1;
        } else if token.is(">") {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return if index == at { at } else { index + 1 };
        }
    }
    tokens.len()
}

/// The trait of an `impl`, if it is of one, and the type.
fn interface_and_subject<'a, 'b>(
    head: &'b [Token<'a>],
) -> (Option<&'b [Token<'a>]>, &'b [Token<'a>]) {
    let start = head.iter().position(|token| token.is("impl")).map_or(0, |at| at + 1);
    let rest = &head[after_angles(head, start)..];
    let until = |what: &str| rest.iter().position(|token| token.is(what)).unwrap_or(rest.len());
    let rest = &rest[..until("where")];
    let parted = (0..rest.len())
        .find(|at| rest[*at].is("for") && !rest.get(at + 1).is_some_and(|next| next.is("<")));
    match parted {
        Some(at) => (Some(&rest[..at]), &rest[at + 1..]),
        None => (None, rest),
    }
}

/// The last name of a path that a type or trait begins with, references taken off.
fn last_name<'a>(subject: &[Token<'a>]) -> Option<&'a str> {
    let mut name = None;
    for token in subject {
        match token.kind {
            Kind::Word if matches!(token.text, "mut" | "dyn") => {}
            Kind::Word => name = Some(token.text),
            Kind::Other if name.is_none() => {}
            Kind::Mark if token.text == "::" || name.is_none() && token.text == "&" => {}
            _ => break,
        }
    }
    name
}

#[cfg(test)]
mod tests;
