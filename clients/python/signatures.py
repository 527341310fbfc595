"""What is delivered is verified as receivers do: by `standardwebhooks` and by the SDK's own class.

Never: sign anything.
"""

import standardwebhooks
import svix.webhooks
from svix.models import ApplicationIn, EndpointIn, EndpointSecretRotateIn, MessageIn

from sdk import same

FAMILIES = ("webhook", "svix")
# A key pair (RFC 8032, section 7.1, test 2): the secret half, then the public one.
ED25519 = (
    "whsk_TM0Imyj/ltqdtsNG7BFOD1uKMZ81q6Yk2oz27U+4pvs9Q"
    "BfD6EOJWpK3CqdNG368nJgszy7ElozAzVXxKvRmDA=="
)
ED25519_PUBLIC = "whpk_PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw="


def accepted(hit, secret, family):
    """Whether both libraries take a delivery, by the headers of one family."""
    headers = hit.family(family)
    verdicts = {_takes(svix.webhooks.Webhook(secret), hit.body, headers)}
    plain = {f"webhook-{name.split('-')[1]}": value for name, value in headers.items()}
    verdicts.add(_takes(standardwebhooks.Webhook(secret), hit.body, plain))
    assert len(verdicts) == 1, "the two libraries differ"
    return verdicts.pop()


def _takes(webhook, body, headers):
    try:
        webhook.verify(body, headers)
    except svix.webhooks.WebhookVerificationError:
        return False
    return True


def _deliver(bench, count):
    body = MessageIn(event_type="invoice.paid", payload={"count": count, "text": "é\n"})
    bench.svix.message.create("signed", body)
    return bench.receiver.wait("/signed", count)[-1]


def by_secrets(bench):
    api = bench.svix.endpoint
    bench.svix.application.create(ApplicationIn(name="Signed", uid="signed"))
    api.create("signed", EndpointIn(url=bench.receiver.url("/signed"), uid="e"))
    old = api.get_secret("signed", "e").key
    hit = _deliver(bench, 1)
    for family in FAMILIES:
        assert accepted(hit, old, family), family
    hit.body += b" "
    assert not any(accepted(hit, old, family) for family in FAMILIES), "a changed body"

    api.rotate_secret("signed", "e", EndpointSecretRotateIn())
    new = api.get_secret("signed", "e").key
    hit = _deliver(bench, 2)
    same(len(hit.headers["webhook-signature"].split(" ")), 2)
    for family in FAMILIES:
        assert accepted(hit, old, family) and accepted(hit, new, family), family
    assert not accepted(hit, "whsec_" + "QUJD" * 8, "svix"), "a stranger's secret"

    api.rotate_secret("signed", "e", EndpointSecretRotateIn(grace_period_seconds=0))
    last = api.get_secret("signed", "e").key
    hit = _deliver(bench, 3)
    assert accepted(hit, last, "svix") and not accepted(hit, new, "svix"), "no grace"
    api.rotate_secret("signed", "e", EndpointSecretRotateIn(key=ED25519))
    same(api.get_secret("signed", "e").key, ED25519_PUBLIC)
    hit = _deliver(bench, 4)
    versions = [part.split(",")[0] for part in hit.headers["svix-signature"].split(" ")]
    same(versions.count("v1a"), 1)
    assert accepted(hit, last, "svix"), "beside v1a, which these libraries pass over"


ALL = (by_secrets,)
