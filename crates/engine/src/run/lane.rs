//! A lane as the dispatcher keeps it: its book, its gate, its endpoint as last read.
//!
//! Never: start anything; `serve` does.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::Pending;
use domain::endpoint::{Endpoint, Ordering};
use domain::ids::MessageKey;
use domain::notice::News;
use domain::policy::RetryOn;
use domain::verdict;
use resilience::{Change, RetryPolicy, Timestamp};
use store::ledger::LaneState;

use crate::admit::{Gate, GateSettings};
use crate::lanes::Book;
use crate::settings::Settings;

/// What is known of a lane's endpoint.
pub(super) enum Home {
    /// Not read yet.
    Unknown,
    /// As last read, with what follows from it.
    Known(Box<Known>),
    /// Deleted: what is pending is cancelled.
    Deleted,
}

/// An endpoint and everything derived from it.
pub(super) struct Known {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) gate: Gate,
    pub(super) policy: RetryPolicy,
    pub(super) retry_on: RetryOn,
    /// The state as last handed to the ledger; `None` when it may not have been kept.
    pub(super) kept: Option<LaneState>,
    /// A send was answered 410, and the endpoint has not been read again since.
    pub(super) gone: bool,
    /// Questions whether it is well.
    pub(super) asking: Asking,
    /// A move of the breaker whose notice was not written.
    untold: Option<News>,
}

/// What is remembered of the questions to an endpoint whether it is well.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asking {
    /// When the last one went.
    pub(super) last: Option<Timestamp>,
    pub(super) is_out: bool,
}

/// What a newer copy of an endpoint changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Renewed {
    /// Its order has become strict.
    pub(super) is_strict_now: bool,
    /// A hold after refusals is over, or a probe need not wait any more.
    pub(super) wait_ended: bool,
}

/// One lane.
pub(super) struct Lane {
    pub(super) home: Home,
    pub(super) book: Book,
    pub(super) in_flight: usize,
    pub(super) unrecorded: usize,
    pub(super) queued: bool,
    /// Stands among those that wait for room.
    pub(super) starved: bool,
    /// Reads of its endpoint under way.
    pub(super) loading: usize,
    /// Messages whose manual send is out or not recorded.
    pub(super) manual_out: Vec<MessageKey>,
    /// Messages whose payload went while their send was out or not recorded.
    pub(super) withdrawn_out: Vec<MessageKey>,
    pub(super) gap: Gap,
    /// When its rows on disk were last looked through for old ones.
    pub(super) swept_at: Option<Timestamp>,
    pub(super) timer: Option<Timestamp>,
    /// Put back by hand: goes first when one is let through.
    pub(super) favoured: Option<MessageKey>,
    /// The repair poll found a due row here that no rule had announced, and asked for this refill.
    pub(super) doubted_at: Option<Timestamp>,
}

/// What is known of a lane's dead letters, as far as its order is strict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) state: GapState,
    pub(super) asking: bool,
    /// Something died while the store was being asked.
    pub(super) outdated: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum GapState {
    #[default]
    Unknown,
    /// This one is dead, and others may be.
    Open(MessageKey),
    Closed,
}

impl Gap {
    /// Whether nothing may be sent.
    pub(super) fn blocks(self) -> bool {
        self.state != GapState::Closed
    }

    /// A delivery died.
    pub(super) const fn open(&mut self, dead: MessageKey) {
        self.state = GapState::Open(dead);
        self.outdated = self.asking;
    }

    /// The endpoint changed: nothing is known.
    pub(super) const fn forget(&mut self) {
        self.state = GapState::Unknown;
        self.outdated = self.asking;
    }

