"""The SDK as this program uses it: what differs between its versions, and which calls were made.

Never: hide what an SDK sends or gives back.
"""

import importlib.metadata
import inspect
import time

import svix.models as models
from svix.api import Svix, SvixOptions
from svix.api.errors.http_error import HttpError
from svix.api.errors.http_validation_error import HTTPValidationError

from receiver import PATIENCE_S

VERSION = importlib.metadata.version("svix")
# Version 1 reads contents back unless it is told otherwise; later ones only when they are asked.
IS_V1 = VERSION.startswith("1.")
# What version 1 calls otherwise.
TYPES = "filter_types" if IS_V1 else "event_types"
UPSERT = "update" if IS_V1 else "upsert"
SET_HEADERS = "update_headers" if IS_V1 else "set_headers"
EndpointUpsertIn = models.EndpointUpdate if IS_V1 else models.EndpointUpsertIn
EventTypeUpsertIn = models.EventTypeUpdate if IS_V1 else models.EventTypeUpsertIn
ApplicationUpsertIn = models.ApplicationIn
FLAGS = "feature_flag" if IS_V1 else "feature_flags"


class Watched:
    """A client, or a resource of it, that notes the names of the methods that are asked for."""

    def __init__(self, inner, called, prefix=""):
        self._inner, self._called, self._prefix = inner, called, prefix

    def __getattr__(self, name):
        value = getattr(self._inner, name)
        if callable(value):
            self._called.add(self._prefix + name)
            return value
        return Watched(value, self._called, f"{self._prefix}{name}.")


def client(url, token):
    """A client that does not wait long before it tries again."""
    return Svix(token, SvixOptions(server_url=url, retry_schedule=[0.01, 0.02]))


def methods(resource, prefix=""):
    """All operations of a client: their names and what to call."""
    found = {}
    for name in dir(type(resource)):
        member = inspect.getattr_static(type(resource), name)
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            found |= methods(getattr(resource, name), f"{prefix}{name}.")
        elif inspect.isfunction(member):
            found[prefix + name] = getattr(resource, name)
    return found


class _Empty:
    """A body without fields, whatever the model."""

    def model_dump_json(self, **_):
        return "{}"


def call_with_nothing(method):
    """Calls an operation with `x` for each text and an empty object for each body."""
    required = [
        parameter
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is inspect.Parameter.empty
    ]
    texts = (str, "str", inspect.Parameter.empty)
    return method(*("x" if parameter.annotation in texts else _Empty() for parameter in required))


def refused(status, call, *arguments, **named):
    """The error that a call is answered with, of this status."""
    try:
        answer = call(*arguments, **named)
    except (HttpError, HTTPValidationError) as error:
        assert error.status_code == status, f"{error.status_code} instead of {status}: {error}"
        return error
    raise AssertionError(f"not refused with {status}: {answer}")


def until(what, ask):
    """Asks until there is an answer."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = ask()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain: {what}")


def same(got, wanted):
    """Both are the same."""
    assert got == wanted, f"{got!r} instead of {wanted!r}"
