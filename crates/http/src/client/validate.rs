//! What a caller demands of an answer beyond its status.
//!
//! Never: change the answer.

use std::pin::Pin;

use super::response::Response;
use crate::errors::BoxError;

/// Why a validator refused an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid answer: {0}")]
pub struct Invalid(pub String);

/// Turns a condition into a validator's word.
pub trait OrInvalid {
    /// Fine if it holds, else refused for this reason.
    fn or_invalid(self, reason: impl Into<String>) -> Result<(), BoxError>;
}

impl OrInvalid for bool {
    fn or_invalid(self, reason: impl Into<String>) -> Result<(), BoxError> {
        if self { Ok(()) } else { Err(Invalid(reason.into()).into()) }
    }
}

pub(super) type Verdict<'a> = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send + 'a>>;

/// One validator of a request.
pub(super) type Validator<T> = Box<dyn Fn(&Response<T>) -> Verdict<'_> + Send + Sync>;

/// A validator that has nothing to wait for.
pub(super) fn at_once<T>(
    check: impl Fn(&Response<T>) -> Result<(), BoxError> + Send + Sync + 'static,
) -> Validator<T> {
    Box::new(move |response| {
        let verdict = check(response);
        Box::pin(async move { verdict })
    })
}
