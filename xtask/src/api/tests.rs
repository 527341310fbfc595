//! What a made-up crate shows, and what it hides.

use super::*;

fn listed(files: &[(&str, &str)]) -> Vec<String> {
    let manifest = ("crates/shared/Cargo.toml", "[package]\n[lib]\nname = \"shared\"\n");
    let files: Vec<_> = files.iter().copied().chain([manifest]).collect();
    listings(&Tree::of(&files)).remove(0).1.lines().map(str::to_owned).collect()
}

#[test]
fn what_lib_leads_to_is_listed_and_nothing_else() {
    let lines = listed(&[
        (
            "crates/shared/src/lib.rs",
            "mod a; pub mod b; pub use a::{A, deep::D as E}; pub use other; pub(crate) use a::X;",
        ),
        (
            "crates/shared/src/a.rs",
            "pub mod deep; #[derive(Clone, Debug)] pub struct A { pub b: u8, c: u8 }
             impl A { pub const fn new(b: u8) -> Self { todo() } fn hidden() {} }
             impl From<u8> for A { fn from(b: u8) -> Self { x } }
             pub struct X; impl X { pub fn unseen() {} }",
        ),
        ("crates/shared/src/a/deep.rs", "pub struct D(u8, pub u8); pub struct Unnamed;"),
        (
            "crates/shared/src/b.rs",
            "pub use crate::a::A; #[non_exhaustive] pub enum F { One, Two { a: u8 } }
             #[cfg(feature = \"x\")] pub fn g<T: Copy>(t: T) -> T { t }
             pub trait H { const I: u8; fn j(&self); fn k(&self) {} }
             impl<T: H> H for Box<T> { fn j(&self) {} } pub const L: &str = \"l\";",
        ),
    ]);
    let expected = [
        "pub use shared::A = shared::b::A",
        "pub struct shared::E(_, u8)",
        "pub mod shared::b",
        "impl Clone for shared::b::A",
        "impl Debug for shared::b::A",
        "impl From<u8> for A",
        "pub const fn shared::b::A::new(b: u8) -> Self",
        "pub shared::b::A::b: u8",
        "pub struct shared::b::A",
        "#[non_exhaustive] pub enum shared::b::F",
        "pub shared::b::F::One",
        "pub shared::b::F::Two { a: u8 }",
        "impl<T: H> H for Box<T>",
        "pub const shared::b::H::I: u8",
        "pub fn shared::b::H::j(&self)",
        "pub fn shared::b::H::k(&self) { .. }",
        "pub trait shared::b::H",
        "pub const shared::b::L: &str",
        "#[cfg(feature = \"x\")] pub fn shared::b::g<T: Copy>(t: T) -> T",
        "pub use shared::other",
    ];
    assert_eq!(lines, expected, "{lines:#?}");
}

#[test]
fn one_name_in_two_modules_is_two_items() {
    let lines = listed(&[
        ("crates/shared/src/lib.rs", "pub mod a; pub mod b;"),
        ("crates/shared/src/a.rs", "pub struct P; impl P { pub fn of_a() {} }"),
        ("crates/shared/src/b.rs", "mod c; pub struct P;"),
        ("crates/shared/src/b/c.rs", "use super::P; impl P { pub fn of_b() {} }"),
    ]);
    assert!(lines.contains(&"pub fn shared::a::P::of_a()".to_owned()), "{lines:?}");
    assert!(lines.contains(&"pub fn shared::b::P::of_b()".to_owned()), "{lines:?}");
}
