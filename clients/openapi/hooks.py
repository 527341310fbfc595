"""What schemathesis is told beside the document: things that exist, and rules that no schema says.

A generated case stays as it is where it is meant to be wrong. Where it is meant to be right, most
of its path is led to things that are there, so that more than 404 is seen.
Never: drop a case or a failure; what is changed here is changed before it is sent.
"""

import itertools
import json
import os
import zlib
from datetime import datetime, timedelta, timezone

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation

from seeds import ALERT, NOTICE, TYPE, TOLD, Seeds

seeds = Seeds(os.environ["SVIX_SERVER_URL"], os.environ["SVIX_TOKEN"], os.environ["PEYK_RECEIVER"])

# Where deliveries may go: a receiver on loopback, on paths that answer in different ways.
schemathesis.openapi.format("uri", st.sampled_from(seeds.urls()))

# Cases that go on with a path as it was generated, or with a token of the application: one of these.
WILD = 8
KEYS = itertools.count(1)
done = set()


def share(case, salt):
    """A number below WILD that depends on nothing but the case."""
    text = json.dumps([salt, case.path_parameters, case.query, str(case.body)], default=str)
    return zlib.crc32(text.encode()) % WILD


def stamp(span):
    at = datetime.now(timezone.utc) + span
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def is_wrong(case, location):
    return case.meta is not None and case.meta.is_negative_at(location)


@schemathesis.hook
def before_call(context, case, kwargs):
    name = case.operation.definition.raw["operationId"]
    if case.path_parameters and not is_wrong(case, ParameterLocation.PATH):
        # A generated path may be one that an answer named: what others need is not deleted.
        # Nor is one led astray before it was carried out once.
        if share(case, "path") or name.endswith(".delete") or name not in done:
            case.path_parameters.update(seeds.place(name, case.path_parameters))
    headers = case.headers
    if "idempotency-key" in headers and not is_wrong(case, ParameterLocation.HEADER):
        # A key belongs to one request.
        headers["idempotency-key"] = f"key-{next(KEYS)}"
    if isinstance(case.query, dict) and not is_wrong(case, ParameterLocation.QUERY):
        query(name, case)
    if isinstance(case.body, dict) and not is_wrong(case, ParameterLocation.BODY):
        body(name, case)


@schemathesis.hook
def after_call(context, case, response):
    """Notes which operations were carried out."""
    name = case.operation.definition.raw["operationId"]
    if response.status_code < 400 and name not in done:
        done.add(name)
        with open(os.environ["PEYK_DONE"], "a") as file:
            print(name, file=file)


def query(name, case):
    # An iterator is what an answer gave; a window of statistics is past.
    case.query.pop("iterator", None)
    if name == "v1.endpoint.get-stats" or name.endswith("figures"):
        for key in set(case.query) & {"since", "until"}:
            case.query[key] = stamp(timedelta(hours=-20 if key == "since" else 0))
    if "endpoint_id" in case.query:
        case.query["endpoint_id"] = seeds.endpoint
    # Runs of refusals take twenty of them; there is none.
    case.query.pop("run_id", None)


