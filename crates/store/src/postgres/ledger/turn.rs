//! What changes of a lane's suspension, its outage and its runs of refusals, noted with the state
//! that changes it.
//!
//! Never: a state written; whoever writes it notes this in the same transaction.

use std::collections::HashMap;

use domain::ids::EndpointKey;

use crate::ledger::{Before, LaneState, Told};
use crate::postgres::conn::all;
use crate::postgres::fault::Fault;
use crate::postgres::rows::{get, maybe_time, outage_at};
use crate::postgres::tx::Tx;

/// What lanes are held against, by the states that were written last.
pub(super) type BeforeOf = HashMap<EndpointKey, Before>;

impl Tx {
    /// What these lanes are held against.
    pub(super) async fn before_of(&self, lanes: &[&LaneState]) -> Result<BeforeOf, Fault> {
        if lanes.is_empty() {
            return Ok(BeforeOf::new());
        }
        let keys: Vec<i64> = lanes.iter().map(|lane| lane.endpoint.0).collect();
        let sql =
            "SELECT endpoint, warned, suspended_since, outage_since, outage_until, rejected_since
                   FROM lane_state WHERE endpoint = ANY($1)";
        let before = all(self.conn(), sql, &[&keys], |row| {
            let told = Told { warned: get(row, 1)?, suspended_since: maybe_time(row, 2)? };
            let (outage, refused_since) = (outage_at(row, 3)?, maybe_time(row, 5)?);
            Ok((EndpointKey(get(row, 0)?), Before { told, outage, refused_since }))
        })
        .await?;
        Ok(before.into_iter().collect())
    }

    /// Notes what this state is after the ones before.
    pub(super) async fn note_turn(
        &mut self,
        lane: &LaneState,
        before: &mut BeforeOf,
    ) -> Result<(), Fault> {
        let before = before.insert(lane.endpoint, lane.before()).unwrap_or_default();
        if let Some(news) = lane.news_after(before.told) {
            self.note_by_mail(news, lane.endpoint).await?;
        }
        for news in lane.runs_after(before.refused_since) {
            self.note(news, lane.endpoint, None).await?;
        }
        match lane.turn_after(before.outage) {
            Some(turn) => self.turn_recovery(lane.endpoint, turn).await,
            None => Ok(()),
        }
    }
}
