"""Clients of real SDKs before three gateways on one PostgreSQL, of which one is killed again and again.

python tests/replicas.py CLIENTS TURNS PAUSE SECONDS POSTGRES-URL

Between its turns a client does something else for about PAUSE seconds. A gateway is killed every so many SECONDS, until
all turns are taken.

Connections go through a small balancer, as before real replicas. In the end the log is looked through: every turn that
was answered is in it, once and in its order, and nothing of one tenant is with another.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import anthropic
import httpx2
import openai
from aiohttp import ClientSession

from clew import open_store
from clew.testing import Answer, StrictProvider

TENANTS = ("amber", "beryl")
REPLICAS = 3
WORDS = " ".join(f"word-{n}" for n in range(150))
WINDOW = 12_000
BROKEN = (openai.APIError, anthropic.APIError, httpx2.HTTPError)


@dataclass
class ReplicasOutcome:
    """What came of it."""

    turns: int = 0  # answered
    kills: int = 0
    tries: Counter[int] = field(default_factory=Counter)  # by turns that took so many
    folds: int = 0
    seconds: float = 0
    slowest: float = 0  # seconds of a turn
    branches: int = 0
    problems: list[str] = field(default_factory=list)


# --- replicas ---------------------------------------------------------------------------------------------------------


class Replica:
    """A process of `clew serve`, begun anew on its port when it is killed."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._env, self._log = env, folder / f"replica-{self.port}.log"
        self.begin()

    def begin(self) -> None:
        with self._log.open("a") as log:
            command = [sys.executable, "-m", "clew.cli", "serve", "--port", str(self.port)]
            self._process = subprocess.Popen(command, env=self._env, stdout=log, stderr=log)

    async def ready(self) -> None:
        async with ClientSession() as http:
            while True:
                assert self._process.poll() is None, self._log.read_text()[-2_000:]
                with suppress(OSError):
                    async with http.get(f"http://127.0.0.1:{self.port}/readyz") as came:
                        if came.status == 200:
                            return
                await asyncio.sleep(0.05)

    async def restart(self) -> None:
        self.stop(signal.SIGKILL)
        self.begin()
        await self.ready()

    def stop(self, how: signal.Signals) -> None:
        self._process.send_signal(how)
        self._process.wait()


class Balancer:
    """Passes each connection on to the next of several ports that takes it."""

    def __init__(self, ports: list[int]) -> None:
        self._ports, self._turn = ports, count()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = next(self._turn)
        for n in range(len(self._ports)):
            with suppress(OSError):
                there = await asyncio.open_connection("127.0.0.1", self._ports[(first + n) % len(self._ports)])
                await asyncio.gather(_pipe(reader, there[1]), _pipe(there[0], writer))
                return
        writer.close()

    def stop(self) -> None:
        self._server.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(1 << 16):
            writer.write(chunk)
            await writer.drain()
    writer.close()


# --- clients ----------------------------------------------------------------------------------------------------------


class Talker:
    """A client with its history; every second one has a name, and is known by its past otherwise."""

    def __init__(self, number: int, url: str, outcome: ReplicasOutcome) -> None:
        self.number, self.word = number, TENANTS[number % 2]
        self.streamed = number % 4 < 2
        self.name = f"talk-{number}" if number % 8 < 4 else None
        self.history: list[dict[str, Any]] = []
        self._outcome = outcome
        headers = {"x-clew-key": f"key-of-{self.word}"} | ({"x-clew-session": self.name} if self.name else {})
        # Each with the retries that are usual with it.
        if number % 3:
            self._openai = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", default_headers=headers)
        else:
            self._anthropic = anthropic.AsyncAnthropic(base_url=url, api_key="none", default_headers=headers)

    def said(self, turn: int) -> str:
        return f"{self.word} talk {self.number} turn {turn}: {WORDS}"

    async def run(self, turns: int, pause: float) -> None:
        random = Random(self.number)
        for turn in range(turns):
            await asyncio.sleep(pause * 2 * random.random())
            self.history.append({"role": "user", "content": self.said(turn)})
            began = time.monotonic()
            text = await self._taken()
            self._outcome.slowest = max(self._outcome.slowest, time.monotonic() - began)
            self._outcome.turns += 1
            if text != f"heard {self.said(turn)[:40]}":
                self._outcome.problems.append(f"talk {self.number} turn {turn} got {text[:200]!r}")
            self.history.append({"role": "assistant", "content": text})

    async def _taken(self) -> str:
        """An answer; one that breaks off in the middle is asked for again, as agents do."""
        for again in range(5):
            try:
                text, retries = await (self._chat() if self.number % 3 else self._messages())
                self._outcome.tries[1 + retries + again] += 1
                return text
            except BROKEN as error:
                self._outcome.problems += [f"talk {self.number}: {error!r}"] if again else []
        raise AssertionError(f"talk {self.number} gets no answer")

    async def _chat(self) -> tuple[str, int]:
        asked: Any = {"model": "gpt-5", "messages": self.history, "stream": self.streamed}
        came = await self._openai.chat.completions.with_raw_response.create(**asked)
        said: Any = came.parse()
        if not self.streamed:
            return str(said.choices[0].message.content), came.retries_taken
        parts, ended = list[str](), False
        async for chunk in said:
            for choice in chunk.choices:
                parts.append(choice.delta.content or "")
                ended = ended or choice.finish_reason is not None
        if not ended:
            raise httpx2.RemoteProtocolError("the stream has no end")
        return "".join(parts), came.retries_taken

    async def _messages(self) -> tuple[str, int]:
        asked: Any = {"model": "claude-sonnet-5", "max_tokens": 500, "messages": self.history}
        if not self.streamed:
            came = await self._anthropic.messages.with_raw_response.create(**asked)
            said: Any = await came.parse()
            return str(said.content[0].text), came.retries_taken
        streamed = await self._anthropic.messages.with_raw_response.create(**asked, stream=True)
        parts, ended = list[str](), False
        async for event in await streamed.parse():
            if event.type == "content_block_delta":
                parts.append(event.delta.text)
            ended = ended or event.type == "message_stop"
        if not ended:
            raise httpx2.RemoteProtocolError("the stream has no end")
        return "".join(parts), streamed.retries_taken


