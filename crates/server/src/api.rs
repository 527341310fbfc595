//! The API: which path leads to which handler, and what all handlers share.
//!
//! One file per resource. Every query begins from the caller's organisation, and from the
//! application in the path; what is not theirs is not there.
//! Never: decide about deliveries, or hold state.

mod access;
mod alert_access;
mod alert_incidents;
mod alert_routes;
mod alert_rules;
mod alert_silences;
mod alert_spec;
mod applications;
mod attempt_filter;
mod attempted;
mod attempts;
mod breaker;
mod dead_letters;
mod difference;
mod docs;
mod document;
mod endpoint_change;
mod endpoint_headers;
mod endpoint_secrets;
mod endpoint_spec;
mod endpoint_stats;
mod endpoints;
mod event_types;
mod explain;
mod figures;
mod health;
mod inputs;
mod letter_replays;
mod message_in;
mod messages;
mod methods;
mod once;
mod openapi;
mod openapi_import;
mod operation;
mod operational;
mod own;
mod precheck;
mod problem_pages;
mod reach;
mod reference;
mod replays;
mod resend;
mod schemas;
mod send_example;
mod shapes;
mod tasks;
mod traced;
mod usage;
pub(crate) mod views;

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;

use methods::{Methods, Served, delete, get, post, put};

use crate::http::problem::Problem;
use crate::state::Shared;
use crate::telemetry::metrics::UNMATCHED;

/// Routes, and the table of them.
pub(crate) struct Routes {
    router: Router<Arc<Shared>>,
    table: Vec<Served>,
    docs: docs::Docs,
}

impl Routes {
    /// All routes.
    pub(crate) fn all() -> Self {
        let docs = docs::Docs::default();
        let none = Self { router: Router::new(), table: Vec::new(), docs };
        let all = none.outside().directory().deliveries().dead_letters().tasks();
        all.access().operational().alerts().docs()
    }

    /// What a node answers that does not answer the API.
    pub(crate) fn unasked() -> Self {
        let docs = docs::Docs::default();
        Self { router: Router::new(), table: Vec::new(), docs }.outside()
    }

