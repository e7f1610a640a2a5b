"""The other side of a `Webhook` load balancer, with the standard library: weights_server.py PORT SECRET_FILE

It keeps the weights in memory, so each start is another life: the reactor then puts them back.
"""

import hashlib
import hmac
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

STATE = {"weights": {"blue": 1, "green": 0}, "version": 1, "life": str(time.time())}
LOCK = Lock()


class Handler(BaseHTTPRequestHandler):
    """GET gives what stands; POST changes it, if nobody else has since it was read."""

    def answer(self) -> None:
        """Answer either."""
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 65536))
        at, path = self.headers.get("Reactor-Timestamp", "0"), self.path
        signed = f"{at}.{self.command}.{path}.".encode() + body
        wanted = "sha256=" + hmac.new(Path(sys.argv[2]).read_bytes().strip(), signed, hashlib.sha256).hexdigest()
        given = self.headers.get("Reactor-Signature", "")
        if not hmac.compare_digest(wanted, given) or abs(time.time() - int(at)) > 300:
            self.say(401, {"error": "not signed with our secret, or too long ago"})
            return
        with LOCK:
            if self.command == "POST":
                asked, key = json.loads(body), self.headers["Idempotency-Key"]
                if key != STATE.get("key"):  # else it is the same change once more: it stands
                    if asked["ifVersion"] != str(STATE["version"]):
                        self.say(409, STATE)
                        return
                    # Here: tell your proxies, your DNS, your feature flags.
                    STATE.update(weights=asked["weights"], version=STATE["version"] + 1, key=key)
            self.say(200, STATE)

    do_GET = do_POST = answer  # noqa: N815 - http.server's names

    def say(self, status: int, said: object) -> None:
        """Answer with JSON."""
        text = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
