//! Evaluations one after another: who is told what, and when not.
//!
//! Never: a figure of a condition; `reading` has those.

use std::time::Duration;

use super::*;
use crate::alert::reading::Failing;
use crate::alert::rule::{Condition, Severity};
use crate::limits::ALERT_SUBJECTS_MAX;

const INSTALLATION: [u8; 16] = [7; 16];

fn at(secs: u64) -> Timestamp {
    Timestamp::from_secs(1_800_000_000).plus(Duration::from_secs(secs))
}

fn failing(key: u64, since: Timestamp) -> Failing {
    Failing {
        endpoint: PublicId::new(key, [1; 12]),
        endpoint_uid: Some(format!("hook-{key}")),
        origin: "https://a.example:443".into(),
        app: PublicId::new(1_000, [2; 12]),
        app_name: "Tenant".into(),
        since,
    }
}

/// A rule about endpoints that have failed for a minute, and two routes.
fn standing() -> Standing {
    let condition = Condition::EndpointFailing { after: Duration::from_secs(60) };
    Standing {
        rules: vec![Rule::new("endpoints", condition, Severity::Medium)],
        routes: vec!["ops".into(), "chat".into()],
        installation: INSTALLATION,
        ..Standing::default()
    }
}

fn reading(count: u64) -> Reading {
    let failing = (1..=count).map(|key| failing(key, at(0))).collect();
    Reading { failing, ..Reading::default() }
}

/// Evaluates and keeps what follows; says what was told.
fn step(standing: &mut Standing, reading: &Reading, secs: u64) -> Vec<(String, Occasion, u64)> {
    let settlement = evaluate(standing, reading, at(secs));
    for incident in settlement.stand {
        standing.newest.retain(|old| old.rule != incident.rule);
        standing.newest.push(incident);
    }
    standing.newest.retain(|it| !settlement.gone.contains(&it.id));
    let told = settlement.tellings.into_iter().map(|telling| {
        let shown = u64::try_from(telling.notice.subjects.len()).unwrap();
        (telling.route, telling.notice.occasion, shown + telling.notice.more)
    });
    told.collect()
}

fn told(route: &str, occasion: Occasion, count: u64) -> (String, Occasion, u64) {
    (route.to_owned(), occasion, count)
}

#[test]
fn ob_02_many_endpoints_are_one_notification_on_each_route() {
    let mut standing = standing();
    let fired = step(&mut standing, &reading(500), 60);
    assert_eq!(fired, [told("ops", Occasion::Firing, 500), told("chat", Occasion::Firing, 500)]);
    assert_eq!(step(&mut standing, &reading(500), 75), [], "and told once");
    assert_eq!(step(&mut standing, &reading(501), 90), [], "those that join wait");
    let joined = step(&mut standing, &reading(502), 60 + 300);
    assert_eq!(joined, [told("ops", Occasion::Updated, 502), told("chat", Occasion::Updated, 502)]);
    assert_eq!(step(&mut standing, &reading(400), 700), [], "fewer are no news");
    assert_eq!(step(&mut standing, &reading(0), 715), []);
    let over = step(&mut standing, &reading(0), 775);
    assert_eq!(over, [told("ops", Occasion::Resolved, 0), told("chat", Occasion::Resolved, 0)]);
    assert_eq!(step(&mut standing, &reading(0), 790), []);
}

#[test]
fn a_notification_names_a_few_and_counts_the_rest() {
    let settlement = evaluate(&standing(), &reading(12), at(60));
    let notice = &settlement.tellings[0].notice;
    assert_eq!((notice.subjects.len(), notice.more), (ALERT_SUBJECTS_MAX, 2));
    assert_eq!(notice.title, "12 endpoints have failed for 1m");
    assert_eq!(notice.dedup_key, "peyk-0707070707070707-endpoints");
}

#[test]
fn a_silence_keeps_quiet_and_what_still_fires_is_told_when_it_ends() {
    let mut standing = standing();
    let silence = Silence {
        id: PublicId::new(5, [5; 12]),
        rule: Some("endpoints".into()),
        endpoint: None,
        from: at(0),
        until: at(100),
        comment: "maintenance".into(),
    };
    standing.silences.push(silence);
    assert_eq!(step(&mut standing, &reading(1), 60), []);
    assert_eq!(standing.newest[0].phase, Phase::Firing, "it is seen all the same");
    let late = step(&mut standing, &reading(1), 105);
    assert_eq!(late, [told("ops", Occasion::Firing, 1), told("chat", Occasion::Firing, 1)]);
}

#[test]
fn what_is_clear_again_when_it_could_be_told_is_not_told_to_fire() {
    let mut standing = standing();
    let late = standing.routes.pop().unwrap();
    step(&mut standing, &reading(1), 60);
    standing.routes.push(late);
    assert_eq!(step(&mut standing, &reading(0), 75), [], "no endpoint fails any more");
    let again = step(&mut standing, &reading(1), 90);
    assert_eq!(again, [told("chat", Occasion::Firing, 1)], "it fires after all");
}

#[test]
fn a_route_that_was_deleted_and_is_set_again_is_told_what_fires() {
    let mut standing = standing();
    step(&mut standing, &reading(1), 60);
    let gone = standing.routes.pop().unwrap();
    assert_eq!(step(&mut standing, &reading(1), 75), []);
    standing.routes.push(gone);
    assert_eq!(step(&mut standing, &reading(1), 90), [told("chat", Occasion::Firing, 1)]);
}

