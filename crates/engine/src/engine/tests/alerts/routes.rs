//! Routes as endpoints: how long they are tried, and where what waits on one goes.
//!
//! Never: real time, or a vendor.

use domain::attempt::Answer;
use domain::policy::Strategy;
use resilience::RetryAfter;

use super::*;

/// A rule that stays as it is once it fires.
fn lasting() -> Rule {
    let mut rule = letters("dead", 0);
    if let Condition::DeadLetters { window, .. } = &mut rule.condition {
        *window = Duration::from_secs(24 * 3_600);
    }
    rule
}

/// Lets hours pass in steps of a second.
async fn pass_long(rig: &Rig, span: Duration) {
    let step = Duration::from_secs(1);
    for _ in 0..span.as_secs() {
        rig.clock.advance(step);
        tokio::time::advance(step).await;
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_is_tried_for_six_hours_whatever_the_server_sets() {
    let answers = Arc::new(AtomicUsize::new(503));
    let seen = Arc::clone(&answers);
    let mut rig = Rig::new(samples::endpoint(), move |request| {
        let is_alert = request.endpoint.spec.target.as_str().contains("alerts.example");
        let status = u16::try_from(seen.load(Ordering::SeqCst)).unwrap();
        Script::status(if is_alert { status } else { 400 })
    })
    .await;
    rig.settings.retry.strategy = Strategy::Fixed;
    rig.settings.retry.base = Duration::from_secs(1);
    rig.settings.retry.attempts_max = 3;
    rig.settings.retry.retry_on = domain::policy::RetryOn::Listed(vec![(429, 429)]);
    rig.alerting = Some(alerting(vec![lasting()], vec![route("ops")]));
    let life = rig.start().await;
    bury(&rig, &life, 1).await;
    pass_long(&rig, Duration::from_secs(5 * 3_600 + 45 * 60)).await;
    let tries = told(&rig);
    assert!(tries.len() > 30 && tries.iter().all(|it| it == "dead alert.firing"), "{tries:?}");
    answers.store(200, Ordering::SeqCst);
    pass_long(&rig, Duration::from_secs(11 * 60)).await;
    assert_eq!(told(&rig), ["dead alert.firing"], "and then it was taken");
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_on_a_route_goes_where_it_leads_now() {
    let rig = Rig::new(samples::endpoint(), |request| {
        let target = request.endpoint.spec.target.as_str();
        let status = match (target.contains("alerts.example"), target.contains("moved")) {
            (false, _) => 400,
            (true, true) => 200,
            (true, false) => {
                let day = RetryAfter::Wait(Duration::from_secs(24 * 3_600));
                let (body, cut, redirect_origin) = (Bytes::new(), None, None);
                let status = 503;
                return Script::answer(Answer {
                    status,
                    retry_after: day,
                    body,
                    cut,
                    redirect_origin,
                });
            }
        };
        Script::status(status)
    })
    .await;
    let mut rig = rig;
    rig.alerting = Some(alerting(vec![lasting()], Vec::new()));
    let life = rig.start().await;
    rig.store.put_route(route("ops")).await.unwrap();
    life.engine.alerts_changed();
    bury(&rig, &life, 1).await;
    rig.pass(Duration::from_secs(20)).await;
    assert!(!told(&rig).is_empty());
    let moved = Route { name: "ops".to_owned(), ..route("moved") };
    rig.store.put_route(moved).await.unwrap();
    life.engine.alerts_changed();
    rig.pass(Duration::from_secs(1)).await;
    rig.transport.take();
    rig.pass(Duration::from_secs(600)).await;
    let sent = rig.transport.take();
    let alerts: Vec<_> = sent.iter().filter(|it| it.endpoint != rig.endpoint).collect();
    assert_eq!(alerts.len(), 1, "the one that waited, and nothing else");
    assert_eq!(alerts[0].body, Bytes::from("dead alert.firing"));
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn starting_up_is_no_fault_of_the_server() {
    let paused = Rule::new("paused", Condition::SendingPaused, Severity::Critical);
    let mut rig = rig(200, alerting(vec![paused], vec![route("ops")])).await;
    // It takes a while until the first write is answered.
    rig.store.commit_delay(Duration::from_millis(300));
    for _ in 0..3 {
        let life = rig.start().await;
        rig.pass(Duration::from_secs(1)).await;
        rig.kill(life);
        rig.store.commit_delay(Duration::from_millis(300));
    }
    let page = PageOf { beyond: None, direction: Direction::Ascending, limit: 9 };
    assert_eq!(rig.store.incidents(page).await.unwrap(), []);
    assert_eq!(told(&rig), [] as [&str; 0]);
}
