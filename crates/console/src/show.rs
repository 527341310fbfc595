//! Where answers go: tables and fields for people, the server's own JSON for programs.
//!
//! Whoever reads may stop reading: a closed pipe ends the command quietly.
//! Never: JSON written anew.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::Answer;
use crate::call::{Columns, View};
use crate::failure::Failure;
use crate::problem;
use crate::safe::{safe, safe_json};
use crate::table::{Table, fields};

/// What comes first in the fields of one thing; the others follow by name.
const FIRST: [&str; 6] = ["id", "uid", "name", "url", "eventType", "status"];

/// A page of an answer, its rows as they are spelled.
#[derive(Deserialize)]
pub(crate) struct Page {
    pub(crate) data: Vec<Box<RawValue>>,
    #[serde(default)]
    pub(crate) iterator: Option<String>,
    #[serde(default)]
    pub(crate) done: bool,
}

/// Standard output.
#[derive(Debug)]
pub(crate) struct Out {
    json: bool,
    is_terminal: bool,
}

impl Out {
    /// For people, or as JSON.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, is_terminal: std::io::stdout().is_terminal() }
    }

    /// Whether JSON is wanted.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// Shows an answer that is no list of pages.
    pub(crate) fn answer(&self, answer: &Answer, view: &View) -> Result<(), Failure> {
        match view {
            View::Said(said) if answer.body.is_empty() || !self.json => self.note(said),
            _ if self.json => self.json(std::str::from_utf8(checked(answer)?).unwrap_or_default()),
            View::Page(columns) => {
                let page: Page = answer.read()?;
                self.rows(&mut Table::new(columns), &page)
            }
            View::Field(name) => {
                let value: Value = answer.read()?;
                self.line(&safe(value[*name].as_str().unwrap_or("-")))
            }
            _ => self.one(answer),
        }
    }

    /// Shows a page as lines of JSON, or as more rows of a table.
    pub(crate) fn page(&self, table: &mut Table, page: &Page) -> Result<(), Failure> {
        if !self.json {
            return self.rows(table, page);
        }
        for row in &page.data {
            // A line break between values is white space: a row stays one line.
            self.json(&row.get().replace(['\n', '\r'], " "))?;
        }
        Ok(())
    }

    fn rows(&self, table: &mut Table, page: &Page) -> Result<(), Failure> {
        let parsed = page.data.iter().map(|row| serde_json::from_str::<Value>(row.get()));
        // Each is JSON, or the page was none.
        let rows: Vec<Value> = parsed.filter_map(Result::ok).collect();
        self.text(&table.lines(&rows))
    }

    fn one(&self, answer: &Answer) -> Result<(), Failure> {
        let map: BTreeMap<String, Box<RawValue>> = answer.read()?;
        let place = |name: &str| FIRST.iter().position(|first| *first == name);
        let mut pairs: Vec<_> = map.into_iter().collect();
        pairs.sort_by_key(|(name, _)| place(name).unwrap_or(FIRST.len()));
        let shown = pairs.into_iter().map(|(name, raw)| (name, plain(&raw)));
        self.text(&fields(&shown.collect::<Vec<_>>()))
    }

    /// A line of JSON.
    pub(crate) fn json(&self, json: &str) -> Result<(), Failure> {
        // Between programs not a byte is changed.
        if self.is_terminal { self.line(&safe_json(json)) } else { self.line(json) }
    }

    /// A line.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        self.text(&format!("{line}\n"))
    }

    /// Text as it is.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(fault) if fault.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::Closed),
            Err(fault) => Err(Failure::Other(format!("cannot write to standard output: {fault}"))),
            Ok(()) => Ok(()),
        }
    }

    /// A line for people on standard error, out of the way of what is read by programs.
    pub(crate) fn note(&self, said: &str) -> Result<(), Failure> {
        let _closed = writeln!(std::io::stderr(), "{said}");
        Ok(())
    }
}

/// The columns of a list, if an answer is one.
pub(crate) const fn columns(view: &View) -> Option<Columns> {
    match view {
        View::Page(columns) => Some(columns),
        _ => None,
    }
}

/// The body, if it is JSON or nothing.
fn checked(answer: &Answer) -> Result<&[u8], Failure> {
    let body = &answer.body[..];
    if body.is_empty() || serde_json::from_slice::<&RawValue>(body).is_ok() {
        return Ok(body);
    }
    Err(Failure::Other(problem::line(answer.status, body)))
}

/// A text without its quotes, anything else as it is spelled.
fn plain(raw: &RawValue) -> String {
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(Value::String(text)) => text,
        Ok(Value::Null) => "-".to_owned(),
        _ => raw.get().to_owned(),
    }
}
