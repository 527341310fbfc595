"""Messages, what was tried for them, and sending again, against a receiver on loopback.

Never: look at a signature, which `signatures` does.
"""

from datetime import datetime, timedelta, timezone

from svix.api.background_task import BackgroundTaskListOptions
from svix.api.endpoint import EndpointGetStatsOptions
from svix.api.message import (
    MessageCreateOptions,
    MessageGetOptions,
    MessageListOptions,
    message_in_raw,
)
from svix.api.message_attempt import (
    MessageAttemptListAttemptedMessagesOptions,
    MessageAttemptListByEndpointOptions,
    MessageAttemptListByMsgOptions,
)
from svix.models import (
    ApplicationIn,
    AppUsageStatsIn,
    BackgroundTaskStatus,
    BulkReplayIn,
    EndpointIn,
    EndpointPatch,
    EventExampleIn,
    MessageAttemptTriggerType,
    MessageIn,
    MessagePrecheckIn,
    MessageStatus,
    MessageStatusText,
    RecoverIn,
    ReplayIn,
    StatusCodeClass,
)

import sdk
from receiver import LosesAnswers
from sdk import IS_V1, TYPES, refused, same, until


def now():
    return datetime.now(timezone.utc)


def attempts(bench, app, message, count):
    """Waits until a message has so many attempts, and gives them, newest first."""

    def ask():
        found = bench.svix.message_attempt.list_by_msg(app, message).data
        return found if len(found) == count else None

    return until(f"{count} attempts of {message}", ask)


def messages(bench):
    svix, receiver = bench.svix, bench.receiver
    svix.application.create(ApplicationIn(name="Shop", uid="shop"))
    headers = {"X-Custom-Case": "kept"}
    svix.endpoint.create("shop", EndpointIn(url=receiver.url("/ok"), uid="ok", headers=headers))
    body = MessageIn(
        event_type="invoice.paid",
        event_id="first",
        payload={"n": 1, "ä": [1.5, None]},
        tags=["vip"],
        payload_retention_period=7,
    )
    made = svix.message.create("shop", body, MessageCreateOptions(with_content=True))
    assert made.id.startswith("msg_")
    same((made.event_id, made.event_type, made.tags), ("first", "invoice.paid", ["vip"]))
    same(made.payload, {"n": 1, "ä": [1.5, None]})
    hit = receiver.wait("/ok", 1)[0]
    same(hit.json(), made.payload)
    same(hit.headers["webhook-id"], made.id)
    same((hit.headers["x-custom-case"], hit.headers["content-type"]), ("kept", "application/json"))
    same(refused(409, svix.message.create, "shop", body).code, "conflict")

    without = {} if not IS_V1 else made.payload
    same(svix.message.get("shop", "first").payload, without)
    whole = svix.message.get("shop", made.id, MessageGetOptions(with_content=True))
    same(whole.payload, made.payload)
    none = svix.message.get("shop", made.id, MessageGetOptions(with_content=False))
    same(none.payload, {})
    bench.first = made


def messages_of_other_kinds(bench):
    svix, receiver = bench.svix, bench.receiver
    raw = message_in_raw("invoice.paid", '<paid n="1"/>', "application/xml")
    made = svix.message.create("shop", raw)
    hit = receiver.wait("/ok", 2)[1]
    same((hit.body, hit.headers["content-type"]), (b'<paid n="1"/>', "application/xml"))
    read = svix.message.get("shop", made.id, MessageGetOptions(with_content=True))
    same(read.payload, {"rawPayload": '<paid n="1"/>'})

    at = now() + timedelta(seconds=1.5)
    later = MessageIn(event_type="invoice.late", payload={}, deliver_at=at)
    made = svix.message.create("shop", later)
    assert abs(made.deliver_at - at) < timedelta(milliseconds=2)
    receiver.wait("/ok", 3)
    assert now() >= at, "not before its time"
    svix.endpoint.create("shop", EndpointIn(url=receiver.url("/red"), uid="red", channels=["red"]))
    red = MessageIn(event_type="invoice.paid", payload={"to": "red"}, channels=["red"])
    same(svix.message.create("shop", red).channels, ["red"])
    same(receiver.wait("/red", 1)[0].json(), {"to": "red"})
    receiver.wait("/ok", 4)

    listed = svix.message.list("shop", MessageListOptions(limit=3))
    same((len(listed.data), listed.done), (3, False))
    older = svix.message.list("shop", MessageListOptions(iterator=listed.iterator))
    same(([found.id for found in older.data], older.done), ([bench.first.id], True))
    for options, count in (
        (MessageListOptions(channel="red"), 1),
        (MessageListOptions(tag="vip"), 1),
        (MessageListOptions(event_types=["invoice.late", "no.such.type"]), 1),
        (MessageListOptions(before=bench.first.timestamp), 0),
        (MessageListOptions(after=bench.first.timestamp - timedelta(seconds=1)), 4),
    ):
        same((options, len(svix.message.list("shop", options).data)), (options, count))

    own = ApplicationIn(name="By a message", uid="made")
    body = MessageIn(event_type="invoice.paid", payload={}, application=own)
    svix.message.create("made", body)
    same(svix.application.get("made").name, "By a message")
    refused(404, svix.message.create, "nobody", MessageIn(event_type="a", payload={}))


