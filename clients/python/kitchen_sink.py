"""Drives a Peyk with the published Python SDK: every operation, and what is delivered.

Usage: `SVIX_SERVER_URL=… SVIX_TOKEN=… kitchen_sink.py`, with the SDK of the version to try. The
server needs a scratch directory, leave to reach loopback, two sends in all and a quick retry.
Never: skip an operation; what is not called by name has to be answered 404.
"""

import os
import sys
import time
import traceback

from svix.models import (
    ApplicationIn,
    ApplicationTokenExpireIn,
    AppPortalAccessIn,
    EndpointIn,
    EventTypeIn,
)

import deliveries
import directory
import operational
import sdk
import signatures
from receiver import Receiver
from sdk import FLAGS, refused, same

# Those of unserved operations that lie under a path that is served by another method.
WRONG_METHOD = {"message.bulk_expunge_content"}


class Bench:
    """What all checks share."""

    def __init__(self, url, token):
        self.url, self.token = url, token
        self.called = set()
        self.plain = sdk.client(url, token)
        self.svix = sdk.Watched(self.plain, self.called)
        self.receiver = Receiver()
        self.first = None

    def of_app(self, token):
        """A client with another token."""
        return sdk.Watched(sdk.client(self.url, token), self.called)


def tokens(bench):
    auth = bench.svix.authentication
    bench.svix.application.get_or_create(ApplicationIn(name="Owner", uid="owner"))
    flag = {FLAGS: "beta" if FLAGS == "feature_flag" else ["beta"]}
    bench.svix.event_type.create(EventTypeIn(name="beta.event", description="", **flag))
    opened = auth.app_portal_access("owner", AppPortalAccessIn(session_id="one"))
    assert opened.url.startswith(bench.url) and opened.url.endswith(f"#key={opened.token}")
    owner = bench.of_app(opened.token)
    same(owner.application.get("owner").name, "Owner")
    refused(403, owner.application.list)
    refused(404, owner.application.get, "shop")
    mine = owner.endpoint.create("owner", EndpointIn(url="https://example.com/"))
    same([found.id for found in owner.endpoint.list("owner").data], [mine.id])

    reader = auth.app_portal_access("owner", AppPortalAccessIn(read_only=True))
    reads = bench.of_app(reader.token).endpoint
    same(reads.get("owner", mine.id).id, mine.id)
    refused(403, reads.delete, "owner", mine.id)
    assert owner.authentication.logout() is None
    same(refused(401, owner.application.get, "owner").code, "authentication_failed")
    same(reads.get("owner", mine.id).id, mine.id)
    auth.expire_all("owner", ApplicationTokenExpireIn())
    refused(401, reads.get, "owner", mine.id)
    same(refused(400, auth.logout).code, "bad_token")
    made = ApplicationIn(name="By a link", uid="linked")
    auth.app_portal_access("linked", AppPortalAccessIn(application=made))
    same(bench.svix.application.get("linked").name, "By a link")
    if sdk.IS_V1:
        old = auth.dashboard_access("owner")
        same(bench.of_app(old.token).application.get("owner").name, "Owner")
    refused(401, bench.of_app("no.token.at-all").application.list)


def everything_else_is_not_there(bench):
    """What has not been called by now is 404, in a form that the SDK understands."""
    rest = {
        name: method
        for name, method in sdk.methods(bench.plain).items()
        if name not in bench.called
    }
    for name, method in sorted(rest.items()):
        try:
            error = refused(405 if name in WRONG_METHOD else 404, sdk.call_with_nothing, method)
        except Exception as fault:
            raise AssertionError(f"{name}: {fault}") from fault
        # That a thing is unknown would say something else: the operation is there.
        said = "This path does not take this method" if name in WRONG_METHOD else NOTHING
        same((name, error.detail), (name, said))
    print(f"  {len(bench.called)} operations called, {len(rest)} others are not served")
    if os.environ.get("LIST_UNSERVED"):
        print("\n".join(f"    {name}" for name in sorted(rest)))


NOTHING = "There is nothing under this path"
CHECKS = (
    *directory.ALL,
    *deliveries.ALL,
    *signatures.ALL,
    *operational.ALL,
    tokens,
    everything_else_is_not_there,
)


def main():
    bench = Bench(os.environ["SVIX_SERVER_URL"], os.environ["SVIX_TOKEN"])
    for check in CHECKS:
        began = time.monotonic()
        try:
            check(bench)
        except Exception:
            traceback.print_exc(limit=-6, file=sys.stdout)
            print(f"  FAILED {check.__name__} with svix {sdk.VERSION}")
            return 1
        print(f"  {check.__name__} {time.monotonic() - began:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
