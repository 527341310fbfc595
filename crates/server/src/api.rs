//! The API: which path leads to which handler, and what all handlers share.
//!
//! One file per resource. Every query begins from the caller's organisation, and from the
//! application in the path; what is not theirs is not there.
//! Never: decide about deliveries, or hold state.

mod access;
mod applications;
mod attempt_filter;
mod attempted;
mod attempts;
mod breaker;
mod dead_letters;
mod docs;
mod endpoint_change;
mod endpoint_headers;
mod endpoint_secrets;
mod endpoint_spec;
mod endpoint_stats;
mod endpoints;
mod event_types;
mod health;
mod letter_replays;
mod message_in;
mod messages;
mod methods;
mod once;
mod openapi;
mod openapi_import;
mod operational;
mod operations;
mod own;
mod precheck;
mod problem_pages;
mod replays;
mod resend;
mod schemas;
mod send_example;
mod tasks;
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
}

impl Routes {
    /// All routes.
    pub(crate) fn all() -> Self {
        let none = Self { router: Router::new(), table: Vec::new() };
        let all = none.outside().directory().deliveries().dead_letters().tasks();
        all.access().operational().docs()
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
        let (router, methods) = methods.into_parts();
        self.router = self.router.route(path, router);
        self.table.push(Served { path, methods });
        self
    }

    /// Lists what is served, and explains errors.
    fn docs(self) -> Self {
        let all = self.route("/docs/problems/{code}", get(problem_pages::read));
        let page = docs::page(&all.table);
        all.route("/docs", get(async move || docs::answer(page)))
    }

    fn outside(self) -> Self {
        self.route("/", get(health::home))
            .route("/metrics", get(health::metrics))
            .route("/api/v1/health", get(health::health))
            .route("/api/v1/health/ping", get(health::ping))
    }

    fn directory(self) -> Self {
        use {
            applications as apps, endpoint_headers as headers, endpoint_secrets as secrets,
            event_types as types,
        };
        self.route("/api/v1/app", get(apps::list).post(apps::create))
            .route(
                "/api/v1/app/{app}",
                get(apps::read).put(apps::put).patch(apps::patch).delete(apps::delete),
            )
            .route("/api/v1/app/{app}/endpoint", get(endpoints::list).post(endpoints::create))
            .route(
                "/api/v1/app/{app}/endpoint/{endpoint}",
                get(endpoints::read)
                    .put(endpoints::put)
                    .patch(endpoints::patch)
                    .delete(endpoints::delete),
            )
            .route(
                "/api/v1/app/{app}/endpoint/{endpoint}/headers",
                get(headers::read).put(headers::put).patch(headers::patch),
            )
            .route("/api/v1/app/{app}/endpoint/{endpoint}/secret", get(secrets::read))
            .route("/api/v1/app/{app}/endpoint/{endpoint}/secret/rotate", post(secrets::rotate))
            .route(
                "/api/v1/app/{app}/endpoint/{endpoint}/breaker",
                get(breaker::read).post(breaker::force),
            )
            .route("/api/v1/app/{app}/endpoint/{endpoint}/stats", get(endpoint_stats::read))
            .route("/api/v1/stats/usage/event-types", put(usage::event_types))
            .route("/api/v1/stats/usage/app", post(usage::applications))
            .route("/api/v1/event-type/import/openapi", post(openapi_import::import))
            .route("/api/v1/event-type", get(types::list).post(types::create))
            .route(
                "/api/v1/event-type/{name}",
                get(types::read).put(types::put).patch(types::patch).delete(types::delete),
            )
    }