#[test]
fn a_rule_that_is_changed_goes_on_with_its_incident() {
    let mut standing = standing();
    step(&mut standing, &reading(1), 60);
    standing.rules[0].severity = Severity::Critical;
    assert_eq!(step(&mut standing, &reading(1), 75), [], "nobody is told again");
    assert_eq!(standing.newest[0].severity, Severity::Critical);
    standing.rules[0].routes = Some(vec!["chat".into()]);
    step(&mut standing, &reading(0), 90);
    let over = step(&mut standing, &reading(0), 150);
    let both = [told("ops", Occasion::Resolved, 0), told("chat", Occasion::Resolved, 0)];
    assert_eq!(over, both, "whoever was told to fire");
}

#[test]
fn what_was_told_to_fire_is_told_to_be_over_though_it_is_silent_now() {
    let mut standing = standing();
    step(&mut standing, &reading(1), 60);
    standing.silences.push(Silence {
        id: PublicId::new(5, [5; 12]),
        rule: None,
        endpoint: None,
        from: at(61),
        until: at(1_000),
        comment: String::new(),
    });
    step(&mut standing, &reading(0), 75);
    let over = step(&mut standing, &reading(0), 135);
    assert_eq!(over, [told("ops", Occasion::Resolved, 0), told("chat", Occasion::Resolved, 0)]);
}

#[test]
fn a_silent_endpoint_does_not_count() {
    let mut standing = standing();
    standing.silences.push(Silence {
        id: PublicId::new(5, [5; 12]),
        rule: None,
        endpoint: Some(PublicId::new(1, [1; 12])),
        from: at(0),
        until: at(1_000),
        comment: String::new(),
    });
    assert_eq!(step(&mut standing, &reading(1), 60), []);
    let second = step(&mut standing, &reading(2), 75);
    assert_eq!(second, [told("ops", Occasion::Firing, 1), told("chat", Occasion::Firing, 1)]);
}

#[test]
fn routes_come_and_go() {
    let mut standing = standing();
    step(&mut standing, &reading(1), 60);
    standing.routes = vec!["ops".into(), "new".into()];
    let joined = step(&mut standing, &reading(1), 75);
    assert_eq!(joined, [told("new", Occasion::Firing, 1)]);
    step(&mut standing, &reading(0), 90);
    let over = step(&mut standing, &reading(0), 150);
    assert_eq!(over, [told("ops", Occasion::Resolved, 0), told("new", Occasion::Resolved, 0)]);
}

#[test]
fn a_rule_that_is_switched_off_ends_its_incident() {
    let mut standing = standing();
    step(&mut standing, &reading(1), 60);
    standing.rules[0].enabled = false;
    let over = step(&mut standing, &reading(1), 75);
    assert_eq!(over, [told("ops", Occasion::Resolved, 0), told("chat", Occasion::Resolved, 0)]);
    assert_eq!(step(&mut standing, &reading(1), 90), []);
}

#[test]
fn an_incident_that_somebody_looks_at_does_not_grow_loud() {
    let mut standing = standing();
    step(&mut standing, &reading(1), 60);
    let tellings = standing.acknowledged(&standing.newest[0], at(70));
    let routes: Vec<_> = tellings.iter().map(|it| (&*it.route, it.notice.occasion)).collect();
    assert_eq!(routes, [("ops", Occasion::Acknowledged), ("chat", Occasion::Acknowledged)]);
    standing.newest[0].acknowledged_at = Some(at(70));
    assert_eq!(step(&mut standing, &reading(9), 700), []);
}

#[test]
fn an_evaluation_that_changes_nothing_writes_nothing() {
    let mut standing = standing();
    assert!(evaluate(&standing, &reading(0), at(60)).is_empty());
    step(&mut standing, &reading(1), 60);
    assert!(evaluate(&standing, &reading(1), at(75)).is_empty());
}

#[test]
fn a_rule_whose_figures_cannot_be_read_stays_as_it_is() {
    let mut standing = standing();
    let window = Duration::from_secs(60);
    let reasons = vec![crate::dead_letter::DeadReason::Expired];
    standing.rules[0].condition = Condition::DeadLetters { above: 0, window, reasons };
    let minute = |count| {
        let mut minute = crate::alert::reading::Minute { at: at(0), ..Default::default() };
        minute.dead[4] = count;
        Reading { minutes: Some(vec![minute]), ..Reading::default() }
    };
    assert_eq!(step(&mut standing, &minute(1), 0).len(), 2);
    for secs in [100, 200, 300] {
        assert_eq!(step(&mut standing, &Reading::default(), secs), []);
    }
    assert_eq!(standing.newest[0].phase, Phase::Firing);
    step(&mut standing, &minute(0), 400);
    assert_eq!(step(&mut standing, &minute(0), 460).len(), 2, "and is over once they can");
}

#[test]
fn a_title_of_ones_own_is_filled_in() {
    let mut standing = standing();
    standing.rules[0].title = Some("[{severity}] {rule}: {value}".into());
    let settlement = evaluate(&standing, &reading(3), at(60));
    assert_eq!(settlement.tellings[0].notice.title, "[medium] endpoints: 3");
}
