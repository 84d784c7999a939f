"""Requests of real clients with something wrong in them, and answers with something wrong in those: what a gateway
makes of both. Two tenants speak in turn; nothing of one may be found with the other."""

import asyncio
import gzip
import http.client
import json
import re
import socket
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any
from urllib.parse import urlsplit

import brotli

from clew.errors import NotFound
from clew.gateway.settings import GatewaySettings
from clew.testing import Answer, Call, StrictProvider
from made_clients import CLIENTS, session
from serving import Served, serving

TENANTS = {"key-of-amber": "amber", "key-of-beryl": "beryl"}
PATIENCE = 120  # seconds after which an answer is taken for none
ODD: list[Any] = [
    None, True, -1, 0, 0.5, 10**30, "", " ", "\x00", "\ud800", "é" * 300, "x" * 70_000, [], {}, [[]], [None], [{}],
    {"": ""}, {"type": None}, {"type": "text"}, {"type": "text", "text": 7}, {"role": "user"}, "{",
    "[clew log 0123456789abcdef: x]", {"type": "compaction", "encrypted_content": "clew-log-1:AAAA"}, "resp_1",
    {"type": "compaction_trigger"},
]  # fmt: skip
ODD_HEADERS = [
    "", " ", "{", '{"request_kind":"compaction"}', '{"a":' * 2_000, "é", "a" * 5_000, "llm", "auto", "0", "-1",
]  # fmt: skip
HEADER_NAMES = (
    "x-clew-session x-clew-parent x-clew-method x-session-id session-id thread-id session_id x-openai-subagent accept "
    "x-claude-code-session-id x-claude-code-agent-id x-codex-turn-metadata anthropic-version anthropic-beta user-agent "
    "content-type accept-encoding content-language cookie te trailer upgrade"
).split()
EXTRA = {
    "/v1/responses/compact": {"model": "gpt-5", "input": [{"role": "user", "content": "sum up"}]},
    "/v1/messages/count_tokens": {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]},
    "/v1/responses/input_tokens": {"model": "gpt-5", "input": "hi"},
    "/v1beta/models/gemini-2.5-pro:countTokens": {"contents": [{"parts": [{"text": "hi"}]}]},
    "/v1/files": {"purpose": "x"},
}
_OURS = re.compile(rb"clew failed on this request|Internal Server Error")
_OPENED = re.compile(r'clew_failed_open_total\{error="(\w+)"\} (\d+)')


