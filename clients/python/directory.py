"""Health, event types, applications and endpoints, by every operation that the SDK has for them.

Never: send anything.
"""

from svix.api.application import ApplicationListOptions
from svix.api.endpoint import EndpointListOptions
from svix.api.errors.http_validation_error import HTTPValidationError
from svix.api.event_type import EventTypeDeleteOptions, EventTypeListOptions
from svix.models import (
    ApplicationIn,
    ApplicationPatch,
    EndpointHeadersIn,
    EndpointHeadersPatchIn,
    EndpointIn,
    EndpointPatch,
    EndpointSecretRotateIn,
    EventTypeImportOpenApiIn,
    EventTypeIn,
    EventTypePatch,
    Ordering,
)

from sdk import (
    SET_HEADERS,
    TYPES,
    UPSERT,
    ApplicationUpsertIn,
    EndpointUpsertIn,
    EventTypeUpsertIn,
    refused,
    same,
)

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def health(bench):
    assert bench.svix.health.get() is None


def event_types(bench):
    types = bench.svix.event_type
    schemas = {"1": {"type": "object", "examples": [{"of": "an invoice"}]}}
    made = types.create(EventTypeIn(name="invoice.paid", description="Paid", schemas=schemas))
    same((made.name, made.archived, made.deprecated), ("invoice.paid", False, False))
    again = EventTypeIn(name="invoice.paid", description="")
    same(refused(409, types.create, again).code, "event_type_exists")
    types.create(EventTypeIn(name="invoice.late", description="Late"))
    same(types.get("invoice.paid").schemas, schemas)
    listed = types.list()
    same([found.name for found in listed.data], ["invoice.late", "invoice.paid"])
    same([found.schemas for found in listed.data], [None, None])
    options = EventTypeListOptions(with_content=True, limit=1, iterator=listed.data[0].name)
    page = types.list(options)
    same((page.data[0].schemas, page.done), (schemas, True))

    same(types.patch("invoice.paid", EventTypePatch(description="Now")).description, "Now")
    same(types.get("invoice.paid").schemas, schemas)
    upsert = getattr(types, UPSERT)
    body = EventTypeUpsertIn(description="Put", deprecated=True, schemas=schemas)
    same(upsert("invoice.paid", body).deprecated, True)
    same(upsert("invoice.new", EventTypeUpsertIn(description="By PUT")).name, "invoice.new")

    assert types.delete("invoice.new") is None
    assert "invoice.new" not in [found.name for found in types.list().data]
    with_archived = types.list(EventTypeListOptions(include_archived=True))
    same([found.archived for found in with_archived.data if found.name == "invoice.new"], [True])
    same(types.create(EventTypeIn(name="invoice.new", description="Back")).archived, False)
    types.delete("invoice.new", EventTypeDeleteOptions(expunge=True))
    same(refused(404, types.get, "invoice.new").code, "not_found")


def import_openapi(bench):
    types = bench.svix.event_type
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    body = {"content": {"application/json": {"schema": schema}}}
    operation = {"operationId": "user.left", "description": "Gone", "requestBody": body}
    spec = {
        "openapi": "3.1.0",
        "info": {"title": "Webhooks", "version": "1"},
        "webhooks": {"user.left": {"post": operation}},
    }
    dry = types.import_openapi(EventTypeImportOpenApiIn(spec=spec, dry_run=True))
    same((dry.data.modified, dry.data.to_modify[0].name), ([], "user.left"))
    refused(404, types.get, "user.left")
    same(types.import_openapi(EventTypeImportOpenApiIn(spec=spec)).data.modified, ["user.left"])
    found = types.get("user.left")
    same((found.description, found.schemas["1"]["type"]), ("Gone", "object"))


def applications(bench):
    apps = bench.svix.application
    made = apps.create(ApplicationIn(name="One", uid="one", metadata={"plan": "gold"}))
    assert made.id.startswith("app_")
    same((made.uid, made.metadata), ("one", {"plan": "gold"}))
    same(apps.get("one"), made)
    same(apps.get(made.id), made)
    same(refused(409, apps.create, ApplicationIn(name="Two", uid="one")).code, "conflict")
    same(apps.get_or_create(ApplicationIn(name="Other", uid="one")), made)
    same(apps.get_or_create(ApplicationIn(name="Two", uid="two")).name, "Two")

    put = getattr(apps, UPSERT)("one", ApplicationUpsertIn(name="Put", uid="one", throttle_rate=9))
    same((put.id, put.name, put.throttle_rate, put.metadata), (made.id, "Put", 9, {}))
    patched = apps.patch("one", ApplicationPatch(throttle_rate=None, metadata={"a": "b"}))
    same((patched.name, patched.throttle_rate, patched.metadata), ("Put", None, {"a": "b"}))

    first = apps.list(ApplicationListOptions(limit=1, order=Ordering.ASCENDING))
    same(([app.uid for app in first.data], first.done), (["one"], False))
    rest = apps.list(ApplicationListOptions(iterator=first.iterator))
    same(([app.uid for app in rest.data], rest.done), (["two"], True))

    assert apps.delete("two") is None
    same(refused(404, apps.get, "two").code, "not_found")
    error = refused(422, apps.create, ApplicationIn(name="", uid="two"))
    assert isinstance(error, HTTPValidationError)
    same(error.detail[0].loc, ["body", "name"])


