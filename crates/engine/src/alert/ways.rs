//! Endpoints of routes: what a route makes of them, and which of them no longer are as it says.
//!
//! A route is the first endpoint of its name; what is done to an alert at a service may go to
//! further ones. They are changed when the route changes, so that what waits goes where it leads
//! now.
//! Never: send, or know the format of a channel.

use std::time::Duration;

use domain::alert::notice::{Notice, Occasion, dedup_key};
use domain::alert::route::Route;
use domain::application::AppSnapshot;
use domain::endpoint::{Disabled, Endpoint, EndpointSpec, LiveSecret, Ordering};
use domain::ids::PublicId;
use domain::notice::MANAGEMENT;
use domain::policy::{BreakerOverrides, RetryOn, RetryOverrides, Strategy};
use resilience::{RetryAfterMode, Timestamp};
use store::directory::{EndpointChange, IdOrUid};
use store::{StoreError, Stores};

use super::parts::{APP_UID, Request, Worded, Wording};

/// What could not be told for so long is no news any more.
const AGE_MAX: Duration = Duration::from_secs(6 * 3_600);
/// The first wait is at most so long …
const BASE: Duration = Duration::from_secs(1);
/// … and none is longer.
const CAP: Duration = Duration::from_secs(5 * 60);
/// More than fit into the age, however short the waits are that chance gives.
const ATTEMPTS_MAX: u32 = 1_000;
/// Between the name of a route and the place among its endpoints.
const PLACE: &str = ".-.";
/// What endpoints of routes are described as.
const DESCRIPTION: &str = "A route of alerts";

/// The uid of an endpoint of a route.
pub(super) fn uid(route: &str, place: &str) -> String {
    if place.is_empty() { route.to_owned() } else { format!("{route}{PLACE}{place}") }
}

/// The place of an endpoint among those of a route, if it is one of them.
fn place<'a>(endpoint: &'a Endpoint, route: &str) -> Option<&'a str> {
    let rest = endpoint.spec.uid.as_deref()?.strip_prefix(route)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(PLACE) }
}

/// Whether an endpoint is one of a route.
pub(super) fn is_of(endpoint: &Endpoint, route: &Route) -> bool {
    route.channel.url().is_some() && place(endpoint, &route.name).is_some()
}

/// The name of the route that an endpoint is of, if it looks like one; whether it is says its
/// application.
pub fn route_of(endpoint: &Endpoint) -> Option<&str> {
    let uid = endpoint.spec.uid.as_deref().filter(|_| endpoint.spec.description == DESCRIPTION)?;
    Some(uid.split_once(PLACE).map_or(uid, |(route, _)| route))
}

/// What an endpoint is for a request. One at a time and in order: an all-clear never overtakes the
/// alert it is about. It is tried for as long as it is news, whatever the server does with others
/// and whatever it was told by an address that it may no longer lead to.
pub(super) fn spec(uid: String, request: &Request) -> EndpointSpec {
    EndpointSpec {
        target: request.target.clone(),
        description: DESCRIPTION.to_owned(),
        uid: Some(uid),
        version: 1,
        disabled: None,
        event_types: None,
        channels: None,
        throttle_rate: None,
        metadata: "{}".to_owned(),
        headers: request.headers.clone(),
        retry: RetryOverrides {
            strategy: Some(Strategy::FullJitter),
            base: Some(BASE),
            cap: Some(CAP),
            schedule: None,
            attempts_max: Some(ATTEMPTS_MAX),
            age_max: Some(AGE_MAX),
            retry_on: Some(RetryOn::Transient),
            retry_after: Some(RetryAfterMode::Ignore),
        },
        breaker: BreakerOverrides::default(),
        timeout: None,
        ordering: Ordering::Ordered,
        contact_email: None,
        health_check: None,
        auto_replay: Some(false),
    }
}

/// What must change of an endpoint for a request to go where its route says. What answered 410
/// stays off unless it leads elsewhere now.
pub(super) fn change(found: &Endpoint, request: &Request) -> Option<EndpointChange> {
    let wanted = spec(found.spec.uid.clone().unwrap_or_default(), request);
    let signs = found.secrets.first().map(|live| live.secret.to_private_text());
    let secret = request.secret.as_ref();
    let is_signed = secret.is_none_or(|new| signs == Some(new.to_private_text()));
    let is_there = found.spec.target == wanted.target && found.spec.headers == wanted.headers;
    if is_there && is_signed && found.spec.retry == wanted.retry {
        return None;
    }
    let disabled = found.spec.disabled.filter(|_| is_there && is_signed);
    let secrets = secret.cloned().map(|secret| vec![LiveSecret { secret, expires_at: None }]);
    let spec = Some(EndpointSpec { disabled, ..wanted });
    Some(EndpointChange { spec, secrets, disabled: None })
}

/// Changes the endpoints of a route that are not as it says; `rules` are the names of all rules.
/// Whether one was changed.
pub(super) async fn mend(
    stores: &Stores,
    app: &AppSnapshot,
    (route, wording): (&Route, &Wording),
    rules: &[String],
) -> Result<bool, StoreError> {
    let mut changed = false;
    for endpoint in app.endpoints.iter().filter(|endpoint| is_of(endpoint, route)) {
        let place = place(endpoint, &route.name).unwrap_or_default();
        let request = request_at(place, (route, wording), rules, &stores.directory.installation());
        if let Some(change) = request.and_then(|request| change(endpoint, &request)) {
            stores.directory.change_endpoint(endpoint.key, change).await?;
            changed = true;
        }
    }
    Ok(changed)
}

/// A route was set: its endpoints are as it says before that is answered, and such as answered 410
/// are enabled. `rules` are the names of all rules.
pub async fn set_anew(
    stores: &Stores,
    (route, wording): (&Route, &Wording),
    rules: &[String],
) -> Result<(), StoreError> {
    let uid = || IdOrUid::Uid(APP_UID.to_owned());
    let Some(mut app) = stores.directory.app(MANAGEMENT, uid()).await? else { return Ok(()) };
    if mend(stores, &app, (route, wording), rules).await? {
        let Some(fresh) = stores.directory.app(MANAGEMENT, uid()).await? else { return Ok(()) };
        app = fresh;
    }
    let is_off = |endpoint: &Endpoint| endpoint.spec.disabled == Some(Disabled::Gone);
    for endpoint in app.endpoints.iter().filter(|it| is_of(it, route) && is_off(it)) {
        let change = EndpointChange { disabled: Some(None), ..EndpointChange::default() };
        stores.directory.change_endpoint(endpoint.key, change).await?;
    }
    Ok(())
}

/// A request as it would go to this place of a route.
fn request_at(
    place: &str,
    (route, wording): (&Route, &Wording),
    rules: &[String],
    installation: &[u8; 16],
) -> Option<Request> {
    let trial = |occasion| {
        let id = PublicId::new(0, [0; 12]);
        Notice::test((occasion, id), (Timestamp::EPOCH, installation))
    };
    let of_rule = |rule: &String, occasion| Notice {
        rule: rule.clone(),
        dedup_key: dedup_key(installation, rule),
        ..trial(occasion)
    };
    let trials = Occasion::ALL.into_iter().map(trial);
    let others =
        rules.iter().flat_map(|rule| Occasion::ALL.map(|occasion| of_rule(rule, occasion)));
    trials.chain(others).find_map(|notice| match wording(route, &notice) {
        Some(Worded::Request(request)) if request.place == place => Some(*request),
        _ => None,
    })
}
