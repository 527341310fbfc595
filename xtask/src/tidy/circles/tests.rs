//! Circles are found, and what only looks like one is not.

use super::*;

fn found(files: &[(&str, &str)]) -> Vec<String> {
    let mut all = vec![("a/Cargo.toml".to_owned(), "[package]")];
    all.extend(files.iter().map(|(path, text)| (format!("a/src/{path}"), *text)));
    let pairs: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    check(&Tree::of(&pairs)).iter().map(Finding::to_string).collect()
}

#[test]
fn two_files_that_import_each_other_are_found() {
    let findings = found(&[
        ("lib.rs", "mod one; mod two; mod three;"),
        ("one.rs", "use crate::two::Two;"),
        ("two.rs", "fn f() { super::one::one() }"),
        ("three.rs", "use crate::{one, two};"),
    ]);
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[0].ends_with("circle: one -> two -> one"), "{findings:?}");
}

#[test]
fn a_circle_over_three_files_is_found() {
    let findings = found(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::c;"),
        ("c.rs", "use super::a::*;"),
    ]);
    assert_eq!(findings.len(), 3, "{findings:?}");
}

#[test]
fn a_parent_may_export_its_child_but_not_use_it_back() {
    let child = ("foo/bar.rs", "use crate::foo::Base;");
    let lib = ("lib.rs", "mod foo;");
    let exporting = ("foo.rs", "mod bar; pub use bar::Bar; pub struct Base;");
    assert!(found(&[lib, exporting, child]).is_empty());
    let using = ("foo.rs", "mod bar; use bar::Bar; pub struct Base;");
    assert_eq!(found(&[lib, using, child]).len(), 2);
    let writing = ("foo.rs", "mod bar; fn f() { bar::bar() } pub struct Base;");
    assert_eq!(found(&[lib, writing, child]).len(), 2);
}

#[test]
fn names_of_the_root_lead_to_where_they_are_defined() {
    let lib = ("lib.rs", "mod error; mod work; pub use error::Error; pub type Reply = u8;");
    assert!(found(&[lib, ("error.rs", ""), ("work.rs", "use crate::{Error, Reply};")]).is_empty());
    let knotted = ("error.rs", "use crate::work::Work;");
    assert_eq!(found(&[lib, knotted, ("work.rs", "use crate::Error;")]).len(), 2);
}

#[test]
fn tests_may_look_anywhere() {
    let findings = found(&[
        ("lib.rs", "mod one; mod two;"),
        ("one.rs", "use crate::two::Two;"),
        ("two.rs", "#[cfg(test)]\nmod tests { use crate::one::One; use super::*; }"),
    ]);
    assert!(findings.is_empty(), "{findings:?}");
}
