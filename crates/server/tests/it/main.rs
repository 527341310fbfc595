//! The behaviours of the real binary, seen from outside: over its API and at a receiver.
//!
//! One binary, one file per behaviour. Every server has a scratch directory and port 0.
//! Never: a sleep; tests wait on what the receiver got or on what the API says, with a bound.

#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

mod support;

mod access;
mod alert_counters;
mod alert_routes;
mod alerts;
mod answers;
mod applications;
mod attempt_lists;
mod attempted;
mod attempts_counted;
mod background_tasks;
mod bad_input;
mod breaker;
mod breaker_probes;
mod buries_and_replays;
mod changed_alone;
mod connections;
mod console;
mod contract;
mod copies;
mod crashes;
mod dashboards;
mod delivers_once;
mod demo;
mod deploy;
mod docs_page;
mod endpoint_stats;
mod endpoints;
mod event_types;
mod explain;
mod figures;
mod forbidden_targets;
mod health_checks;
mod holds;
mod idempotency;
mod idle_connections;
mod iterators;
mod labels;
mod large_pages;
mod metrics;
mod neighbours;
mod nodes;
mod on_postgres;
mod one_serve_per_directory;
mod openapi;
mod openapi_import;
mod operational_webhooks;
mod outages;
mod pages;
mod payloads;
mod proxies;
mod refuses_private_address;
mod repeated_posts;
mod retries_on_5xx;
mod retry_after;
mod rotates_secret;
mod schemas;
mod send_example;
mod storage_trouble;
mod survives_restart;
mod suspension;
mod telemetry_push;
mod tenancy;
mod times;
mod tokens;
mod traces;
mod unread_bodies;
mod urls_and_headers;
mod usage;
mod waiting;
