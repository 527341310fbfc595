//! Settings as written: which keys there are, and text, number, flag or list under each.
//!
//! In: TOML text and variables. Out: one value per key, and where it was written. Unknown keys are
//! refused by name.
//! Never: judge a value beyond its kind.

use std::collections::BTreeMap;

use toml::{Table, Value as Toml};

use super::error::ConfigError;

/// Every setting and its default, as documented for people.
const DEFAULTS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../config.default.toml"));
/// What is said of a setting that nobody wrote.
const LEFT: &str = "left at its default,";
/// Beginning of the names of variables.
const PREFIX: &str = "PEYK_";
/// Which server the commands ask; no setting of one.
pub(crate) const SERVER: &str = "PEYK_SERVER";
/// By which right they ask.
pub(crate) const TOKEN: &str = "PEYK_TOKEN";

/// What stands under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text; durations too.
    Text,
    /// A whole number, 0 or more.
    Whole,
    /// `true` or `false`.
    Flag,
    /// A list of texts.
    List,
    /// A text or a list of texts; a text with commas is a list.
    Words,
}

/// Every key.
pub(crate) const KEYS: [(&str, Kind); 100] = [
    ("listen_address", Kind::Text),
    ("public_url", Kind::Text),
    ("data_dir", Kind::Text),
    ("database_url", Kind::Text),
    ("database_direct_url", Kind::Text),
    ("database_pooled", Kind::Flag),
    ("database_wait", Kind::Text),
    ("roles", Kind::List),
    ("node_listen_address", Kind::Text),
    ("node_address", Kind::Text),
    ("jwt_secret", Kind::Text),
    ("main_key", Kind::Text),
    ("allowed_targets", Kind::List),
    ("suspend_after", Kind::Text),
    ("suspend_warn_after", Kind::Text),
    ("suspend_probe_every", Kind::Text),
    ("log.format", Kind::Text),
    ("log.level", Kind::Text),
    ("limits.payload_bytes_max", Kind::Whole),
    ("limits.requests_per_s_per_token", Kind::Whole),
    ("limits.endpoints_per_app_max", Kind::Whole),
    ("limits.event_types_per_endpoint_max", Kind::Whole),
    ("limits.channels_per_endpoint_max", Kind::Whole),
    ("limits.channels_per_message_max", Kind::Whole),
    ("retry.strategy", Kind::Text),
    ("retry.base", Kind::Text),
    ("retry.cap", Kind::Text),
    ("retry.schedule", Kind::List),
    ("retry.attempts_max", Kind::Whole),
    ("retry.age_max", Kind::Text),
    ("retry.retry_on", Kind::Words),
    ("retry.retry_after", Kind::Text),
    ("retry.retry_after_max", Kind::Text),
    ("retry.lane_hold_max", Kind::Text),
    ("breaker.enabled", Kind::Flag),
    ("breaker.failures", Kind::Whole),
    ("breaker.open_for", Kind::Text),
    ("breaker.open_for_max", Kind::Text),
    ("attempt.deadline", Kind::Text),
    ("attempt.connect_timeout", Kind::Text),
    ("window.start", Kind::Whole),
    ("window.max", Kind::Whole),
    ("signing.headers", Kind::Text),
    ("signing.default", Kind::Text),
    ("endpoint.https_only", Kind::Flag),
    ("schema.validation", Kind::Text),
    ("proxy.url", Kind::Text),
    ("proxy.except", Kind::List),
    ("replay.rate_per_s", Kind::Whole),
    ("replay.automatic", Kind::Flag),
    ("telemetry.every", Kind::Text),
    ("telemetry.dogstatsd.address", Kind::Text),
    ("telemetry.dogstatsd.prefix", Kind::Text),
    ("telemetry.dogstatsd.tags", Kind::List),
    ("telemetry.otlp.url", Kind::Text),
    ("telemetry.traces.per_million", Kind::Whole),
    ("telemetry.traces.receivers", Kind::Text),
    ("telemetry.traces.url", Kind::Text),
    ("smtp.host", Kind::Text),
    ("smtp.port", Kind::Whole),
    ("smtp.username", Kind::Text),
    ("smtp.password", Kind::Text),
    ("smtp.tls", Kind::Text),
    ("smtp.from", Kind::Text),
    ("retention.payload", Kind::Text),
    ("retention.dead_letters", Kind::Text),
    ("retention.messages", Kind::Text),
    ("alerts.interval", Kind::Text),
    ("alerts.operator", Kind::Text),
    ("alerts.pagerduty_key", Kind::Text),
    ("alerts.pagerduty_url", Kind::Text),
    ("alerts.opsgenie_key", Kind::Text),
    ("alerts.opsgenie_url", Kind::Text),
    ("alerts.slack_url", Kind::Text),
    ("alerts.teams_url", Kind::Text),
    ("alerts.webhook_url", Kind::Text),
    ("alerts.webhook_secret", Kind::Text),
    ("alerts.email_to", Kind::List),
    ("alerts.dead_letters.severity", Kind::Text),
    ("alerts.dead_letters.above", Kind::Whole),
    ("alerts.dead_letters.window", Kind::Text),
    ("alerts.dead_letters.reasons", Kind::List),
    ("alerts.dead_letters.hold", Kind::Text),
    ("alerts.failure_ratio.severity", Kind::Text),
    ("alerts.failure_ratio.above", Kind::Whole),
    ("alerts.failure_ratio.window", Kind::Text),
    ("alerts.failure_ratio.count_min", Kind::Whole),
    ("alerts.failure_ratio.hold", Kind::Text),
    ("alerts.endpoint_failing.severity", Kind::Text),
    ("alerts.endpoint_failing.after", Kind::Text),
    ("alerts.endpoint_failing.hold", Kind::Text),
    ("alerts.oldest_due.severity", Kind::Text),
    ("alerts.oldest_due.after", Kind::Text),
    ("alerts.oldest_due.hold", Kind::Text),
    ("alerts.nothing_delivered.severity", Kind::Text),
    ("alerts.nothing_delivered.window", Kind::Text),
    ("alerts.nothing_delivered.count_min", Kind::Whole),
    ("alerts.nothing_delivered.hold", Kind::Text),
    ("alerts.sending_paused.severity", Kind::Text),
    ("alerts.sending_paused.hold", Kind::Text),
];

