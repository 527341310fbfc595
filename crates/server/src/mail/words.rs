//! What a letter says: what failed and since when, the last answers, what waits, what to do.
//!
//! In: a letter. Out: a subject of fixed words and ids, and a plain text. Of what a receiver said
//! stands one clean line for each answer; of the URL its origin, of the application its id.
//! Never: a name or a text that a tenant has chosen, but what a receiver answered.

use std::fmt::Write as _;

use domain::attempt::{Attempt, Outcome};
use domain::ids::Kind;
use domain::limits::WAITING_COUNTED_MAX;
use domain::notice::News;
use engine::mail::Letter;

use super::clean;
use crate::api::views::time;

/// Characters of an answer that are shown.
const ANSWER_CHARS: usize = 200;

/// The subject.
pub(super) fn subject(letter: &Letter) -> String {
    let endpoint = letter.endpoint.id.text(Kind::Endpoint);
    match letter.news {
        News::EndpointFailing { .. } => format!("Webhook endpoint {endpoint} is failing"),
        News::EndpointResumed => format!("Webhook endpoint {endpoint} works again"),
        _ => format!("Webhook endpoint {endpoint} was suspended"),
    }
}

/// The text.
pub(super) fn text(letter: &Letter) -> String {
    let mut text = opening(letter);
    if letter.news != News::EndpointResumed {
        answers(&mut text, letter);
    }
    waiting(&mut text, letter);
    advice(&mut text, letter);
    text.push_str(
        "\nThis was sent by Peyk, because the endpoint names this address as its contactEmail.\n",
    );
    text
}

fn opening(letter: &Letter) -> String {
    let endpoint = letter.endpoint.id.text(Kind::Endpoint);
    let app = letter.app.id.text(Kind::Application);
    let origin = letter.endpoint.spec.target.origin();
    let what = format!("The webhook endpoint {endpoint} ({origin}) of the application {app}");
    let at = time(letter.at);
    match letter.news {
        News::EndpointFailing { failing_since } => format!(
            "{what}\nhas failed since {} without a success in between. If that goes on, it will be\n\
             suspended: deliveries will wait, and nothing but a probe be sent now and then.\n",
            time(failing_since)
        ),
        News::EndpointResumed => format!(
            "{what}\nworks again: it was resumed at {at}. What waited is sent now, the oldest first.\n"
        ),
        News::EndpointSuspended { failing_since: Some(since) } => format!(
            "{what}\nwas suspended at {at}: it has failed since {} without a success in between.\n\
             Deliveries wait. Nothing is sent but a probe now and then.\n",
            time(since)
        ),
        _ => format!(
            "{what}\nwas suspended at {at} by an operator.\n\
             Deliveries wait. Nothing is sent but a probe now and then.\n"
        ),
    }
}

fn answers(text: &mut String, letter: &Letter) {
    if letter.attempts.is_empty() {
        return;
    }
    text.push_str("\nThe last failed attempts:\n");
    for attempt in &letter.attempts {
        let _infallible =
            writeln!(text, "  {}  {}", time(attempt.started_at), answer(attempt, letter));
    }
}

fn answer(attempt: &Attempt, letter: &Letter) -> String {
    let line = |said: &[u8]| clean::line(said, &letter.endpoint, ANSWER_CHARS);
    match &attempt.outcome {
        Outcome::Answered(answer) if answer.body.is_empty() => format!("status {}", answer.status),
        Outcome::Answered(answer) => format!("status {}: {}", answer.status, line(&answer.body)),
        Outcome::Failed(failure) => {
            format!("{}: {}", failure.kind.name(), line(failure.text.as_bytes()))
        }
    }
}

fn waiting(text: &mut String, letter: &Letter) {
    let more = if letter.waiting >= WAITING_COUNTED_MAX { " or more" } else { "" };
    let _infallible = match (letter.waiting, letter.oldest) {
        (0, _) | (_, None) => writeln!(text, "\nNothing waits for it."),
        (count, Some(oldest)) => {
            writeln!(text, "\nWaiting: {count}{more}, the oldest since {}.", time(oldest))
        }
    };
}

