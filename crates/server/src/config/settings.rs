//! Settings that were checked: what `app` builds everything from.
//!
//! In: settings as written. Out: values of the types that the lower crates take.
//! Never: show a value in an error; the name and the rule are enough.

use std::path::PathBuf;
use std::time::Duration;

use domain::limits::{self, SUSPEND_PROBE_MAX, SUSPEND_PROBE_MIN};
use domain::policy::{BreakerOverrides, RetrySettings, Strategy};
use domain::proxy::Proxy;
use domain::target::Guard;
use engine::settings::{HeaderFamilies, Suspending};
use resilience::BreakerConfig;
use store::postgres::PostgresOptions;
use store::prune::Retention;
use tracing_subscriber::EnvFilter;
use url::Url;

use super::alerts::Alerts;
use super::bounds::Bounds;
use super::error::ConfigError;
use super::hidden::Hidden;
use super::nodes::{Nodes, has_port};
use super::proxy;
use super::raw::Raw;
use super::reader::{Reader, to_u32};
use super::smtp::Smtp;
use super::telemetry::Push;
use crate::schema_check::Validation;
use crate::spelling;

/// Payloads: the least and the most that may be set as the limit.
const PAYLOAD_BYTES: std::ops::RangeInclusive<u64> = 1_024..=3 << 20;
/// What a body may hold beside its payload.
const BESIDE_PAYLOAD_BYTES: usize = 64 << 10;
/// A text in JSON is at most so many times as long as what it says: `\u0000`.
const ESCAPED_TIMES: usize = 6;
const VALIDATIONS: [(&str, Validation); 3] =
    [("off", Validation::Off), ("warn", Validation::Warn), ("enforce", Validation::Enforce)];
/// How much is logged.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Pretty,
    /// For machines.
    Json,
}

/// The kind of secret made for a new endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SigningKind {
    /// HMAC-SHA256.
    Hmac,
    /// ed25519.
    Ed25519,
}

/// Where everything is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Database {
    /// In this file.
    Sqlite(PathBuf),
    /// On the server of this URL, which may hold a password.
    Postgres(Hidden),
}

/// All settings.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) listen_address: String,
    /// Where others reach the server, without a slash at the end.
    pub(crate) public_url: Option<String>,
    pub(crate) data_dir: PathBuf,
    pub(crate) database: Database,
    pub(crate) nodes: Nodes,
    pub(crate) jwt_secret: Option<Hidden>,
    pub(crate) main_key: Option<Hidden>,
    pub(crate) guard: Guard,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: String,
    pub(crate) payload_bytes_max: usize,
    /// A request body may be so large: the payload and what stands beside it.
    pub(crate) body_bytes_max: usize,
    /// The same where the payload may be a text in JSON.
    pub(crate) escaped_bytes_max: usize,
    pub(crate) retry: RetrySettings,
    pub(crate) lane_hold_max: Duration,
    pub(crate) breaker: BreakerConfig,
    pub(crate) suspending: Suspending,
    pub(crate) smtp: Option<Smtp>,
    pub(crate) push: Push,
    pub(crate) alerts: Alerts,
    pub(crate) attempt_deadline: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) window_start: u32,
    pub(crate) window_max: u32,
    pub(crate) signing_headers: HeaderFamilies,
    pub(crate) signing_default: SigningKind,
    pub(crate) https_only: bool,
    pub(crate) retention: Retention,
    pub(crate) replay_rate_per_s: u32,
    pub(crate) replay_automatic: bool,
    pub(crate) schema_validation: Validation,
    pub(crate) bounds: Bounds,
    /// Requests a second that one token may make; 0 for no bound.
    pub(crate) token_requests_per_s: u32,
}

