//! One request to the server as a value, and how its answer is shown.
//!
//! Never: sent from here.

use http::Method;

use crate::body::Body;

/// Title and JSON pointer of each column.
pub(crate) type Columns = &'static [(&'static str, &'static str)];

/// How an answer is shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// A page of rows.
    Page(Columns),
    /// One thing, a line for each field.
    One,
    /// The text of one field, and nothing else.
    Field(&'static str),
    /// Nothing comes back worth showing: this is said.
    Said(String),
}

/// One request below `/api/v1`.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Segments of the path, not yet encoded.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Body>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) view: View,
    /// What is asked before, if something would be lost.
    pub(crate) question: Option<String>,
    /// What was said to that on the command line.
    pub(crate) yes: bool,
}

impl Call {
    fn new(method: Method, path: &[&str], view: View) -> Self {
        Self {
            method,
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            query: Vec::new(),
            body: None,
            idempotency_key: None,
            view,
            question: None,
            yes: false,
        }
    }

    /// Reads one thing.
    pub(crate) fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path, View::One)
    }

    /// Reads pages.
    pub(crate) fn list(path: &[&str], columns: Columns) -> Self {
        Self::new(Method::GET, path, View::Page(columns))
    }

    /// Posts.
    pub(crate) fn post(path: &[&str], body: Body) -> Self {
        Self { body: Some(body), ..Self::new(Method::POST, path, View::One) }
    }

    /// Sets or replaces.
    pub(crate) fn put(path: &[&str], body: Body) -> Self {
        Self { body: Some(body), ..Self::new(Method::PUT, path, View::One) }
    }

    /// Changes.
    pub(crate) fn patch(path: &[&str], body: Body) -> Self {
        Self { body: Some(body), ..Self::new(Method::PATCH, path, View::One) }
    }

    /// Deletes, after a question.
    pub(crate) fn delete(path: &[&str], what: &str, yes: bool) -> Self {
        let view = View::Said(format!("{what} is deleted"));
        let question = Some(format!("delete {what}"));
        Self { question, yes, ..Self::new(Method::DELETE, path, view) }
    }

    /// With this question before it, and these words after it.
    pub(crate) fn asking(self, question: String, said: String) -> Self {
        Self { question: Some(question), view: View::Said(said), ..self }
    }

    /// Shown like this.
    pub(crate) fn shown(self, view: View) -> Self {
        Self { view, ..self }
    }

    /// With a parameter, if it has a value.
    pub(crate) fn with(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// With a parameter that lists these, if there are any.
    pub(crate) fn with_list(self, name: &'static str, list: &[String]) -> Self {
        let joined = (!list.is_empty()).then(|| list.join(","));
        self.with(name, joined)
    }

    /// With `true` for a flag that is set.
    pub(crate) fn with_flag(self, name: &'static str, flag: bool) -> Self {
        self.with(name, flag.then_some(true))
    }
}
