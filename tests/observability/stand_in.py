"""What servers under load call: a model that speaks as Ollama does, and a webhook. Both do what their path says."""

import contextlib
import http.server
import json
import threading
import time

REVIEW = {"risk_level": "safe", "summary": "It sorts notes.", "findings": [], "placeholders": 0}
# How long the webhook takes: longer than the objective of latency.
SLOW_S = 0.3
# How long the judge thinks about a KILL: its client has gone by then.
KILL_S = 0.5


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if self.path == "/webhook/slow":
            time.sleep(SLOW_S)
            self.answer(200, {"decision": "DECISION_ALLOW"})
        elif self.path.startswith("/model/broken/"):
            self.answer(500, {"error": "out of order"})
        else:
            self.answer(200, self.judged(body))

    def judged(self, body: str) -> dict:
        """The answer of the model: about an incident, or about a bundle."""
        if "safety judge of a monitor" not in body:
            content = "I would rather not." if "an unanswerable skill" in body else json.dumps(REVIEW)
        elif "id_rsa" in body:
            time.sleep(KILL_S)
            content = json.dumps({"verdict": "KILL", "reason": "It reads a private key."})
        else:
            content = json.dumps({"verdict": "WARN", "reason": "Outside the work."})
        message = {"role": "assistant", "content": content}
        ended = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop"}
        return ended | {"message": message, "prompt_eval_count": 1000, "eval_count": 100}

    def answer(self, status: int, content: dict):
        body = json.dumps(content).encode()
        # Callers whose deadline has passed are gone.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def running():
    """The base URL of a stand-in that runs within the block."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
