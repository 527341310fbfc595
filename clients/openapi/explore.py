"""Drives every operation of the OpenAPI document with generated requests, right ones and wrong.

Generation is deterministic: the same document gets the same requests each time.
Never: pass over a failure, or over an operation that was only ever refused.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = os.environ.get("PEYK_EXAMPLES", "6")
ANSWERS = {"/down": 500, "/moved": 301}


class Receiver(BaseHTTPRequestHandler):
    """Answers by its path."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(ANSWERS.get(self.path, 200))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    environment = os.environ | {
        "PEYK_RECEIVER": f"http://127.0.0.1:{receiver.server_port}",
        "SCHEMATHESIS_HOOKS": "hooks",
        "PYTHONPATH": str(HERE),
    }
    url = os.environ["SVIX_SERVER_URL"]
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        f"--config-file={HERE / 'schemathesis.toml'}",
        "run",
        f"{url}/api/v1/openapi.json",
        f"--max-examples={EXAMPLES}",
        *sys.argv[1:],
    ]
    # It may leave files behind.
    with tempfile.TemporaryDirectory() as scratch:
        done = Path(scratch) / "done"
        done.touch()
        environment["PEYK_DONE"] = str(done)
        status = subprocess.run(command, env=environment, cwd=scratch).returncode
        refused = operations(url) - set(done.read_text().split())
    if refused:
        print("only ever refused:", *sorted(refused))
    return status or len(refused)


def operations(url):
    """The names of all operations of the document but of the one that reads it."""
    with urllib.request.urlopen(f"{url}/api/v1/openapi.json") as answer:
        paths = json.load(answer)["paths"]
    names = {is_["operationId"] for path in paths.values() for is_ in path.values()}
    return names - {"v1.document.openapi"}


if __name__ == "__main__":
    sys.exit(main())