/// A value as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Whole(u64),
    /// A flag.
    Flag(bool),
    /// A list of texts.
    List(Vec<String>),
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// The value.
    pub(crate) value: Value,
    /// How to name the setting to whoever wrote it.
    pub(crate) name: String,
}

/// Settings as written, the later source over the earlier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raw(BTreeMap<&'static str, Written>);

impl Raw {
    /// The documented defaults.
    pub(crate) fn defaults() -> Result<Self, ConfigError> {
        let mut raw = Self::default();
        raw.overlay_file(DEFAULTS, "config.default.toml")?;
        // Nobody wrote these: a fault of one is that of another setting which does not go with it.
        for (key, written) in &mut raw.0 {
            written.name = format!("`{key}`, {LEFT}");
        }
        Ok(raw)
    }

    /// Whether a file or a variable set a key, be it to its default.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.get(key).is_some_and(|written| !written.name.ends_with(LEFT))
    }

    /// What stands under a key, if anything does.
    pub(crate) fn get(&self, key: &str) -> Option<&Written> {
        self.0.get(key)
    }

    /// Puts the keys of a TOML text over what is there.
    pub(crate) fn overlay_file(&mut self, text: &str, file: &str) -> Result<(), ConfigError> {
        let table = text.parse::<Table>().map_err(|fault| {
            let line = fault.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            ConfigError(format!("{file} line {line}: {}", fault.message().replace('\n', " ")))
        })?;
        self.overlay_table(table, "", file)
    }

    fn overlay_table(&mut self, table: Table, outer: &str, file: &str) -> Result<(), ConfigError> {
        for (name, value) in table {
            let path = if outer.is_empty() { name } else { format!("{outer}.{name}") };
            let known = KEYS.iter().find(|(key, _)| *key == path);
            let is_section = KEYS.iter().any(|(key, _)| {
                key.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('.'))
            });
            match (known, value) {
                (Some((key, kind)), value) => {
                    let name = format!("`{path}` in {file}");
                    let value = from_toml(*kind, value).ok_or_else(|| wrong_kind(&name, *kind))?;
                    self.0.insert(key, Written { value, name });
                }
                (None, Toml::Table(inner)) if is_section => {
                    self.overlay_table(inner, &path, file)?;
                }
                (None, _) if is_section => {
                    return Err(ConfigError(format!("`{path}` in {file} must be a section")));
                }
                (None, _) => return Err(unknown(&format!("`{path}` in {file}"))),
            }
        }
        Ok(())
    }

    /// Puts the variables that begin with `PEYK_` over what is there.
    pub(crate) fn overlay_environment(
        &mut self,
        variables: BTreeMap<String, String>,
    ) -> Result<(), ConfigError> {
        for (variable, text) in variables {
            let Some(name) = variable.strip_prefix(PREFIX) else { continue };
            if [SERVER, TOKEN].contains(&variable.as_str()) {
                continue;
            }
            let path = name.to_ascii_lowercase().replace("__", ".");
            let known = KEYS.iter().find(|(key, _)| *key == path && name == spelled(key));
            let Some((key, kind)) = known else { return Err(unknown(&variable)) };
            let value = from_text(*kind, &text).ok_or_else(|| wrong_kind(&variable, *kind))?;
            self.0.insert(key, Written { value, name: variable });
        }
        Ok(())
    }
}

/// The name of a key's variable, without the prefix.
fn spelled(key: &str) -> String {
    key.replace('.', "__").to_ascii_uppercase()
}

fn unknown(name: &str) -> ConfigError {
    ConfigError(format!("{name} is not a setting; config.default.toml lists all there are"))
}

fn wrong_kind(name: &str, kind: Kind) -> ConfigError {
    let wanted = match kind {
        Kind::Text => "a text",
        Kind::Whole => "a whole number, 0 or more",
        Kind::Flag => "true or false",
        Kind::List => "a list of texts",
        Kind::Words => "a text or a list of texts",
    };
    ConfigError(format!("{name} must be {wanted}"))
}

fn from_toml(kind: Kind, value: Toml) -> Option<Value> {
    match (kind, value) {
        (Kind::Text, Toml::String(text)) => Some(Value::Text(text)),
        (Kind::Words, Toml::String(text)) => Some(Value::List(split(&text))),
        (Kind::Whole, Toml::Integer(number)) => u64::try_from(number).ok().map(Value::Whole),
        (Kind::Flag, Toml::Boolean(flag)) => Some(Value::Flag(flag)),
        (Kind::List | Kind::Words, Toml::Array(entries)) => {
            let texts = entries.into_iter().map(|entry| match entry {
                Toml::String(text) => Some(text),
                Toml::Integer(number) => Some(number.to_string()),
                _ => None,
            });
            texts.collect::<Option<_>>().map(Value::List)
        }
        _ => None,
    }
}

fn from_text(kind: Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::Text => Some(Value::Text(text.to_owned())),
        Kind::Whole => text.trim().parse().ok().map(Value::Whole),
        Kind::Flag => text.trim().parse().ok().map(Value::Flag),
        Kind::List | Kind::Words => Some(Value::List(split(text))),
    }
}

fn split(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