impl Settings {
    /// Checks what was written.
    pub(crate) fn from_raw(raw: &Raw) -> Result<Self, ConfigError> {
        let read = Reader(raw);
        let payload_bytes_max = read.in_range("limits.payload_bytes_max", &PAYLOAD_BYTES)?;
        let payload_bytes_max = usize::try_from(payload_bytes_max).unwrap_or(usize::MAX);
        let data_dir = PathBuf::from(read.text("data_dir")?);
        let window_max = to_u32(read.in_range("window.max", &(1..=512))?);
        let (attempt_deadline, connect_timeout) = read.attempt()?;
        let (smtp, https_only) = (Smtp::read(&read)?, read.flag("endpoint.https_only")?);
        Ok(Self {
            listen_address: read.listen_address()?,
            public_url: read.public_url()?,
            database: read.database(&data_dir)?,
            nodes: Nodes::read(&read)?,
            data_dir,
            jwt_secret: read.hidden("jwt_secret")?,
            main_key: read.hidden("main_key")?,
            guard: read.guard()?,
            proxy: proxy::read(&read)?,
            log_format: read.choice(
                "log.format",
                &[("pretty", LogFormat::Pretty), ("json", LogFormat::Json)],
            )?,
            log_level: read.log_level()?,
            payload_bytes_max,
            body_bytes_max: payload_bytes_max + BESIDE_PAYLOAD_BYTES,
            escaped_bytes_max: payload_bytes_max * ESCAPED_TIMES + BESIDE_PAYLOAD_BYTES,
            retry: read.retry()?,
            lane_hold_max: read.span("retry.lane_hold_max")?,
            breaker: read.breaker()?,
            suspending: read.suspending()?,
            push: Push::read(&read)?,
            alerts: Alerts::read(&read, https_only, smtp.is_some())?,
            smtp,
            attempt_deadline,
            connect_timeout,
            window_start: to_u32(read.in_range("window.start", &(1..=u64::from(window_max)))?),
            window_max,
            signing_headers: read.choice(
                "signing.headers",
                &[
                    ("both", HeaderFamilies::Both),
                    ("webhook", HeaderFamilies::Webhook),
                    ("svix", HeaderFamilies::Svix),
                ],
            )?,
            signing_default: read.choice(
                "signing.default",
                &[("hmac256", SigningKind::Hmac), ("ed25519", SigningKind::Ed25519)],
            )?,
            https_only,
            bounds: Bounds::read(|key, most| read.count(key, most))?,
            schema_validation: read.choice("schema.validation", &VALIDATIONS)?,
            retention: read.retention()?,
            token_requests_per_s: to_u32(
                read.in_range("limits.requests_per_s_per_token", &(0..=1_000_000))?,
            ),
            replay_rate_per_s: to_u32(
                read.in_range("replay.rate_per_s", &(1..=u64::from(limits::REPLAY_RATE_MAX)))?,
            ),
            replay_automatic: read.flag("replay.automatic")?,
        })
    }
}

