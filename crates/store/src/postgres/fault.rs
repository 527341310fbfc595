//! What PostgreSQL's errors mean: to a caller, and for what the writer does next.
//!
//! Never: let SQL or a stored value into the text.

use tokio_postgres::error::SqlState;

use crate::StoreError;
use crate::stored::fault::corrupt;

/// Why something was not done.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database is well; this is the answer.
    Told(StoreError),
    /// The database, or the way to it.
    Sql(tokio_postgres::Error),
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Nothing: it is an answer.
    None,
    /// One row is the cause (classes 22 and 23): the others are written without it.
    WithoutIt,
    /// The same again may succeed: a deadlock was broken, or two transactions met.
    Again,
    /// The connection is lost, or leads to a server that does not write any more.
    Reconnect,
    /// Wait: no room, no right, no answer.
    Later,
}

impl From<tokio_postgres::Error> for Fault {
    fn from(fault: tokio_postgres::Error) -> Self {
        Self::Sql(fault)
    }
}

impl From<StoreError> for Fault {
    fn from(fault: StoreError) -> Self {
        Self::Told(fault)
    }
}

impl Fault {
    pub(super) fn remedy(&self) -> Remedy {
        let Self::Sql(fault) = self else { return Remedy::None };
        let Some(state) = fault.code() else { return Remedy::Reconnect };
        match state.code() {
            "40P01" | "40001" => Remedy::Again,
            "25006" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Remedy::Reconnect,
            code => match code.get(..2) {
                Some("22" | "23") => Remedy::WithoutIt,
                Some("08") => Remedy::Reconnect,
                _ => Remedy::Later,
            },
        }
    }

    /// Whether somebody else held a lock for too long.
    pub(super) fn is_lock_taken(&self) -> bool {
        matches!(self, Self::Sql(fault) if fault.code() == Some(&SqlState::LOCK_NOT_AVAILABLE))
    }

    /// What the caller is told.
    pub(super) fn told(&self) -> StoreError {
        let fault = match self {
            Self::Told(fault) => return fault.clone(),
            Self::Sql(fault) => fault,
        };
        let Some(state) = fault.code() else {
            return unavailable("the connection to the database was lost");
        };
        let text = match state {
            state if *state == SqlState::DISK_FULL => "the database's disk is full",
            state if *state == SqlState::READ_ONLY_SQL_TRANSACTION => "the database is read-only",
            state if *state == SqlState::TOO_MANY_CONNECTIONS => {
                "the database has no free connection"
            }
            state if *state == SqlState::UNDEFINED_TABLE => {
                return corrupt("tables of the database are missing");
            }
            _ => {
                let text = format!("the database answered with code {}", state.code());
                return match self.remedy() {
                    Remedy::WithoutIt => StoreError::Corrupt(text),
                    _ => StoreError::Unavailable(text),
                };
            }
        };
        unavailable(text)
    }
}

/// Nothing can be done now; `why` is a plain sentence.
pub(super) fn unavailable(why: &str) -> StoreError {
    StoreError::Unavailable(why.into())
}
