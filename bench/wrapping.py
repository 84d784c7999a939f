"""What `clew.wrap` adds to a streamed call. python bench/wrapping.py [--format NAME] [--waits] [--profile WAY]

A conversation of many tokens goes on (`--tokens`), each answer a stream of many events (`--events`), each of which
comes alone. A canned transport gives them: no socket and no server is measured. In ms of the process's CPU, of all its
threads, the bound of the quickest quarter of the calls (`--calls`), which take turns: the SDK alone, wrapped, and
wrapped with clew's own tools on offer; then the same straight through the HTTP client, where what wrapping adds is not
lost in the SDK's own work. The last columns are microseconds that an event takes to be read without any client, as a
gateway does: for the usage alone, for the answer, and with tools on offer. `--waits` takes clients that await.
"""

import argparse
import asyncio
import cProfile
import os
import pstats
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any

import anthropic
import openai

import clew
from clew import Budget, Engine, SQLite
from clew.adapters.wrapping.lines import library_of
from clew.core import rawjson
from clew.engine.settings import Settings
from clew.exchange.answers import AnswerReader
from clew.testing import Answer
from clew.testing.provider.answers import ProviderTurn
from clew.testing.provider.strict import REFUSALS
from clew.wire.formats import named

MODEL = "model-of-this-bench"
WORDS = "The green door opens when the lamp is lit. "
PATHS = {"openai_chat": "/chat/completions", "openai_responses": "/responses", "anthropic": "/v1/messages"}
WAYS = ("bare", "wrap", "tools")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def stream(format: str, events: int, number: int) -> list[bytes]:
    """The events of an answer, about a token in each."""
    body = {"model": MODEL, "stream_options": {"include_usage": True}}
    text = (f"Answer {number}: " + WORDS * events)[: events * 4]
    return list(named(format).stream(ProviderTurn(format, body, Answer(text, piece=4), number=number)))


