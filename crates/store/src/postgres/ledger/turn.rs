//! What changes of a lane's suspension, noted with the state that changes it.
//!
//! Never: a state written; whoever writes it notes this in the same transaction.

use std::collections::HashMap;

use domain::ids::EndpointKey;

use crate::ledger::{LaneState, Told};
use crate::postgres::conn::all;
use crate::postgres::fault::Fault;
use crate::postgres::rows::{get, maybe_time};
use crate::postgres::tx::Tx;

/// What the owners of lanes were told, by the states that were written last.
pub(super) type ToldOf = HashMap<EndpointKey, Told>;

impl Tx {
    /// What the owners of these lanes were told.
    pub(super) async fn told_of(&self, lanes: &[&LaneState]) -> Result<ToldOf, Fault> {
        if lanes.is_empty() {
            return Ok(ToldOf::new());
        }
        let keys: Vec<i64> = lanes.iter().map(|lane| lane.endpoint.0).collect();
        let sql =
            "SELECT endpoint, warned, suspended_since FROM lane_state WHERE endpoint = ANY($1)";
        let told = all(self.conn(), sql, &[&keys], |row| {
            let told = Told { warned: get(row, 1)?, suspended_since: maybe_time(row, 2)? };
            Ok((EndpointKey(get(row, 0)?), told))
        })
        .await?;
        Ok(told.into_iter().collect())
    }

    /// Notes what this state is to an owner who was told of the ones before.
    pub(super) async fn note_turn(
        &mut self,
        lane: &LaneState,
        told: &mut ToldOf,
    ) -> Result<(), Fault> {
        let before = told.insert(lane.endpoint, lane.told()).unwrap_or_default();
        match lane.news_after(before) {
            Some(news) => self.note_by_mail(news, lane.endpoint).await,
            None => Ok(()),
        }
    }
}
