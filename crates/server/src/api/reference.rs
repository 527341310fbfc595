//! The reference for people: one page made of the OpenAPI document, and the errors.
//!
//! In: the document, the pages of problems. Out: HTML without a script, or anything from elsewhere.
//! Never: say what the document does not.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::problem_pages::{PAGES, summary};

mod example;

use example::resolved;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}\
    table{border-collapse:collapse;width:100%}td{padding:.2rem .8rem .2rem 0;vertical-align:top;\
    border-top:1px solid #8884}td:first-child{min-width:4.5rem;font-weight:600}\
    code,pre{overflow-wrap:anywhere;font-size:.9em}pre{white-space:pre-wrap;background:#8881;padding:.6rem;\
    border-radius:.4rem}section{margin:2.5rem 0}h2{margin-top:3.5rem}h3{margin-bottom:.2rem}\
    h4{margin:.9rem 0 .2rem}h3 a,td a{text-decoration:none}small{opacity:.75}\
    @media(prefers-color-scheme:dark){body{background:#151515;color:#ddd}a{color:#8bf}}";

/// The page.
pub(super) fn page(document: &Value) -> String {
    let version = text(&document["info"], "version");
    let about = prose(text(&document["info"], "description"));
    let (mut contents, mut operations) = (String::new(), String::new());
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = text(tag, "name");
        let (mut rows, mut sections) = (String::new(), String::new());
        for (path, method, is) in of_tag(document, name) {
            let (id, line) = (text(is, "operationId"), prose(text(is, "summary")));
            let _infallible = writeln!(
                rows,
                "<tr><td>{method}<td><a href=\"#{id}\"><code>{path}</code></a><td>{line}"
            );
            sections.push_str(&section(document, path, &method, is));
        }
        let about = prose(text(tag, "description"));
        let head = format!("{name}</h2>\n<p>{about}</p>\n");
        let _infallible = write!(contents, "<h2>{head}<table>\n{rows}</table>\n");
        let _infallible = write!(operations, "<h2>{head}{sections}");
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Peyk {version}</title>\n<style>{STYLE}</style>\n\
         <h1>Peyk {version}</h1>\n<p>{about}</p>\n\
         <p>For programs: <a href=\"/api/v1/openapi.json\"><code>/api/v1/openapi.json</code></a>, \
         OpenAPI 3.1. Below: <a href=\"#operations\">operations</a>, <a href=\"#shapes\">shapes</a>, \
         <a href=\"#errors\">errors</a>.</p>\n\
         {contents}<h1 id=\"operations\">Operations</h1>\n{operations}\
         <h1 id=\"shapes\">Shapes</h1>\n{}<h1 id=\"errors\">Errors</h1>\n\
         <p>Every error is JSON with a <code>code</code>, or with a list of the fields that are \
         wrong.</p>\n<table>\n{}</table>\n</html>\n",
        shapes(document),
        problems(),
    )
}

/// Path, method and description of the operations under a tag.
fn of_tag<'a>(
    document: &'a Value,
    name: &'a str,
) -> impl Iterator<Item = (&'a str, String, &'a Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| {
        let operations = item.as_object().into_iter().flatten();
        operations.map(move |(method, is)| (path.as_str(), method.to_uppercase(), is))
    });
    all.filter(move |(_, _, is)| is["tags"][0] == name)
}

/// One operation.
fn section(document: &Value, path: &str, method: &str, is: &Value) -> String {
    let id = text(is, "operationId");
    let old = if is["deprecated"] == true { " <small>There is a newer path.</small>" } else { "" };
    let about = prose(text(is, "description"));
    let mut made = format!(
        "<section id=\"{id}\">\n<h3><a href=\"#{id}\">{method} <code>{path}</code></a></h3>\n\
         <p>{about}{old} <small><code>{id}</code></small></p>\n"
    );
    let parameters = is["parameters"].as_array().into_iter().flatten();
    let rows: String = parameters.map(|is| parameter_row(resolved(document, is))).collect();
    if !rows.is_empty() {
        let _infallible = write!(made, "<h4>Parameters</h4>\n<table>\n{rows}</table>\n");
    }
    let body = &is["requestBody"];
    if body.is_object() {
        let schema = &body["content"]["application/json"]["schema"];
        let must = if body["required"] == true { "" } else { ", may be left out" };
        let shown = example::of(document, schema);
        let _infallible = write!(
            made,
            "<h4>Body: {}{must}</h4>\n<pre>{}</pre>\n",
            kind(schema),
            escaped(&format!("{shown:#}"))
        );
    }
    let answers = is["responses"].as_object().into_iter().flatten();
    let rows: String = answers.map(|(status, is)| answer_row(document, status, is)).collect();
    let _infallible = write!(made, "<h4>Answers</h4>\n<table>\n{rows}</table>\n</section>\n");
    made
}

fn parameter_row(is: &Value) -> String {
    let (name, place) = (text(is, "name"), text(is, "in"));
    let about = prose(text(is, "description"));
    let kind = kind(&is["schema"]);
    format!("<tr><td><code>{name}</code><td>{place}<td>{kind}<td>{about}\n")
}