    /// The templates of all paths, which are the labels of the metrics.
    pub(crate) fn templates(&self) -> Vec<&'static str> {
        self.table.iter().map(|served| served.path).collect()
    }

    /// The router, counting every answer.
    pub(crate) fn router(self, shared: Arc<Shared>) -> Router {
        self.router
            .route_layer(middleware::from_fn_with_state(Arc::clone(&shared), count))
            .method_not_allowed_fallback(wrong_method)
            .fallback(wrong_path)
            .with_state(shared)
    }

    fn route(mut self, path: &'static str, methods: Methods) -> Self {
        let (router, operations) = methods.into_parts();
        self.router = self.router.route(path, router);
        self.table.push(Served { path, operations });
        self
    }

    /// Describes what is served, itself included, and explains errors.
    fn docs(self) -> Self {
        let (page, document) = (self.docs.clone(), self.docs.clone());
        let all = self
            .route("/docs/problems/{code}", get(problem_pages::read, problem_pages::READ))
            .route("/docs", get(async move || page.page(), docs::PAGE))
            .route("/api/v1/openapi.json", get(async move || document.document(), docs::DOCUMENT));
        all.docs.of(all.table.clone());
        all
    }

    fn outside(self) -> Self {
        self.route("/", get(health::home, health::HOME))
            .route("/metrics", get(health::metrics, health::METRICS))
            .route("/api/v1/health", get(health::health, health::HEALTH))
            .route("/api/v1/health/ping", get(health::ping, health::PING))
    }

    fn directory(self) -> Self {
        use {
            applications as apps, endpoint_headers as headers, endpoint_secrets as secrets,
            event_types as types,
        };
        self.route("/api/v1/app", get(apps::list, apps::LIST).post(apps::create, apps::CREATE))
            .route(
                "/api/v1/app/{app}",
                get(apps::read, apps::READ)
                    .put(apps::put, apps::PUT)
                    .patch(apps::patch, apps::PATCH)
                    .delete(apps::delete, apps::DELETE),
            )
            .route(
                "/api/v1/app/{app}/endpoint",
                get(endpoints::list, endpoints::LIST).post(endpoints::create, endpoints::CREATE),
            )
            .route(
                "/api/v1/app/{app}/endpoint/{endpoint}",
                get(endpoints::read, endpoints::READ)
                    .put(endpoints::put, endpoints::PUT)
                    .patch(endpoints::patch, endpoints::PATCH)
                    .delete(endpoints::delete, endpoints::DELETE),
            )
            .route(
                "/api/v1/app/{app}/endpoint/{endpoint}/headers",
                get(headers::read, headers::READ)
                    .put(headers::put, headers::PUT)
                    .patch(headers::patch, headers::PATCH),
            )
            .route(
                "/api/v1/app/{app}/endpoint/{endpoint}/secret",
                get(secrets::read, secrets::READ),
            )
            .route(
                "/api/v1/app/{app}/endpoint/{endpoint}/secret/rotate",
                post(secrets::rotate, secrets::ROTATE),
            )
            .route(
                "/api/v1/app/{app}/endpoint/{endpoint}/breaker",
                get(breaker::read, breaker::READ).post(breaker::force, breaker::FORCE),
            )
            .route(
                "/api/v1/app/{app}/endpoint/{endpoint}/stats",
                get(endpoint_stats::read, endpoint_stats::READ),
            )
            .route(
                "/api/v1/app/{app}/endpoint/{endpoint}/figures",
                get(figures::of_endpoint, figures::OF_ENDPOINT),
            )
            .route("/api/v1/app/{app}/figures", get(figures::of_app, figures::OF_APP))
            .route("/api/v1/stats/usage/event-types", put(usage::event_types, usage::EVENT_TYPES))
            .route("/api/v1/stats/usage/app", post(usage::applications, usage::APPLICATIONS))
            .route(
                "/api/v1/event-type/import/openapi",
                post(openapi_import::import, openapi_import::IMPORT),
            )
            .route(
                "/api/v1/event-type",
                get(types::list, types::LIST).post(types::create, types::CREATE),
            )
            .route(
                "/api/v1/event-type/{name}",
                get(types::read, types::READ)
                    .put(types::put, types::PUT)
                    .patch(types::patch, types::PATCH)
                    .delete(types::delete, types::DELETE),
            )
    }

    fn deliveries(self) -> Self {
        self.route(
            "/api/v1/app/{app}/msg",
            get(messages::list, messages::LIST).post(messages::create, messages::CREATE),
        )
        .route("/api/v1/app/{app}/msg/{message}", get(messages::read, messages::READ))
        .route(
            "/api/v1/app/{app}/msg/{message}/content",
            delete(messages::expunge, messages::EXPUNGE),
        )
        .route("/api/v1/app/{app}/msg/precheck/active", post(precheck::active, precheck::ACTIVE))
        .route(
            "/api/v1/app/{app}/endpoint/{endpoint}/send-example",
            post(send_example::send, send_example::SEND),
        )
        .route(
            "/api/v1/app/{app}/endpoint/{endpoint}/msg",
            get(attempted::messages, attempted::MESSAGES),
        )
        .route(
            "/api/v1/app/{app}/msg/{message}/endpoint",
            get(attempted::destinations, attempted::DESTINATIONS),
        )
        .route(
            "/api/v1/app/{app}/attempt/msg/{message}",
            get(attempts::of_message, attempts::OF_MESSAGE),
        )
        .route(
            "/api/v1/app/{app}/msg/{message}/attempt",
            get(attempts::of_message, attempts::OF_MESSAGE_OLD),
        )
        .route(
            "/api/v1/app/{app}/attempt/endpoint/{endpoint}",
            get(attempts::to_endpoint, attempts::TO_ENDPOINT),
        )
        .route(
            "/api/v1/app/{app}/msg/{message}/attempt/{attempt}",
            get(attempts::read, attempts::READ),
        )
        .route(
            "/api/v1/app/{app}/msg/{message}/attempt/{attempt}/content",
            delete(attempts::expunge, attempts::EXPUNGE),
        )
        .route(
            "/api/v1/app/{app}/msg/{message}/endpoint/{endpoint}/attempt",
            get(attempts::of_delivery, attempts::OF_DELIVERY),
        )
        .route(
            "/api/v1/app/{app}/msg/{message}/endpoint/{endpoint}/resend",
            post(resend::resend, resend::RESEND),
        )
        .route(
            "/api/v1/app/{app}/msg/{message}/endpoint/{endpoint}/explain",
            get(explain::explain, explain::EXPLAIN),
        )
    }

    fn tasks(self) -> Self {
        self.route(
            "/api/v1/app/{app}/endpoint/{endpoint}/recover",
            post(replays::recover, replays::RECOVER),
        )
        .route(
            "/api/v1/app/{app}/endpoint/{endpoint}/replay-missing",
            post(replays::missing, replays::MISSING),
        )
        .route(
            "/api/v1/app/{app}/endpoint/{endpoint}/bulk-replay",
            post(replays::again, replays::AGAIN),
        )
        .route(
            "/api/v1/app/{app}/msg/expunge-all-contents",
            post(replays::expunge_all, replays::EXPUNGE_ALL),
        )
        .route("/api/v1/background-task", get(tasks::list, tasks::LIST))
        .route("/api/v1/background-task/{task}", get(tasks::read, tasks::READ))
        .route("/api/v1/background-task/{task}/cancel", post(tasks::cancel, tasks::CANCEL))
    }

    fn access(self) -> Self {
        self.route("/api/v1/auth/app-portal-access/{app}", post(access::portal, access::PORTAL))
            .route("/api/v1/auth/dashboard-access/{app}", post(access::portal, access::PORTAL_OLD))
            .route(
                "/api/v1/auth/app/{app}/expire-all",
                post(access::expire_all, access::EXPIRE_ALL),
            )
            .route("/api/v1/auth/logout", post(access::logout, access::LOGOUT))
    }

    fn operational(self) -> Self {
        use {endpoint_headers as headers, endpoint_secrets as secrets, operational as told};
        self.route(
            "/api/v1/operational-webhook/endpoint",
            get(told::list, told::LIST).post(told::create, told::CREATE),
        )
        .route(
            "/api/v1/operational-webhook/endpoint/{endpoint}",
            get(endpoints::read, told::READ)
                .put(endpoints::put, told::PUT)
                .patch(endpoints::patch, told::PATCH)
                .delete(endpoints::delete, told::DELETE),
        )
        .route(
            "/api/v1/operational-webhook/endpoint/{endpoint}/headers",
            get(headers::read, told::READ_HEADERS)
                .put(headers::put, told::PUT_HEADERS)
                .patch(headers::patch, told::PATCH_HEADERS),
        )
        .route(
            "/api/v1/operational-webhook/endpoint/{endpoint}/secret",
            get(secrets::read, told::READ_SECRET),
        )
        .route(
            "/api/v1/operational-webhook/endpoint/{endpoint}/secret/rotate",
            post(secrets::rotate, told::ROTATE_SECRET),
        )
    }

    fn alerts(self) -> Self {
        use {
            alert_incidents as incidents, alert_routes as routes, alert_rules as rules,
            alert_silences as silences,
        };
        self.route("/api/v1/alert/rule", get(rules::list, rules::LIST))
            .route(
                "/api/v1/alert/rule/{rule}",
                get(rules::read, rules::READ)
                    .put(rules::put, rules::PUT)
                    .patch(rules::patch, rules::PATCH)
                    .delete(rules::delete, rules::DELETE),
            )
            .route("/api/v1/alert/route", get(routes::list, routes::LIST))
            .route(
                "/api/v1/alert/route/{route}",
                get(routes::read, routes::READ)
                    .put(routes::put, routes::PUT)
                    .patch(routes::patch, routes::PATCH)
                    .delete(routes::delete, routes::DELETE),
            )
            .route("/api/v1/alert/route/{route}/test", post(routes::test, routes::TEST))
            .route(
                "/api/v1/alert/silence",
                get(silences::list, silences::LIST).post(silences::create, silences::CREATE),
            )
            .route("/api/v1/alert/silence/{silence}", delete(silences::delete, silences::DELETE))
            .route("/api/v1/alert/incident", get(incidents::list, incidents::LIST))
            .route("/api/v1/alert/incident/{incident}", get(incidents::read, incidents::READ))
            .route(
                "/api/v1/alert/incident/{incident}/acknowledge",
                post(incidents::acknowledge, incidents::ACKNOWLEDGE),
            )
    }

    fn dead_letters(self) -> Self {
        self.route("/api/v1/dead-letter", get(dead_letters::list_org, dead_letters::LIST_ORG))
            .route("/api/v1/app/{app}/dead-letter", get(dead_letters::list, dead_letters::LIST))
            .route(
                "/api/v1/app/{app}/dead-letter/{letter}",
                get(dead_letters::read, dead_letters::READ)
                    .delete(dead_letters::delete, dead_letters::DELETE),
            )
            .route(
                "/api/v1/app/{app}/dead-letter/{letter}/replay",
                post(dead_letters::replay, dead_letters::REPLAY),
            )
            .route(
                "/api/v1/app/{app}/dead-letter/replay",
                post(letter_replays::replay_many, letter_replays::REPLAY_MANY),
            )
    }
}

async fn count(
    State(shared): State<Arc<Shared>>,
    template: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    shared.metrics.count(template.as_str(), response.status().as_u16());
    response
}

async fn wrong_path(State(shared): State<Arc<Shared>>) -> Problem {
    shared.metrics.count(UNMATCHED, 404);
    Problem::not_found("There is nothing under this path")
}

async fn wrong_method() -> Problem {
    let detail = "This path does not take this method";
    Problem::new(http::StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}

#[cfg(test)]
mod tests;