def answer(body: dict[str, Any]) -> Answer:
    """What a model says: whose turn it heard."""
    last = body["messages"][-1]["content"]
    text = last if isinstance(last, str) else last[-1]["text"]
    return Answer(f"heard {text[:40]}", pause=0.002)


def provide() -> None:
    """Be the provider until nobody listens any more."""
    with StrictProvider(answer, window=WINDOW) as provider:
        sys.stdout.write(f"{provider.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


@contextmanager
def provided() -> Iterator[str]:
    """A provider in a process of its own: where it is."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, __file__, "provider"], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


# --- the log ----------------------------------------------------------------------------------------------------------


async def look(where: str, talkers: list[Talker], outcome: ReplicasOutcome) -> None:
    """What is not as the clients were told."""
    store = open_store(where)
    try:
        outcome.problems += [f"doctor: {p.count} {p.what}" for p in await store.check(deep=True)]
        logged: dict[str, list[list[str]]] = {}
        for word in TENANTS:
            branches = {known.branch for known in await store.sessions(word)}
            outcome.branches += len(branches)
            outcome.folds += len(await store.sessions(word)) - len(branches)
            for branch in branches:
                trace = await store.load(word, branch)
                nodes = await store.nodes(word, [place.id for place in trace.said])
                said = [nodes[place.id].item.text for place in trace.said]
                others = [text for text in said if not text.startswith((word, f"heard {word}"))]
                outcome.problems += [f"{word} has {others[0][:60]!r}"] if others else []
                logged.setdefault(said[0], []).append(said)
        for talker in talkers:
            want = [str(m["content"]) for m in talker.history[:-1]]  # the last answer comes with the next request
            found = logged.get(want[0], [])
            if want not in found:
                lengths = [len(said) for said in found]
                outcome.problems.append(f"talk {talker.number}: {len(want)} were said, the log has {lengths}")
    finally:
        await store.close()


# --- all of it --------------------------------------------------------------------------------------------------------


async def run(clients: int, turns: int, pause: float, seconds: float, where: str) -> ReplicasOutcome:
    outcome = ReplicasOutcome()
    with tempfile.TemporaryDirectory() as name, provided() as upstream:
        folder = Path(name)
        (folder / "clew").mkdir()
        (folder / "clew" / "config.toml").write_text(
            f"[budget]\nwindow = {WINDOW}\n[gateway]\nrequests = 512\n"
            + "".join(f'[gateway.upstreams.{k}]\nurl = "{upstream}"\nkind = "{k}"\n' for k in ("openai", "anthropic"))
            + "".join(f'[gateway.clients.{word}]\nkey = "KEY_{word}"\n' for word in TENANTS)
        )
        keys = {f"KEY_{word}": f"key-of-{word}" for word in TENANTS}
        env = {**os.environ, "XDG_CONFIG_HOME": name, "CLEW_STORE": where, "HOME": name, **keys}
        replicas = [Replica(folder, env)]
        await replicas[0].ready()  # which makes the store
        replicas += [Replica(folder, env) for _ in range(REPLICAS - 1)]
        await asyncio.gather(*(replica.ready() for replica in replicas))
        balancer = Balancer([replica.port for replica in replicas])
        url = await balancer.start()
        talkers = [Talker(n, url, outcome) for n in range(clients)]
        killing = asyncio.create_task(_kill(replicas, seconds, outcome))
        began = time.monotonic()
        try:
            await asyncio.gather(*(talker.run(turns, pause) for talker in talkers))
        finally:
            outcome.seconds = time.monotonic() - began
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
            balancer.stop()
            for replica in replicas:
                replica.stop(signal.SIGTERM)
        await look(where, talkers, outcome)
    return outcome


async def _kill(replicas: list[Replica], seconds: float, outcome: ReplicasOutcome) -> None:
    for n in count():
        await asyncio.sleep(seconds)
        outcome.kills += 1
        await replicas[n % len(replicas)].restart()


if __name__ == "__main__":
    if sys.argv[1:] == ["provider"]:
        provide()
    else:
        clients, turns, pause, seconds, where = sys.argv[1:]
        done = asyncio.run(run(int(clients), int(turns), float(pause), float(seconds), where))
        sys.stdout.write(json.dumps(vars(done)) + "\n")