fn answer_row(document: &Value, status: &str, is: &Value) -> String {
    let is = resolved(document, is);
    let about = text(is, "description");
    let content = is["content"].as_object().into_iter().flatten();
    let shown: String = content
        .map(|(media, body)| match media.as_str() {
            "application/json" => answer_kind(document, &body["schema"]),
            other => escaped(other),
        })
        .collect();
    format!("<tr><td>{status}<td>{about}<td>{shown}\n")
}

/// The shape of an answer, or the codes of an error.
fn answer_kind(document: &Value, schema: &Value) -> String {
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let codes = parts.filter_map(|part| part["properties"]["code"]["enum"].as_array()).flatten();
    let links: Vec<_> = codes.filter_map(Value::as_str).map(code_link).collect();
    match links.is_empty() {
        false => links.join(", "),
        true if name_of(schema) == Some("HttpValidationError") => {
            "<a href=\"/docs/problems/validation\">fields</a>".to_owned()
        }
        true => {
            let name = resolved(document, schema)["properties"]["data"]["items"].clone();
            match name_of(&name) {
                Some(_) => format!("a page of {}", kind(&name)),
                None => kind(schema),
            }
        }
    }
}

fn code_link(code: &str) -> String {
    let name = code.replace(' ', "_");
    format!("<a href=\"/docs/problems/{name}\">{code}</a>")
}

/// All shapes that have a name, each with its fields.
fn shapes(document: &Value) -> String {
    let mut made = String::new();
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let about = prose(text(schema, "description"));
        let rows = field_rows(schema);
        let _infallible = write!(
            made,
            "<section id=\"shape-{name}\">\n<h3><a href=\"#shape-{name}\"><code>{name}</code></a>\
             </h3>\n<p>{about}</p>\n<table>\n{rows}</table>\n</section>\n"
        );
    }
    made
}

fn field_rows(schema: &Value) -> String {
    let none = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&none);
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|all| all.iter().any(|known| known == name))
    };
    let row = |(name, field): (&String, &Value)| {
        let must = if required(name) { "required" } else { "" };
        let about = prose(text(field, "description"));
        format!("<tr><td><code>{name}</code><td>{must}<td>{}<td>{about}\n", kind(field))
    };
    let (first, then): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| required(name));
    first.into_iter().chain(then).map(row).collect()
}

/// What a value may be, in words.
fn kind(schema: &Value) -> String {
    if let Some(name) = name_of(schema) {
        return format!("<a href=\"#shape-{name}\">{name}</a>");
    }
    if let Some(several) = schema["anyOf"].as_array() {
        return several.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<_> = names.iter().map(|name| format!("<code>{name}</code>")).collect();
        return names.join(", ");
    }
    if let Some(only) = schema.get("const") {
        return format!("<code>{only}</code>");
    }
    let mut words = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    };
    if schema["items"].is_object() {
        words.push_str(" of ");
        words.push_str(&kind(&schema["items"]));
    }
    words.push_str(&bounds(schema));
    words
}

/// The bounds of a value: `, 1 to 256 characters`.
fn bounds(schema: &Value) -> String {
    let mut words = String::new();
    let pairs = [
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " entries"),
        ("minimum", "maximum", ""),
    ];
    for (least, most, what) in pairs {
        let _infallible = match (schema.get(least), schema.get(most)) {
            (Some(least), Some(most)) => write!(words, ", {least} to {most}{what}"),
            (None, Some(most)) => write!(words, ", at most {most}{what}"),
            (Some(least), None) => write!(words, ", at least {least}{what}"),
            (None, None) => Ok(()),
        };
    }
    if let Some(format) = schema["format"].as_str() {
        let _infallible = write!(words, ", {format}");
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let _infallible = write!(words, ", <code>{}</code>", escaped(pattern));
    }
    if let Some(default) = schema.get("default") {
        let _infallible = write!(words, "; <code>{default}</code> unless given");
    }
    words
}

fn problems() -> String {
    let row = |(name, page): &(&str, &'static str)| {
        let (status, sentence) = summary(page).split_once(". ").unwrap_or_default();
        format!("<tr><td>{status}<td><a href=\"/docs/problems/{name}\">{name}</a><td>{sentence}\n")
    };
    PAGES.iter().map(row).collect()
}

/// The name of the shape that a reference leads to.
fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or_default()
}

/// A text with its `code` marked.
fn prose(text: &str) -> String {
    let parts = escaped(text);
    let marked = parts.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.to_owned(),
        _ => format!("<code>{part}</code>"),
    });
    marked.collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_told_in_words() {
        for (schema, words) in [
            (
                json!({"type": "string", "minLength": 1, "maxLength": 9}),
                "string, 1 to 9 characters",
            ),
            (json!({"type": ["integer", "null"], "maximum": 5}), "integer or null, at most 5"),
            (json!({"type": "array", "items": {"type": "boolean"}}), "array of boolean"),
            (json!({"$ref": "#/components/schemas/A"}), "<a href=\"#shape-A\">A</a>"),
            (json!({"enum": ["a", null]}), "<code>\"a\"</code>, <code>null</code>"),
            (json!(true), "any"),
            (json!({"type": "string", "pattern": "<&>"}), "string, <code>&lt;&amp;></code>"),
        ] {
            assert_eq!(kind(&schema), words);
        }
        assert_eq!(prose("a `b` <c>"), "a <code>b</code> &lt;c>");
    }
}
