//! Every bound of the system, with its unit last in the name, and what must hold between them.
//!
//! A bound that is a default of a setting says so; the others cannot be changed.
//! Never: a bound elsewhere, or one without a reason to be reached.

use std::time::Duration;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const HOUR_SECS: u64 = 3_600;

// What a caller sends.

/// Request body, default.
pub const BODY_BYTES_MAX: usize = MIB;
/// Request bodies being read or waiting for their commit, in all; beyond it 503.
pub const REQUESTS_WAITING_BYTES_MAX: usize = 256 * MIB;
/// A request waits so long for its commit; beyond it 503.
pub const REQUEST_WAIT_MAX: Duration = Duration::from_secs(2);
/// `Retry-After` of that 503.
pub const OVERLOADED_RETRY_SECS: u64 = 1;
/// Levels of objects and lists in a payload. Readers of JSON stop at 127 (serde_json) or later, and
/// an answer puts some around it.
pub const PAYLOAD_LEVELS_MAX: usize = 120;
/// Digits in a row in a number of a payload. Python reads 4,300.
pub const PAYLOAD_DIGITS_MAX: usize = 4_000;
/// Caller's own ids: uids and event ids.
pub const UID_CHARS_MAX: usize = 256;
/// Names of event types.
pub const EVENT_TYPE_CHARS_MAX: usize = 256;
/// Names of channels.
pub const CHANNEL_CHARS_MAX: usize = 256;
/// Names of applications.
pub const NAME_CHARS_MAX: usize = 4_096;
/// Descriptions of endpoints and event types.
pub const DESCRIPTION_BYTES_MAX: usize = 64 * KIB;
/// A suspended endpoint is probed so often at most.
pub const SUSPEND_PROBE_MIN: Duration = Duration::from_secs(1);
/// And so rarely at most.
pub const SUSPEND_PROBE_MAX: Duration = Duration::from_secs(24 * HOUR_SECS);
/// An e-mail that could not be sent for so long is given up.
pub const MAIL_AGE_MAX: Duration = Duration::from_secs(3 * 24 * HOUR_SECS);
/// Deliveries that wait for an endpoint are counted up to here.
pub const WAITING_COUNTED_MAX: u64 = 100_000;
/// E-mail addresses (RFC 5321, section 4.5.3.1.3, less the brackets).
pub const EMAIL_BYTES_MAX: usize = 254;
/// Metadata as JSON text.
pub const METADATA_BYTES_MAX: usize = 4_096;
/// The `idempotency-key` of a post.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;
/// An idempotency key is remembered so long.
pub const IDEMPOTENCY_WINDOW: Duration = Duration::from_secs(12 * HOUR_SECS);
/// Rows of a page unless asked otherwise.
pub const PAGE_ROWS: usize = 50;
/// Rows of a page at most.
pub const PAGE_ROWS_MAX: usize = 250;
/// Payloads that fill a page, whose last row may reach beyond it.
pub const PAGE_PAYLOAD_BYTES_MAX: usize = 8 * MIB;

// Endpoints and messages.