def canned(library: Any, events: list[bytes], waits: bool) -> Any:
    """An HTTP client of a library that gets these events, one at a time."""

    class Coming(library.AsyncByteStream if waits else library.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            yield from events

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for event in events:
                yield event

    def answer(_: Any) -> Any:
        return library.Response(200, headers={"content-type": "text/event-stream"}, stream=Coming())

    transport = library.MockTransport(answer)
    return library.AsyncClient(transport=transport) if waits else library.Client(transport=transport)


class Talk:
    """A conversation over a client, bare or wrapped."""

    def __init__(self, format: str, way: str, tokens: int, events: int, waits: bool, folder: Path) -> None:
        self.format = format
        self._waits = waits
        self._number = 0
        sdk: Any = anthropic if format == "anthropic" else openai
        library = library_of(sdk.DefaultHttpxClient())
        http = canned(library, stream(format, events, 0), waits)
        kind = ("Async" if waits else "") + ("Anthropic" if format == "anthropic" else "OpenAI")
        self._client = getattr(sdk, kind)(api_key="none", base_url="http://nowhere.invalid", http_client=http)
        if way != "bare":
            engine = Engine(SQLite(folder / f"{way}.db"), Budget(window=1_000_000, reserve=1_000), Settings())
            self._client = clew.wrap(self._client, engine, tools=way == "tools")
        self._said: list[dict[str, Any]] = []
        for n in range(tokens // 200):  # some 400 characters, twice
            self._said += [self._user(f"{n}: {WORDS * 9}"), self._assistant(f"{n}: {WORDS * 9}")]

    def _user(self, text: str) -> dict[str, Any]:
        return {"role": "user", "content": text}

    def _assistant(self, text: str) -> dict[str, Any]:
        return {"role": "assistant", "content": text}

    def _body(self) -> dict[str, Any]:
        tool = {"name": "read", "description": "Read a file."}
        match self.format:
            case "anthropic":
                return {"messages": self._said, "max_tokens": 500, "tools": [{**tool, "input_schema": SCHEMA}]}
            case "openai_chat":
                function = {"type": "function", "function": {**tool, "parameters": SCHEMA}}
                return {"messages": self._said, "stream_options": {"include_usage": True}, "tools": [function]}
        return {"input": self._said, "store": False, "tools": [{"type": "function", **tool, "parameters": SCHEMA}]}

    async def turn(self) -> float:
        """Say something and hear all of the answer; the CPU that it took."""
        self._number += 1
        self._said.append(self._user(f"Go on, for the time {self._number}."))
        client = self._client
        create = {
            "anthropic": lambda: client.messages.create,
            "openai_chat": lambda: client.chat.completions.create,
            "openai_responses": lambda: client.responses.create,
        }[self.format]()
        begin = time.process_time()
        made = create(model=MODEL, stream=True, **self._body())
        heard = [event async for event in await made] if self._waits else list(made)
        took = time.process_time() - begin
        self._said.append(self._assistant("".join(map(text_of, heard))))
        return took

    async def raw_turn(self) -> float:
        """The same without the SDK."""
        self._number += 1
        self._said.append(self._user(f"Go on, for the time {self._number}."))
        http, content = self._client._client, rawjson.dumps({"model": MODEL, "stream": True, **self._body()})
        begin = time.process_time()
        request = http.build_request("POST", f"http://nowhere.invalid{PATHS[self.format]}", content=content)
        if self._waits:
            response = await http.send(request, stream=True)
            chunks = [chunk async for chunk in response.aiter_bytes()]
            await response.aclose()
        else:
            response = http.send(request, stream=True)
            chunks = list(response.iter_bytes())
            response.close()
        took = time.process_time() - begin
        reader = AnswerReader(self.format)
        reader.hear(b"".join(chunks))
        spoken = reader.spoken()
        self._said.append(self._assistant(spoken.text if spoken else ""))
        return took


def text_of(event: Any) -> str:
    """What an event of an SDK adds to the text."""
    if hasattr(event, "choices"):
        return event.choices[0].delta.content or "" if event.choices else ""
    delta = getattr(event, "delta", "")
    return delta if isinstance(delta, str) else getattr(delta, "text", "")


def reading(format: str, events: int) -> list[float]:
    """Microseconds that an event takes to be read: for the usage, for the answer, and with tools on offer."""
    came = stream(format, events, 0)

    def passed(only_usage: bool = False) -> None:
        reader = AnswerReader(format, only_usage)
        for chunk in came:
            reader.hear(chunk)
        reader.hear(b"")
        reader.spoken()

    def joined() -> None:
        reader, one = AnswerReader(format), named(format).joined(lambda _: False)
        for chunk in came:
            one.add(reader.add(chunk))
        reader.spoken()
        one.end(muted=False)

    found = []
    for read in (partial(passed, only_usage=True), passed, joined):
        costs = []
        for _ in range(40):
            begin = time.process_time()
            read()
            costs.append((time.process_time() - begin) / len(came) * 1e6)
        found.append(quick(costs))
    return found


def quick(costs: list[float]) -> float:
    """The bound of the quickest quarter: what the machine does beside it only adds."""
    return quantiles(costs, n=4)[0]


async def measure(
    format: str, given: argparse.Namespace, profiles: Mapping[str, cProfile.Profile], raw: bool
) -> list[float]:
    """What each way takes, whose calls take turns."""
    costs: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        talks = {way: Talk(format, way, given.tokens, given.events, given.waits, Path(folder)) for way in WAYS}
        for n in range(given.calls + 2):
            for way, talk in talks.items():
                profile = profiles.get(way) if n > 1 else None
                if profile:
                    profile.enable()
                took = await (talk.raw_turn() if raw else talk.turn())
                if profile:
                    profile.disable()
                costs[way].append(took)
    return [quick(found[2:]) * 1e3 for found in costs.values()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=sorted(REFUSALS), action="append")
    parser.add_argument("--tokens", type=int, default=10_000, help="of the history")
    parser.add_argument("--events", type=int, default=300, help="of a stream")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--waits", action="store_true", help="clients that await")
    parser.add_argument("--profile", choices=WAYS, help="say where the time went")
    given = parser.parse_args()
    profiles = {given.profile: cProfile.Profile(time.process_time)} if given.profile else {}
    heads = (*WAYS, *(f"http {way}" for way in WAYS), "+wrap", "+tools", "usage", "answer", "joined")
    print("format".ljust(18), *(head.rjust(11) for head in heads), sep="")
    for format in given.format or list(REFUSALS):
        sdk = asyncio.run(measure(format, given, profiles, raw=False))
        bare, *more = asyncio.run(measure(format, given, {}, raw=True))
        found = [*sdk, bare, *more, *(cost - bare for cost in more), *reading(format, given.events)]
        print(format.ljust(18), *(f"{cost:11.2f}" for cost in found), sep="", flush=True)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    for profile in profiles.values():
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
