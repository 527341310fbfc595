//! A notice as its receivers get it: `{"type": …, "data": …}`, the payload of an ordinary message.
//!
//! Never: a field that a receiver would have to ask somebody else about; all of it is as it was
//! when it happened.

use bytes::Bytes;
use domain::ids::Kind;
use domain::notice::{LastAttempt, NAMES, Named, News, Notice};
use schemars::JsonSchema;
use serde::Serialize;

use super::dead_letter::run_id;
use super::time;
use crate::api::shapes::{AppId, AttemptId, EndpointId, MessageId, RunId, Time};

/// What happened in an organisation.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OperationalWebhookOut")]
pub(crate) struct NoticeOut<'a> {
    #[schemars(extend("enum" = NAMES.map(|(name, _)| name)))]
    #[serde(rename = "type")]
    name: &'static str,
    data: Data<'a>,
}

/// What it happened to, as it was then.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OperationalWebhookData")]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[schemars(with = "AppId")]
    app_id: String,
    app_uid: Option<&'a str>,
    #[schemars(with = "EndpointId")]
    endpoint_id: String,
    /// Of an endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint_uid: Option<Option<&'a str>>,
    /// Of an attempt.
    #[schemars(with = "MessageId")]
    #[serde(skip_serializing_if = "Option::is_none")]
    msg_id: Option<String>,
    /// Of an attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    msg_event_id: Option<Option<&'a str>>,
    /// Of an attempt, and of an endpoint that was switched off; null if nothing was ever sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt: Option<Option<AttemptOut>>,
    /// Of an endpoint that was switched off, that fails, or that was suspended for failing.
    #[schemars(with = "Time")]
    #[serde(skip_serializing_if = "Option::is_none")]
    fail_since: Option<String>,
    /// Of an endpoint that was switched off.
    #[schemars(extend("const" = "automatic"), with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<&'static str>,
    /// Of a breaker that opened.
    #[schemars(with = "Time")]
    #[serde(skip_serializing_if = "Option::is_none")]
    open_until: Option<String>,
    /// Of a run of refusals: the dead letters of it are listed and put back by this.
    #[schemars(with = "RunId")]
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    /// Of a run of refusals: when the first of them came.
    #[schemars(with = "Time")]
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_since: Option<String>,
}

/// The last attempt of a delivery.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OperationalWebhookAttempt")]
#[serde(rename_all = "camelCase")]
struct AttemptOut {
    #[schemars(with = "AttemptId")]
    id: String,
    /// 0 for no answer.
    response_status_code: u16,
    #[schemars(with = "Time")]
    timestamp: String,
}

impl AttemptOut {
    fn of(last: &LastAttempt) -> Self {
        Self {
            id: last.id.text(Kind::Attempt),
            response_status_code: last.status,
            timestamp: time(last.at),
        }
    }
}

