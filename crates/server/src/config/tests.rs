//! Tables of settings: what is read, what is refused and how it is said.
//!
//! Never: touch the process's own environment.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use domain::policy::{RetryOn, RetrySettings, Strategy};
use domain::target::Host;
use resilience::BreakerConfig;

use super::settings::{LogFormat, SigningKind};
use super::*;

#[derive(Default)]
struct Fake {
    file: Option<String>,
    variables: BTreeMap<String, String>,
}

impl Source for Fake {
    fn variables(&self) -> BTreeMap<String, String> {
        self.variables.clone()
    }

    fn file(&self, _: &Path) -> io::Result<String> {
        self.file.clone().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn from_file(text: &str) -> Result<Settings, ConfigError> {
    load(&Fake { file: Some(text.to_owned()), ..Fake::default() }, None)
}

fn from_variables(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    let variables = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    load(&Fake { file: None, variables: variables.collect() }, None)
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    let settings = from_variables(&[]).unwrap();
    assert_eq!(settings.retry, RetrySettings::default());
    assert_eq!(settings.breaker, BreakerConfig::default());
    let engine = engine::Settings::default();
    assert_eq!(settings.attempt_deadline, engine.attempt_deadline);
    assert_eq!(settings.connect_timeout, engine.connect_timeout);
    assert_eq!((settings.window_start, settings.window_max), (4, 64));
    assert_eq!(settings.lane_hold_max, engine.lane_hold_max);
    assert_eq!(settings.retention, engine.retention);
    assert_eq!(settings.suspending, engine.suspending);
    assert!(settings.smtp.is_none(), "no mail server, no mail");
    assert_eq!(settings.payload_bytes_max, domain::limits::BODY_BYTES_MAX);
    assert_eq!(settings.listen_address, "127.0.0.1:8071");
    assert_eq!(settings.database, Database::Sqlite("./peyk-data/peyk.db".into()));
    assert_eq!(settings.signing_default, SigningKind::Hmac);
    assert_eq!(settings.log_format, LogFormat::Pretty);
    assert!(settings.jwt_secret.is_none() && settings.main_key.is_none());
}

#[test]
fn every_key_is_documented() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../config.default.toml"));
    for (key, _) in raw::KEYS {
        let last = key.rsplit('.').next().unwrap();
        let documented =
            |line: &str| line.trim_start_matches("# ").starts_with(&format!("{last} ="));
        assert!(text.lines().any(documented), "{key}");
    }
}

#[test]
fn the_environment_wins_over_the_file() {
    let fake = Fake {
        file: Some("data_dir = \"a\"\n[retry]\nattempts_max = 3\nbase = \"1s\"\n".to_owned()),
        variables: [("PEYK_RETRY__ATTEMPTS_MAX", "7"), ("OTHER", "x"), ("PEYK", "x")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    };
    let settings = load(&fake, None).unwrap();
    assert_eq!(settings.retry.attempts_max, 7);
    assert_eq!(settings.retry.base, Duration::from_secs(1));
    assert_eq!(settings.data_dir, Path::new("a"));
}

#[test]
fn every_kind_can_come_from_the_environment() {
    let settings = from_variables(&[
        ("PEYK_ALLOWED_TARGETS", "127.0.0.0/8, ::1/128"),
        ("PEYK_RETRY__STRATEGY", "schedule"),
        ("PEYK_RETRY__SCHEDULE", "5s,5m,30m"),
        ("PEYK_RETRY__RETRY_ON", "408,5xx"),
        ("PEYK_BREAKER__ENABLED", "false"),
        ("PEYK_BREAKER__FAILURES", "1"),
        ("PEYK_JWT_SECRET", "a secret of some length"),
        ("PEYK_DATABASE_URL", "sqlite:///var/peyk.db"),
        ("PEYK_LOG__FORMAT", "json"),
        ("PEYK_LOG__LEVEL", "info,engine=debug"),
        ("PEYK_SIGNING__DEFAULT", "ed25519"),
        ("PEYK_MAIN_KEY", ""),
    ])
    .unwrap();
    assert!(settings.guard.permits(([127, 0, 0, 1], 80).into()));
    assert_eq!(settings.retry.strategy, Strategy::Schedule);
    assert_eq!(settings.retry.schedule.len(), 3);
    assert_eq!(settings.retry.retry_on, RetryOn::Listed(vec![(408, 408), (500, 599)]));
    assert!(!settings.breaker.enabled);
    assert_eq!(settings.breaker.keys_min, 1);
    assert_eq!(settings.database, Database::Sqlite("/var/peyk.db".into()));
    assert_eq!(settings.log_format, LogFormat::Json);
    assert!(settings.main_key.is_none());
    assert!(!format!("{settings:?}").contains("some length"), "secrets are not shown");
}

#[test]
fn suspension_can_be_off_and_its_warning_is_half_way() {
    let read = |pairs: &[(&str, &str)]| from_variables(pairs).unwrap().suspending;
    let secs = |secs| Some(Duration::from_secs(secs));
    let half = read(&[("PEYK_SUSPEND_AFTER", "90s")]);
    assert_eq!((half.after, half.warn_after), (secs(90), secs(45)));
    let silent = read(&[("PEYK_SUSPEND_AFTER", "90s"), ("PEYK_SUSPEND_WARN_AFTER", "0s")]);
    assert_eq!((silent.after, silent.warn_after), (secs(90), None));
    assert_eq!(read(&[("PEYK_SUSPEND_AFTER", "0s")]).after, None);
}

#[test]
fn a_mail_server_has_the_usual_port_and_hides_its_password() {
    for (tls, port, usual) in
        [("starttls", "0", 587), ("tls", "0", 465), ("none", "0", 25), ("tls", "2525", 2525)]
    {
        let here = [
            ("PEYK_SMTP__HOST", "[::1]"),
            ("PEYK_SMTP__TLS", tls),
            ("PEYK_SMTP__PORT", port),
            ("PEYK_SMTP__USERNAME", "user"),
            ("PEYK_SMTP__PASSWORD", "hunter2"),
            ("PEYK_SMTP__FROM", "peyk@b.example"),
        ];
        let smtp = from_variables(&here).unwrap().smtp.unwrap();
        assert_eq!((&*smtp.host, smtp.port), ("::1", usual));
        assert!(!format!("{smtp:?}").contains("hunter2"));
    }
}

#[test]
fn a_proxy_is_read_with_its_exceptions_and_hides_its_password() {
    assert_eq!(from_variables(&[]).unwrap().proxy, None);
    let settings = from_variables(&[
        ("PEYK_PROXY__URL", "socks5://me:hunter2@proxy.example"),
        ("PEYK_PROXY__EXCEPT", "10.0.0.0/8, .corp"),
    ])
    .unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
    let proxy = settings.proxy.unwrap();
    assert_eq!((proxy.host(), proxy.port), (Host::Name("proxy.example"), 1080));
    assert!(proxy.exceptions.cover(Host::Name("a.corp"), [192, 0, 2, 1].into()));
    assert!(proxy.exceptions.cover(Host::Name("a.example"), [10, 0, 0, 1].into()));
    assert!(!proxy.exceptions.cover(Host::Name("a.example"), [192, 0, 2, 1].into()));
}

#[test]
fn what_is_wrong_with_suspension_and_mail_is_named() {
    let files = [
        (
            "suspend_after = \"1\"",
            "`suspend_after` in peyk.toml must be a whole number with a unit",
        ),
        (
            "suspend_warn_after = \"1h\"",
            "`suspend_warn_after` in peyk.toml must be below suspend_after",
        ),
        ("suspend_probe_every = \"0s\"", "`suspend_probe_every` in peyk.toml must be from 1s to"),
        ("[smtp]\ntls = \"ssl\"", "`smtp.tls` in peyk.toml must be one of starttls, tls, none"),
        ("[smtp]\nport = 65536", "`smtp.port` in peyk.toml must be from 0 to 65535"),
        ("[smtp]\nhost = \"a:25\"", "`smtp.host` in peyk.toml must be a host name"),
        ("[smtp]\nhost = \"h\"", "`smtp.from` must not be empty"),
        (
            "[smtp]\nhost = \"h\"\nfrom = \"Peyk <a@b.example>\"",
            "`smtp.from` in peyk.toml must be an e-mail",
        ),
        (
            "[smtp]\nhost = \"h\"\nusername = \"u\"",
            "`smtp.username` in peyk.toml needs smtp.password",
        ),
        (
            "[smtp]\nhost = \"h\"\npassword = \"p\"",
            "`smtp.password` in peyk.toml needs smtp.username",
        ),
        (
            "[smtp]\nhost = \"h\"\nusername = \"u\"\npassword = \"p\"\ntls = \"none\"",
            "`smtp.tls` in peyk.toml must be starttls or tls",
        ),
    ];
    for (text, said) in files {
        let fault = from_file(text).unwrap_err().to_string();
        assert!(fault.contains(said) && !fault.contains('\n'), "{text:?}: {fault}");
    }
}

#[test]
fn what_is_wrong_is_named_in_one_line() {
    let files = [
        ("lisen_address = \"x\"", "`lisen_address` in peyk.toml is not a setting"),
        ("[retry]\nbse = \"1s\"", "`retry.bse` in peyk.toml is not a setting"),
        ("[rety]\nbase = \"1s\"", "`rety` in peyk.toml is not a setting"),
        ("retry = 1", "`retry` in peyk.toml must be a section"),
        ("data_dir = 1", "`data_dir` in peyk.toml must be a text"),
        ("[retry]\nattempts_max = -1", "`retry.attempts_max` in peyk.toml must be a whole number"),
        ("[retry]\nattempts_max = 0", "`retry.attempts_max` in peyk.toml must be from 1 to"),
        ("[retry]\nbase = \"5\"", "`retry.base` in peyk.toml must be a whole number with a unit"),
        ("[retry]\ncap = \"1s\"", "`retry.cap` in peyk.toml must not be below base"),
        (
            "[retry]\nstrategy = \"schedule\"",
            "`retry.schedule`, left at its default, must not be left",
        ),
        ("[window]\nmax = 2", "`window.start`, left at its default, must be from 1 to 2"),
        ("[retry]\nbase = \"2h\"", "`retry.cap`, left at its default, must not be below base"),
        ("[retry]\nstrategy = \"x\"", "must be one of exponential, fixed"),
        ("[retry]\nretry_on = \"2xx\"", "`retry.retry_on` in peyk.toml must be `transient`"),
        ("[breaker]\nopen_for = \"1h\"", "must not be below open_for"),
        ("[attempt]\ndeadline = \"1s\"", "`attempt.deadline` in peyk.toml must be from 5s to 30s"),
        ("[attempt]\nconnect_timeout = \"11s\"", "must be above zero and not above"),
        ("[window]\nstart = 65", "`window.start` in peyk.toml must be from 1 to 64"),
        ("database_url = \"postgres://h:port/d\"", "is not a URL of a PostgreSQL database"),
        ("database_url = \"mysql://h/d\"", "must be sqlite://<path> or postgres://"),
        ("database_direct_url = \"postgres://h/d\"", "must be the URL of the PostgreSQL database"),
        ("roles = [\"worker\"]", "`roles` in peyk.toml must be api and worker with SQLite"),
        ("roles = []", "`roles` in peyk.toml must not be empty"),
        ("roles = [\"x\"]", "`roles` in peyk.toml must be a list of api and worker"),
        ("database_pooled = true", "`database_pooled` in peyk.toml needs database_direct_url"),
        ("node_listen_address = \"x\"", "`node_listen_address` in peyk.toml must be auto, off or"),
        ("node_listen_address = \"[::]:1\"", "`node_listen_address` in peyk.toml needs node_add"),
        ("node_address = \"10.0.0.7\"", "`node_address` in peyk.toml must be host:port, like"),
        ("node_address = \"http://a:1\"", "`node_address` in peyk.toml must be host:port, like"),
        ("node_address = \"10.0.0.7:0\"", "`node_address` in peyk.toml must be host:port, like"),
        ("database_wait = \"2h\"", "`database_wait` in peyk.toml must be at most 1h"),
        ("jwt_secret = \"short\"", "`jwt_secret` in peyk.toml must have at least 16"),
        ("allowed_targets = [\"127.0.0.1/8\"]", "`allowed_targets` in peyk.toml is wrong"),
        ("public_url = \"peyk.example\"", "`public_url` in peyk.toml must be a URL"),
        ("public_url = \"ftp://peyk.example\"", "`public_url` in peyk.toml must be a URL"),
        ("public_url = \"https://u@peyk.example\"", "`public_url` in peyk.toml must be a URL"),
        ("public_url = \"https://peyk.example/?a\"", "`public_url` in peyk.toml must be a URL"),
        ("listen_address = \"8071\"", "must be host:port"),
        ("listen_address = \":8071\"", "must be host:port"),
        (
            "[log]\nlevel = \"=,=\"",
            "`log.level` in peyk.toml must be one of off, error, warn, info",
        ),
        ("[log]\nlevel = \"loud\"", "`log.level` in peyk.toml must be one of off, error"),
        ("[log]\nlevel = \"info,engine\"", "`log.level` in peyk.toml must be one of"),
        ("[log]\nlevel = \"engine=loud\"", "`log.level` in peyk.toml must be one of"),
        ("[log]\nlevel = \"info,\"", "`log.level` in peyk.toml must be one of"),
        ("[retention]\npayload = \"23h\"", "`retention.payload` in peyk.toml must be at least 24h"),
        ("[retention]\ndead_letters = \"0d\"", "`retention.dead_letters` in peyk.toml must be at"),
        (
            "[retention]\nmessages = \"89d\"",
            "`retention.messages` in peyk.toml must not be shorter than retention.payload",
        ),
        ("[proxy]\nurl = \"ftp://p\"", "`proxy.url` in peyk.toml must be http://, https:// or"),
        ("[proxy]\nurl = \"http://p/q\"", "`proxy.url` in peyk.toml must be http://, https:// or"),
        ("[proxy]\nurl = \"socks5://u@p\"", "`proxy.url` in peyk.toml must have a user name and"),
        ("[proxy]\nexcept = [\"a:1\"]", "`proxy.except` in peyk.toml is wrong: `a:1` is none of"),
        ("[proxy]\nexcept = [\"10.1.0.0/8\"]", "`proxy.except` in peyk.toml is wrong: `10.1.0"),
        ("data_dir = \"a\"\nb", "peyk.toml line 2"),
    ];
    for (text, expected) in files {
        let said = from_file(text).unwrap_err().to_string();
        assert!(said.contains(expected), "{text:?} says {said:?}");
        assert!(!said.contains('\n'), "{said:?}");
    }
}

#[test]
fn what_is_wrong_in_a_variable_is_named() {
    let variables = [
        ("PEYK_RETRY__BSE", "PEYK_RETRY__BSE is not a setting"),
        ("PEYK_retry__base", "PEYK_retry__base is not a setting"),
        ("PEYK_RETRY.BASE", "PEYK_RETRY.BASE is not a setting"),
        ("PEYK_BREAKER__ENABLED", "PEYK_BREAKER__ENABLED must be true or false"),
        ("PEYK_WINDOW__MAX", "PEYK_WINDOW__MAX must be a whole number"),
    ];
    for (name, expected) in variables {
        let said = from_variables(&[(name, "maybe")]).unwrap_err().to_string();
        assert!(said.contains(expected), "{said:?}");
    }
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let said = load(&Fake::default(), Some(Path::new("other.toml"))).unwrap_err().to_string();
    assert!(said.starts_with("cannot read other.toml: "), "{said}");
}

#[test]
fn alerts_are_rules_by_condition_and_routes_by_channel() {
    let settings = from_variables(&[]).unwrap();
    assert!(settings.alerts.routes.is_empty(), "nobody is told until somebody is named");
    let names: Vec<_> = settings.alerts.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, domain::alert::rule::Condition::NAMES);
    assert!(settings.alerts.rules.iter().all(|rule| rule.enabled));
    let key = "0123456789abcdef0123456789abcdef";
    let set = [
        ("PEYK_ALERTS__PAGERDUTY_KEY", key),
        ("PEYK_ALERTS__PAGERDUTY_URL", "https://events.eu.pagerduty.com/v2/enqueue"),
        ("PEYK_ALERTS__SLACK_URL", "https://hooks.slack.com/services/wonderland"),
        ("PEYK_ALERTS__WEBHOOK_URL", "https://h.example/"),
        ("PEYK_ALERTS__WEBHOOK_SECRET", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"),
        ("PEYK_ALERTS__OLDEST_DUE__SEVERITY", "off"),
    ];
    let settings = from_variables(&set).unwrap();
    let routes: Vec<_> = settings.alerts.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(routes, ["pagerduty", "slack", "webhook"]);
    assert!(!settings.alerts.rules[3].enabled);
    let shown = format!("{:?}", settings.alerts);
    assert!(!shown.contains(key) && !shown.contains("wonderland") && !shown.contains("C2FVs"));
}

#[test]
fn alerts_that_cannot_work_are_refused_by_name() {
    let rows = [
        ("interval = \"0s\"", "`alerts.interval` in peyk.toml must be from 1s to 1m"),
        ("operator = \"me\"", "`alerts.operator` in peyk.toml must be the id of an organisation"),
        ("pagerduty_key = \"short\"", "`alerts.pagerduty_key` in peyk.toml must be the 32 letters"),
        ("opsgenie_key = \"a b\"", "`alerts.opsgenie_key` in peyk.toml must be at most 256"),
        ("slack_url = \"hooks\"", "`alerts.slack_url` in peyk.toml"),
        (
            "pagerduty_url = \"https://h.example/\"",
            "`alerts.pagerduty_url` in peyk.toml needs `alerts.pagerduty_key`",
        ),
        (
            "opsgenie_url = \"https://h.example/\"",
            "`alerts.opsgenie_url` in peyk.toml needs `alerts.opsgenie_key`",
        ),
        ("webhook_url = \"https://h.example/\"", "`alerts.webhook_secret` must not be empty"),
        ("email_to = [\"a@example.com\"]", "`alerts.email_to` in peyk.toml needs a mail server"),
        (
            "[alerts.dead_letters]\nwindow = \"1s\"",
            "`alerts.dead_letters.window` in peyk.toml must",
        ),
        ("[alerts.dead_letters]\nreasons = []", "`alerts.dead_letters.reasons` in peyk.toml must"),
        (
            "[alerts.dead_letters]\nreasons = [\"rain\"]",
            "`alerts.dead_letters.reasons` in peyk.toml",
        ),
        ("[alerts.failure_ratio]\nabove = 100", "`alerts.failure_ratio.above` in peyk.toml must"),
        ("[alerts.failure_ratio]\ncount_min = 0", "`alerts.failure_ratio.count_min` in peyk.toml"),
        ("[alerts.sending_paused]\nseverity = \"bad\"", "`alerts.sending_paused.severity` in peyk"),
    ];
    for (text, said) in rows {
        let fault = from_file(&format!("[alerts]\n{text}")).unwrap_err().to_string();
        assert!(fault.contains(said), "{text}: {fault}");
    }
}
