//! What the engine is told at start; every value has a default and a bound.
//!
//! Never: read files or the environment; `server/config` does.

use std::time::Duration;

use domain::limits;
use domain::policy::RetrySettings;
use resilience::BreakerConfig;
use store::prune::Retention;

/// Which signature headers a delivery carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderFamilies {
    /// `webhook-*` and `svix-*`.
    #[default]
    Both,
    /// `webhook-*` only.
    Webhook,
    /// `svix-*` only.
    Svix,
}

/// When an endpoint that fails is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspending {
    /// After failing so long without a success in between; `None` for never.
    pub after: Option<Duration>,
    /// After so long its owner is warned; `None` for never.
    pub warn_after: Option<Duration>,
    /// A probe is made so often.
    pub probe_every: Duration,
}

impl Default for Suspending {
    fn default() -> Self {
        Self {
            after: Some(Duration::from_secs(60 * 60)),
            warn_after: Some(Duration::from_secs(30 * 60)),
            probe_every: Duration::from_secs(10 * 60),
        }
    }
}

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Retry policy where an endpoint has none of its own.
    pub retry: RetrySettings,
    /// Breaker where an endpoint has none of its own.
    pub breaker: BreakerConfig,
    /// When an endpoint that fails is suspended.
    pub suspending: Suspending,
    /// Deadline of one attempt, DNS to last body byte.
    pub attempt_deadline: Duration,
    /// Part of it that connecting may take.
    pub connect_timeout: Duration,
    /// Concurrent sends per endpoint at first.
    pub window_start: u32,
    /// Concurrent sends per endpoint at most.
    pub window_max: u32,
    /// `Retry-After` on 429 and 503 holds a lane no longer than this.
    pub lane_hold_max: Duration,
    /// Signature headers.
    pub header_families: HeaderFamilies,
    /// The `user-agent` of deliveries.
    pub user_agent: String,
    /// Names this installation in idempotency keys.
    pub installation: [u8; 16],
    /// Sends in flight over all lanes.
    pub sends_max: usize,
    /// Payload bytes of all sends in flight.
    pub send_bytes_max: usize,
    /// Payload bytes kept from hand-over to send.
    pub payload_cache_bytes: usize,
    /// Ids one lane keeps in memory.
    pub lane_ids_max: usize,
    /// Ids all lanes keep in memory.
    pub ids_max: usize,
    /// Results of one lane that are not committed yet.
    pub lane_unrecorded_max: usize,
    /// Results of all lanes that are not committed yet.
    pub unrecorded_max: usize,
    /// How long payloads, dead letters and messages are kept.
    pub retention: Retention,
    /// Deliveries a second that a background task puts into lanes, where it names no rate.
    pub replay_rate_per_s: u32,
    /// Whether dead letters go back by themselves after an outage, where an endpoint does not say.
    pub replay_automatic: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retry: RetrySettings::default(),
            breaker: BreakerConfig::default(),
            suspending: Suspending::default(),
            attempt_deadline: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            window_start: 4,
            window_max: 64,
            lane_hold_max: Duration::from_secs(15 * 60),
            header_families: HeaderFamilies::Both,
            user_agent: concat!("Peyk/", env!("CARGO_PKG_VERSION")).to_owned(),
            installation: [0; 16],
            sends_max: limits::SENDS_IN_FLIGHT_MAX,
            send_bytes_max: 256 << 20,
            payload_cache_bytes: 64 << 20,
            lane_ids_max: 2_048,
            ids_max: 262_144,
            lane_unrecorded_max: limits::LANE_UNRECORDED_MAX,
            unrecorded_max: limits::UNRECORDED_MAX,
            retention: Retention::default(),
            replay_rate_per_s: 10,
            replay_automatic: true,
        }
    }
}
