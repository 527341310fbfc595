//! What each operation does, in one sentence, by resource: for people who look at what is served.
//!
//! Never: what an operation takes and gives; that stands in `docs/wire.md`.

/// Method, path, and what it does.
pub(super) type Operation = (&'static str, &'static str, &'static str);

const APP: &str = "/api/v1/app";
const ONE_APP: &str = "/api/v1/app/{app}";
const ENDPOINTS: &str = "/api/v1/app/{app}/endpoint";
const ENDPOINT: &str = "/api/v1/app/{app}/endpoint/{endpoint}";
const HEADERS: &str = "/api/v1/app/{app}/endpoint/{endpoint}/headers";
const SECRET: &str = "/api/v1/app/{app}/endpoint/{endpoint}/secret";
const ROTATE: &str = "/api/v1/app/{app}/endpoint/{endpoint}/secret/rotate";
const BREAKER: &str = "/api/v1/app/{app}/endpoint/{endpoint}/breaker";
const STATS: &str = "/api/v1/app/{app}/endpoint/{endpoint}/stats";
const EXAMPLE: &str = "/api/v1/app/{app}/endpoint/{endpoint}/send-example";
const MESSAGES_TO: &str = "/api/v1/app/{app}/endpoint/{endpoint}/msg";
const IMPORT: &str = "/api/v1/event-type/import/openapi";
const USAGE: &str = "/api/v1/stats/usage/event-types";
const APPS_USAGE: &str = "/api/v1/stats/usage/app";
const PRECHECK: &str = "/api/v1/app/{app}/msg/precheck/active";
const DESTINATIONS: &str = "/api/v1/app/{app}/msg/{message}/endpoint";
const TYPES: &str = "/api/v1/event-type";
const TYPE: &str = "/api/v1/event-type/{name}";
const MESSAGES: &str = "/api/v1/app/{app}/msg";
const MESSAGE: &str = "/api/v1/app/{app}/msg/{message}";
const CONTENT: &str = "/api/v1/app/{app}/msg/{message}/content";
const RESEND: &str = "/api/v1/app/{app}/msg/{message}/endpoint/{endpoint}/resend";
const OF_MESSAGE: &str = "/api/v1/app/{app}/attempt/msg/{message}";
const OF_MESSAGE_OLD: &str = "/api/v1/app/{app}/msg/{message}/attempt";
const TO_ENDPOINT: &str = "/api/v1/app/{app}/attempt/endpoint/{endpoint}";
const ATTEMPT: &str = "/api/v1/app/{app}/msg/{message}/attempt/{attempt}";
const ANSWER: &str = "/api/v1/app/{app}/msg/{message}/attempt/{attempt}/content";
const OF_DELIVERY: &str = "/api/v1/app/{app}/msg/{message}/endpoint/{endpoint}/attempt";
const LETTERS: &str = "/api/v1/app/{app}/dead-letter";
const LETTER: &str = "/api/v1/app/{app}/dead-letter/{letter}";
const REPLAY: &str = "/api/v1/app/{app}/dead-letter/{letter}/replay";
const REPLAY_MANY: &str = "/api/v1/app/{app}/dead-letter/replay";
const RECOVER: &str = "/api/v1/app/{app}/endpoint/{endpoint}/recover";
const MISSING: &str = "/api/v1/app/{app}/endpoint/{endpoint}/replay-missing";
const AGAIN: &str = "/api/v1/app/{app}/endpoint/{endpoint}/bulk-replay";
const EXPUNGE_ALL: &str = "/api/v1/app/{app}/msg/expunge-all-contents";
const PORTAL: &str = "/api/v1/auth/app-portal-access/{app}";
const PORTAL_OLD: &str = "/api/v1/auth/dashboard-access/{app}";
const EXPIRE_ALL: &str = "/api/v1/auth/app/{app}/expire-all";
const LOGOUT: &str = "/api/v1/auth/logout";
const TASKS: &str = "/api/v1/background-task";
const TASK: &str = "/api/v1/background-task/{task}";
const CANCEL: &str = "/api/v1/background-task/{task}/cancel";
const TOLD: &str = "/api/v1/operational-webhook/endpoint";
const ONE_TOLD: &str = "/api/v1/operational-webhook/endpoint/{endpoint}";
const TOLD_HEADERS: &str = "/api/v1/operational-webhook/endpoint/{endpoint}/headers";
const TOLD_SECRET: &str = "/api/v1/operational-webhook/endpoint/{endpoint}/secret";
const TOLD_ROTATE: &str = "/api/v1/operational-webhook/endpoint/{endpoint}/secret/rotate";

/// All operations, by resource.
pub(super) const GROUPS: [(&str, &[Operation]); 11] = [
    (
        "Applications",
        &[
            ("GET", APP, "Lists the applications of the organisation."),
            ("POST", APP, "Creates an application: one customer of yours."),
            ("GET", ONE_APP, "Shows an application."),
            ("PUT", ONE_APP, "Replaces an application, or creates it."),
            ("PATCH", ONE_APP, "Changes what is named of an application."),
            ("DELETE", ONE_APP, "Deletes an application and its endpoints."),
        ],
    ),
    (
        "Endpoints",
        &[
            ("GET", ENDPOINTS, "Lists the endpoints of an application."),
            ("POST", ENDPOINTS, "Creates an endpoint: a URL that messages are sent to."),
            ("GET", ENDPOINT, "Shows an endpoint."),
            ("PUT", ENDPOINT, "Replaces an endpoint, or creates it."),
            ("PATCH", ENDPOINT, "Changes what is named of an endpoint."),
            ("DELETE", ENDPOINT, "Deletes an endpoint; what waits for it is cancelled."),
            ("GET", HEADERS, "Shows the extra headers of its requests, credentials left out."),
            ("PUT", HEADERS, "Replaces the extra headers."),
            ("PATCH", HEADERS, "Adds, changes or removes extra headers."),
            ("GET", SECRET, "Shows the secret that its requests are signed with."),
            ("POST", ROTATE, "Puts a new secret in place; the old one signs on for a while."),
            ("GET", STATS, "Counts how its attempts ended, in a window of time."),
            ("POST", EXAMPLE, "Sends an example of an event type to it, whatever it filters."),
            ("GET", BREAKER, "Shows the circuit breaker and how much waits."),
            ("POST", BREAKER, "Forces the circuit breaker, or gives it back to itself."),
        ],
    ),
    (
        "Event types",
        &[
            ("GET", TYPES, "Lists the event types."),
            ("POST", TYPES, "Creates an event type, or brings an archived one back."),
            ("GET", TYPE, "Shows an event type."),
            ("PUT", TYPE, "Replaces an event type, or creates it."),
            ("PATCH", TYPE, "Changes what is named of an event type."),
            ("POST", IMPORT, "Makes event types from the webhooks of an OpenAPI document."),
            ("PUT", USAGE, "Lists what event types each application subscribes to."),
            ("POST", APPS_USAGE, "Counts the messages to endpoints of each application."),
            ("DELETE", TYPE, "Archives an event type, or removes it with expunge=true."),
        ],
    ),
    (
        "Messages",
        &[
            ("GET", MESSAGES, "Lists the messages of an application."),
            ("POST", MESSAGES, "Accepts a message; 202 once it and its deliveries are on disk."),
            ("GET", MESSAGE, "Shows a message."),
            ("POST", PRECHECK, "Says whether anybody would get such a message."),
            ("GET", MESSAGES_TO, "Lists the messages to an endpoint and how each delivery stands."),
            ("GET", DESTINATIONS, "Lists the endpoints of a message and how each delivery stands."),
            ("DELETE", CONTENT, "Deletes the payload of a message."),
            ("POST", RESEND, "Sends a message to an endpoint once more."),
        ],
    ),
    (
        "Attempts",
        &[
            ("GET", OF_MESSAGE, "Lists what was tried for a message."),
            ("GET", OF_MESSAGE_OLD, "The same under an older path."),
            ("GET", TO_ENDPOINT, "Lists what was sent to an endpoint."),
            ("GET", ATTEMPT, "Shows an attempt and the answer it got."),
            ("DELETE", ANSWER, "Deletes the body of the answer that an attempt got."),
            ("GET", OF_DELIVERY, "Lists what was tried for a message and an endpoint."),
        ],
    ),
    (
        "Dead letters",
        &[
            ("GET", "/api/v1/dead-letter", "Lists what was given up in the whole organisation."),
            ("GET", LETTERS, "Lists what was given up in an application."),
            ("GET", LETTER, "Shows a dead letter with its payload and attempts."),
            ("DELETE", LETTER, "Deletes a dead letter."),
            ("POST", REPLAY, "Puts it back to be sent, as it was or with another payload."),
            ("POST", REPLAY_MANY, "Puts many back at a rate, or counts them."),
        ],
    ),
    (
        "Background tasks",
        &[
            ("POST", RECOVER, "Puts back what an endpoint failed to take since a time."),
            ("POST", MISSING, "Sends an endpoint what it never got since a time."),
            ("POST", AGAIN, "Sends an endpoint again what it was sent since a time."),
            ("POST", EXPUNGE_ALL, "Deletes the payloads of all messages of an application."),
            ("GET", TASKS, "Lists the background tasks of the organisation."),
            ("GET", TASK, "Shows a background task and how far it is."),
            ("POST", CANCEL, "Stops a background task at once."),
        ],
    ),
    (
        "Operational webhooks",
        &[
            ("GET", TOLD, "Lists the endpoints that are told what happens in the organisation."),
            ("POST", TOLD, "Creates one: it is told of its endpoints and failing deliveries."),
            ("GET", ONE_TOLD, "Shows such an endpoint."),
            ("PUT", ONE_TOLD, "Replaces it, or creates it."),
            ("PATCH", ONE_TOLD, "Changes what is named of it."),
            ("DELETE", ONE_TOLD, "Deletes it; what waits for it is cancelled."),
            ("GET", TOLD_HEADERS, "Shows the extra headers of its requests, credentials left out."),
            ("PUT", TOLD_HEADERS, "Replaces the extra headers."),
            ("PATCH", TOLD_HEADERS, "Adds, changes or removes extra headers."),
            ("GET", TOLD_SECRET, "Shows the secret that its requests are signed with."),
            ("POST", TOLD_ROTATE, "Puts a new secret in place; the old one signs on for a while."),
        ],
    ),
    (
        "Tokens",
        &[
            ("POST", PORTAL, "Makes a token for an application, and a link with it."),
            ("POST", PORTAL_OLD, "The same under an older path."),
            ("POST", EXPIRE_ALL, "Ends tokens of an application that were issued before now."),
            ("POST", LOGOUT, "Ends the token that it is asked with."),
        ],
    ),
    (
        "The server",
        &[
            ("GET", "/api/v1/health", "Says whether it can accept and deliver; 503 when not."),
            ("GET", "/api/v1/health/ping", "Says that the process answers."),
            ("GET", "/metrics", "Metrics in the text format of Prometheus."),
        ],
    ),
    (
        "Documents",
        &[
            ("GET", "/", "Leads to this page."),
            ("GET", "/docs/problems/{code}", "Explains an error code."),
        ],
    ),
];
