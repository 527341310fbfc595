//! A round over all lanes, piece by piece, and what is seen in it.
//!
//! Never: change a lane.

use domain::ids::EndpointKey;
use resilience::Timestamp;

use super::lane::{Home, Lane};
use crate::admit::HeldBy;

/// Lanes looked at in one turn.
const PIECE: usize = 1_000;

/// A round over all lanes.
#[derive(Default)]
pub(super) struct Round {
    left: Vec<EndpointKey>,
    /// What was seen so far.
    pub(super) seen: Seen,
}

/// How many lanes are how, so far.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) held: u32,
    pub(super) open: u32,
    pub(super) half_open: u32,
    pub(super) suspended: u32,
    pub(super) holds: [u32; HeldBy::ALL.len()],
}

/// What a lane wants besides being counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// Nothing.
    Nothing,
    /// It does not send: what grows old in it is given up; whether a gap blocks it.
    Sweep(bool),
}

impl Round {
    /// Over all of these.
    pub(super) fn over(lanes: impl Iterator<Item = EndpointKey>) -> Self {
        Self { left: lanes.collect(), seen: Seen::default() }
    }

    /// The next lanes to look at.
    pub(super) fn piece(&mut self) -> Vec<EndpointKey> {
        self.left.split_off(self.left.len().saturating_sub(PIECE))
    }

    /// Whether it has come to its end.
    pub(super) const fn is_over(&self) -> bool {
        self.left.is_empty()
    }
}

impl Seen {
    /// Counts a lane, and says what it wants.
    pub(super) fn count(&mut self, lane: &Lane, now: Timestamp) -> Wants {
        let Home::Known(known) = &lane.home else { return Wants::Nothing };
        let is_held = known.gate.is_held(now);
        self.held += u32::from(is_held);
        match known.gate.state_name(now) {
            "open" => self.open += 1,
            "halfOpen" => self.half_open += 1,
            "suspended" => self.suspended += 1,
            _ => {}
        }
        if let Some(held) = lane.held(now) {
            self.holds[held.by as usize] += 1;
        }
        let blocked = known.is_strict() && lane.gap.blocks();
        if is_held || known.is_shut() || blocked { Wants::Sweep(blocked) } else { Wants::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With 100,000 lanes one look at all of them kept everything else waiting for 55 ms.
    #[test]
    fn a_round_is_over_every_lane_once_and_no_piece_is_large() {
        let mut round = Round::over((1..=100_001).map(EndpointKey));
        let (mut seen, mut pieces) = (Vec::new(), 0);
        while !round.is_over() {
            let piece = round.piece();
            assert!(piece.len() <= PIECE);
            seen.extend(piece);
            pieces += 1;
        }
        seen.sort_unstable();
        assert_eq!(seen, (1..=100_001).map(EndpointKey).collect::<Vec<_>>());
        assert_eq!(pieces, 101);
        assert!(Round::default().piece().is_empty());
    }
}
