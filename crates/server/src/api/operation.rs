//! What one operation takes and gives, as a value beside its handler.
//!
//! `document` makes the OpenAPI document of all of them. A status that follows from what an
//! operation takes (a token, a body, a place in the path) is not repeated: `statuses` has it.
//! Never: take part in answering a request.

use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Makes the schema of a type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

const JSON: &str = "application/json";
/// Answers of one operation that are no errors, at most.
const ANSWERS_MAX: usize = 2;
/// Errors of one operation that do not follow from what it takes, at most.
const REFUSALS_MAX: usize = 3;

/// Whose token an operation asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// None.
    None,
    /// One of the application or of the organisation.
    App,
    /// One of the organisation.
    Org,
}

/// A body, and whether it must be there.
#[derive(Clone, Copy)]
pub(super) struct Body {
    pub(super) schema: SchemaOf,
    pub(super) required: bool,
}

/// An answer that is no error, or that has a shape of its own.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Media type and schema of its body, if it has one.
    pub(super) body: Option<(&'static str, SchemaOf)>,
}

/// One operation.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    /// Its name: `v1.<resource>.<verb>`, or with a part of the resource in between.
    pub(super) id: &'static str,
    /// What it does, in one sentence.
    pub(super) summary: &'static str,
    pub(super) token: Token,
    pub(super) query: Option<SchemaOf>,
    pub(super) body: Option<Body>,
    /// Whether it takes an `idempotency-key`.
    pub(super) once: bool,
    pub(super) deprecated: bool,
    answers: [Option<Answer>; ANSWERS_MAX],
    refusals: [Option<&'static str>; REFUSALS_MAX],
}

impl Operation {
    /// One that takes any valid token.
    pub(super) const fn new(id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            token: Token::App,
            query: None,
            body: None,
            once: false,
            deprecated: false,
            answers: [None; ANSWERS_MAX],
            refusals: [None; REFUSALS_MAX],
        }
    }

    /// With another token than that of an application.
    pub(super) const fn token(mut self, token: Token) -> Self {
        self.token = token;
        self
    }

    /// With the parameters that are the fields of `T`.
    pub(super) const fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(T::json_schema);
        self
    }

    /// With a body.
    pub(super) const fn takes<T: JsonSchema>(mut self) -> Self {
        self.body = Some(Body { schema: SchemaGenerator::subschema_for::<T>, required: true });
        self
    }

    /// With a body that may be left out.
    pub(super) const fn may_take<T: JsonSchema>(mut self) -> Self {
        self.body = Some(Body { schema: SchemaGenerator::subschema_for::<T>, required: false });
        self
    }

    /// Answered once for one `idempotency-key`.
    pub(super) const fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// The same of something else.
    pub(super) const fn named(mut self, id: &'static str, summary: &'static str) -> Self {
        (self.id, self.summary) = (id, summary);
        self
    }

    /// There is a newer path.
    pub(super) const fn deprecated(mut self, id: &'static str, summary: &'static str) -> Self {
        self.deprecated = true;
        self.named(id, summary)
    }

    /// Answers with JSON.
    pub(super) const fn gives<T: JsonSchema>(self, status: u16) -> Self {
        self.gives_as::<T>(status, JSON)
    }

    /// Answers with a body of this media type.
    pub(super) const fn gives_as<T: JsonSchema>(self, status: u16, media: &'static str) -> Self {
        self.answer(Answer { status, body: Some((media, SchemaGenerator::subschema_for::<T>)) })
    }

    /// Answers without a body.
    pub(super) const fn ends(self, status: u16) -> Self {
        self.answer(Answer { status, body: None })
    }

    /// May be refused with this code beside those that follow from what it takes.
    pub(super) const fn or(mut self, code: &'static str) -> Self {
        let mut at = 0;
        while self.refusals[at].is_some() {
            at += 1;
        }
        self.refusals[at] = Some(code);
        self
    }

    const fn answer(mut self, answer: Answer) -> Self {
        let mut at = 0;
        while self.answers[at].is_some() {
            at += 1;
        }
        self.answers[at] = Some(answer);
        self
    }

    /// The resource that it is about: the second part of its name.
    pub(super) fn resource(&self) -> &'static str {
        self.id.split('.').nth(1).unwrap_or_default()
    }

    /// The answers that are no errors, or have a shape of their own.
    pub(super) fn answers(&self) -> impl Iterator<Item = Answer> {
        self.answers.into_iter().flatten()
    }

    /// The codes of errors that do not follow from what it takes.
    pub(super) fn refusals(&self) -> impl Iterator<Item = &'static str> {
        self.refusals.into_iter().flatten()
    }

    /// The statuses of the errors that follow from what it takes.
    pub(super) fn statuses(&self, path: &str, method: &str) -> BTreeSet<u16> {
        let mut statuses = BTreeSet::new();
        if self.token != Token::None {
            statuses.extend([400, 401, 429, 500, 503]);
            // Tokens may be of an application, or good for reading only.
            if self.token == Token::Org || method != "GET" {
                statuses.insert(403);
            }
        }
        if path.contains('{') {
            statuses.insert(404);
        }
        let reads_body = self.body.is_some() || self.once;
        if reads_body {
            statuses.extend([408, 413]);
        }
        if reads_body || self.query.is_some() {
            statuses.insert(422);
        }
        statuses.retain(|status| self.answers().all(|answer| answer.status != *status));
        statuses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operation_takes_says_how_it_is_refused() {
        let plain = Operation::new("v1.thing.get", "Shows it.").gives::<String>(200);
        let of = |operation: Operation, path, method| {
            operation.statuses(path, method).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of(plain, "/thing", "GET"), [400, 401, 429, 500, 503]);
        let with_query = plain.query::<String>().token(Token::Org);
        assert_eq!(of(with_query, "/thing/{id}", "GET"), [400, 401, 403, 404, 422, 429, 500, 503]);
        let open = plain.token(Token::None);
        assert_eq!(of(open, "/thing", "GET"), [] as [u16; 0]);
        assert_eq!(of(open.once(), "/thing", "POST"), [408, 413, 422]);
        let own = plain.or("conflict").gives::<u8>(503);
        assert_eq!(of(own, "/thing", "GET"), [400, 401, 429, 500]);
        assert!(own.refusals().eq(["conflict"]));
        assert_eq!(plain.resource(), "thing");
        assert_eq!(own.named("v1.thing.part.get", "Shows it.").resource(), "thing");
    }
}
