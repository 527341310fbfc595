//! A connection from a pool, or why there is none.
//!
//! Never: let a password into the text.

use deadpool_postgres::{HookError, Object, Pool, PoolError};

use super::fault::unavailable;
use crate::StoreError;
use crate::stored::fault::closed;

/// A connection from a pool.
pub(super) async fn reach(pool: &Pool) -> Result<Object, StoreError> {
    pool.get().await.map_err(|fault| match fault {
        PoolError::Closed => closed(),
        PoolError::Timeout(_) => unavailable("the database does not answer"),
        PoolError::Backend(fault) | PoolError::PostCreateHook(HookError::Backend(fault)) => {
            let said = root(&fault);
            let hint = match said.contains("certificate") {
                true => "; ?sslmode=disable in the URL goes without TLS",
                false => "",
            };
            StoreError::Unavailable(format!("cannot connect to the database: {said}{hint}"))
        }
        other => StoreError::Unavailable(other.to_string()),
    })
}

/// What the server or the system said, without what stands around it.
pub(super) fn root(fault: &tokio_postgres::Error) -> String {
    let mut cause: &dyn std::error::Error = fault;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
