"""Runs a peer inside its own environment: a line of JSON asks, a line of JSON answers. Needs nothing but Python.

{"begin": "trim", "window": 64000, "cap": 60} begins a session, which may use so many seconds of CPU in all, beside
what the package takes to load;
{"same": 12, "messages": [...]} asks what the peer would send instead of the first 12 messages that were given last and
these behind them, in OpenAI's format. The answer has a number in place of each message that was given, and says how
many characters a model would have read and written for each summary.
"""

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

LOADING = 60.0  # seconds of CPU to load a package and to make it ready: some take seven
QUIET = {
    "DO_NOT_TRACK": "true",  # what they measure of their users
    "HF_HUB_OFFLINE": "1",  # no weights are fetched
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PRAISONAI_TELEMETRY_DISABLED": "true",
}


def answers(asked: IO[str], said: IO[str], ways: Any) -> None:
    """Answer until there is no more to read."""
    keeper: Any = None
    given: list[Any] = []
    standin = importlib.import_module("packages.standin")
    for line in asked:
        order = json.loads(line)
        begin = time.process_time()
        try:
            if "begin" in order:
                _limit(LOADING)
                keeper, given = ways[order["begin"]](order["window"]), []
                _limit(order["cap"])
                begin = time.process_time()
                found: dict[str, Any] = {"ready": True}
            else:
                given[order["same"] :] = order["messages"]
                standin.ASKED.clear()
                sent = keeper.fit(_copied(given))  # a peer may change what it gets
                found = {"messages": list(_numbered(sent, given)), "asked": standin.ASKED}
        except Exception as fault:  # whatever a peer does, the next one is still run
            found = {"error": f"{type(fault).__name__}: {fault}"[:300]}
        print(json.dumps({**found, "cpu": time.process_time() - begin}), file=said, flush=True)


def _copied(value: Any) -> Any:
    match value:
        case dict():
            return {key: _copied(inner) for key, inner in value.items()}
        case list():
            return [_copied(inner) for inner in value]
    return value


def _numbered(sent: Sequence[Any], given: Sequence[Any]) -> Iterator[Any]:
    """A message that was given is its number: most are, and they are long."""
    numbers = {_key(message): n for n, message in enumerate(given)}
    for message in sent:
        n = numbers.get(_key(message))
        yield message if n is None or given[n] != message else n


def _key(message: Any) -> tuple[str, str, str]:
    return str(message.get("role")), str(message.get("content")), str(message.get("tool_call_id"))


def _limit(seconds: float) -> None:
    """From now on so much CPU; the system ends a process that uses more."""
    have = int(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (have, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    os.environ.update(QUIET)
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints is no answer
    sys.path[:] = [sys.argv[2], *sys.path, str(Path(__file__).parent.parent)]
    answers(sys.stdin, answer, importlib.import_module(f"use_{sys.argv[1]}").WAYS)