@dataclass
class FuzzedRequest:
    """What is sent, and what was done to it."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    raw: bytes
    done: list[str] = field(default_factory=list)


@dataclass
class GatewayFaults:
    """What was wrong, with the seed of each."""

    requests: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)


@cache
def openings(word: str) -> list[tuple[str, list[tuple[str, str]], Any]]:
    """Requests of all clients, as they are sent."""
    found: list[tuple[str, list[tuple[str, str]], Any]] = []
    for name in CLIENTS:
        found += [(r.path, [*r.headers.items()], r.body) for r in session(name, word, turns=3)]
    return [*found, *((path, [("x-clew-session", word)], body) for path, body in EXTRA.items())]


# --- what is done to a request ----------------------------------------------------------------------------------------


def made(random: Random, key: str) -> FuzzedRequest:
    """A request with up to three things wrong."""
    path, headers, body = random.choice(openings(TENANTS[key]))
    body, done = json.loads(json.dumps(body)), list[str]()
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        done.append(_mutated(random, body))
    asked = FuzzedRequest(
        "POST", path, [("host", "localhost"), ("x-clew-key", key), *headers], _written(random, body), done
    )
    for act in random.sample(ACTS, random.choice((0, 0, 1, 1, 2))):
        act(random, asked)
        asked.done.append(act.__name__)
    return asked


def _written(random: Random, body: Any) -> bytes:
    raw = json.dumps(body, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    return raw.replace(b'"stream": true', b'"stream": false') if random.random() < 0.3 else raw


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from _places(inner)


def _mutated(random: Random, body: Any) -> str:
    places = list(_places(body))
    if not places:
        return "nothing"
    top = [place for place in places if place[0] is body]
    holder, key = random.choice(top if random.random() < 0.3 else places)
    match random.randrange(4):
        case 0:
            del holder[key]
            return f"without {key}"
        case 1 if isinstance(holder, list):
            holder.insert(random.randrange(len(holder) + 1), holder[key])
            return f"twice {key}"
        case 2 if isinstance(holder[key], list):
            random.shuffle(holder[key])
            return f"shuffled {key}"
    odd = deepcopy(random.choice(ODD))
    holder[key] = odd
    return f"{key} = {str(odd)[:30]!r}"


def cut(random: Random, asked: FuzzedRequest) -> None:
    asked.raw = asked.raw[: random.randrange(len(asked.raw) + 1)]


def garbled(random: Random, asked: FuzzedRequest) -> None:
    raw = bytearray(asked.raw)
    for _ in range(random.choice((1, 1, 5))):
        raw[random.randrange(len(raw))] = random.randrange(256)
    asked.raw = bytes(raw)


def wrapped(random: Random, asked: FuzzedRequest) -> None:
    asked.raw = random.choice(
        [b"\xef\xbb\xbf%b", b" \n%b\n", b"[%b]", b'{"a":1}%b', b"%b%b", b"NaN", b"null", b'""']
    ).replace(b"%b", asked.raw)


def recoded(random: Random, asked: FuzzedRequest) -> None:
    asked.raw = asked.raw.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-32", "latin-1")), "replace")


def packed(random: Random, asked: FuzzedRequest) -> None:
    coding, pack = random.choice(
        [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", brotli.compress), ("gzip", bytes), ("odd", bytes)]
    )
    asked.raw = pack(asked.raw)
    if random.random() < 0.3:
        cut(random, asked)
    asked.headers.append(("content-encoding", coding))


def titled(random: Random, asked: FuzzedRequest) -> None:
    for _ in range(random.choice((1, 2, 6))):
        asked.headers.append((random.choice(HEADER_NAMES), random.choice(ODD_HEADERS)))


def untitled(random: Random, asked: FuzzedRequest) -> None:
    asked.headers.remove(random.choice(asked.headers))


def moved(random: Random, asked: FuzzedRequest) -> None:
    path = asked.path
    asked.path = random.choice(
        [f"/v1{path}", path.removeprefix("/v1"), f"{path}/", f"/{path}", f"{path}?alt=sse", f"{path}?key=%ff&a=b;c",
         path.replace("m", "%6d"), f"/x/..{path}", f"{path}%00", f"{path}:", "*",
         "@x/v1", f"http://evil.example{path}", "/v1/models/x", f"/{'a' * 9_000}",
         "/v1beta/models/:generateContent"]
    )  # fmt: skip


def asked_otherwise(random: Random, asked: FuzzedRequest) -> None:
    asked.method = random.choice(("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "QUERY"))


ACTS = [cut, garbled, wrapped, recoded, packed, titled, untitled, moved, asked_otherwise]


# --- what an upstream says --------------------------------------------------------------------------------------------


def said(random: Random) -> Answer:
    """An answer, or less than one."""
    calls = (
        Call(random.choice(("shell", "recall", "new_session")), random.choice(({}, "{", {"summary": "s", "id": 1}))),
    )
    return random.choice(
        [
            Answer("Understood."),
            Answer("Understood."),
            Answer("Word by word.", piece=3, packet=random.randrange(1, 60)),
            Answer("Calling.", calls),
            Answer("Cut.", cut=random.randrange(400)),
            Answer("Late.", status=random.choice((429, 500, 529)), late=True),
            Answer(status=random.choice((400, 401, 404, 413, 429, 500, 503))),
            Answer(status=400, error="prompt is too long: 300000 tokens > 100 maximum"),
            Answer(raw=random.choice((b"", b"{", b"[]", b"null", b'{"choices":3}', b'{"content":[3]}', b"\xff"))),
            Answer("Lies.", output=random.choice((-3, 10**20))),
        ]
    )


# --- a run ------------------------------------------------------------------------------------------------------------


def fuzz(seeds: Iterable[int]) -> GatewayFaults:
    """What was wrong with what became of these."""
    faults, answers = GatewayFaults(), list[Answer]()
    settings = GatewaySettings(keys=TENANTS, tools=True, body=8 << 20, client_silence=5)
    try:
        with serving(provider=StrictProvider(lambda body: answers[0]), window=60_000, settings=settings) as served:
            _run(served, seeds, answers, faults)
            if served.ask("/livez", method="GET").status != 200 or served.gateway.metrics.running:
                faults.told.append(f"{served.gateway.metrics.running} requests are still being answered")
            faults.told += asyncio.run(_strangers(served))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        faults.told.append(f"the provider failed: {error!r}")
    return faults


def _run(served: Served, seeds: Iterable[int], answers: list[Answer], faults: GatewayFaults) -> None:
    opened = 0
    for seed in seeds:
        random = Random(seed)
        asked = made(random, random.choice(list(TENANTS)))
        answers[:] = [said(random)]
        problem = _problem(served, asked, answers[0], faults)
        told = _OPENED.findall(served.gateway.metrics.text())
        if (now := sum(int(n) for error, n in told if error != "BadRequest")) > opened:
            opened, problem = now, f"failed open: {told}"
        if problem:
            faults.told.append(f"seed {seed}: {problem}; {asked.method} {asked.path[:80]} {asked.done}")
        faults.requests += 1


def _problem(served: Served, asked: FuzzedRequest, answer: Answer, faults: GatewayFaults) -> str:
    try:
        status, kind, raw = _asked(served, asked)
    except TimeoutError:
        return "no answer"
    except (http.client.HTTPException, OSError) as error:
        faults.statuses["broken"] += 1
        whole = answer.cut is None and not answer.late
        return f"broken off: {error!r}" if whole and "moved" not in asked.done else ""
    faults.statuses[str(status)] += 1
    if _OURS.search(raw):
        return f"{status} {raw[:200]!r}"
    if status == 502 and answer.cut is None:
        return f"502 {raw[:200]!r}"
    return "" if status < 400 or asked.method == "HEAD" else _misshapen(status, kind, raw)


def _misshapen(status: int, kind: str, raw: bytes) -> str:
    if status == 501 and b"Error code: 501" in raw:  # of the server below
        return ""
    try:
        error = json.loads(raw)
        error = (error[0] if isinstance(error, list) else error)["error"]
        return (
            ""
            if isinstance(error["message"], str) and ("type" in error or "status" in error)
            else f"shape: {raw[:200]!r}"
        )
    except (ValueError, KeyError, TypeError):
        return f"{status} {kind} without a shape: {raw[:200]!r}"


def _asked(served: Served, asked: FuzzedRequest) -> tuple[int, str, bytes]:
    parts = urlsplit(served.url)
    head = [
        f"{asked.method} {asked.path} HTTP/1.1",
        *(f"{k}: {v}" for k, v in asked.headers),
        f"content-length: {len(asked.raw)}",
    ]
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as line:
        line.sendall("\r\n".join([*head, "connection: close", "", ""]).encode("latin-1") + asked.raw)
        came = http.client.HTTPResponse(line, method=asked.method)
        came.begin()
        return came.status, came.headers.get("content-type", ""), came.read()


async def _strangers(served: Served) -> list[str]:
    """What is in the log of one tenant and was said by the other."""
    engine, found = served.gateway.engine, list[str]()
    for mine in TENANTS.values():
        [other] = {*TENANTS.values()} - {mine}
        for known in await engine.store.sessions(mine):
            try:
                view = await engine.view(mine, known.branch)
            except NotFound:  # rows of other gateways, of which nothing was sent
                continue
            if any(other in node.item.text for node in view.nodes) or other in str(known):
                found.append(f"{mine} has words of {other} in {known.branch}")
    strangers = await engine.store.sessions("default")
    return [*found, *(f"a session of nobody: {known.branch}" for known in strangers)]
