"""A local server of the OpenAI protocol that misbehaves as a test requires.

A test gives one function from (number of the request, its body) to the answer. All requests are
recorded, with the maximum number in flight.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to one request."""

    status: int = 200
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    after: float = 0.0
    """Seconds before the first byte."""
    every: float = 0.0
    """Seconds between single bytes; 0 sends all at once."""
    cut: int | None = None
    """The number of bytes sent before the connection is closed, though more are announced."""


def text(words: str, *, model: str = "m", usage: Any = None, **more: Any) -> Answer:
    """A valid reply, of either form."""
    counted = {"prompt_tokens": 3, "completion_tokens": 2} if usage is None else usage
    choice = {
        "index": 0,
        "text": words,
        "message": {"role": "assistant", "content": words},
        "finish_reason": "stop",
    }
    reply = {"id": "1", "object": "x", "created": 0, "model": model, "choices": [choice]}
    return Answer(content=json.dumps({**reply, "usage": counted}).encode(), **more)


def refused(status: int, message: str = "no", **more: Any) -> Answer:
    """An error in the protocol's format; `code` names its kind."""
    error = {"message": message, "code": more.pop("code", None)}
    return Answer(status=status, content=json.dumps({"error": error}).encode(), **more)


def echo(_number: int, body: Mapping[str, Any]) -> Answer:
    """Reply with the prompt and seed of a request."""
    return text(f"said {prompt_of(body)} {body['seed']}")


def prompt_of(body: Mapping[str, Any]) -> str:
    """The prompt of a request of either form."""
    return str(body["prompt"] if "prompt" in body else body["messages"][0]["content"])


@dataclass
class Stub:
    """A running server."""

    url: str
    received: list[dict[str, Any]] = field(default_factory=list)
    """Bodies, with `path`, `key` (its Authorization) and `time`."""
    most_in_flight: int = 0


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


@contextmanager
def stub_server(behaviour: Callable[[int, Mapping[str, Any]], Answer] = echo) -> Iterator[Stub]:
    """Yield a running server."""
    turn = threading.Lock()
    in_flight = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            nonlocal in_flight
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sent = {"path": self.path, "key": self.headers["Authorization"], "time": time.time()}
            with turn:
                number = len(stub.received)
                stub.received.append({**body, **sent})
                in_flight += 1
                stub.most_in_flight = max(stub.most_in_flight, in_flight)
            try:
                self._send(behaviour(number, body))
            except OSError:
                self.close_connection = True  # the client has gone
            finally:
                with turn:
                    in_flight -= 1

        def _send(self, answer: Answer) -> None:
            time.sleep(answer.after)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            if answer.cut is not None:
                self.wfile.write(answer.content[: answer.cut])
                self.close_connection = True
            elif answer.every:
                for place in range(len(answer.content)):
                    self.wfile.write(answer.content[place : place + 1])
                    time.sleep(answer.every)
            else:
                self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            return

    server = _Server(("127.0.0.1", 0), Handler)
    stub = Stub(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