def body(name, case):
    """Makes a body that fits its schema fit what no schema says."""
    given = case.body
    # Times are near: of a delivery ahead, of a recovery past.
    if given.get("deliverAt"):
        given["deliverAt"] = stamp(timedelta(hours=1))
    if given.get("since"):
        given["since"] = stamp(timedelta(hours=-1))
    if given.get("until"):
        given["until"] = stamp(timedelta())
    # One of two.
    if given.get("payloadRetentionHours") is not None:
        given.pop("payloadRetentionPeriod", None)
    # What is filtered on exists.
    if name.startswith("v1.endpoint.") and given.get("eventTypes"):
        if name != "v1.endpoint.bulk-replay":
            given["eventTypes"] = [TYPE]
    # Every notice to every one of them would be too much.
    if name.startswith(TOLD) and ("url" in given or "eventTypes" in given):
        given["eventTypes"] = [NOTICE]
        given.pop("filterTypes", None)
    if given.get("appIds"):
        given["appIds"] = [seeds.app]
    if given.get("endpointId"):
        given["endpointId"] = seeds.endpoint
    if given.get("ids"):
        given["ids"] = [next(seeds.letters)]
    given.pop("runId", None)
    # One of two.
    if given.get("reason"):
        given.pop("reasons", None)
    # Spans of time bound one another, a key pair is two halves of one thing.
    for key, known in (("retryPolicy", RETRY), ("breaker", BREAKER), ("timeout", "7s")):
        if given.get(key):
            given[key] = known
    for key in ("secret", "key"):
        if given.get(key) is not None:
            given[key] = SECRETS[share(case, key) % len(SECRETS)]
    if name.startswith("v1.alert."):
        alert(name, given)
    # Names of headers that the server sets are refused; there are too many to list in a pattern.
    if isinstance(given.get("headers"), dict):
        kept = list(given["headers"].items())[:5]
        given["headers"] = {f"x-{at}": value for at, (_, value) in enumerate(kept)}
    # Bounds on bytes, which schemas do not have.
    if given.get("metadata"):
        given["metadata"] = {"k": "v"}
    # Its uid is that of the path.
    if isinstance(given.get("application"), dict):
        # Unless that is an id.
        app = str(case.path_parameters.get("app"))
        given["application"]["uid"] = None if app.startswith("app_") else app
    if name == "v1.event-type.import-openapi":
        given.pop("specRaw", None)
        given["spec"] = DOCUMENT
        # Would archive what others filter on.
        if given.get("replaceAll"):
            given["dryRun"] = True
    if name == "v1.endpoint.send-example":
        given["eventType"], given["exampleIndex"] = TYPE, 0


def alert(name, given):
    """Fields that go together: of one condition, of one channel, of one end."""
    if name.startswith("v1.alert.rule."):
        for key in ("after", "countMin"):
            given.pop(key, None)
        known = {
            "condition": "dead_letters", "reasons": ["expired"], "window": "5m", "hold": "1m",
            "clearAfter": "1m", "routes": [ALERT], "title": "{value}", "runbookUrl": seeds.urls()[0],
        }
    elif name.startswith("v1.alert.route."):
        for key in ("routingKey", "apiKey", "secret", "to"):
            given.pop(key, None)
        known = {"channel": "slack", "url": seeds.urls()[0]}
        # It cannot be without its URL.
        if name.endswith(".update") or ("url" in given and given["url"] is None):
            given.update(known)
    else:
        given.pop("until", None)
        given["duration"] = "1h"
        known = {"rule": ALERT, "endpointId": seeds.endpoint}
    for key, value in known.items():
        if given.get(key):
            given[key] = value


RETRY = {"strategy": "schedule", "schedule": ["100ms", "1s"], "attemptsMax": 2, "retryOn": "5xx"}
BREAKER = {"failures": 3, "openFor": "1s", "openForMax": "5s"}
SECRETS = ["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsec_" + "A" * 100]
DOCUMENT = {
    "openapi": "3.1.0",
    "webhooks": {"imported": {"post": {"requestBody": {"content": {"application/json": {
        "schema": {"type": "object", "examples": [{"n": 1}]}
    }}}}}},
}


# Asked for each case: what is given to one is not kept for the next.
@schemathesis.auth(refresh_interval=None)
class Bearer:
    """A token of the organisation, or for a share of the cases one of the application."""

    def get(self, case, context):
        name = case.operation.definition.raw["operationId"]
        if name == "v1.authentication.logout":
            return seeds.new_token()
        return seeds.app_token if share(case, "token") == 0 and name in done else seeds.token

    def set(self, case, data, context):
        case.headers["authorization"] = f"Bearer {data}"