impl Reader<'_> {
    fn listen_address(&self) -> Result<String, ConfigError> {
        let text = self.text("listen_address")?;
        match has_port(text) {
            true => Ok(text.to_owned()),
            false => Err(self.fault("listen_address", "must be host:port, like 127.0.0.1:8071")),
        }
    }

    fn public_url(&self) -> Result<Option<String>, ConfigError> {
        let Some(text) = self.optional("public_url") else { return Ok(None) };
        let is_plain = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        };
        match Url::parse(text).ok().filter(is_plain) {
            Some(url) => Ok(Some(url.as_str().trim_end_matches('/').to_owned())),
            None => {
                let rule = "must be a URL that begins with http:// or https://, without user, \
                            query and fragment, like https://peyk.example";
                Err(self.fault("public_url", rule))
            }
        }
    }

    fn database(&self, data_dir: &std::path::Path) -> Result<Database, ConfigError> {
        let Some(url) = self.optional("database_url") else {
            return Ok(Database::Sqlite(data_dir.join("peyk.db")));
        };
        match url.split_once("://") {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Database::Sqlite(path.into())),
            Some(("postgres" | "postgresql", _)) => match PostgresOptions::check_url(url) {
                Ok(()) => Ok(Database::Postgres(Hidden(url.to_owned()))),
                Err(_) => Err(self.fault("database_url", "is not a URL of a PostgreSQL database")),
            },
            _ => {
                let rule = "must be sqlite://<path> or postgres://<user>@<host>/<database>";
                Err(self.fault("database_url", rule))
            }
        }
    }

    fn guard(&self) -> Result<Guard, ConfigError> {
        let rules = self.list("allowed_targets").iter().map(|text| Guard::parse_rule(text));
        match rules.collect::<Result<_, _>>() {
            Ok(rules) => Ok(Guard::new(rules)),
            Err(fault) => Err(self.fault("allowed_targets", &format!("is wrong: {}", fault.rule))),
        }
    }

    fn log_level(&self) -> Result<String, ConfigError> {
        let text = self.text("log.level")?;
        // A bare word that is no level would be taken for the name of a module.
        let is_level = |word: &str| LEVELS.contains(&word.trim());
        let is_directive = |part: &str| match part.split_once('=') {
            Some((target, level)) => !target.trim().is_empty() && is_level(level),
            None => is_level(part),
        };
        if text.split(',').all(is_directive) && EnvFilter::builder().parse(text).is_ok() {
            return Ok(text.to_owned());
        }
        let rule = spelling::one_of(&LEVELS);
        Err(self.fault("log.level", &format!("{rule}, or directives like info,engine=debug")))
    }

    fn attempt(&self) -> Result<(Duration, Duration), ConfigError> {
        let (deadline, connect) =
            (self.span("attempt.deadline")?, self.span("attempt.connect_timeout")?);
        if !(limits::ATTEMPT_TIMEOUT_MIN..=limits::ATTEMPT_TIMEOUT_MAX).contains(&deadline) {
            let rule = format!(
                "must be from {} to {}",
                spelling::duration_text(limits::ATTEMPT_TIMEOUT_MIN),
                spelling::duration_text(limits::ATTEMPT_TIMEOUT_MAX)
            );
            return Err(self.fault("attempt.deadline", &rule));
        }
        if connect.is_zero() || connect > deadline {
            let rule = "must be above zero and not above attempt.deadline";
            return Err(self.fault("attempt.connect_timeout", rule));
        }
        Ok((deadline, connect))
    }

    fn retry(&self) -> Result<RetrySettings, ConfigError> {
        let said = |key: &'static str| move |rule: String| self.fault(key, &rule);
        let retry = RetrySettings {
            strategy: spelling::strategy(self.text("retry.strategy")?)
                .map_err(said("retry.strategy"))?,
            base: self.span("retry.base")?,
            cap: self.span("retry.cap")?,
            schedule: spelling::schedule(self.list("retry.schedule"))
                .map_err(said("retry.schedule"))?,
            attempts_max: to_u32(self.in_range("retry.attempts_max", &(1..=1_000))?),
            age_max: self.span("retry.age_max")?,
            retry_on: spelling::retry_on(self.list("retry.retry_on"))
                .map_err(said("retry.retry_on"))?,
            retry_after: spelling::retry_after_mode(self.text("retry.retry_after")?)
                .map_err(said("retry.retry_after"))?,
            retry_after_max: self.span("retry.retry_after_max")?,
        };
        retry.policy().validate().map_err(|fault| self.policy_fault("retry", fault))?;
        let is_bare = retry.strategy == Strategy::Schedule && retry.schedule.is_empty();
        if is_bare && !self.0.is_set("retry.schedule") {
            let rule = "must not be left out with that strategy; an empty one is one send";
            return Err(self.fault("retry.schedule", rule));
        }
        Ok(retry)
    }

    fn breaker(&self) -> Result<BreakerConfig, ConfigError> {
        let own = BreakerOverrides {
            failures: Some(to_u32(self.in_range("breaker.failures", &(1..=1_000))?)),
            ..BreakerOverrides::default()
        };
        let breaker = BreakerConfig {
            enabled: self.flag("breaker.enabled")?,
            open_for: self.span("breaker.open_for")?,
            open_for_max: self.span("breaker.open_for_max")?,
            ..own.over(&BreakerConfig::default())
        };
        breaker.validate().map_err(|fault| self.policy_fault("breaker", fault))?;
        Ok(breaker)
    }

    fn suspending(&self) -> Result<Suspending, ConfigError> {
        let some = |span: Duration| (!span.is_zero()).then_some(span);
        let after = some(self.span("suspend_after")?);
        let warn_after = match self.optional("suspend_warn_after") {
            Some(_) => some(self.span("suspend_warn_after")?),
            None => after.map(|after| after / 2),
        };
        if let (Some(after), Some(warn_after)) = (after, warn_after)
            && warn_after >= after
        {
            let rule = "must be below suspend_after, or 0s for no warning";
            return Err(self.fault("suspend_warn_after", rule));
        }
        let probe_every = self.span("suspend_probe_every")?;
        if !(SUSPEND_PROBE_MIN..=SUSPEND_PROBE_MAX).contains(&probe_every) {
            let (least, most) = (
                spelling::duration_text(SUSPEND_PROBE_MIN),
                spelling::duration_text(SUSPEND_PROBE_MAX),
            );
            return Err(
                self.fault("suspend_probe_every", &format!("must be from {least} to {most}"))
            );
        }
        Ok(Suspending { after, warn_after, probe_every })
    }

    fn retention(&self) -> Result<Retention, ConfigError> {
        let keep = Retention {
            payload: self.kept("retention.payload")?,
            dead_letters: self.kept("retention.dead_letters")?,
            messages: self.kept("retention.messages")?,
        };
        if keep.messages < keep.payload {
            let rule = "must not be shorter than retention.payload";
            return Err(self.fault("retention.messages", rule));
        }
        Ok(keep)
    }

    fn kept(&self, key: &str) -> Result<Duration, ConfigError> {
        let span = self.span(key)?;
        if span < limits::RETENTION_MIN {
            let least = spelling::duration_text(limits::RETENTION_MIN);
            return Err(self.fault(key, &format!("must be at least {least}")));
        }
        Ok(span)
    }

    fn policy_fault(&self, section: &str, fault: resilience::ConfigError) -> ConfigError {
        let field = policy_field(fault.option);
        self.fault(&format!("{section}.{field}"), &fault.rule.replace("calls_max", "attempts_max"))
    }
}

/// The name in settings of a field of a retry policy.
pub(crate) fn policy_field(field: &str) -> &str {
    match field {
        "calls_max" => "attempts_max",
        "backoff.delays" => "schedule",
        other => other.strip_prefix("backoff.").unwrap_or(other),
    }
}