def precheck(bench):
    ask = bench.svix.message.precheck
    same(ask("shop", MessagePrecheckIn(event_type="invoice.paid")).active, True)
    same(ask("made", MessagePrecheckIn(event_type="invoice.paid")).active, False)


def repeated_posts(bench):
    """A POST whose answer is lost is sent again by the SDK; one message comes of it."""
    svix, receiver = bench.svix, bench.receiver
    keyed = MessageCreateOptions(idempotency_key="one-key")
    body = MessageIn(event_type="invoice.paid", payload={"keyed": True}, channels=["red"])
    made = svix.message.create("shop", body, keyed)
    same(svix.message.create("shop", body, keyed).id, made.id)
    other = MessageIn(event_type="invoice.paid", payload={"keyed": False})
    refused(422, svix.message.create, "shop", other, keyed)

    lossy = LosesAnswers(bench.url)
    through = sdk.client(lossy.origin, bench.token)
    again = MessageIn(event_type="invoice.paid", payload={"lost": True}, channels=["red"])
    twice = through.message.create("shop", again)
    sent = [post.headers for post in lossy.posts]
    same(["svix-retry-count" in headers for headers in sent], [False, True])
    same(len({headers["idempotency-key"] for headers in sent}), 1)
    same(
        [hit.headers["webhook-id"] for hit in sorted(receiver.wait("/red", 3), key=_id)[1:]],
        sorted([made.id, twice.id]),
    )
    found = svix.message.list("shop", MessageListOptions(channel="red"))
    same(len(found.data), 3)
    app = through.application.create(ApplicationIn(name="No uid"))
    assert "svix-retry-count" in lossy.posts[-1].headers
    names = [found.name for found in svix.application.list().data]
    same(names.count("No uid"), 1)
    svix.application.delete(app.id)


def _id(hit):
    return hit.headers["webhook-id"]


def attempts_of_a_message(bench):
    svix, api = bench.svix, bench.svix.message_attempt
    (only,) = attempts(bench, "shop", "first", 1)
    same((only.status, only.status_text), (MessageStatus.SUCCESS, MessageStatusText.SUCCESS))
    same((only.response_status_code, only.msg_id), (200, bench.first.id))
    same(only.trigger_type, MessageAttemptTriggerType.SCHEDULED)
    same(only.url, bench.receiver.url("/ok"))
    whole = MessageAttemptListByMsgOptions(with_content=True)
    same(api.list_by_msg("shop", "first", whole).data[0].response, "noted")
    one = api.get("shop", "first", only.id)
    same((one.id, one.endpoint_id), (only.id, only.endpoint_id))
    same(len(api.list_by_endpoint("shop", "red").data), 3)
    for options, count in (
        (MessageAttemptListByEndpointOptions(limit=2), 2),
        (MessageAttemptListByEndpointOptions(status=MessageStatus.FAIL), 0),
        (MessageAttemptListByEndpointOptions(status_code_class=StatusCodeClass.CODE2XX), 3),
        (MessageAttemptListByEndpointOptions(event_types=["invoice.paid"]), 3),
        (MessageAttemptListByEndpointOptions(channel="blue"), 0),
    ):
        same((options, len(api.list_by_endpoint("shop", "red", options).data)), (options, count))

    to_red = api.list_attempted_messages("shop", "red")
    same({found.status for found in to_red.data}, {MessageStatus.SUCCESS})
    failed = MessageAttemptListAttemptedMessagesOptions(status=MessageStatus.FAIL)
    same(api.list_attempted_messages("shop", "red", failed).data, [])
    (place,) = api.list_attempted_destinations("shop", "first").data
    same((place.uid, place.status), ("ok", MessageStatus.SUCCESS))

    api.resend("shop", "first", "ok")
    newest = attempts(bench, "shop", "first", 2)[0]
    same(newest.trigger_type, MessageAttemptTriggerType.MANUAL)
    same(_id(bench.receiver.to("/ok")[-1]), bench.first.id)

    assert api.expunge_content("shop", "first", only.id) is None
    content = api.list_by_msg("shop", "first", whole).data[1].response
    same(content, "EXPUNGED")


def example_and_stats(bench):
    api = bench.svix.endpoint
    sent = api.send_example("shop", "red", EventExampleIn(event_type="invoice.paid"))
    same(sent.event_type, "invoice.paid")
    ping = api.send_example("shop", "red", EventExampleIn(event_type="svix.ping"))
    hits = {_id(hit): hit.json() for hit in bench.receiver.wait("/red", 5)}
    same((hits[sent.id], hits[ping.id]), ({"of": "an invoice"}, {"success": True}))
    none = EventExampleIn(event_type="invoice.late")
    same(refused(400, api.send_example, "shop", "red", none).code, "invalid_scheme")
    stats = until("five", lambda: _five(api.get_stats("shop", "red")))
    same((stats.fail, stats.pending, stats.sending, stats.canceled), (0, 0, 0, 0))
    since = EndpointGetStatsOptions(since=now() - timedelta(days=40))
    same(refused(400, api.get_stats, "shop", "red", since).code, "invalid_range")


