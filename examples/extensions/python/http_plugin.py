"""A plugin of CheckMessages as an HTTP endpoint, with the standard library alone.

    python3 http_plugin.py --listen 127.0.0.1:9002 [--token-file FILE]

Portcullis posts each text as {"text": ...}; the answer says whether it is unsafe. Any other JSON would do as well: the
settings say where things stand in it. Anything that is no answer counts as not judged, and the fail mode decides.
"""

import argparse
import hmac
import json
import pathlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rule import CATEGORY, names_in

BODY_BYTES_MAX = 16 * 1024 * 1024


class Plugin(BaseHTTPRequestHandler):
    # Keeps connections open between calls. The answer leaves in one piece, or Nagle's algorithm would hold it back.
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    token = ""

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        if not 0 < length <= BODY_BYTES_MAX:
            return self.answer(413, {"error": "a body of at most 16 MiB with its length is needed"})
        body = self.rfile.read(length)
        given = self.headers.get("authorization") or ""
        if self.token and not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            return self.answer(401, {"error": "the token is wrong"})
        try:
            found = names_in(json.loads(body)["text"])
        except (ValueError, KeyError, TypeError):
            return self.answer(400, {"error": "the body holds no text"})
        if not found:
            return self.answer(200, {"is_unsafe": False})
        return self.answer(
            200,
            {
                "is_unsafe": True,
                "category": CATEGORY,
                "severity": "high",
                "description": "Names a project that is not public.",
            },
        )

    def answer(self, status: int, value: dict):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing: what a text holds is nobody else's business."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--listen", default="127.0.0.1:9002", help="HOST:PORT; port 0 takes a free one")
    parser.add_argument("--token-file", type=pathlib.Path, help="callers must send the token in this file")
    options = parser.parse_args()
    if options.token_file:
        Plugin.token = options.token_file.read_text().strip()
    host, _, port = options.listen.rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), Plugin)
    print("listening on http://%s:%d" % server.server_address[:2], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
