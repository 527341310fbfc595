//! Where metrics are sent, beside being there to be scraped, and where traces are.
//!
//! In: settings as written. Out: addresses and names, or nothing where none is given.
//! Never: reach anybody; whether somebody listens there is not known before the first push.

use std::time::Duration;

use domain::trace::SHARE_OF;
use engine::trace::ToReceivers;
use http::Uri;
use url::Url;

use super::error::ConfigError;
use super::reader::{Reader, to_u32};

/// How often is sent, at least and at most.
const EVERY: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(3_600);
/// Characters of the prefix of names.
const PREFIX_CHARS_MAX: usize = 64;
/// Tags that are added, and characters of one.
const TAGS_MAX: usize = 20;
const TAG_CHARS_MAX: usize = 200;

/// How names and tags are made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naming {
    /// Stands before each name.
    pub(crate) prefix: String,
    /// `key:value`, added to each metric.
    pub(crate) tags: Vec<String>,
}

/// An agent that takes datagrams.
#[derive(Clone, Debug)]
pub(crate) struct DogStatsD {
    /// Host and port.
    pub(crate) address: String,
    pub(crate) naming: Naming,
}

/// Who is sent metrics, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    pub(crate) every: Duration,
    pub(crate) dogstatsd: Option<DogStatsD>,
    /// Where requests of the OpenTelemetry protocol go.
    pub(crate) otlp: Option<Uri>,
    pub(crate) traces: Traces,
}

/// What is made of traces.
#[derive(Clone, Debug)]
pub(crate) struct Traces {
    /// Where spans go.
    pub(crate) otlp: Option<Uri>,
    /// Of those that begin here so many in a million.
    pub(crate) share: u32,
    /// What receivers are told.
    pub(crate) to_receivers: ToReceivers,
}

impl Push {
    /// Reads it.
    pub(super) fn read(read: &Reader<'_>) -> Result<Self, ConfigError> {
        let every = read.span("telemetry.every")?;
        if !EVERY.contains(&every) {
            return Err(read.fault("telemetry.every", "must be from 1s to 1h"));
        }
        let naming = naming(read)?;
        let dogstatsd = match read.optional("telemetry.dogstatsd.address") {
            None => None,
            Some(address) if is_address(address) => {
                Some(DogStatsD { address: address.to_owned(), naming })
            }
            Some(_) => {
                let rule = "must be a host and a port, like 127.0.0.1:8125";
                return Err(read.fault("telemetry.dogstatsd.address", rule));
            }
        };
        let otlp = collector(read, "telemetry.otlp.url", "/v1/metrics")?;
        Ok(Self { every, dogstatsd, otlp, traces: Traces::read(read)? })
    }
}

impl Traces {
    fn read(read: &Reader<'_>) -> Result<Self, ConfigError> {
        let share = read.in_range("telemetry.traces.per_million", &(0..=u64::from(SHARE_OF)))?;
        Ok(Self {
            otlp: collector(read, "telemetry.traces.url", "/v1/traces")?,
            share: to_u32(share),
            to_receivers: read.choice(
                "telemetry.traces.receivers",
                &[
                    ("traceparent", ToReceivers::Parent),
                    ("both", ToReceivers::Both),
                    ("none", ToReceivers::Nothing),
                ],
            )?,
        })
    }
}

/// Where a collector takes this signal.
fn collector(read: &Reader<'_>, key: &str, path: &str) -> Result<Option<Uri>, ConfigError> {
    let Some(text) = read.optional(key) else { return Ok(None) };
    let rule = "must be a URL that begins with http://, without user, query and fragment, like \
                http://127.0.0.1:4318";
    below(text, path).map(Some).ok_or_else(|| read.fault(key, rule))
}

fn naming(read: &Reader<'_>) -> Result<Naming, ConfigError> {
    let prefix = read.optional("telemetry.dogstatsd.prefix").unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
    if prefix.len() > PREFIX_CHARS_MAX || !prefix.chars().all(is_plain) {
        let rule = format!("must be at most {PREFIX_CHARS_MAX} letters, digits, `_` and `.`");
        return Err(read.fault("telemetry.dogstatsd.prefix", &rule));
    }
    let tags = read.list("telemetry.dogstatsd.tags");
    let is_tag = |tag: &String| {
        let letters = tag.chars().count();
        (1..=TAG_CHARS_MAX).contains(&letters) && !tag.contains(['|', '#', ',', '\n'])
    };
    if tags.len() > TAGS_MAX || !tags.iter().all(is_tag) {
        let rule = format!(
            "must have at most {TAGS_MAX} entries of 1 to {TAG_CHARS_MAX} characters, none of them `|`, `#` or `,`"
        );
        return Err(read.fault("telemetry.dogstatsd.tags", &rule));
    }
    Ok(Naming { prefix: prefix.to_owned(), tags: tags.to_vec() })
}

/// Whether a text is a host and a port.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    url::Host::parse(host).is_ok() && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// A path below the base that was given.
fn below(text: &str, signal: &str) -> Option<Uri> {
    let base = Url::parse(text).ok()?;
    let is_plain = base.scheme() == "http"
        && base.username().is_empty()
        && base.password().is_none()
        && base.query().is_none()
        && base.fragment().is_none();
    let path = base.path().trim_end_matches('/');
    let host = base.host_str().filter(|_| is_plain)?;
    let port = base.port_or_known_default()?;
    format!("http://{host}:{port}{path}{signal}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_go_below_the_base() {
        for (text, expected) in [
            ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318/v1/metrics")),
            ("http://collector/otlp/", Some("http://collector:80/otlp/v1/metrics")),
            ("http://[::1]:4318", Some("http://[::1]:4318/v1/metrics")),
            ("https://collector:4318", None),
            ("http://me:secret@collector", None),
            ("http://collector?x=1", None),
            ("collector:4318", None),
        ] {
            let found = below(text, "/v1/metrics").map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        for (text, good) in [
            ("127.0.0.1:8125", true),
            ("[::1]:8125", true),
            ("agent:8125", true),
            ("agent", false),
            ("agent:0", false),
            ("agent:x", false),
            ("", false),
        ] {
            assert_eq!(is_address(text), good, "{text}");
        }
    }
}
