//! `cargo xtask`: the house rules from the command line.
//!
//! `cargo xtask tidy` prints every place that breaks a rule; the same rules run as tests with
//! `cargo test -p xtask`. `cargo xtask wrap` wraps comments that are too wide, `cargo xtask api`
//! lists the public interfaces of the libraries and what they depend on.
//! Never: builds or fetches anything.

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::tree::Tree;

mod api;
mod deps;
mod finding;
mod items;
mod lexer;
mod manifest;
mod modules;
mod source;
mod tidy;
mod tree;
mod wrap;

const USAGE: &str = "usage: cargo xtask tidy [RULE...] | wrap [PATH...] | api";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let out = &mut io::stdout().lock();
    match arguments.split_first() {
        Some((command, rules)) if command == "tidy" && rules.iter().all(known) => {
            match tidy(out, rules) {
                Ok(true) => ExitCode::SUCCESS,
                Ok(false) => ExitCode::FAILURE,
                Err(error) => complain(&format!("tidy: failed to read the project: {error}"), 1),
            }
        }
        Some((command, paths)) if command == "wrap" => match wrap(out, paths) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&format!("wrap: failed to rewrite the project: {error}"), 1),
        },
        Some((command, [])) if command == "api" => match list_interfaces(out) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&format!("api: failed to write a listing: {error}"), 1),
        },
        _ => complain(USAGE, 2),
    }
}

fn known(rule: &String) -> bool {
    tidy::CHECKS.iter().any(|(name, _)| name == rule)
}

/// Prints the findings of the named rules, of all when none is named; `false` if there are any.
fn tidy(out: &mut impl Write, rules: &[String]) -> io::Result<bool> {
    let tree = Tree::of_workspace()?;
    let mut count = 0;
    for (name, check) in tidy::CHECKS {
        if rules.is_empty() || rules.iter().any(|rule| rule == name) {
            for finding in check(&tree) {
                count += 1;
                writeln!(out, "{name}: {finding}")?;
            }
        }
    }
    writeln!(out, "{count} findings")?;
    Ok(count == 0)
}

/// Wraps comments in Rust files under the given paths, everywhere when none is given.
fn wrap(out: &mut impl Write, paths: &[String]) -> io::Result<()> {
    for (path, text) in Tree::of_workspace()?.rust() {
        let meant = paths.is_empty() || paths.iter().any(|start| path.starts_with(start.as_str()));
        let wrapped = wrap::wrap(text);
        if meant && wrapped != text {
            fs::write(tree::root().join(path), wrapped)?;
            writeln!(out, "{path}")?;
        }
    }
    Ok(())
}

/// Writes the listings and trees that are not as the code is.
fn list_interfaces(out: &mut impl Write) -> io::Result<()> {
    let tree = Tree::of_workspace()?;
    for (path, text) in api::listings(&tree) {
        if tree.get(&path) != Some(text.as_str()) {
            let file = tree::root().join(&path);
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&file, text)?;
            writeln!(out, "{path}")?;
        }
    }
    let page = tree.get(deps::PAGE).unwrap_or_default();
    let filled = deps::filled(page)?;
    if filled != page {
        fs::write(tree::root().join(deps::PAGE), filled)?;
        writeln!(out, "{}", deps::PAGE)?;
    }
    Ok(())
}

fn complain(text: &str, code: u8) -> ExitCode {
    let _closed = writeln!(io::stderr(), "{text}");
    ExitCode::from(code)
}
