//! What a token of an application may do beside reading.
//!
//! In: names, and the method and route of a request. Out: whether these names allow it.
//! Never: allow what no name stands for; a route that is not told apart here takes all of them.

use domain::error::Invalid;
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What ends a token, and so is open to one that may only look.
pub(crate) const LOGOUT: &str = "/api/v1/auth/logout";

/// One thing that a token may do, as the SDKs call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AppPortalCapability")]
pub(crate) enum Capability {
    /// Reading, but no secrets.
    ViewBase,
    /// Reading secrets.
    ViewEndpointSecret,
    /// Reading and rotating secrets.
    ManageEndpointSecret,
    /// Stands for nothing here: there are no transformations.
    ManageTransformations,
    /// Replays and resends.
    CreateAttempts,
    /// Making, changing and deleting endpoints, with their secrets.
    ManageEndpoint,
}

use Capability::{CreateAttempts, ManageEndpoint, ManageEndpointSecret, ViewEndpointSecret};

/// What is done to an endpoint's configuration, below `/api/v1/app/{app}`.
const CONFIGURING: [&str; 4] = [
    "/endpoint",
    "/endpoint/{endpoint}",
    "/endpoint/{endpoint}/headers",
    "/endpoint/{endpoint}/breaker",
];
/// What makes attempts, by how its route ends.
const ATTEMPTING: [&str; 6] =
    ["/recover", "/replay-missing", "/bulk-replay", "/resend", "/replay", "/cancel"];

/// What a list names; reading is in every list.
pub(crate) fn capabilities(name: &str, value: &Value) -> Result<Vec<Capability>, Invalid> {
    let rule = "must be a list of capabilities: ViewBase, ViewEndpointSecret, \
                ManageEndpointSecret, ManageTransformations, CreateAttempts, ManageEndpoint";
    match Vec::<Capability>::deserialize(value) {
        Ok(named) if named.is_empty() => {
            Err(Invalid::new(name, "must not be empty: a token that may do nothing is none"))
        }
        Ok(named) => Ok(named),
        Err(_) => Err(Invalid::new(name, rule)),
    }
}

/// Whether these allow a request that a token of an application may make at all.
pub(crate) fn allow(all: &[Capability], method: &Method, route: &str) -> bool {
    let has = |one| all.contains(&one);
    let of_app = route.strip_prefix("/api/v1/app/{app}");
    if method.is_safe() || route == LOGOUT {
        true
    } else if of_app == Some("/endpoint/{endpoint}/secret/rotate") {
        has(ManageEndpointSecret) || has(ManageEndpoint)
    } else if of_app.is_some_and(|rest| CONFIGURING.contains(&rest)) {
        has(ManageEndpoint)
    } else if ATTEMPTING.iter().any(|end| route.ends_with(end)) {
        has(CreateAttempts)
    } else {
        has(CreateAttempts) && has(ManageEndpoint)
    }
}

/// Whether these allow to read signing secrets.
pub(crate) fn show_secrets(all: &[Capability]) -> bool {
    let shows = |one: &Capability| {
        matches!(one, ViewEndpointSecret | ManageEndpointSecret | ManageEndpoint)
    };
    all.iter().any(shows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_allows_what_its_name_says() {
        let app = |rest: &str| format!("/api/v1/app/{{app}}{rest}");
        // method, route, the names of which one is enough
        let table = [
            (Method::GET, app("/msg"), vec![Capability::ViewBase]),
            (Method::POST, LOGOUT.to_owned(), vec![Capability::ViewBase]),
            (Method::POST, app("/endpoint"), vec![ManageEndpoint]),
            (Method::DELETE, app("/endpoint/{endpoint}"), vec![ManageEndpoint]),
            (Method::PATCH, app("/endpoint/{endpoint}/headers"), vec![ManageEndpoint]),
            (Method::POST, app("/endpoint/{endpoint}/breaker"), vec![ManageEndpoint]),
            (
                Method::POST,
                app("/endpoint/{endpoint}/secret/rotate"),
                vec![ManageEndpointSecret, ManageEndpoint],
            ),
            (Method::POST, app("/endpoint/{endpoint}/recover"), vec![CreateAttempts]),
            (Method::POST, app("/endpoint/{endpoint}/replay-missing"), vec![CreateAttempts]),
            (Method::POST, app("/msg/{message}/endpoint/{endpoint}/resend"), vec![CreateAttempts]),
            (Method::POST, app("/dead-letter/replay"), vec![CreateAttempts]),
            (Method::DELETE, app("/dead-letter/{letter}"), vec![]),
            (Method::PUT, app(""), vec![]),
        ];
        let every = [
            Capability::ViewBase,
            ViewEndpointSecret,
            ManageEndpointSecret,
            Capability::ManageTransformations,
            CreateAttempts,
            ManageEndpoint,
        ];
        for (method, route, enough) in table {
            let reads = enough.contains(&Capability::ViewBase);
            for one in every {
                let expected = reads || enough.contains(&one);
                assert_eq!(allow(&[one], &method, &route), expected, "{method} {route} {one:?}");
            }
            assert!(allow(&every, &method, &route), "{method} {route}");
        }
        let secrets = every.map(|one| show_secrets(&[one]));
        assert_eq!(secrets, [false, true, true, false, false, true]);
    }

    #[test]
    fn a_list_names_some_and_only_known_ones() {
        let good = capabilities("capabilities", &json!(["ViewBase", "CreateAttempts"])).unwrap();
        assert_eq!(good, [Capability::ViewBase, CreateAttempts]);
        for bad in [json!([]), json!(["viewBase"]), json!("ViewBase"), json!([5])] {
            assert!(capabilities("capabilities", &bad).is_err(), "{bad}");
        }
    }
}
