//! What the libraries depend on, as Cargo sees it, in a page for their users.
//!
//! A comment `<!-- cargo tree ARGUMENTS -->` in the page stands before the block that holds the
//! answer. `cargo xtask api` fills the blocks; a test holds them to what Cargo says.
//! Never: fetches anything: what a library depends on was fetched when it was built.

use std::io;
use std::process::Command;

use crate::tree::root;

/// The page.
pub(crate) const PAGE: &str = "docs/strategies/README.md";

const OPEN: &str = "<!-- cargo tree ";
/// So that the answer is the same on every machine.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The page with every block as Cargo answers now.
pub(crate) fn filled(page: &str) -> io::Result<String> {
    let mut filled = String::new();
    let mut in_block = false;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        filled.push_str(line);
        filled.push('\n');
        let asked = line.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(" -->"));
        let Some(arguments) = asked else { continue };
        filled.push_str("```text\n");
        filled.push_str(&answer(arguments)?);
        filled.push_str("```\n");
        for old in lines.by_ref() {
            let fence = old.starts_with("```");
            if fence && in_block {
                break;
            }
            in_block |= fence;
        }
        in_block = false;
    }
    Ok(filled)
}

/// Cargo's tree of what is linked, names only.
fn answer(arguments: &str) -> io::Result<String> {
    let targeted = arguments.contains("--target ");
    let output = Command::new(option_env!("CARGO").unwrap_or("cargo"))
        .args(["tree", "--offline", "--locked", "--edges", "normal,no-proc-macro"])
        .args(if targeted { &[][..] } else { &["--target", TARGET][..] })
        .args(arguments.split(' '))
        .current_dir(root())
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("cargo tree {arguments}: {said}")));
    }
    Ok(names(&String::from_utf8_lossy(&output.stdout)))
}

/// Versions, paths and features go: they change without the tree changing.
fn names(tree: &str) -> String {
    let mut text = String::new();
    for line in tree.lines() {
        let version = line.find(" v").unwrap_or(line.len());
        text.push_str(&line[..version]);
        text.push_str(if line.ends_with("(*)") { " (*)\n" } else { "\n" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn the_page_says_what_the_libraries_depend_on() {
        let tree = Tree::of_workspace().unwrap();
        let page = tree.get(PAGE).unwrap();
        assert_eq!(filled(page).unwrap(), page, "run `cargo xtask api`");
        for name in ["http", "receiver", "resilience", "shared", "webhook", "worker"] {
            assert!(page.contains(&format!("{OPEN}-p peyk-{name} -->")), "{name} is missing");
        }
    }

    #[test]
    fn versions_and_paths_are_left_out() {
        let tree = "a v0.1.0 (/b/c)\n├── d v1.2.3\n│   └── e v1.0.0 (*)\n";
        assert_eq!(names(tree), "a\n├── d\n│   └── e (*)\n");
    }
}
