"""Things that exist, for cases to be about: made over HTTP, and made anew where a case ends them.

Never: check an answer of the operation under test.
"""

import http.client
import itertools
import json
import time
from urllib.parse import urlsplit

PATIENCE_S = 45
# Each replay or deletion uses one up.
LETTERS = 60
# Sent again by a task at one a second.
HELD = 40
MESSAGES = 12
TYPE = "seeded.type"
# Operations of endpoints that are told of other ones, and what nothing here leads to.
TOLD = "v1.operational-webhook.endpoint."
# A rule of alerts that fires, and its route; what is changed and deleted are others.
ALERT = "explored"
NOTICE = "message.attempt.recovered"


class Seeds:
    """An application with endpoints, messages, attempts, dead letters and a task."""

    def __init__(self, url, token, receiver):
        self.token, self.receiver = token, receiver
        self._at = urlsplit(url)
        self.app = self._made("/app", {"name": "Explored", "uid": "explored"})
        self.app_token = self.new_token()
        # Endpoints are made in an application without messages: each would get every one of them.
        self.filled = self._made("/app", {"name": "Filled"})
        # Replays begin and are stopped where nobody needs the dead letters.
        self.held = self._made("/app", {"name": "Held"})
        # Payloads go where nobody needs them.
        self.purged = self._made("/app", {"name": "Purged"})
        examples = {"1": {"type": "object", "examples": [{"invoice": "in_1"}]}}
        self._post("/event-type", {"name": TYPE, "description": "", "schemas": examples})
        self._post("/event-type", {"name": "changed.type", "description": ""})
        self.endpoint = self._made(self._of("endpoint"), {"url": receiver + "/ok", "uid": "ok"})
        self.changed = self._made(self._of("endpoint"), {"url": receiver + "/ok", "channels": ["c"]})
        self._post(self._of("endpoint"), {"url": receiver + "/down", "channels": ["down"]})
        self.told = self._told()
        body = {"eventType": TYPE, "payload": {"n": 1}}
        self.messages = [self._made(self._of("msg"), body) for _ in range(MESSAGES)]
        for _ in range(LETTERS):
            self._post(self._of("msg"), body | {"channels": ["down"]})
        endpoints = f"/app/{self.held}/endpoint"
        slow = f"{endpoints}/{self._made(endpoints, {'url': receiver + '/down'})}"
        for _ in range(HELD):
            self._post(f"/app/{self.held}/msg", body)
        self.letters = itertools.cycle(self._all("dead-letter", LETTERS))
        attempts = self._rows(f"attempt/endpoint/{self.endpoint}", MESSAGES)
        self.attempts = itertools.cycle((row["msgId"], row["id"]) for row in attempts)
        self._rows("dead-letter", HELD, self.held)
        status, answer = self._ask("PATCH", slow, {"throttleRate": 1})
        assert status == 200, answer
        self._next = itertools.cycle(self.messages)
        self._alerts()

    def new_token(self):
        """A token of the application."""
        return self._post(f"/auth/app-portal-access/{self.app}", {})["token"]

    def urls(self):
        return [self.receiver + path for path in ("/ok", "/down", "/moved")]

    def place(self, name, parts):
        """Where a case goes, in place of what was generated."""
        found = {}
        if "app" in parts:
            found["app"] = self._app_for(name)
        if "endpoint" in parts:
            found["endpoint"] = self._endpoint_for(name)
        if "message" in parts:
            found["message"] = self._message_for(name)
        if "attempt" in parts:
            found["message"], found["attempt"] = next(self.attempts)
        if "letter" in parts:
            found["letter"] = next(self.letters)
        for part in ("rule", "route"):
            if part in parts:
                found[part] = self._alert_for(name, part)
        if "silence" in parts:
            found["silence"] = self._made("/alert/silence", {"duration": "1h", "rule": ALERT})
        if "incident" in parts:
            found["incident"] = self.incident
        if "task" in parts:
            found["task"] = self._task(name)
        if "name" in parts:
            found["name"] = TYPE if name == "v1.event-type.get" else "changed.type"
        if "code" in parts:
            found["code"] = "not_found"
        return found

    def _app_for(self, name):
        if name == "v1.application.delete":
            return self._made("/app", {"name": "To be deleted"})
        return {
            "v1.endpoint.create": self.filled,
            "v1.endpoint.update": self.filled,
            "v1.message.expunge-all-contents": self.purged,
        }.get(name, self.app)

    def _endpoint_for(self, name):
        if name.startswith(TOLD):
            return self._told() if name == TOLD + "delete" else self.told
        if name == "v1.endpoint.delete":
            return self._made(self._of("endpoint"), {"url": self.receiver + "/ok"})
        changes = ("patch", "update-headers", "patch-headers", "rotate-secret", "force-breaker")
        return self.changed if name.rsplit(".")[-1] in changes else self.endpoint

    def _told(self):
        body = {"url": self.receiver + "/ok", "eventTypes": [NOTICE]}
        return self._made("/operational-webhook/endpoint", body)

    def _message_for(self, name):
        if name != "v1.message.expunge-content":
            return next(self._next)
        return self._made(self._of("msg"), {"eventType": "to.be.expunged", "payload": {}})

    def _task(self, name):
        """One that is at work where it is to be stopped, if there are dead letters left."""
        if name == "v1.background-task.cancel":
            status, answer = self._ask("POST", f"/app/{self.held}/dead-letter/replay", {})
            # Otherwise the last one is still at work.
            assert status in (202, 409), (status, answer)
            if status == 202:
                self._last_task = answer["id"]
        elif not hasattr(self, "_last_task"):
            begun = self._post(f"/app/{self.purged}/msg/expunge-all-contents", {})
            self._last_task = begun["id"]
        return self._last_task

    def _alerts(self):
        """A rule that fires, for there are dead letters, and the route that is told."""
        self._put_alert("route", ALERT)
        self._put_alert("rule", ALERT)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            _, answer = self._ask("GET", "/alert/incident")
            firing = [row["id"] for row in answer["data"] if row["status"] == "firing"]
            if firing:
                self.incident = firing[0]
                return
            assert time.monotonic() < deadline, "waited in vain for an incident"

    def _alert_for(self, name, part):
        if name.endswith(".delete"):
            return self._put_alert(part, "deleted")
        return self._put_alert(part, "changed") if name.endswith((".update", ".patch")) else ALERT

    def _put_alert(self, part, name):
        bodies = {
            "rule": {"condition": "dead_letters", "above": 0, "window": "24h", "routes": [ALERT]},
            "route": {"channel": "slack", "url": self.receiver + "/ok"},
        }
        status, answer = self._ask("PUT", f"/alert/{part}/{name}", bodies[part])
        assert status < 300, (part, name, status, answer)
        return name

    def _of(self, what):
        return f"/app/{self.app}/{what}"

    def _made(self, path, body):
        return self._post(path, body)["id"]

    def _post(self, path, body):
        status, answer = self._ask("POST", path, body)
        assert status < 300, (path, body, status, answer)
        return answer

    def _all(self, what, count):
        return [row["id"] for row in self._rows(what, count)]

    def _rows(self, what, count, app=None):
        """Asks until there are so many rows."""
        deadline = time.monotonic() + PATIENCE_S
        path = f"/app/{app or self.app}/{what}?limit={count}"
        while True:
            _, answer = self._ask("GET", path)
            if len(answer["data"]) >= count:
                return answer["data"]
            assert time.monotonic() < deadline, f"waited in vain for {count} rows of {path}"

    def _ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self._at.hostname, self._at.port)
        text = None if body is None else json.dumps(body)
        headers = {"authorization": f"Bearer {self.token}"}
        connection.request(method, "/api/v1" + path, text, headers)
        answer = connection.getresponse()
        raw = answer.read()
        connection.close()
        return answer.status, json.loads(raw) if raw else None
