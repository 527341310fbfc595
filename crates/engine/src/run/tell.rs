//! What is told once a record is committed: figures, and events for whoever watches.
//!
//! Never: tell what the store does not hold.

use std::sync::Arc;

use domain::endpoint::Endpoint;
use resilience::Change;
use store::ledger::{Follow, Recorded};

use super::Dispatcher;
use super::entry::Entry;
use crate::admit::Settled;
use crate::events::Event;

impl Dispatcher {
    pub(super) fn tell(&self, entry: Entry, done: Recorded) {
        let Entry { record, endpoint, class, settled, retry_at, .. } = entry;
        let message = record.pending.message;
        let applied = done == Recorded::Applied;
        match &record.follow {
            Follow::Delivered => self.telemetry.delivered(record.pending.sends.saturating_add(1)),
            Follow::Cancelled(_) if applied => self.telemetry.cancelled(),
            Follow::Dead { reason, .. } if applied => self.telemetry.buried(*reason),
            _ => {}
        }
        let Some(endpoint) = endpoint else { return };
        if let (Some(class), Some(attempt)) = (class, &record.attempt) {
            self.observer.observe(&Event::Attempted {
                endpoint: Arc::clone(&endpoint),
                message,
                number: attempt.number,
                class,
                status: attempt.status(),
                took: attempt.took,
                retry_at: retry_at.filter(|_| applied),
            });
        }
        if let (Follow::Dead { reason, .. }, true) = (&record.follow, applied) {
            let reason = *reason;
            self.observer.observe(&Event::Buried {
                endpoint: Arc::clone(&endpoint),
                message,
                reason,
            });
        }
        self.tell_of_lane(&endpoint, settled, applied && record.disable.is_some());
    }

    fn tell_of_lane(&self, endpoint: &Arc<Endpoint>, settled: Settled, gone: bool) {
        let endpoint = || Arc::clone(endpoint);
        match settled.change {
            Some(Change::Opened { until } | Change::Reopened { until }) => {
                self.observer.observe(&Event::BreakerOpened { endpoint: endpoint(), until });
            }
            Some(Change::Closed) => {
                self.observer.observe(&Event::BreakerClosed { endpoint: endpoint() });
            }
            None => {}
        }
        if let Some(until) = settled.refused_until {
            self.observer.observe(&Event::RefusalsHeld {
                endpoint: endpoint(),
                until,
                run: settled.run,
            });
        }
        if settled.suspended {
            self.observer.observe(&Event::EndpointSuspended { endpoint: endpoint() });
        }
        if settled.resumed {
            self.observer.observe(&Event::EndpointResumed { endpoint: endpoint() });
        }
        if gone {
            self.observer.observe(&Event::EndpointGone { endpoint: endpoint() });
        }
    }
}
