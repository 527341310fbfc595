//! Each part of the staircase rule can fail.

use super::*;

const WORKSPACE: &str = "[workspace.dependencies]
domain = { path = \"crates/domain\", package = \"peyk-domain\" }
store = { path = \"crates/store\" }
testparts = { path = \"testparts\" }
tokio = \"1\"
";

fn found(pairs: &[(&str, &str)]) -> Vec<String> {
    let mut all = vec![("Cargo.toml", WORKSPACE)];
    all.extend_from_slice(pairs);
    check(&Tree::of(&all)).iter().map(Finding::to_string).collect()
}

#[test]
fn upward_and_sideways_dependencies_are_found() {
    let domain = "[package]\n[dependencies]\nstore.workspace = true\n";
    let store = "[package]\n[dependencies]\ndomain.workspace = true\n[dev-dependencies.store]\n";
    let findings =
        found(&[("crates/domain/Cargo.toml", domain), ("crates/store/Cargo.toml", store)]);
    let expected =
        "crates/domain/Cargo.toml:3: floor 1 may not depend on store: only on floors below";
    assert_eq!(findings, [expected]);
}

#[test]
fn what_is_for_tests_is_found_outside_them() {
    let manifest = "[package]\n[dev-dependencies]\ntestparts.workspace = true\n";
    assert!(found(&[("crates/store/Cargo.toml", manifest)]).is_empty());
    let manifest = manifest.replace("dev-", "");
    let findings = found(&[("crates/store/Cargo.toml", &manifest)]);
    assert!(findings[0].contains("for tests only"), "{findings:?}");
}

#[test]
fn a_crate_without_a_floor_is_found() {
    let findings = found(&[("crates/util/Cargo.toml", "[package]\n")]);
    assert!(findings[0].contains("has no floor"), "{findings:?}");
}

#[test]
fn refused_libraries_are_found_but_not_in_tests() {
    let manifest = "[package]\n[dependencies]\nserde_json.workspace = true\nhyper-util = \"0.1\"\n\
                    tokio.workspace = true\nhyperx = \"1\"\n[dev-dependencies]\naxum = \"0.8\"\n";
    let findings = found(&[("crates/store/Cargo.toml", manifest)]);
    assert_eq!(findings.len(), 2, "{findings:?}");
    let findings = found(&[("crates/domain/Cargo.toml", manifest)]);
    assert_eq!(findings.len(), 3, "{findings:?}");
}

#[test]
fn dependencies_in_their_own_section_are_found() {
    let manifest = "[package]\n[dependencies.tokio]\nversion = \"1\"\n";
    assert_eq!(found(&[("crates/domain/Cargo.toml", manifest)]).len(), 1);
}

#[test]
fn concrete_types_belong_to_the_root() {
    let text = "use store::sqlite::SqliteStore;\n#[cfg(test)]\nmod tests { use x::SystemClock; }";
    assert_eq!(found(&[("crates/server/src/api.rs", text)]).len(), 1);
    assert!(found(&[("crates/server/src/app.rs", text)]).is_empty());
    assert!(found(&[("crates/store/src/sqlite/open.rs", text)]).is_empty());
}

#[test]
fn the_engine_knows_no_backend() {
    let text = "use store::{memory, Reply};\nfn f() { store::sqlite::open() }";
    assert_eq!(found(&[("crates/engine/src/run.rs", text)]).len(), 2);
    let manifest = ("crates/engine/Cargo.toml", "[package]");
    let in_tests = [manifest, ("crates/engine/tests/sim.rs", text)];
    assert!(found(&in_tests).is_empty());
}

#[test]
fn sql_lives_with_its_backend() {
    let text = "const A: &str = \"SELECT a FROM b\"; const B: &str = \"SELECT one of them\"; // DELETE FROM";
    assert_eq!(found(&[("crates/server/src/api.rs", text)]).len(), 1);
    assert!(found(&[("crates/store/src/sqlite/queue.rs", text)]).is_empty());
    assert!(is_sql("\"PRAGMA synchronous = FULL\"") && is_sql("\"UPDATE a\n SET b\""));
    assert!(!is_sql("\"updates are set from here\"") && !is_sql("\"FROM a SELECT\""));
}
