//! Of which types the parameters of a statement are, for statements without a name.
//!
//! The server finds that out where a statement is prepared. Behind a pooler that cannot be done:
//! another client's statement may have the same name in the session. So it is done once for each
//! statement of this process on a connection that leads around the pooler.
//! Never: run a statement.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use deadpool_postgres::Pool;
use tokio_postgres::types::Type;

use super::fault::Fault;
use super::reach::reach;

/// Types of parameters, by statement.
pub(super) struct Types {
    known: Mutex<HashMap<String, Arc<[Type]>>>,
    /// Around the pooler.
    direct: Pool,
}

impl Types {
    pub(super) fn new(direct: Pool) -> Self {
        Self { known: Mutex::default(), direct }
    }

    /// Those of this statement.
    pub(super) async fn of(&self, sql: &str) -> Result<Arc<[Type]>, Fault> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found: Arc<[Type]> = reach(&self.direct).await?.prepare(sql).await?.params().into();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(sql.to_owned(), Arc::clone(&found));
        Ok(found)
    }
}
