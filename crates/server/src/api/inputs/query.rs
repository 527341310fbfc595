//! The parameters of queries, each list of them as a type.
//!
//! Never: read anything; `http::query` and `http::paging` do.

#![expect(dead_code, reason = "read by their derives only")]

use domain::limits::{PAGE_ROWS, PAGE_ROWS_MAX};
use schemars::JsonSchema;
use serde_json::json;

use crate::api::shapes::{
    Channel, DeadReason, EventTypeName, Iterator, RunId, Status, StatusClass, Tag, Time, Uid,
};
use crate::api::views::report;
use crate::api::views::task::{NAMES, STATUSES};

/// A page.
#[derive(JsonSchema)]
pub(crate) struct Page {
    /// Rows.
    #[schemars(range(min = 0, max = PAGE_ROWS_MAX), extend("default" = PAGE_ROWS))]
    limit: Option<u16>,
    /// `iterator` or `prevIterator` of the page before.
    iterator: Option<Iterator>,
}

/// A page in an order that can be chosen.
#[derive(JsonSchema)]
pub(crate) struct OrderedPage {
    #[serde(flatten)]
    page: Page,
    #[schemars(extend("enum" = json!(["ascending", "descending"])))]
    order: Option<String>,
}

/// How an application is created.
#[derive(JsonSchema)]
pub(crate) struct GetIfExists {
    /// Answers 200 with the application of this `uid` if there is one.
    #[schemars(extend("default" = false))]
    get_if_exists: Option<bool>,
}

/// Which event types.
#[derive(JsonSchema)]
pub(crate) struct EventTypes {
    #[serde(flatten)]
    page: Page,
    #[schemars(extend("default" = false))]
    include_archived: Option<bool>,
    /// Whether their schemas are shown.
    #[schemars(extend("default" = false))]
    with_content: Option<bool>,
}

/// How an event type is deleted.
#[derive(JsonSchema)]
pub(crate) struct Expunge {
    /// Removes it instead of archiving it.
    #[schemars(extend("default" = false))]
    expunge: Option<bool>,
}

/// Which messages.
#[derive(JsonSchema)]
pub(crate) struct MessageFilter {
    channel: Option<Channel>,
    tag: Option<Tag>,
    /// Entries separated by commas, or the parameter given more than once.
    event_types: Option<Vec<EventTypeName>>,
    /// Exclusive.
    before: Option<Time>,
    after: Option<Time>,
}

/// Whether payloads are shown.
#[derive(JsonSchema)]
pub(crate) struct WithContent {
    #[schemars(extend("default" = true))]
    with_content: Option<bool>,
}

/// Whether the payload of an example is shown.
#[derive(JsonSchema)]
pub(crate) struct WithoutContent {
    #[schemars(extend("default" = false))]
    with_content: Option<bool>,
}

/// Whether `canceled` is told from `fail`.
#[derive(JsonSchema)]
pub(crate) struct Expanded {
    #[schemars(extend("default" = false))]
    expanded_statuses: Option<bool>,
}

/// A page of messages.
#[derive(JsonSchema)]
pub(crate) struct Messages {
    #[serde(flatten)]
    page: Page,
    #[serde(flatten)]
    filter: MessageFilter,
    #[serde(flatten)]
    content: WithContent,
}

/// A page of the messages of an endpoint.
#[derive(JsonSchema)]
pub(crate) struct MessagesSent {
    #[serde(flatten)]
    messages: Messages,
    #[serde(flatten)]
    expanded: Expanded,
    status: Option<Status>,
}

/// A page of the endpoints of a message.
#[derive(JsonSchema)]
pub(crate) struct Destinations {
    #[serde(flatten)]
    page: Page,
    #[serde(flatten)]
    expanded: Expanded,
}

/// A page of attempts.
#[derive(JsonSchema)]
pub(crate) struct Attempts {
    #[serde(flatten)]
    messages: Messages,
    status: Option<Status>,
    status_code_class: Option<StatusClass>,
}

/// A page of attempts of a message.
#[derive(JsonSchema)]
pub(crate) struct AttemptsOfMessage {
    #[serde(flatten)]
    attempts: Attempts,
    /// Those to this endpoint only.
    endpoint_id: Option<Uid>,
}

/// A page of dead letters.
#[derive(JsonSchema)]
pub(crate) struct DeadLetters {
    #[serde(flatten)]
    page: Page,
    /// Entries separated by commas, or the parameter given more than once.
    reason: Option<Vec<DeadReason>>,
    /// Entries separated by commas, or the parameter given more than once.
    event_types: Option<Vec<EventTypeName>>,
    /// Of this run of refusals.
    run_id: Option<RunId>,
    /// By the time of death, exclusive.
    before: Option<Time>,
    after: Option<Time>,
}

/// A page of dead letters of an application.
#[derive(JsonSchema)]
pub(crate) struct DeadLettersOfApp {
    #[serde(flatten)]
    letters: DeadLetters,
    /// Those of this endpoint only.
    endpoint_id: Option<Uid>,
}

/// A page of background tasks.
#[derive(JsonSchema)]
pub(crate) struct Tasks {
    #[serde(flatten)]
    page: OrderedPage,
    #[schemars(extend("enum" = STATUSES))]
    status: Option<String>,
    #[schemars(extend("enum" = [&NAMES[..], &report::NAMES].concat()))]
    task: Option<String>,
}

/// A span of time in steps.
#[derive(JsonSchema)]
pub(crate) struct FiguresSpan {
    /// A day before `until` unless given; the first step is the one that it falls into.
    since: Option<Time>,
    /// Now unless given, and not in the future; the minute that it falls into is counted.
    until: Option<Time>,
    /// A span of at most 1,500 of them; steps begin at multiples of it, in UTC.
    #[schemars(extend("enum" = json!(["minute", "hour", "day"]), "default" = "hour"))]
    step: Option<String>,
}

/// A window of time.
#[derive(JsonSchema)]
pub(crate) struct Window {
    /// 28 days before `until` unless given, and not earlier.
    since: Option<Time>,
    /// Now unless given, and not in the future.
    until: Option<Time>,
}