fn advice(text: &mut String, letter: &Letter) {
    let app = letter.app.id.text(Kind::Application);
    let endpoint = letter.endpoint.id.text(Kind::Endpoint);
    let path = format!("/api/v1/app/{app}/endpoint/{endpoint}");
    let letters = format!("/api/v1/app/{app}/dead-letter?endpoint_id={endpoint}");
    let lines: Vec<(&str, String)> = match letter.news {
        News::EndpointResumed => vec![("what was given up meanwhile", format!("GET {letters}"))],
        _ => vec![
            ("the receiver was repaired: nothing, or at once", resume(&path)),
            ("it has another URL", format!("PATCH {path} {{\"url\": \"https://…\"}}")),
            ("nothing is to be sent any more", format!("PATCH {path} {{\"disabled\": true}}")),
            ("look at it", format!("GET {path}/breaker")),
            ("what was given up meanwhile", format!("GET {letters}")),
        ],
    };
    text.push_str("\nWhat to do:\n");
    for (when, call) in lines {
        let _infallible = writeln!(text, "  {when}:\n    {call}");
    }
}

fn resume(path: &str) -> String {
    format!("POST {path}/breaker {{\"state\": \"auto\"}}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use domain::application::Application;
    use domain::attempt::{Failure, FailureKind};
    use domain::delivery::{Pending, Trigger};
    use domain::ids::{AppKey, MessageKey, PublicId};
    use resilience::Timestamp;
    use store::conformance::samples;

    use super::*;

    const AT: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn letter(news: News) -> Letter {
        let mut spec = samples::endpoint_to("https://hooks.example:8443/secret-path");
        spec.contact_email = samples::full_endpoint().contact_email;
        spec.description = "<b>boss\r\n".to_owned();
        let endpoint = Arc::new(samples::stored_endpoint(spec));
        let app = Arc::new(Application {
            key: AppKey(1),
            id: PublicId::new(9, [9; 12]),
            org: PublicId::new(8, [8; 12]),
            spec: samples::app(Some("<i>tenant")),
            version: 1,
            created_at: AT,
            updated_at: AT,
        });
        let row = Pending {
            endpoint: endpoint.key,
            due_at: AT,
            message: MessageKey(1),
            age_from: AT,
            sends: 0,
            budget_used: 0,
            last_delay: Duration::ZERO,
            trigger: Trigger::Scheduled,
        };
        let failure = Failure { kind: FailureKind::Timeout, text: "no answer in time".to_owned() };
        let attempts = vec![
            samples::answered(&row, 503, AT),
            samples::attempt(&row, AT, Outcome::Failed(failure)),
        ];
        let to = endpoint.spec.contact_email.clone().unwrap();
        Letter {
            number: 7,
            to,
            news,
            at: AT,
            endpoint,
            app,
            attempts,
            waiting: 12,
            oldest: Some(AT),
        }
    }

    #[test]
    fn each_letter_says_what_happened_and_what_to_do() {
        let since = AT.minus(Duration::from_secs(3_600));
        let kinds = [
            (News::EndpointFailing { failing_since: since }, "is failing", "2027-01-15T07:00:00Z"),
            (
                News::EndpointSuspended { failing_since: Some(since) },
                "was suspended",
                "failed since 2027-01-15T07:00:00Z",
            ),
            (News::EndpointSuspended { failing_since: None }, "was suspended", "by an operator"),
            (News::EndpointResumed, "works again", "2027-01-15T08:00:00Z"),
        ];
        for (news, in_subject, in_text) in kinds {
            let letter = letter(news);
            let (subject, text) = (subject(&letter), text(&letter));
            assert!(subject.contains(in_subject) && text.contains(in_text), "{subject}\n{text}");
            assert!(text.contains("Waiting: 12, the oldest since 2027-01-15T08:00:00Z."), "{text}");
            assert!(text.contains("https://hooks.example:8443"), "{text}");
            let failed = text.contains("status 503") && text.contains("timeout: no answer in time");
            assert_eq!(failed, news != News::EndpointResumed, "{text}");
            assert_eq!(text.contains(r#"/breaker {"state": "auto"}"#), failed, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 250), "{text}");
        }
    }

    #[test]
    fn ui_02_nothing_that_a_tenant_chose_stands_in_it() {
        let letter = letter(News::EndpointSuspended { failing_since: None });
        let all = subject(&letter) + &text(&letter);
        for chosen in ["secret-path", "boss", "tenant", "<", ">"] {
            assert!(!all.contains(chosen), "{chosen}: {all}");
        }
        assert!(!subject(&letter).contains(char::is_control));
    }
}
