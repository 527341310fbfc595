//! Whether anything can be committed now, found out by committing something.
//!
//! Never: leave more than one short row behind.

use rusqlite::params;

use super::tx::Tx;
use crate::StoreError;

/// Written while commits succeed: one page.
const BYTES: usize = 8;
/// Written at first and after a commit that failed: where there is no room for this, messages fail
/// too.
const BYTES_AFTER_FAULT: usize = 64 << 10;

impl Tx<'_> {
    /// Writes something that was not there before.
    pub(super) fn probe(&mut self) -> Result<(), StoreError> {
        let length = if self.failed { BYTES_AFTER_FAULT } else { BYTES };
        // What is there already would not be written again.
        let value = self.now.as_micros().to_be_bytes().repeat(length / BYTES);
        let sql = "INSERT INTO setting (name, value) VALUES ('probe', ?1)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.batch.rows += self.conn.prepare_cached(sql)?.execute(params![value])?;
        Ok(())
    }
}
