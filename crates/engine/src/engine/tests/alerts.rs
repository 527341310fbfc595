//! Alerts from the condition to the request, over the reference model.
//!
//! Never: real time, or a vendor; what a channel answers is scripted by its path.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use domain::alert::evaluate::Settlement;
use domain::alert::notice::{Notice, Occasion};
use domain::alert::route::{Channel, Route};
use domain::alert::rule::{Condition, Rule, Severity};
use domain::attempt::FailureKind;
use domain::dead_letter::DeadReason;
use domain::email::EmailAddress;
use domain::notice::MANAGEMENT;
use domain::target::Target;
use store::alerts::Alerts as _;
use store::dead_letters::{DeadFilter, DeadLetters as _};

use super::rig::{Life, Rig};
use super::*;
use crate::alert::{Alerting, Request, Worded};
use crate::mail::{AlertLetter, Letter, MailFault, Mailer, Mailing};

mod routes;

const INTERVAL: Duration = Duration::from_secs(15);

/// Name and occasion, to the URL of the route; an all-clear goes to a second endpoint when the name
/// says so.
fn wording(route: &Route, notice: &Notice) -> Option<Worded> {
    let said = format!("{} {}", notice.rule, notice.occasion.name());
    let Some(url) = route.channel.url() else {
        return Some(Worded::Letter { subject: said.clone(), text: said });
    };
    let is_second = route.name == "two" && notice.occasion == Occasion::Resolved;
    Some(Worded::Request(Box::new(Request {
        place: if is_second { "close".to_owned() } else { String::new() },
        target: url.clone(),
        headers: vec![("x-key".to_owned(), "k".to_owned())],
        secret: None,
        payload: Bytes::from(said),
        is_second,
    })))
}

fn route(name: &str) -> Route {
    let url = Target::parse("url", &format!("https://alerts.example/{name}"), false).unwrap();
    Route { name: name.to_owned(), channel: Channel::Slack { url } }
}

fn letters(name: &str, above: u64) -> Rule {
    let condition = Condition::DeadLetters {
        above,
        window: Duration::from_secs(300),
        reasons: vec![DeadReason::Rejected],
    };
    Rule::new(name, condition, Severity::Critical)
}

fn alerting(rules: Vec<Rule>, routes: Vec<Route>) -> Alerting {
    Alerting {
        rules,
        routes,
        interval: INTERVAL,
        wording: Arc::new(wording),
        secret: || Ok(Secret::from_random_hmac([9; 24])),
        is_evaluator: Arc::new(|| true),
    }
}

/// The customer's endpoint refuses everything; the alerts' answers with `status`.
async fn rig(status: u16, alerting: Alerting) -> Rig {
    let mut rig = Rig::new(samples::endpoint(), move |request| {
        let is_alert = request.endpoint.spec.target.as_str().contains("alerts.example");
        Script::status(if is_alert { status } else { 400 })
    })
    .await;
    rig.alerting = Some(alerting);
    rig
}

/// What alerts were sent since this was last asked.
fn told(rig: &Rig) -> Vec<String> {
    let sent = rig.transport.take().into_iter().filter(|it| it.endpoint != rig.endpoint);
    sent.map(|it| String::from_utf8(it.body.to_vec()).unwrap()).collect()
}

/// Posts messages that become dead letters.
async fn bury(rig: &Rig, life: &Life, count: usize) {
    rig.posts(life, count).await;
    rig.pass(Duration::from_millis(500)).await;
}

