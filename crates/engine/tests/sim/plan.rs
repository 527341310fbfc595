//! What a world is made of, drawn from its seed: settings, endpoints, receivers, messages.
//!
//! Never: anything that depends on more than the seed.

use std::time::Duration;

use bytes::Bytes;
use domain::application::ApplicationSpec;
use domain::endpoint::{EndpointSpec, LiveSecret, Ordering};
use domain::idempotency::IngestKey;
use domain::ids::PublicId;
use domain::message::{ContentType, MessageSpec};
use domain::policy::{RetrySettings, Strategy};
use engine::Settings;
use engine::ingest::Post;
use engine::settings::Suspending;
use resilience::{BreakerConfig, Chance, Seeded};
use store::conformance::samples;
use store::directory::IdOrUid;
use store::prune::Retention;
use webhook::Secret;

use super::oracle::Limits;
use super::receivers::{CHARACTERS, Receiver};

pub const ORG: PublicId = PublicId::from_bytes([7; 20]);
/// What a plan says of ages: everything is over so long after its acceptance.
pub const AGE_MAX: Duration = Duration::from_secs(420);

pub fn one_of<T: Copy>(chance: &mut Seeded, all: &[T]) -> T {
    all[usize::try_from(chance.below(all.len() as u64)).unwrap()]
}

pub fn seconds(chance: &mut Seeded, most: u64) -> Duration {
    chance.between(Duration::ZERO, Duration::from_secs(most))
}

/// Small bounds, so that they are reached.
pub fn settings(chance: &mut Seeded) -> Settings {
    let strategy = one_of(chance, &[Strategy::FullJitter, Strategy::Exponential, Strategy::Fixed]);
    Settings {
        retry: RetrySettings {
            strategy,
            base: Duration::from_secs(1 + chance.below(4)),
            cap: Duration::from_secs(120),
            attempts_max: one_of(chance, &[1, 3, 6, 12]),
            age_max: AGE_MAX,
            ..RetrySettings::default()
        },
        breaker: BreakerConfig {
            open_for: Duration::from_secs(20),
            open_for_max: Duration::from_secs(90),
            ..BreakerConfig::default()
        },
        suspending: Suspending {
            after: one_of(chance, &[None, Some(60), Some(150)]).map(Duration::from_secs),
            warn_after: one_of(chance, &[None, Some(20)]).map(Duration::from_secs),
            probe_every: Duration::from_secs(one_of(chance, &[5, 45, 100])),
        },
        attempt_deadline: Duration::from_secs(10),
        window_start: 2,
        window_max: one_of(chance, &[2, 4, 8]),
        lane_hold_max: Duration::from_secs(60),
        sends_max: one_of(chance, &[4, 16, 32]),
        payload_cache_bytes: one_of(chance, &[0, 64, 1 << 20]),
        lane_ids_max: one_of(chance, &[4, 16, 64]),
        ids_max: one_of(chance, &[8, 64, 1_024]),
        lane_unrecorded_max: one_of(chance, &[2, 8, 64]),
        unrecorded_max: one_of(chance, &[4, 64, 1_024]),
        retention: retention(chance),
        replay_rate_per_s: one_of(chance, &[1, 10]),
        ..Settings::default()
    }
}

/// Every other time things are kept so shortly that they go while a world lasts.
fn retention(chance: &mut Seeded) -> Retention {
    if chance.below(2) == 0 {
        return Retention::default();
    }
    let payload = Duration::from_secs(60 + chance.below(400));
    Retention {
        payload,
        dead_letters: Duration::from_secs(60 + chance.below(300)),
        messages: payload + seconds(chance, 300),
    }
}

pub fn limits(settings: &Settings) -> Limits {
    Limits {
        sends_max: settings.sends_max,
        window_max: usize::try_from(settings.window_max).unwrap(),
        unrecorded_max: settings.unrecorded_max,
        attempts_max: settings.retry.attempts_max,
        hold_max: settings.lane_hold_max,
        retention: settings.retention,
    }
}

pub fn app() -> ApplicationSpec {
    ApplicationSpec {
        name: "Customer".to_owned(),
        uid: Some("customer".to_owned()),
        throttle_rate: None,
        metadata: "{}".to_owned(),
    }
}

pub fn secret() -> LiveSecret {
    let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    LiveSecret { secret, expires_at: None }
}

pub fn endpoint(chance: &mut Seeded, number: u64) -> EndpointSpec {
    let kinds = [Ordering::Unordered, Ordering::Unordered, Ordering::Ordered, Ordering::Strict];
    EndpointSpec {
        throttle_rate: one_of(chance, &[None, None, Some(2), Some(50)]),
        ordering: one_of(chance, &kinds),
        contact_email: samples::full_endpoint().contact_email,
        auto_replay: one_of(chance, &[None, None, None, Some(false)]),
        ..samples::endpoint_to(&format!("https://h{number}.example/"))
    }
}

pub fn receiver(chance: &mut Seeded) -> Receiver {
    let character = one_of(chance, &CHARACTERS);
    let never = Duration::from_secs(1 << 30);
    let well_at = if chance.below(3) == 0 { never } else { seconds(chance, 600) };
    Receiver { character, well_at, said_gone: false }
}

pub fn post(chance: &mut Seeded, body: Bytes) -> Post {
    let mut random = [0; 12];
    random[..8].copy_from_slice(&chance.next_u64().to_le_bytes());
    let scope = [random[0]; 16].map(|byte| byte ^ u8::try_from(chance.below(256)).unwrap());
    let key = (chance.below(3) > 0).then_some(IngestKey { scope, body: [1; 16] });
    let spec = MessageSpec {
        event_type: "user.made".to_owned(),
        event_id: None,
        channels: Vec::new(),
        tags: Vec::new(),
        payload: body,
        content_type: ContentType::Json,
        retention_hours: None,
        deliver_at: None,
        trace: None,
    };
    Post { org: ORG, app: IdOrUid::Uid("customer".to_owned()), spec, only: None, key, random }
}
