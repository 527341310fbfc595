//! The description of the API against its routes, and against the file that is kept of it.
//!
//! Never: a test of what an operation does.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Routes;

mod readers;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

fn document() -> Value {
    serde_json::from_str(&Routes::all().docs.text()).unwrap()
}

#[test]
fn the_kept_document_is_the_one_that_is_served() {
    let made = Routes::all().docs.text();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(KEPT, &made).unwrap();
    }
    let kept = std::fs::read_to_string(KEPT).unwrap_or_default();
    let differs = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    assert!(
        kept == made,
        "docs/openapi.json is not what the code describes, first at {differs:?}: \
         UPDATE=1 cargo test -p peyk-server kept_document writes it anew"
    );
}

#[test]
fn every_route_is_described_and_no_others() {
    let routes = Routes::all();
    let operations = |served: &super::Served| {
        let path = served.path;
        let methods: Vec<_> = served.operations.iter().map(|(method, _)| *method).collect();
        methods.into_iter().map(move |method| (path.to_owned(), method.to_lowercase()))
    };
    let served: BTreeSet<_> = routes.table.iter().flat_map(operations).collect();
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let described: BTreeSet<_> = paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(|method| (path.clone(), method.clone()))
        })
        .collect();
    assert_eq!(described, served);
    assert!(served.len() > 60, "{}", served.len());
}

#[test]
fn no_caller_can_take_a_word_of_a_path_for_an_id() {
    let routes = Routes::all();
    let steps = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    let paths: Vec<_> = routes.table.iter().map(|served| steps(served.path)).collect();
    let mut words = BTreeSet::new();
    for (path, other) in paths.iter().flat_map(|path| paths.iter().map(move |it| (path, it))) {
        let alike = path.iter().zip(other).take_while(|(one, it)| one == it).count();
        let (Some(id), Some(word)) = (path.get(alike), other.get(alike)) else { continue };
        let is_own = ["{app}", "{endpoint}", "{message}"].contains(&id.as_str());
        if is_own && !word.starts_with('{') {
            words.insert((id.clone(), word.clone()));
        }
    }
    for (id, word) in &words {
        assert_eq!(id, "{message}", "{word} may be a uid");
        assert!(domain::text::event_id("eventId", word).is_err(), "{word}");
    }
    assert_eq!(words.len(), 2, "{words:?}");
}

#[test]
fn operations_have_names_of_their_own_and_a_known_resource() {
    let document = document();
    let tags: Vec<_> =
        document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{name} is there twice");
            assert!(tags.contains(&&operation["tags"][0]), "{name}: {}", operation["tags"]);
            let statuses = operation["responses"].as_object().unwrap();
            let known = |status: &String| ("200"..="503").contains(&status.as_str());
            assert!(statuses.keys().all(known), "{method} {path}: a code without a page");
            assert!(statuses.keys().any(|status| status.as_str() < "400"), "{method} {path}");
        }
    }
}

#[test]
fn every_reference_leads_to_something() {
    fn check(document: &Value, value: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(to)) = map.get("$ref") {
                    let found = document.pointer(to.strip_prefix('#').unwrap());
                    assert!(found.is_some_and(Value::is_object), "{to}");
                }
                map.values().for_each(|value| check(document, value));
            }
            Value::Array(all) => all.iter().for_each(|value| check(document, value)),
            _ => {}
        }
    }
    let document = document();
    check(&document, &document);
}