def _five(stats):
    return stats if stats.success == 5 else None


def finished(bench, task, kind):
    """Waits until a background task is over, and gives how many it sent or purged."""
    same(str(task.task), kind)

    def ask():
        found = bench.svix.background_task.get(task.id)
        return None if found.status == BackgroundTaskStatus.RUNNING else found

    done = until(f"the end of {kind}", ask)
    same(done.status, BackgroundTaskStatus.FINISHED)
    return done.data


def sending_again(bench):
    svix, receiver = bench.svix, bench.receiver
    api, began = svix.endpoint, now() - timedelta(seconds=1)
    svix.application.create(ApplicationIn(name="Again", uid="again"))
    receiver.down.add("/down")
    api.create("again", EndpointIn(url=receiver.url("/down"), uid="down"))
    made = svix.message.create("again", MessageIn(event_type="invoice.paid", payload={"n": 1}))
    failed = attempts(bench, "again", made.id, 2)
    same([found.response_status_code for found in failed], [500, 500])
    list_messages = svix.message_attempt.list_attempted_messages
    options = MessageAttemptListAttemptedMessagesOptions(status=MessageStatus.FAIL)
    until("a dead letter", lambda: list_messages("again", "down", options).data)

    receiver.down.clear()
    task = api.recover("again", "down", RecoverIn(since=began))
    same(finished(bench, task, "endpoint.recover")["messagesSent"], 1)
    same(attempts(bench, "again", made.id, 3)[0].status, MessageStatus.SUCCESS)
    refused(422, api.recover, "again", "down", RecoverIn(since=now() - timedelta(days=20)))

    api.create("again", EndpointIn(url=receiver.url("/late"), uid="late"))
    task = api.replay_missing("again", "late", ReplayIn(since=began))
    same(finished(bench, task, "endpoint.replay")["messagesSent"], 1)
    same(_id(receiver.wait("/late", 1)[0]), made.id)
    wide = BulkReplayIn(since=began, event_types=["invoice.paid"], status=MessageStatus.SUCCESS)
    until("its record", lambda: svix.message_attempt.list_by_endpoint("again", "late").data)
    task = api.bulk_replay("again", "late", wide)
    same(finished(bench, task, "endpoint.bulk-replay")["messagesSent"], 1)
    same({_id(hit) for hit in receiver.wait("/late", 2)}, {made.id})

    api.patch("again", "late", EndpointPatch(disabled=True))
    same(refused(400, api.replay_missing, "again", "late", ReplayIn(since=began)).code, DISABLED)


DISABLED = "endpoint_disabled"


def contents_are_deleted(bench):
    svix, whole = bench.svix, MessageGetOptions(with_content=True)
    assert svix.message.expunge_content("shop", "first") is None
    same(svix.message.get("shop", "first", whole).payload, {"expired": True})
    refused(400, svix.message_attempt.resend, "shop", "first", "ok")
    task = svix.message.expunge_all_contents("shop")
    assert finished(bench, task, "application.purge_content")["messagesPurged"] >= 5
    rest = svix.message.list("shop", MessageListOptions(with_content=True))
    same({str(found.payload) for found in rest.data}, {"{'expired': True}"})
    tasks = svix.background_task.list(BackgroundTaskListOptions(limit=2))
    same((len(tasks.data), tasks.data[0].id, tasks.done), (2, task.id, False))
    names = {str(found.task) for found in svix.background_task.list().data}
    same(len(names), 4)


def statistics(bench):
    body = EndpointIn(url=bench.receiver.url("/"), **{TYPES: ["invoice.paid"]})
    bench.svix.endpoint.create("made", body)
    found = bench.svix.statistics.aggregate_event_types()
    same((str(found.status), str(found.task)), ("finished", "event-type.aggregate"))
    same(bench.svix.background_task.get(found.id).id, found.id)
    now = datetime.now(timezone.utc)
    span = AppUsageStatsIn(since=now - timedelta(days=1), until=now, app_ids=["made", "none"])
    begun = bench.svix.statistics.aggregate_app_stats(span)
    same((str(begun.task), begun.unresolved_app_ids), ("application.stats", ["none"]))
    counted = until("the end of a count", lambda: ended(bench, begun.id))
    same((str(counted.status), len(counted.data["appStats"])), ("finished", 1))


def ended(bench, task):
    found = bench.svix.background_task.get(task)
    return None if str(found.status) == "running" else found


ALL = (
    messages,
    messages_of_other_kinds,
    precheck,
    repeated_posts,
    attempts_of_a_message,
    example_and_stats,
    sending_again,
    contents_are_deleted,
    statistics,
)