/// URL of an endpoint, as given and as normalised; at least 8,000 by RFC 9110 section 4.1.
pub const URL_BYTES_MAX: usize = 8_192;
/// Tokens of applications that the API makes are good so long at most.
pub const APP_TOKEN_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// And so long at least.
pub const APP_TOKEN_MIN: Duration = Duration::from_secs(3_600);
/// Dead letters that may be named in one bulk replay.
pub const REPLAY_IDS_MAX: usize = 1_000;
/// Deliveries a second of a background task, at most.
pub const REPLAY_RATE_MAX: u32 = 10_000;
/// What failed can be recovered from so long ago.
pub const RECOVER_SPAN_MAX: Duration = Duration::from_secs(14 * 24 * 3_600);
/// And so much longer, for clocks that differ.
pub const RECOVER_SLACK: Duration = Duration::from_secs(5 * 60);
/// Ended background tasks are kept so long, in days.
pub const TASK_DAYS: u8 = 90;
/// Endpoints of one application.
pub const ENDPOINTS_PER_APP_MAX: usize = 10_000;
/// Channels an endpoint listens on.
pub const CHANNELS_PER_ENDPOINT_MAX: usize = 10;
/// Channels of a message.
pub const CHANNELS_PER_MESSAGE_MAX: usize = 5;
/// Tags of a message.
pub const TAGS_PER_MESSAGE_MAX: usize = 5;
/// A tag of a message.
pub const TAG_CHARS_MAX: usize = 256;
/// A message may name a time of delivery so far ahead.
pub const DELIVER_AT_MAX: Duration = Duration::from_secs(24 * HOUR_SECS);
/// A named time may be past by so much; then the message is sent at once.
pub const DELIVER_AT_LATE_MAX: Duration = Duration::from_secs(60);
/// Event types an endpoint filters on.
pub const EVENT_TYPES_PER_ENDPOINT_MAX: usize = 1_000;
/// Custom headers of an endpoint.
pub const HEADERS_MAX: usize = 100;
/// Name of a custom header.
pub const HEADER_NAME_BYTES_MAX: usize = 256;
/// Value of a custom header.
pub const HEADER_VALUE_BYTES_MAX: usize = 4_096;
/// Replaced secrets that still sign beside the newest one.
pub const SECRETS_ALIVE_MAX: usize = 10;
/// A replaced secret signs on for so long, default.
pub const SECRET_GRACE_SECS: u64 = 24 * HOUR_SECS;
/// A replaced secret signs on for so long at most.
pub const SECRET_GRACE_SECS_MAX: u64 = 7 * 24 * HOUR_SECS;
/// A payload is kept for so long at least, if the message names it.
pub const RETENTION_DAYS_MIN: u8 = 5;
/// A payload is kept for so long, default.
pub const RETENTION_DAYS: u8 = 90;
/// A payload is kept for so long at most, if the message names it.
pub const RETENTION_DAYS_MAX: u8 = 90;
/// The same in hours, if the message names them.
pub const RETENTION_HOURS_MIN: u16 = 1;
/// The same in hours, if the message names them.
pub const RETENTION_HOURS_MAX: u16 = RETENTION_DAYS_MAX as u16 * 24;
/// A window of statistics.
pub const STATS_WINDOW_MAX: Duration = Duration::from_secs(28 * 24 * HOUR_SECS);
/// Clocks of callers may differ by so much when they name such a window.
pub const STATS_SLACK: Duration = Duration::from_secs(5 * 60);
/// A dead letter is kept for so long after its death.
pub const DEAD_LETTER_DAYS: u8 = 30;
/// A message with nothing pending or dead is kept for so long, default.
pub const MESSAGE_DAYS: u8 = 90;
/// Figures are kept by the minute so many days.
pub const FIGURES_MINUTE_DAYS: u16 = 90;
/// Figures are kept by the hour so many days.
pub const FIGURES_HOUR_DAYS: u16 = 730;
/// Steps that one read of figures answers with, at most.
pub const FIGURES_STEPS_MAX: u64 = 1_500;
/// Nothing is kept for less, whatever is set: idempotency keys stand in messages.
pub const RETENTION_MIN: Duration = Duration::from_secs(24 * HOUR_SECS);

// Alerts.

/// Rules beside those of the settings.
pub const ALERT_RULES_MAX: usize = 100;
/// Routes beside those of the settings.
pub const ALERT_ROUTES_MAX: usize = 50;
/// Silences that are not over.
pub const ALERT_SILENCES_MAX: usize = 200;
/// The name of a rule or a route.
pub const ALERT_NAME_CHARS_MAX: usize = 64;
/// The title of a rule, as it is written.
pub const ALERT_TITLE_CHARS_MAX: usize = 200;
/// The shortest window of a rule: counters are kept by the minute.
pub const ALERT_WINDOW_MIN: Duration = Duration::from_secs(60);
/// The longest window of a rule.
pub const ALERT_WINDOW_MAX: Duration = Duration::from_secs(24 * HOUR_SECS);
/// The shortest time after which a rule about one delivery or endpoint fires.
pub const ALERT_AFTER_MIN: Duration = Duration::from_secs(1);
/// The longest time that a rule waits: before it fires, before it is resolved.
pub const ALERT_WAIT_MAX: Duration = Duration::from_secs(24 * HOUR_SECS);
/// The largest number that something is compared with.
pub const ALERT_COUNT_MAX: u64 = 1_000_000_000;
/// The longest silence.
pub const ALERT_SILENCE_MAX: Duration = Duration::from_secs(90 * 24 * HOUR_SECS);
/// Failing endpoints that one evaluation looks at, those that fail for longest.
pub const ALERT_FAILING_MAX: usize = 1_000;
/// Failing endpoints that a notification names.
pub const ALERT_SUBJECTS_MAX: usize = 10;
/// Notifications of endpoints that joined an incident are so far apart.
pub const ALERT_UPDATE_EVERY: Duration = Duration::from_secs(5 * 60);
/// An incident that begins so soon after the last one of its rule is flapping.
pub const ALERT_HOLD_DOWN: Duration = Duration::from_secs(15 * 60);
/// Each flap doubles the time before the next resolution, so often at most.
pub const ALERT_FLAPS_MAX: u32 = 4;
/// Resolved incidents are kept so long.
pub const ALERT_INCIDENT_DAYS: u8 = 90;
/// Addresses of one route.
pub const ALERT_ADDRESSES_MAX: usize = 10;