/// The payload of a notice.
pub(crate) fn payload(notice: &Notice) -> Bytes {
    let news = notice.news;
    let (is_attempt, is_disabled) = match news {
        News::AttemptFailing | News::AttemptExhausted | News::AttemptRecovered => (true, false),
        News::EndpointDisabled { .. } => (false, true),
        _ => (false, false),
    };
    let run = match news {
        News::RefusalsHeld(run) | News::RefusalsEnded(run) => Some(run),
        _ => None,
    };
    let id = |named: &Named, kind: Kind| named.0.text(kind);
    let message = notice.message.as_ref().filter(|_| is_attempt);
    let data = Data {
        app_id: id(&notice.app, Kind::Application),
        app_uid: notice.app.1.as_deref(),
        endpoint_id: id(&notice.endpoint, Kind::Endpoint),
        // As those who know these events have it: an attempt's do not name it.
        endpoint_uid: (!is_attempt).then_some(notice.endpoint.1.as_deref()),
        msg_id: message.map(|message| id(message, Kind::Message)),
        msg_event_id: message.map(|message| message.1.as_deref()),
        last_attempt: (is_attempt || is_disabled)
            .then(|| notice.attempt.as_ref().map(AttemptOut::of)),
        fail_since: match news {
            News::EndpointDisabled { failing_since } | News::EndpointFailing { failing_since } => {
                Some(time(failing_since))
            }
            News::EndpointSuspended { failing_since } => failing_since.map(time),
            _ => None,
        },
        trigger: is_disabled.then_some("automatic"),
        open_until: match news {
            News::BreakerOpened { until } => Some(time(until)),
            _ => None,
        },
        run_id: run.map(|run| run_id(run.endpoint, run.since)),
        refused_since: run.map(|run| time(run.since)),
    };
    // Texts and numbers alone, so this cannot fail.
    serde_json::to_vec(&NoticeOut { name: news.name(), data }).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use domain::ids::{EndpointKey, PublicId};
    use domain::notice::Run;
    use resilience::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn shown(news: News, uid: Option<&str>, attempt: Option<LastAttempt>) -> Value {
        let named = |fill: u8| (PublicId::new(1, [fill; 12]), uid.map(str::to_owned));
        let notice = Notice {
            org: PublicId::new(1, [1; 12]),
            news,
            app: named(2),
            endpoint: named(3),
            message: Some(named(4)),
            attempt,
        };
        serde_json::from_slice(&payload(&notice)).unwrap()
    }

    fn id(fill: u8, kind: Kind) -> String {
        PublicId::new(1, [fill; 12]).text(kind)
    }

    #[test]
    fn each_kind_has_its_shape() {
        let at = Timestamp::from_secs(1_800_000_000);
        let last = LastAttempt { id: PublicId::new(1, [5; 12]), status: 503, at };
        let (app, endpoint) = (id(2, Kind::Application), id(3, Kind::Endpoint));
        let text = "2027-01-15T08:00:00Z";
        assert_eq!(
            shown(News::EndpointCreated, Some("u"), None),
            json!({"type": "endpoint.created", "data": {
                "appId": app, "appUid": "u", "endpointId": endpoint, "endpointUid": "u",
            }})
        );
        assert_eq!(
            shown(News::BreakerOpened { until: at }, None, None),
            json!({"type": "endpoint.breaker.opened", "data": {
                "appId": app, "appUid": null, "endpointId": endpoint, "endpointUid": null,
                "openUntil": text,
            }})
        );
        for (news, since) in [
            (News::EndpointFailing { failing_since: at }, Some(text)),
            (News::EndpointSuspended { failing_since: Some(at) }, Some(text)),
            (News::EndpointSuspended { failing_since: None }, None),
            (News::EndpointResumed, None),
        ] {
            let mut data = json!({
                "appId": app, "appUid": null, "endpointId": endpoint, "endpointUid": null,
            });
            if let Some(since) = since {
                data["failSince"] = json!(since);
            }
            assert_eq!(shown(news, None, Some(last)), json!({"type": news.name(), "data": data}));
        }
        let run = Run { endpoint: EndpointKey(7), since: at };
        for news in [News::RefusalsHeld(run), News::RefusalsEnded(run)] {
            let data = json!({
                "appId": app, "appUid": null, "endpointId": endpoint, "endpointUid": null,
                "runId": run_id(run.endpoint, at), "refusedSince": text,
            });
            assert_eq!(shown(news, None, None), json!({"type": news.name(), "data": data}));
        }
        let attempt = json!({
            "id": id(5, Kind::Attempt), "responseStatusCode": 503, "timestamp": text,
        });
        assert_eq!(
            shown(News::EndpointDisabled { failing_since: at }, None, Some(last)),
            json!({"type": "endpoint.disabled", "data": {
                "appId": app, "appUid": null, "endpointId": endpoint, "endpointUid": null,
                "failSince": text, "trigger": "automatic", "lastAttempt": attempt,
            }})
        );
        assert_eq!(
            shown(News::AttemptExhausted, Some("u"), Some(last)),
            json!({"type": "message.attempt.exhausted", "data": {
                "appId": app, "appUid": "u", "endpointId": endpoint,
                "msgId": id(4, Kind::Message), "msgEventId": "u", "lastAttempt": attempt,
            }})
        );
        let unsent = shown(News::AttemptExhausted, None, None);
        assert_eq!(
            (&unsent["data"]["lastAttempt"], &unsent["data"]["msgEventId"]),
            (&Value::Null, &Value::Null)
        );
    }
}
