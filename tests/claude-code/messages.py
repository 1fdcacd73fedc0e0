"""A stand-in for the model: answers the Messages API from a script, in the form that the agent reads."""

import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_numbers = itertools.count(1)


def text(words):
    """A block of the answer that says something."""
    return {"type": "text", "text": words}


def tool(name, **arguments):
    """A block of the answer that calls a tool."""
    return {"type": "tool_use", "id": f"toolu_{next(_numbers):020}", "name": name, "input": arguments}


class Model:
    """Answers requests that offer tools with `steps`, one a request and the last one ever after; all others with a word.

    The agent asks for titles and summaries besides its work. Such a request offers no tools, so it does not use up a step.
    """

    def __init__(self, *steps):
        self.steps = list(steps)
        self.requests = []
        self.others = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self):
        """Where the agent finds it."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def blocks(self):
        """Every block of the conversation as it stood at the last request, those in results of tools among them."""
        messages = self.requests[-1]["messages"] if self.requests else []
        found, open_ = [], [message["content"] for message in messages]
        for content in open_:
            if isinstance(content, list):
                found += content
                open_ += [block["content"] for block in content if block["type"] == "tool_result"]
        return found

    def results(self):
        """What the agent told of its tool calls: one block for each."""
        return [block for block in self.blocks() if block["type"] == "tool_result"]

    def seen(self):
        """Everything that reached the model, as one text."""
        return json.dumps([*self.requests, *self.others], ensure_ascii=False)

    def _answer(self, request):
        with self._lock:
            if not request.get("tools"):
                self.others.append(request)
                return [text("done")]
            self.requests.append(request)
            step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
            return step if isinstance(step, list) else [step]

    def _handler(model):  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self._send(b"", "text/plain")

            def do_GET(self):
                self._send(b"{}", "application/json")

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                path = self.path.partition("?")[0]
                if path == "/v1/messages/count_tokens":
                    return self._send(b'{"input_tokens":100}', "application/json")
                if path != "/v1/messages":
                    model.others.append({"path": self.path})
                    return self._send(b"{}", "application/json")
                request = json.loads(body)
                message = whole(request, model._answer(request))
                if request.get("stream"):
                    return self._send(b"".join(events(message)), "text/event-stream")
                return self._send(json.dumps(message).encode(), "application/json")

            def _send(self, body, kind):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


def whole(request, content):
    """The answer in one piece."""
    calls = any(block["type"] == "tool_use" for block in content)
    return {
        "id": f"msg_{next(_numbers):020}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", ""),
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }


def events(message):
    """The same answer as a stream of events."""

    def event(kind, **more):
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()

    start = {**message, "content": [], "stop_reason": None, "usage": {"input_tokens": 100, "output_tokens": 1}}
    yield event("message_start", message=start)
    for at, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        yield event("content_block_start", index=at, content_block=empty)
        yield event("content_block_delta", index=at, delta=delta)
        yield event("content_block_stop", index=at)
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ending, usage={"output_tokens": 10})
    yield event("message_stop")