    pub(super) const fn dead(self) -> Option<MessageKey> {
        match self.state {
            GapState::Open(dead) => Some(dead),
            GapState::Unknown | GapState::Closed => None,
        }
    }
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            home: Home::Unknown,
            book: Book::default(),
            in_flight: 0,
            unrecorded: 0,
            queued: false,
            starved: false,
            loading: 0,
            manual_out: Vec::new(),
            withdrawn_out: Vec::new(),
            gap: Gap::default(),
            swept_at: None,
            timer: None,
            favoured: None,
            doubted_at: None,
        }
    }

    /// Whether this copy of its endpoint is newer than what it has.
    pub(super) fn lacks(&self, endpoint: &Endpoint) -> bool {
        match &self.home {
            Home::Known(known) => endpoint.version > known.endpoint.version,
            Home::Unknown => true,
            Home::Deleted => false,
        }
    }

    /// Whether nothing would be lost by forgetting it.
    pub(super) fn may_be_forgotten(&self, now: Timestamp) -> bool {
        let neutral = match &self.home {
            Home::Known(known) => {
                let forced = known.gate.breaker().snapshot().forced.is_some();
                !forced && !known.gate.is_held(now) && !known.gate.failed_last() && !known.gone
            }
            Home::Unknown | Home::Deleted => true,
        };
        let waits = self.queued || self.starved || self.loading > 0 || self.timer.is_some();
        neutral && !waits && self.book.is_idle() && self.in_flight == 0 && self.unrecorded == 0
    }

    /// Whether a manual send is next. In an `ordered` lane it has its place among the others.
    pub(super) fn manual_may_go(&self, ordered: bool) -> bool {
        let Some(head) = self.book.manual_head() else { return false };
        // Two sends of one delivery at once could not be numbered.
        (!ordered || self.book.manual_is_first()) && !self.book.is_out(head.pending.message)
    }

    /// A manual send is over.
    pub(super) fn forget_manual(&mut self, row: &Pending) {
        if row.trigger.is_extra()
            && let Some(place) = self.manual_out.iter().position(|out| *out == row.message)
        {
            self.manual_out.swap_remove(place);
        }
    }
}

impl Known {
    /// From an endpoint that is read for the first time.
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        kept: Option<LaneState>,
        settings: &Settings,
        now: Timestamp,
    ) -> Self {
        let mut gate = match &kept {
            Some(kept) => Gate::restore(gate_settings(&endpoint, settings), kept, now),
            None => Gate::new(gate_settings(&endpoint, settings), now),
        };
        if endpoint.spec.ordering != Ordering::Unordered {
            gate.hold_head(kept.and_then(|kept| kept.hold_until));
        }
        let retry = endpoint.spec.retry.over(&settings.retry);
        let kept = Some(gate.kept(endpoint.key));
        Self {
            policy: retry.policy(),
            retry_on: retry.retry_on,
            gate,
            kept,
            gone: false,
            asking: Asking::default(),
            untold: None,
            endpoint,
        }
    }

    /// Takes a newer copy of the endpoint; an older one changes nothing.
    pub(super) fn renew(
        &mut self,
        endpoint: &Arc<Endpoint>,
        settings: &Settings,
        now: Timestamp,
    ) -> Renewed {
        if endpoint.version <= self.endpoint.version {
            return Renewed::default();
        }
        let was_strict = self.is_strict();
        let retry = endpoint.spec.retry.over(&settings.retry);
        self.policy = retry.policy();
        self.retry_on = retry.retry_on;
        self.gate.retune(gate_settings(endpoint, settings), now);
        self.gone = false;
        if endpoint.spec.ordering == Ordering::Unordered {
            self.gate.hold_head(None);
        }
        if self.endpoint.spec.disabled.is_some() && endpoint.spec.disabled.is_none() {
            self.gate.restart_window();
        }
        let asks_differently = asks_differently(&self.endpoint, endpoint);
        let trusted = asks_differently && self.gate.trust();
        let probes = asks_differently && self.gate.let_probe(now);
        self.endpoint = Arc::clone(endpoint);
        Renewed { is_strict_now: self.is_strict() && !was_strict, wait_ended: trusted || probes }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.endpoint.spec.ordering != Ordering::Unordered
    }

    pub(super) fn is_strict(&self) -> bool {
        self.endpoint.spec.ordering == Ordering::Strict
    }

    /// Whether nothing is sent because the endpoint is switched off.
    pub(super) fn is_shut(&self) -> bool {
        self.gone || self.endpoint.spec.disabled.is_some()
    }

    /// Whether the lane keeps but few rows in memory, since it does not send.
    pub(super) fn is_held(&self, now: Timestamp) -> bool {
        self.is_shut() || self.gate.is_held(now)
    }

    /// Whether a row is past its age. The head of an ordered lane keeps its place when it is
    /// retried; its due time then is the lane's.
    pub(super) fn is_expired(&self, row: &Pending, now: Timestamp) -> bool {
        let mut row = *row;
        if row.budget_used > 0
            && let Some(head) = self.gate.head_until()
        {
            row.due_at = row.due_at.max(head.min(row.age_from.plus(self.policy.age_max)));
        }
        verdict::expired(&row, self.policy.age_max, now)
    }

    /// The lane's state, if it differs from what the ledger was last given.
    pub(super) fn changed_state(&mut self) -> Option<LaneState> {
        let state = self.gate.kept(self.endpoint.key);
        if self.kept.as_ref() == Some(&state) {
            return None;
        }
        self.kept = Some(state.clone());
        Some(state)
    }

    /// What a move of the breaker is to whoever is told of it, after what was not written before. A
    /// probe that failed is no news: nobody was told that the breaker had closed.
    pub(super) fn breaker_news(&mut self, change: Option<Change>) -> Option<News> {
        let news = match change {
            Some(Change::Opened { until }) => Some(News::BreakerOpened { until }),
            Some(Change::Closed) => Some(News::BreakerClosed),
            Some(Change::Reopened { .. }) | None => None,
        };
        match (self.untold.take(), news) {
            (Some(before), Some(news)) => before.then(news),
            (before, news) => news.or(before),
        }
    }

    /// The record that carried this was late, and wrote none of it.
    pub(super) fn not_told(&mut self, news: Option<News>) {
        let is_open = self.gate.breaker().snapshot().open_until.is_some();
        let holds = |news: &News| matches!(news, News::BreakerOpened { .. }) == is_open;
        self.untold = self.untold.or(news).filter(holds);
    }
}