// Sending.

/// Sends under way at once, in all.
pub const SENDS_IN_FLIGHT_MAX: usize = 2_048;
/// Payload bytes of the sends under way.
pub const SENDS_IN_FLIGHT_BYTES_MAX: usize = 256 * MIB;
/// Sends under way to one endpoint, at first.
pub const WINDOW_START: usize = 4;
/// Sends under way to one endpoint, at most.
pub const WINDOW_MAX: usize = 64;
/// Ids in memory of one lane.
pub const LANE_IDS_MAX: usize = 1_024;
/// Ids in memory of all lanes.
pub const IDS_MAX: usize = 262_144;
/// Results of one lane waiting for their commit.
pub const LANE_UNRECORDED_MAX: usize = 256;
/// Results of all lanes waiting for their commit; at the bound nothing more is sent.
pub const UNRECORDED_MAX: usize = 1_024;
/// Payloads kept in memory between the commit and the send.
pub const PAYLOAD_CACHE_BYTES_MAX: usize = 64 * MIB;
/// Bytes of an answer's body that are read.
pub const RESPONSE_BYTES_READ_MAX: usize = 64 * KIB;
/// Bytes of an answer's body that are kept.
pub const RESPONSE_BYTES_KEPT_MAX: usize = 16 * KIB;
/// Connecting, default.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// One attempt from DNS to the last body byte, least that may be set.
pub const ATTEMPT_TIMEOUT_MIN: Duration = Duration::from_secs(5);
/// One attempt from DNS to the last body byte, default.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// One attempt from DNS to the last body byte, most that may be set.
pub const ATTEMPT_TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// How long a DNS answer is used at least.
pub const DNS_TTL_MIN: Duration = Duration::from_secs(1);
/// How long a DNS answer is used at most.
pub const DNS_TTL_MAX: Duration = Duration::from_secs(60);

// Waiting.

/// A `Retry-After` is cut to this, default.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * HOUR_SECS);
/// A lane is held so long by a hint, default.
pub const LANE_HOLD_MAX: Duration = Duration::from_secs(15 * 60);
/// A lane is held so long by a 429 without a hint.
pub const THROTTLED_HOLD_MAX: Duration = Duration::from_secs(60);
/// So many refusals of different messages in a row hold the lane.
pub const REJECTED_RUN_MAX: u32 = 20;
/// A last try at the age limit may be late by so much and is still made.
pub const AGE_GRACE: Duration = Duration::from_secs(60);
/// No timer sleeps longer without reading the clock again.
pub const TIMER_SLEEP_MAX: Duration = Duration::from_secs(1);
/// Pause of the whole dispatcher after the first fault of our own.
pub const INTERNAL_PAUSE_MIN: Duration = Duration::from_millis(100);
/// Pause of the whole dispatcher after many faults of our own.
pub const INTERNAL_PAUSE_MAX: Duration = Duration::from_secs(5);
/// Crashes of the process with one delivery alone in flight before it counts as poisonous.
pub const CRASHES_ALONE_MAX: u32 = 3;

// Many nodes.

/// Partitions that endpoints fall into; fixed for an installation.
pub const PARTITIONS: usize = 256;
/// Nodes that share a database: each draws keys of a slot of its own.
pub const NODES_MAX: usize = 256;
/// A node says so often that it lives.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);
/// A node that was silent for longer, by the clock of the database, may be declared dead.
pub const LEASE: Duration = Duration::from_secs(6);
/// By its own clock a node begins no send so long after it last began to say that it lives.
pub const LEASE_START_MAX: Duration = Duration::from_secs(4);
/// And breaks off those in flight after so long.
pub const LEASE_FLIGHT_MAX: Duration = Duration::from_millis(5_500);
/// Sends of an endpoint that moves to another node may take so long to end.
pub const HAND_OVER_MAX: Duration = Duration::from_secs(2);

