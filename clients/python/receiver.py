"""A receiver of webhooks on loopback that notes what it gets, and a forwarder that loses answers.

Never: verify a signature; who looks at a hit does.
"""

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

# Nothing that works takes longer, on a machine that is busy with other things too.
PATIENCE_S = 45


class Hit:
    """A request that came in."""

    def __init__(self, path, headers, body):
        self.path = path
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def family(self, prefix):
        """The headers of one family of signature headers only."""
        names = ("id", "timestamp", "signature")
        return {f"{prefix}-{name}": self.headers[f"{prefix}-{name}"] for name in names}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer is two writes; with Nagle's algorithm the second waits for the peer.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def take(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        return Hit(self.path, {name.lower(): value for name, value in self.headers.items()}, body)

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Service:
    def __init__(self, handler):
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.origin = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()


class Receiver(_Service):
    """Answers 200 on every path, and 500 on those that are down."""

    def __init__(self):
        self.down = set()
        self._hits = []
        self._came = threading.Condition()
        receiver = self

        class Handler(_Handler):
            def do_POST(self):
                hit = self.take()
                with receiver._came:
                    receiver._hits.append(hit)
                    receiver._came.notify_all()
                self.answer(500 if hit.path in receiver.down else 200, b"noted")

        super().__init__(Handler)

    def url(self, path):
        return self.origin + path

    def to(self, path):
        """What came to a path, oldest first."""
        with self._came:
            return [hit for hit in self._hits if hit.path == path]

    def wait(self, path, count):
        """Waits until so many came to a path; more are a fault."""
        with self._came:
            enough = lambda: sum(hit.path == path for hit in self._hits) >= count
            assert self._came.wait_for(enough, PATIENCE_S), f"{path}: waited in vain for {count}"
        hits = self.to(path)
        assert len(hits) == count, f"{path}: {len(hits)} requests instead of {count}"
        return hits


class LosesAnswers(_Service):
    """Forwards POSTs, and answers 503 to the first try of each though it was carried out."""

    def __init__(self, server_url):
        self.posts = []
        forwarder, server = self, urlsplit(server_url)

        class Handler(_Handler):
            def do_POST(self):
                hit = self.take()
                forwarder.posts.append(hit)
                connection = http.client.HTTPConnection(server.hostname, server.port)
                connection.request("POST", self.path, hit.body, hit.headers)
                response = connection.getresponse()
                status, body = response.status, response.read()
                connection.close()
                if "svix-retry-count" not in hit.headers:
                    status, body = 503, b'{"code": "lost", "detail": "the answer was lost"}'
                self.answer(status, body, [("content-type", "application/json")])

        super().__init__(Handler)
