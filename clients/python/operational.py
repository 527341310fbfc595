"""Who is told what happens in the organisation, by every operation of the SDK, and that they are.

Never: look at events that other checks make; the filter lets only deleted endpoints through.
"""

from svix import models
from svix.models import (
    ApplicationIn,
    EndpointIn,
    OperationalWebhookEndpointHeadersIn,
    OperationalWebhookEndpointIn,
    OperationalWebhookEndpointSecretIn,
)

from sdk import IS_V1, SET_HEADERS, TYPES, UPSERT, refused, same
from signatures import FAMILIES, accepted

UpsertIn = (
    models.OperationalWebhookEndpointUpdate
    if IS_V1
    else models.OperationalWebhookEndpointUpsertIn
)


def deletes(bench):
    """An endpoint is made and deleted, of which there is an event."""
    made = bench.svix.endpoint.create("watched", EndpointIn(url="https://example.com/"))
    bench.svix.endpoint.delete("watched", made.id)
    return made.id


def operational_webhooks(bench):
    bench.svix.application.create(ApplicationIn(name="Watched", uid="watched"))
    by_name(bench, bench.svix.operational_webhook.endpoint, "/told")
    if IS_V1:
        by_name(bench, bench.svix.operational_webhook_endpoint, "/told-by-old-name")


def by_name(bench, api, path):
    receiver = bench.receiver
    same((api.list().data, api.list().done), ([], True))
    filtered = {TYPES: ["endpoint.deleted"]}
    url = receiver.url(path)
    made = api.create(OperationalWebhookEndpointIn(url=url, uid="told", **filtered))
    assert made.id.startswith("ep_")
    same((made.uid, made.url, getattr(made, TYPES)), ("told", url, ["endpoint.deleted"]))
    same(api.get("told"), made)
    same([found.id for found in api.list().data], [made.id])
    unknown = {TYPES: ["no.such.type"]}
    refused(422, api.create, OperationalWebhookEndpointIn(url=url, **unknown))

    headers = OperationalWebhookEndpointHeadersIn(headers={"X-Told": "1"})
    getattr(api, SET_HEADERS)("told", headers)
    same(api.get_headers("told").headers, {"X-Told": "1"})
    gone = deletes(bench)
    hit = receiver.wait(path, 1)[0]
    same((hit.json()["type"], hit.json()["data"]["endpointId"]), ("endpoint.deleted", gone))
    same((hit.json()["data"]["appUid"], hit.headers["x-told"]), ("watched", "1"))
    old = api.get_secret("told").key
    assert all(accepted(hit, old, family) for family in FAMILIES)
    api.rotate_secret("told", OperationalWebhookEndpointSecretIn())
    new = api.get_secret("told").key
    assert new != old
    put = getattr(api, UPSERT)("told", UpsertIn(url=url, uid="told", **filtered))
    same((put.id, put.metadata), (made.id, {}))
    deletes(bench)
    hit = receiver.wait(path, 2)[1]
    assert all(accepted(hit, new, family) for family in FAMILIES)
    assert api.delete("told") is None
    same(refused(404, api.get, "told").code, "not_found")


ALL = (operational_webhooks,)