/// Whether what was refused may be taken now: the request goes elsewhere, says who it is from in
/// another way, or somebody switched the endpoint off or on.
fn asks_differently(old: &Endpoint, new: &Endpoint) -> bool {
    let secret = |of: &Endpoint| of.secrets.first().map(|live| live.secret.to_private_text());
    old.spec.target != new.spec.target
        || old.spec.headers != new.spec.headers
        || old.spec.disabled.is_some() != new.spec.disabled.is_some()
        || secret(old) != secret(new)
}

fn gate_settings(endpoint: &Endpoint, settings: &Settings) -> GateSettings {
    let ordered = endpoint.spec.ordering != Ordering::Unordered;
    let mut breaker = endpoint.spec.breaker.over(&settings.breaker);
    if ordered {
        // Its failures are all of the head: one message is enough.
        breaker.keys_min = 1;
    }
    let gate = server_gate(settings);
    GateSettings {
        breaker,
        window: if ordered { (1, 1) } else { gate.window },
        rate: endpoint.spec.throttle_rate.map(u32::from),
        ..gate
    }
}

/// The gate of an endpoint that has no settings of its own.
pub(super) fn server_gate(settings: &Settings) -> GateSettings {
    GateSettings {
        breaker: settings.breaker.clone(),
        window: (settings.window_start, settings.window_max),
        rate: None,
        hold_max: settings.lane_hold_max.max(Duration::from_secs(1)),
        suspending: settings.suspending,
    }
}

#[cfg(test)]
mod tests {
    use store::conformance::samples;

    use super::*;

    #[test]
    fn a_move_of_the_breaker_that_was_not_written_is_told_later_while_it_holds() {
        let now = Timestamp::from_secs(1_800_000_000);
        let endpoint = Arc::new(samples::stored_endpoint(samples::endpoint()));
        let mut known = Known::new(endpoint, None, &Settings::default(), now);
        let opened = News::BreakerOpened { until: now };
        assert_eq!(known.breaker_news(Some(Change::Opened { until: now })), Some(opened));
        assert_eq!(known.breaker_news(Some(Change::Reopened { until: now })), None);
        known.not_told(Some(opened));
        assert_eq!(known.breaker_news(None), None, "it is closed");
        known.not_told(Some(News::BreakerClosed));
        assert_eq!(known.breaker_news(None), Some(News::BreakerClosed), "so it is");
        assert_eq!(known.breaker_news(None), None, "once");
        known.untold = Some(opened);
        assert_eq!(known.breaker_news(None), Some(opened));
        known.untold = Some(opened);
        assert_eq!(known.breaker_news(Some(Change::Closed)), None, "and over before it was told");
    }
}
