//! Which endpoints want a message.
//!
//! In: the endpoints of an application and a message. Out: those of them that get a delivery.
//! Never: leave out a disabled endpoint; its deliveries wait until it is enabled.

use std::sync::Arc;

use crate::endpoint::Endpoint;
use crate::message::MessageSpec;

/// Whether `endpoint` wants a message of this type on these channels.
///
/// No filter on event types takes all, otherwise one must be equal. An endpoint without channels
/// takes all messages; one with channels takes only those that share one, so a message without
/// channels goes only to endpoints without.
pub fn wants(endpoint: &Endpoint, event_type: &str, channels: &[String]) -> bool {
    let spec = &endpoint.spec;
    let typed =
        spec.event_types.as_ref().is_none_or(|types| types.iter().any(|name| name == event_type));
    typed
        && spec
            .channels
            .as_ref()
            .is_none_or(|own| own.iter().any(|channel| channels.contains(channel)))
}

/// Those of `endpoints` that want the message, in their order.
pub fn matching<'a>(
    endpoints: &'a [Arc<Endpoint>],
    spec: &MessageSpec,
) -> impl Iterator<Item = &'a Arc<Endpoint>> {
    endpoints.iter().filter(|endpoint| wants(endpoint, &spec.event_type, &spec.channels))
}

#[cfg(test)]
mod tests {
    use resilience::Timestamp;

    use super::*;
    use crate::endpoint::{Disabled, EndpointSpec, Ordering};
    use crate::ids::{AppKey, EndpointKey, PublicId};
    use crate::message::ContentType;
    use crate::policy::{BreakerOverrides, RetryOverrides};
    use crate::target::Target;

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.into()).collect()
    }

    fn endpoint(key: i64, types: Option<&[&str]>, channels: Option<&[&str]>) -> Endpoint {
        let id = PublicId::new(1, [1; 12]);
        Endpoint {
            key: EndpointKey(key),
            id,
            app: AppKey(1),
            app_id: id,
            spec: EndpointSpec {
                target: Target::parse("url", "https://h.example/", false).unwrap(),
                description: String::new(),
                uid: None,
                version: 1,
                disabled: None,
                event_types: types.map(list),
                channels: channels.map(list),
                throttle_rate: None,
                metadata: "{}".into(),
                headers: Vec::new(),
                retry: RetryOverrides::default(),
                breaker: BreakerOverrides::default(),
                timeout: None,
                ordering: Ordering::Unordered,
                contact_email: None,
                auto_replay: None,
                health_check: None,
            },
            secrets: Vec::new(),
            version: 1,
            created_at: Timestamp::EPOCH,
            updated_at: Timestamp::EPOCH,
        }
    }

    #[test]
    fn filters_follow_the_wire_contract() {
        // endpoint's types, endpoint's channels, message's channels, wanted
        type Row<'a> = (Option<&'a [&'a str]>, Option<&'a [&'a str]>, &'a [&'a str], bool);
        let rows: [Row<'_>; 11] = [
            (None, None, &[], true),
            (None, None, &["a"], true),
            (Some(&["user.made"]), None, &[], true),
            (Some(&["user.gone", "user.made"]), None, &["a"], true),
            (Some(&["user"]), None, &[], false),
            (Some(&["User.Made"]), None, &[], false),
            (None, Some(&["a", "b"]), &["b", "c"], true),
            (None, Some(&["a"]), &["A"], false),
            (None, Some(&["a"]), &[], false),
            (Some(&["user.made"]), Some(&["a"]), &["a"], true),
            (Some(&["user.gone"]), Some(&["a"]), &["a"], false),
        ];
        for (types, own, channels, wanted) in rows {
            let endpoint = endpoint(1, types, own);
            assert_eq!(
                wants(&endpoint, "user.made", &list(channels)),
                wanted,
                "{types:?} {own:?} {channels:?}"
            );
        }
    }

    #[test]
    fn disabled_endpoints_get_a_delivery_that_waits() {
        let mut off = endpoint(2, None, None);
        off.spec.disabled = Some(Disabled::ByOwner);
        let all = [endpoint(1, None, None), off, endpoint(3, Some(&["other"]), None)].map(Arc::new);
        let spec = MessageSpec {
            event_type: "user.made".into(),
            event_id: None,
            channels: Vec::new(),
            tags: Vec::new(),
            payload: bytes::Bytes::new(),
            content_type: ContentType::Json,
            retention_hours: None,
            deliver_at: None,
            trace: None,
        };
        let keys: Vec<_> = matching(&all, &spec).map(|endpoint| endpoint.key.0).collect();
        assert_eq!(keys, [1, 2]);
    }
}