#[tokio::test(start_paused = true)]
async fn an_alert_is_sent_within_an_interval_and_a_second_of_its_condition() {
    let rig = rig(200, alerting(vec![letters("dead", 10)], vec![route("ops")])).await;
    let life = rig.start().await;
    bury(&rig, &life, 10).await;
    rig.pass(Duration::from_secs(40)).await;
    assert_eq!(told(&rig), [] as [&str; 0], "ten are not more than ten");
    rig.post(&life).await;
    let mut waited = Duration::ZERO;
    let step = Duration::from_millis(100);
    while told(&rig) != ["dead alert.firing"] {
        rig.pass(step).await;
        waited += step;
        assert!(waited <= INTERVAL + Duration::from_secs(1), "{waited:?}");
    }
    // The letters leave the window, the rule stays clear for a minute: it is told once more.
    rig.pass(Duration::from_secs(600)).await;
    assert_eq!(told(&rig), ["dead alert.resolved"]);
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_alert_about_alerts_does_not_multiply() {
    // The channel refuses what it is sent: each notification becomes a dead letter, too.
    let rig = rig(400, alerting(vec![letters("dead", 0)], vec![route("ops")])).await;
    let life = rig.start().await;
    bury(&rig, &life, 1).await;
    rig.pass(Duration::from_secs(20)).await;
    assert_eq!(told(&rig), ["dead alert.firing"]);
    rig.pass(Duration::from_secs(3_600)).await;
    assert_eq!(told(&rig), ["dead alert.resolved"], "and that is all");
    let page = PageOf { beyond: None, direction: Direction::Ascending, limit: 99 };
    let dead = rig.store.list(MANAGEMENT, DeadFilter::default(), page).await.unwrap();
    assert_eq!(dead.rows.len(), 2, "they are there, and count for nothing");
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_loses_no_notification_and_doubles_none() {
    let mut rig = rig(200, alerting(vec![letters("dead", 0)], vec![route("ops")])).await;
    let life = rig.start().await;
    bury(&rig, &life, 1).await;
    // Stored by an evaluation, and not sent: as if it died in between.
    rig.kill(life);
    let mut died = 0;
    for _ in 0..200 {
        let life = rig.start().await;
        rig.pass(Duration::from_millis(100)).await;
        rig.kill(life);
        died += 1;
        if !told(&rig).is_empty() {
            break;
        }
    }
    assert!(died < 200);
    let life = rig.start().await;
    rig.pass(Duration::from_secs(120)).await;
    let again = told(&rig);
    // What was in flight at the kill may go twice, under the same id; another one never follows.
    assert!(again.len() <= 1 && again.iter().all(|it| it == "dead alert.firing"), "{again:?}");
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_hangs_delays_no_delivery() {
    let mut rig = Rig::new(samples::endpoint(), |request| {
        let is_alert = request.endpoint.spec.target.as_str().contains("alerts.example");
        if is_alert { Script::hang() } else { Script::status(400) }
    })
    .await;
    rig.alerting = Some(alerting(vec![letters("dead", 0)], vec![route("ops")]));
    let life = rig.start().await;
    bury(&rig, &life, 1).await;
    rig.pass(Duration::from_secs(16)).await;
    assert_eq!(told(&rig), ["dead alert.firing"], "it hangs now");
    rig.posts(&life, 10).await;
    rig.pass(Duration::from_millis(500)).await;
    assert_eq!(rig.sent_to_customer(), 10);
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn ob_05_a_server_that_sends_nothing_is_told_of_by_outcome() {
    let mut rig = Rig::new(samples::endpoint(), |request| {
        let is_alert = request.endpoint.spec.target.as_str().contains("alerts.example");
        if is_alert { Script::status(200) } else { Script::failure(FailureKind::Internal) }
    })
    .await;
    let late = Condition::OldestDue { above: Duration::from_secs(60) };
    let rules = vec![
        Rule::new("late", late, Severity::High),
        Rule::new("paused", Condition::SendingPaused, Severity::Critical),
    ];
    rig.alerting = Some(alerting(rules, vec![route("ops")]));
    let life = rig.start().await;
    rig.post(&life).await;
    rig.pass(Duration::from_secs(40)).await;
    assert_eq!(told(&rig), ["paused alert.firing"]);
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(told(&rig), ["late alert.firing"]);
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_all_clear_for_another_address_waits_for_the_alert() {
    let answers = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&answers);
    let mut rig = Rig::new(samples::endpoint(), move |request| {
        let is_alert = request.endpoint.spec.target.as_str().contains("alerts.example");
        let up = seen.load(Ordering::SeqCst) > 0;
        Script::status(if is_alert && up { 202 } else { 500 })
    })
    .await;
    let mut rule = letters("dead", 0);
    rule.condition = Condition::FailureRatio {
        above_percent: 50,
        window: Duration::from_secs(60),
        count_min: 1,
    };
    rig.alerting = Some(alerting(vec![rule], vec![route("two")]));
    let life = rig.start().await;
    rig.post(&life).await;
    rig.pass(Duration::from_secs(20)).await;
    assert!(told(&rig).iter().all(|it| it == "dead alert.firing"));
    // Nobody sends to the customer any more, so that the rule is clear; the channel is still down.
    let off = store::directory::EndpointChange {
        disabled: Some(Some(domain::endpoint::Disabled::ByOwner)),
        ..Default::default()
    };
    rig.store.change_endpoint(rig.endpoint, off).await.unwrap();
    rig.pass(Duration::from_secs(400)).await;
    let kept = rig.store.tellings(0, 9).await.unwrap();
    assert_eq!(kept.len(), 1, "the all-clear waits");
    assert!(told(&rig).iter().all(|it| it == "dead alert.firing"));
    answers.store(1, Ordering::SeqCst);
    rig.pass(Duration::from_secs(2_400)).await;
    let told = told(&rig);
    assert_eq!(told.last().map(String::as_str), Some("dead alert.resolved"), "{told:?}");
    assert_eq!(told.iter().filter(|it| *it == "dead alert.resolved").count(), 1);
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_route_is_an_endpoint_that_changes_and_goes_with_it() {
    let rig = rig(200, alerting(vec![letters("dead", 0)], Vec::new())).await;
    let life = rig.start().await;
    let endpoints = async || {
        let app = rig.store.app(MANAGEMENT, IdOrUid::Uid("alerts".to_owned())).await.unwrap();
        let found = app.into_iter().flat_map(|app| app.endpoints);
        found.map(|it| it.spec.target.as_str().to_owned()).collect::<Vec<_>>()
    };
    rig.store.put_route(route("ops")).await.unwrap();
    life.engine.alerts_changed();
    bury(&rig, &life, 1).await;
    rig.pass(Duration::from_secs(16)).await;
    assert_eq!(endpoints().await, ["https://alerts.example/ops"]);
    let moved = Route { name: "ops".to_owned(), ..route("moved") };
    rig.store.put_route(moved).await.unwrap();
    life.engine.alerts_changed();
    rig.pass(Duration::from_secs(600)).await;
    assert_eq!(endpoints().await, ["https://alerts.example/moved"], "with the next notification");
    rig.store.delete_route("ops".to_owned()).await.unwrap();
    life.engine.alerts_changed();
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(endpoints().await, [] as [&str; 0]);
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn routes_that_are_set_and_tried_in_quick_succession_are_all_told() {
    let rig = rig(200, alerting(Vec::new(), Vec::new())).await;
    let life = rig.start().await;
    // Each write is a step in which the teller may be anywhere in its round.
    rig.store.commit_delay(Duration::from_millis(1));
    let names: Vec<String> = (0..12).map(|n| format!("r{n}")).collect();
    for name in &names {
        rig.store.put_route(route(name)).await.unwrap();
        life.engine.alerts_changed();
        let id = PublicId::new(1, [1; 12]);
        let notice = Notice::test((Occasion::Test, id), (NOW, &rig.store.installation()));
        let tellings = vec![domain::alert::evaluate::Telling { route: name.clone(), notice }];
        let settlement = Settlement { tellings, ..Settlement::default() };
        rig.store.settle(settlement, Timestamp::EPOCH).await.unwrap();
    }
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(told(&rig).len(), names.len());
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_evaluator_evaluates() {
    let mut alerting = alerting(vec![letters("dead", 0)], vec![route("ops")]);
    alerting.is_evaluator = Arc::new(|| false);
    let rig = rig(200, alerting).await;
    let life = rig.start().await;
    bury(&rig, &life, 3).await;
    rig.pass(Duration::from_secs(120)).await;
    assert_eq!(told(&rig), [] as [&str; 0]);
    life.end().await;
}

/// Answers what it was told to, and keeps what it took.
#[derive(Default)]
struct Post {
    faults: Mutex<Vec<MailFault>>,
    taken: Mutex<Vec<(u64, String, usize)>>,
}

impl Mailer for Post {
    fn send(&self, _: Letter) -> Mailing<'_> {
        Box::pin(std::future::pending())
    }

    fn send_alert(&self, letter: AlertLetter) -> Mailing<'_> {
        let fault = self.faults.lock().unwrap().pop();
        Box::pin(async move {
            match fault {
                Some(fault) => Err(fault),
                None => {
                    let AlertLetter { number, to, subject, .. } = letter;
                    self.taken.lock().unwrap().push((number, subject, to.len()));
                    Ok(())
                }
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn letters_go_out_once_the_mail_server_takes_them() {
    let to = ["a@example.com", "b@example.com"];
    let to = to.map(|text| EmailAddress::parse("to", text).unwrap()).to_vec();
    let mail = Route { name: "mail".to_owned(), channel: Channel::Email { to } };
    let mut rig = rig(200, alerting(Vec::new(), vec![mail])).await;
    let post = Arc::new(Post::default());
    *post.faults.lock().unwrap() =
        vec![MailFault::Later("busy".into()), MailFault::Down("gone".into())];
    rig.mailer = Arc::clone(&post) as _;
    let life = rig.start().await;
    let installation = rig.store.installation();
    let id = PublicId::new(1, [1; 12]);
    let notice = Notice::test((Occasion::Test, id), (NOW, &installation));
    let telling = domain::alert::evaluate::Telling { route: "mail".to_owned(), notice };
    let settlement = Settlement { tellings: vec![telling], ..Settlement::default() };
    rig.store.settle(settlement, Timestamp::EPOCH).await.unwrap();
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(post.taken.lock().unwrap().len(), 0);
    rig.pass(Duration::from_secs(60)).await;
    let taken = post.taken.lock().unwrap().clone();
    assert_eq!(
        taken.iter().map(|it| (it.1.as_str(), it.2)).collect::<Vec<_>>(),
        [("test alert.test", 2)]
    );
    assert_eq!(rig.store.tellings(0, 9).await.unwrap(), []);
    life.end().await;
}
