"""A provider on loopback: it speaks Chat, Responses and Messages over HTTP, refuses what real ones refuse, and has a
prompt cache whose hits it reports."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from clew import rawjson
from clew.errors import BadRequest
from clew.provider.cache import Cache
from clew.provider.shapes import Answer, error, said
from clew.usage import Spent
from clew.wire import check

__all__ = ["Answer", "FakeProvider", "Heard"]

Body = dict[str, Any]

PATHS = {
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/responses/compact": "openai_responses",
    "/v1/messages": "anthropic",
}


@dataclass(frozen=True, slots=True)
class Heard:
    """One request, as it came over the wire."""

    path: str
    query: str
    headers: Mapping[str, str]
    raw: bytes
    body: Body
    spent: Spent  # as reported


@dataclass
class FakeProvider:
    """A server to use in a `with` block; it gives the answers in turn, the last of them forever."""

    answers: list[Answer] | Callable[[Body], Answer] = field(default_factory=lambda: [Answer()])
    window: int = 1_000_000
    heard: list[Heard] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._cache = Cache()
        self._lock = Lock()

    def __enter__(self) -> "FakeProvider":
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                provider._serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        raw = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        path, _, query = request.path.partition("?")
        headers = {name.lower(): value for name, value in request.headers.items()}
        with self._lock:
            status, content, wait = self._answer(path, query, headers, raw)
        time.sleep(wait)
        try:
            request.send_response(status)
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            request.wfile.write(content)
        except OSError:
            pass  # nobody waits for it any more

    def _answer(self, path: str, query: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, bytes, float]:
        format = PATHS.get(path)
        try:
            body = rawjson.loads(raw)
        except BadRequest:
            body = None
        if format is None or not isinstance(body, dict):
            return 404, error(f"no such path: {path}", "not_found_error"), 0
        spent = self._cache.read(body, format)
        self.heard.append(Heard(path, query, headers, raw, body, spent))
        if broken := check(body, format):
            return 400, error(f"{broken[0].where}: {broken[0].why}", "invalid_request_error"), 0
        if spent.input > self.window:
            long = f"prompt is too long: {spent.input} tokens > {self.window} maximum"
            return 400, error(long, "invalid_request_error"), 0
        answer = self._next(body)
        if answer.error:
            return answer.status, error(answer.error, "api_error"), answer.seconds
        self._cache.write(body, format)
        return answer.status, answer.raw or rawjson.dumps(said(path, body, answer, spent)), answer.seconds

    def _next(self, body: Body) -> Answer:
        if callable(self.answers):
            return self.answers(body)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