// Writing.

/// Rows of one transaction.
pub const BATCH_ROWS_MAX: usize = 2_000;
/// Bytes of one transaction.
pub const BATCH_BYTES_MAX: usize = 4 * MIB;
/// Writing time of one transaction.
pub const BATCH_TIME_MAX: Duration = Duration::from_millis(5);
/// Rows of one operation; what is larger goes in pieces.
pub const OPERATION_ROWS_MAX: usize = 500;
/// Part of a batch's writing time that a piece of counting may take.
pub const COUNT_TIME_MAX: Duration = Duration::from_millis(2);
/// The same for a piece of pruning, which can wait.
pub const PRUNE_TIME_MAX: Duration = Duration::from_micros(500);
/// Rows of a piece of pruning.
pub const PRUNE_ROWS_MAX: usize = 64;

const fn shorter(a: Duration, b: Duration) -> bool {
    a.as_millis() < b.as_millis()
}

const _: () = {
    assert!(PAGE_ROWS > 0 && PAGE_ROWS <= PAGE_ROWS_MAX);
    assert!(URL_BYTES_MAX >= 8_000 && URL_BYTES_MAX < u16::MAX as usize);
    assert!(RETENTION_DAYS_MIN <= RETENTION_DAYS && RETENTION_DAYS <= RETENTION_DAYS_MAX);
    assert!(RETENTION_DAYS <= MESSAGE_DAYS && shorter(IDEMPOTENCY_WINDOW, RETENTION_MIN));
    assert!(SECRET_GRACE_SECS <= SECRET_GRACE_SECS_MAX);
    assert!(CHANNELS_PER_MESSAGE_MAX <= CHANNELS_PER_ENDPOINT_MAX);
    // A body with the longest of everything else that it may carry still fits.
    assert!(METADATA_BYTES_MAX + HEADERS_MAX * HEADER_VALUE_BYTES_MAX < BODY_BYTES_MAX);
};

const _: () = {
    assert!(BODY_BYTES_MAX <= BATCH_BYTES_MAX && BODY_BYTES_MAX <= PAYLOAD_CACHE_BYTES_MAX);
    assert!(BODY_BYTES_MAX * 16 <= SENDS_IN_FLIGHT_BYTES_MAX);
    assert!(RESPONSE_BYTES_KEPT_MAX <= RESPONSE_BYTES_READ_MAX);
    assert!(WINDOW_START > 0 && WINDOW_START <= WINDOW_MAX);
    assert!(WINDOW_MAX * 4 <= SENDS_IN_FLIGHT_MAX);
    assert!(WINDOW_MAX <= LANE_IDS_MAX && LANE_IDS_MAX <= IDS_MAX);
    assert!(SENDS_IN_FLIGHT_MAX <= IDS_MAX);
    assert!(LANE_UNRECORDED_MAX <= UNRECORDED_MAX && UNRECORDED_MAX <= BATCH_ROWS_MAX);
    assert!(OPERATION_ROWS_MAX <= BATCH_ROWS_MAX && PAGE_ROWS_MAX <= OPERATION_ROWS_MAX);
    assert!(shorter(COUNT_TIME_MAX, BATCH_TIME_MAX));
    assert!(shorter(PRUNE_TIME_MAX, COUNT_TIME_MAX));
    assert!(shorter(CONNECT_TIMEOUT, ATTEMPT_TIMEOUT));
    assert!(shorter(ATTEMPT_TIMEOUT_MIN, ATTEMPT_TIMEOUT));
    assert!(shorter(ATTEMPT_TIMEOUT, ATTEMPT_TIMEOUT_MAX));
    // The last try outlives its own age limit by no more than one long attempt and the grace.
    assert!(shorter(ATTEMPT_TIMEOUT_MAX, AGE_GRACE));
    assert!(shorter(DNS_TTL_MIN, DNS_TTL_MAX));
    assert!(shorter(INTERNAL_PAUSE_MIN, INTERNAL_PAUSE_MAX));
    assert!(shorter(THROTTLED_HOLD_MAX, LANE_HOLD_MAX) && shorter(LANE_HOLD_MAX, RETRY_AFTER_MAX));
};