    fn deliveries(self) -> Self {
        self.route("/api/v1/app/{app}/msg", get(messages::list).post(messages::create))
            .route("/api/v1/app/{app}/msg/{message}", get(messages::read))
            .route("/api/v1/app/{app}/msg/{message}/content", delete(messages::expunge))
            .route("/api/v1/app/{app}/msg/precheck/active", post(precheck::active))
            .route("/api/v1/app/{app}/endpoint/{endpoint}/send-example", post(send_example::send))
            .route("/api/v1/app/{app}/endpoint/{endpoint}/msg", get(attempted::messages))
            .route("/api/v1/app/{app}/msg/{message}/endpoint", get(attempted::destinations))
            .route("/api/v1/app/{app}/attempt/msg/{message}", get(attempts::of_message))
            .route("/api/v1/app/{app}/msg/{message}/attempt", get(attempts::of_message))
            .route("/api/v1/app/{app}/attempt/endpoint/{endpoint}", get(attempts::to_endpoint))
            .route("/api/v1/app/{app}/msg/{message}/attempt/{attempt}", get(attempts::read))
            .route(
                "/api/v1/app/{app}/msg/{message}/attempt/{attempt}/content",
                delete(attempts::expunge),
            )
            .route(
                "/api/v1/app/{app}/msg/{message}/endpoint/{endpoint}/attempt",
                get(attempts::of_delivery),
            )
            .route(
                "/api/v1/app/{app}/msg/{message}/endpoint/{endpoint}/resend",
                post(resend::resend),
            )
    }

    fn tasks(self) -> Self {
        self.route("/api/v1/app/{app}/endpoint/{endpoint}/recover", post(replays::recover))
            .route("/api/v1/app/{app}/endpoint/{endpoint}/replay-missing", post(replays::missing))
            .route("/api/v1/app/{app}/endpoint/{endpoint}/bulk-replay", post(replays::again))
            .route("/api/v1/app/{app}/msg/expunge-all-contents", post(replays::expunge_all))
            .route("/api/v1/background-task", get(tasks::list))
            .route("/api/v1/background-task/{task}", get(tasks::read))
            .route("/api/v1/background-task/{task}/cancel", post(tasks::cancel))
    }

    fn access(self) -> Self {
        self.route("/api/v1/auth/app-portal-access/{app}", post(access::portal))
            .route("/api/v1/auth/dashboard-access/{app}", post(access::portal))
            .route("/api/v1/auth/app/{app}/expire-all", post(access::expire_all))
            .route("/api/v1/auth/logout", post(access::logout))
    }

    fn operational(self) -> Self {
        use operational as told;
        self.route("/api/v1/operational-webhook/endpoint", get(told::list).post(told::create))
            .route(
                "/api/v1/operational-webhook/endpoint/{endpoint}",
                get(told::read).put(told::put).patch(told::patch).delete(told::delete),
            )
            .route(
                "/api/v1/operational-webhook/endpoint/{endpoint}/headers",
                get(told::read_headers).put(told::put_headers).patch(told::patch_headers),
            )
            .route("/api/v1/operational-webhook/endpoint/{endpoint}/secret", get(told::read_secret))
            .route(
                "/api/v1/operational-webhook/endpoint/{endpoint}/secret/rotate",
                post(told::rotate_secret),
            )
    }

    fn dead_letters(self) -> Self {
        self.route("/api/v1/dead-letter", get(dead_letters::list_org))
            .route("/api/v1/app/{app}/dead-letter", get(dead_letters::list))
            .route(
                "/api/v1/app/{app}/dead-letter/{letter}",
                get(dead_letters::read).delete(dead_letters::delete),
            )
            .route("/api/v1/app/{app}/dead-letter/{letter}/replay", post(dead_letters::replay))
            .route("/api/v1/app/{app}/dead-letter/replay", post(letter_replays::replay_many))
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
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operation_is_explained() {
        let served: BTreeSet<_> = Routes::all()
            .table
            .iter()
            .flat_map(|served| served.methods.iter().map(|method| (served.path, *method)))
            .collect();
        let all = operations::GROUPS.iter().flat_map(|(_, operations)| operations.iter());
        let mut explained: BTreeSet<_> = all.map(|(method, path, _)| (*path, *method)).collect();
        // The page itself.
        explained.insert(("/docs", "GET"));
        assert_eq!(explained, served, "operations.rs has a sentence for each and no others");
    }
}
