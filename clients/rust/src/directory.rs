//! Health, event types, applications and endpoints.
//!
//! Never: send anything.

use js_option::JsOption;
use serde_json::json;
use svix::api::{EventTypeDeleteOptions, EventTypeListOptions};
use svix::models::*;

use crate::bench::{Bench, refused, text};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub async fn all(bench: &Bench) -> svix::Result<()> {
    bench.svix.health().get().await?;
    event_types(bench).await?;
    import_openapi(bench).await?;
    applications(bench).await?;
    endpoints(bench).await?;
    headers_and_secrets(bench).await
}

async fn event_types(bench: &Bench) -> svix::Result<()> {
    let types = bench.svix.event_type();
    let schemas = json!({"1": {"type": "object", "examples": [{"of": "an invoice"}]}});
    let mut wanted = EventTypeIn::new(text("invoice.paid"), text("Paid"));
    wanted.schemas = Some(schemas.clone());
    let made = types.create(wanted.clone(), None).await?;
    assert_eq!((made.name.as_str(), made.description.as_str()), ("invoice.paid", "Paid"));
    assert_eq!(refused(types.create(wanted, None).await), 409);
    let mut patch = EventTypePatch::new();
    patch.description = Some(text("Now"));
    assert_eq!(types.patch(text("invoice.paid"), patch).await?.description, "Now");
    assert_eq!(types.get(text("invoice.paid")).await?.schemas, Some(schemas));
    let new = types.upsert(text("invoice.new"), EventTypeUpsertIn::new(text("By PUT"))).await?;
    assert_eq!(new.name, "invoice.new");
    types.delete(text("invoice.new"), None).await?;
    let listed = types.list(None).await?;
    assert_eq!((listed.data.len(), listed.done), (1, true));
    let options = EventTypeListOptions { include_archived: Some(true), ..Default::default() };
    assert_eq!(types.list(Some(options)).await?.data.len(), 2);
    let expunge = EventTypeDeleteOptions { expunge: Some(true) };
    types.delete(text("invoice.new"), Some(expunge)).await?;
    assert_eq!(refused(types.get(text("invoice.new")).await), 404);
    Ok(())
}

async fn import_openapi(bench: &Bench) -> svix::Result<()> {
    let body = json!({"content": {"application/json": {"schema": {"type": "object"}}}});
    let post = json!({"operationId": "user.left", "description": "Gone", "requestBody": body});
    let mut import = EventTypeImportOpenApiIn::new();
    import.spec = Some(json!({"openapi": "3.1.0", "info": {"title": "W", "version": "1"},
        "webhooks": {"user.left": {"post": post}}}));
    let done = bench.svix.event_type().import_openapi(import, None).await?;
    assert_eq!(done.data.modified, ["user.left"]);
    Ok(())
}

async fn applications(bench: &Bench) -> svix::Result<()> {
    let apps = bench.svix.application();
    let mut wanted = ApplicationIn::new(text("One"));
    wanted.uid = Some(text("one"));
    let made = apps.create(wanted.clone(), None).await?;
    assert_eq!(apps.get(text("one")).await?.id, made.id);
    assert_eq!(refused(apps.create(wanted.clone(), None).await), 409);
    assert_eq!(apps.get_or_create(wanted.clone(), None).await?.id, made.id);
    wanted.throttle_rate = Some(9);
    let put = apps.upsert(text("one"), wanted).await?;
    assert_eq!((put.id, put.throttle_rate), (made.id, Some(9)));
    let mut patch = ApplicationPatch::new();
    patch.throttle_rate = JsOption::Null;
    assert_eq!(apps.patch(text("one"), patch).await?.throttle_rate, None);
    assert_eq!(apps.list(None).await?.data.len(), 1);
    assert_eq!(refused(apps.create(ApplicationIn::new(text("")), None).await), 422);
    Ok(())
}

async fn endpoints(bench: &Bench) -> svix::Result<()> {
    let api = bench.svix.endpoint();
    let mut wanted = EndpointIn::new(text("https://example.com/"));
    wanted.uid = Some(text("all"));
    wanted.secret = Some(text(SECRET));
    wanted.channels = Some([text("blue")].into());
    wanted.event_types = Some([text("invoice.paid")].into());
    wanted.headers = Some([(text("X-Origin"), text("create"))].into());
    let made = api.create(text("one"), wanted.clone(), None).await?;
    assert_eq!((&made.channels, &made.event_types), (&wanted.channels, &wanted.event_types));
    assert_eq!(api.get(text("one"), text("all")).await?.id, made.id);
    assert_eq!(refused(api.create(text("one"), wanted, None).await), 409);
    let mut put = EndpointUpsertIn::new(text("https://example.com/put"));
    put.uid = Some(text("all"));
    let put = api.upsert(text("one"), text("all"), put).await?;
    assert_eq!((put.id, put.channels), (made.id, None));
    let mut patch = EndpointPatch::new();
    patch.disabled = Some(true);
    patch.channels = JsOption::Some([text("red")].into());
    let patched = api.patch(text("one"), text("all"), patch).await?;
    assert_eq!((patched.disabled, patched.url), (Some(true), text("https://example.com/put")));
    assert_eq!(api.list(text("one"), None).await?.data.len(), 1);
    Ok(())
}

async fn headers_and_secrets(bench: &Bench) -> svix::Result<()> {
    let (api, app, all) = (bench.svix.endpoint(), || text("one"), || text("all"));
    let headers = [(text("X-A"), text("1")), (text("X-B"), text("2"))];
    api.set_headers(app(), all(), EndpointHeadersIn::new(headers.into())).await?;
    let mut patch = EndpointHeadersPatchIn::new([(text("Authorization"), text("s"))].into());
    patch.delete_headers = Some(vec![text("X-A")]);
    api.patch_headers(app(), all(), patch).await?;
    let found = api.get_headers(app(), all()).await?;
    assert_eq!(found.headers, [(text("X-B"), text("2"))].into());
    assert_eq!(found.sensitive.into_iter().collect::<Vec<_>>(), ["Authorization"]);

    assert_eq!(api.get_secret(app(), all()).await?.key, SECRET);
    let rotated = api.rotate_secret(app(), all(), EndpointSecretRotateIn::new(), None).await?;
    assert_eq!(api.get_secret(app(), all()).await?.key, rotated.key);
    api.delete(app(), all()).await?;
    assert_eq!(refused(api.get(app(), all()).await), 404);
    bench.svix.application().delete(app()).await
}
