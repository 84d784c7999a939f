"""A double of Bedrock's runtime on loopback, for boto3's real client: it speaks Converse, and refuses what breaks its
rules or is too long. It is no part of `StrictProvider`, since nobody here has seen the service itself answer."""

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread as Worker
from typing import Any
from urllib.parse import unquote

import boto3

from clew.tokens.counter import counter_for
from clew.wire import check

Body = dict[str, Any]
CONVERSE = re.compile(r"/model/([^/]+)/(converse|converse-stream)")
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


class BedrockDouble:
    """A server to use in a `with` block."""

    def __init__(self, script: Callable[[Body], list[Body]], window: int = 1_000_000) -> None:
        self.script = script  # the blocks of the answer to a request
        self.window = window
        self.heard: list[tuple[bytes, int]] = []  # each request, and how many tokens it has
        self.count = counter_for(MODEL).text

    def __enter__(self) -> "BedrockDouble":
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                status, headers, content = double.answer(unquote(self.path), raw)
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._worker = Worker(target=self._server.serve_forever, daemon=True)
        self._worker.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._worker.join()

    def client(self) -> Any:
        """boto3's own client of it."""
        return boto3.Session("none", "none", region_name="us-east-1").client(
            "bedrock-runtime", endpoint_url=f"http://127.0.0.1:{self._server.server_port}"
        )

    def answer(self, path: str, raw: bytes) -> tuple[int, Body, bytes]:
        found = CONVERSE.fullmatch(path)
        assert found, path
        body = {"modelId": found[1], **json.loads(raw)}
        size = self.count(raw.decode())
        self.heard.append((raw, size))
        if broken := check(body, "bedrock"):
            return self._refusal(f"{broken[0]}")
        if size > self.window:
            return self._refusal(
                f"The model returned the following errors: prompt is too long: {size} tokens > {self.window} maximum"
            )
        blocks = self.script(body)
        usage = {"inputTokens": size, "outputTokens": 5, "totalTokens": size + 5}
        stop = "tool_use" if any("toolUse" in block for block in blocks) else "end_turn"
        if found[2] == "converse":
            told = {"output": {"message": {"role": "assistant", "content": blocks}}, "stopReason": stop}
            answer = {**told, "usage": usage, "metrics": {"latencyMs": 1}}
            return 200, {"content-type": "application/json"}, json.dumps(answer).encode()
        events = b"".join(_framed(kind, event) for kind, event in _events(blocks, stop, usage))
        return 200, {"content-type": "application/vnd.amazon.eventstream"}, events

    def _refusal(self, why: str) -> tuple[int, Body, bytes]:
        kind = {"x-amzn-errortype": "ValidationException", "content-type": "application/json"}
        return 400, kind, json.dumps({"message": why}).encode()


def _events(blocks: list[Body], stop: str, usage: Body) -> Iterator[tuple[str, Body]]:
    yield "messageStart", {"role": "assistant"}
    for n, block in enumerate(blocks):
        if call := block.get("toolUse"):
            start = {"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}}
            yield "contentBlockStart", {"contentBlockIndex": n, "start": start}
            delta: Body = {"toolUse": {"input": json.dumps(call["input"])}}
            yield "contentBlockDelta", {"contentBlockIndex": n, "delta": delta}
        else:
            yield "contentBlockDelta", {"contentBlockIndex": n, "delta": {"text": block["text"]}}
        yield "contentBlockStop", {"contentBlockIndex": n}
    yield "messageStop", {"stopReason": stop}
    yield "metadata", {"usage": usage, "metrics": {"latencyMs": 1}}


def _framed(kind: str, event: Body) -> bytes:
    """An event as AWS frames it: lengths, a checksum, headers, the event, and another checksum."""
    told = {":message-type": "event", ":event-type": kind, ":content-type": "application/json"}
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in told.items()
    )
    payload = json.dumps(event).encode()
    opening = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    opening += struct.pack("!I", zlib.crc32(opening))
    whole = opening + headers + payload
    return whole + struct.pack("!I", zlib.crc32(whole))


def picture() -> bytes:
    """The smallest PNG."""
    return base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
