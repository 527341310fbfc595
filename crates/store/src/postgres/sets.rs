//! Posts and results of a batch, all at once; one by one where a row among them cannot be written.
//!
//! Never: fail a batch for one row.

use super::door::{Post, Results};
use super::fault::{Fault, Remedy};
use super::tx::Tx;
use crate::StoreError;
use crate::inbox::{Accepted, NewMessage};
use crate::ledger::{Record, Recorded};

/// A batch that meets another transaction is tried so often.
const TRIES: usize = 3;

/// What became of them, in their order.
#[derive(Default)]
pub(super) struct Made {
    pub(super) accepted: Vec<Result<Accepted, StoreError>>,
    pub(super) recorded: Vec<Result<Vec<Recorded>, StoreError>>,
}

impl Tx {
    /// Begins the transaction and writes them; what a single one is to blame for is its own.
    pub(super) async fn write_sets(
        &mut self,
        posts: &[Post],
        results: &[Results],
    ) -> Result<Made, Fault> {
        for _ in 1..TRIES {
            self.begin().await?;
            let fault = match self.together(posts, results).await {
                Ok(made) => return Ok(made),
                Err(fault) => fault,
            };
            match fault.remedy() {
                Remedy::Again => self.roll_back().await?,
                Remedy::WithoutIt => {
                    self.roll_back().await?;
                    self.begin().await?;
                    return self.one_by_one(posts, results).await;
                }
                Remedy::None | Remedy::Reconnect | Remedy::Later => return Err(fault),
            }
        }
        self.begin().await?;
        self.together(posts, results).await
    }

    async fn together(&mut self, posts: &[Post], results: &[Results]) -> Result<Made, Fault> {
        let mut made = Made::default();
        if !posts.is_empty() {
            let new: Vec<&NewMessage> = posts.iter().map(|post| &post.new).collect();
            made.accepted = self.accept_all(&new).await?.into_iter().map(Ok).collect();
        }
        if !results.is_empty() {
            let records: Vec<&Record> =
                results.iter().flat_map(|results| &results.records).collect();
            let mut recorded = self.record_all(&records).await?.into_iter();
            for results in results {
                made.recorded.push(Ok(recorded.by_ref().take(results.records.len()).collect()));
            }
        }
        Ok(made)
    }

    async fn one_by_one(&mut self, posts: &[Post], results: &[Results]) -> Result<Made, Fault> {
        let mut made = Made::default();
        for post in posts {
            let mark = self.save().await?;
            let accepted = self.accept_one(&post.new).await;
            made.accepted.push(blame(self.end_save(mark, accepted).await)?);
        }
        for results in results {
            let records: Vec<&Record> = results.records.iter().collect();
            let mark = self.save().await?;
            let recorded = self.record_all(&records).await;
            made.recorded.push(blame(self.end_save(mark, recorded).await)?);
        }
        Ok(made)
    }
}

/// Whether it is this one's own fault.
fn blame<T>(made: Result<T, Fault>) -> Result<Result<T, StoreError>, Fault> {
    match made {
        Ok(made) => Ok(Ok(made)),
        Err(fault) if fault.remedy() == Remedy::WithoutIt => Ok(Err(fault.told())),
        Err(fault) => Err(fault),
    }
}
