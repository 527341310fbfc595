//! Health checks: while nothing is sent to an endpoint that names a URL for it, it is asked there
//! whether it is well.
//!
//! A yes lets one probe go before its time. A no changes nothing but the next time it is asked.
//! Never: an attempt, a result, or a second question while one is out.

use std::sync::Arc;

use domain::ids::EndpointKey;
use resilience::Timestamp;

use super::lane::{Asking, Known};
use super::{Command, Dispatcher};

impl Known {
    /// When the endpoint is asked next, if it is to be.
    fn next_question(&self, now: Timestamp) -> Option<Timestamp> {
        let wanted = self.endpoint.spec.health_check.is_some();
        let asks = wanted && !self.asking.is_out && !self.is_shut();
        if asks { self.gate.next_question(self.asking.last, now) } else { None }
    }
}

impl Dispatcher {
    /// Asks the endpoint of a lane that waits, if it is time, or sees to it that it will be.
    pub(super) fn ask_health(&mut self, endpoint: EndpointKey, now: Timestamp) {
        let draining = self.draining;
        let Some(known) = self.known(endpoint).filter(|_| !draining) else { return };
        let Some(at) = known.next_question(now) else { return };
        if at > now {
            return self.set_timer(endpoint, at);
        }
        known.asking = Asking { last: Some(now), is_out: true };
        let to = Arc::clone(&known.endpoint);
        let courier = Arc::clone(&self.courier);
        self.report(async move { Command::Asked(endpoint, courier.is_well(&to).await) });
    }

    /// It answered, or did not.
    pub(super) fn asked_health(&mut self, endpoint: EndpointKey, is_well: bool, now: Timestamp) {
        self.telemetry.asked(is_well);
        let Some(known) = self.known(endpoint) else { return };
        known.asking.is_out = false;
        if is_well {
            known.gate.hear_well(now);
        }
        self.enqueue(endpoint);
    }
}