def endpoints(bench):
    api = bench.svix.endpoint
    wanted = EndpointIn(
        url="HTTPS://Example.com",
        uid="all",
        description="All fields",
        throttle_rate=50,
        channels=["blue"],
        metadata={"a": "b"},
        secret=SECRET,
        headers={"X-Origin": "create"},
        **{TYPES: ["invoice.paid"]},
    )
    made = api.create("one", wanted)
    assert made.id.startswith("ep_")
    same((made.url, made.uid, made.description), ("https://example.com/", "all", "All fields"))
    same((made.throttle_rate, made.channels, made.metadata), (50, ["blue"], {"a": "b"}))
    same((getattr(made, TYPES), made.disabled), (["invoice.paid"], False))
    same(api.get("one", "all"), made)
    same(api.get("one", made.id), made)
    same(refused(409, api.create, "one", wanted).code, "conflict")
    refused(422, api.create, "one", EndpointIn(url="ftp://example.com"))
    refused(422, api.create, "one", EndpointIn(url=wanted.url, **{TYPES: ["no.such.type"]}))

    upsert = getattr(api, UPSERT)
    put = upsert("one", "all", EndpointUpsertIn(url="https://example.com/put", uid="all"))
    same((put.id, put.url, put.description), (made.id, "https://example.com/put", ""))
    same((put.channels, getattr(put, TYPES), put.throttle_rate), (None, None, None))
    new = upsert("one", "unknown", EndpointUpsertIn(url="https://example.com/2", uid="second"))
    assert new.id != made.id
    patched = api.patch("one", "all", EndpointPatch(channels=["red"], disabled=True))
    same((patched.channels, patched.disabled, patched.url), (["red"], True, put.url))
    same(api.patch("one", "all", EndpointPatch(channels=None)).channels, None)

    newest = api.list("one", EndpointListOptions(limit=1))
    same(([found.uid for found in newest.data], newest.done), (["second"], False))
    rest = api.list("one", EndpointListOptions(limit=1, iterator=newest.iterator))
    same(([found.uid for found in rest.data], rest.done), (["all"], True))
    back = api.list("one", EndpointListOptions(limit=1, iterator=rest.prev_iterator))
    same([found.uid for found in back.data], ["second"])
    assert api.delete("one", "second") is None
    same(refused(404, api.get, "one", "second").code, "not_found")


def endpoint_headers(bench):
    api = bench.svix.endpoint
    set_headers = getattr(api, SET_HEADERS)
    assert set_headers("one", "all", EndpointHeadersIn(headers={"X-A": "1", "X-B": "2"})) is None
    same(api.get_headers("one", "all").headers, {"X-A": "1", "X-B": "2"})
    patch = EndpointHeadersPatchIn(headers={"Authorization": "Bearer s"}, delete_headers=["X-A"])
    assert api.patch_headers("one", "all", patch) is None
    found = api.get_headers("one", "all")
    same((found.headers, found.sensitive), ({"X-B": "2"}, ["Authorization"]))
    forbidden = EndpointHeadersIn(headers={"Webhook-Signature": "v1,own"})
    refused(422, set_headers, "one", "all", forbidden)


def secrets(bench):
    api = bench.svix.endpoint
    same(api.get_secret("one", "all").key, SECRET)
    given = "whsec_" + "QUJD" * 8
    rotated = api.rotate_secret("one", "all", EndpointSecretRotateIn(key=given))
    # Older versions say nothing, later ones give the new secret.
    assert rotated is None or rotated.key == given
    same(api.get_secret("one", "all").key, given)
    api.rotate_secret("one", "all", EndpointSecretRotateIn(grace_period_seconds=0))
    made = api.get_secret("one", "all").key
    assert made.startswith("whsec_") and made != given
    bad = EndpointSecretRotateIn(key="whsec_short")
    refused(422, api.rotate_secret, "one", "all", bad)
    bench.svix.application.delete("one")
    refused(404, api.get, "one", "all")


ALL = (
    health,
    event_types,
    import_openapi,
    applications,
    endpoints,
    endpoint_headers,
    secrets,
)
