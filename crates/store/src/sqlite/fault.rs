//! What SQLite's errors mean to a caller.
//!
//! Never: let SQL or a stored value into the text.

use rusqlite::ErrorCode;

use crate::StoreError;
use crate::stored::fault::{corrupt, unreadable};

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as Sql;
        match error {
            Sql::SqliteFailure(cause, _) => of_code(cause.code, cause.extended_code),
            Sql::SqlInputError { error: cause, .. } => of_code(cause.code, cause.extended_code),
            Sql::FromSqlConversionFailure(..)
            | Sql::IntegralValueOutOfRange(..)
            | Sql::Utf8Error(..)
            | Sql::InvalidColumnType(..) => unreadable(),
            Sql::QueryReturnedNoRows => Self::Missing("row"),
            _ => Self::Unavailable("the database refused a statement".into()),
        }
    }
}

fn of_code(code: ErrorCode, extended: i32) -> StoreError {
    let text = match code {
        ErrorCode::DiskFull => "disk full",
        ErrorCode::ReadOnly => "the database is read-only",
        ErrorCode::SystemIoFailure => "the disk failed to read or write",
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => "the database is locked",
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => "the database cannot be opened",
        ErrorCode::OutOfMemory => "out of memory",
        ErrorCode::NotADatabase => return corrupt("the file is not a database"),
        ErrorCode::DatabaseCorrupt => return corrupt("the database file is damaged"),
        _ => {
            return StoreError::Unavailable(format!("the database answered with code {extended}"));
        }
    };
    StoreError::Unavailable(text.into())
}
