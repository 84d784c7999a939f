"""Random histories through everybody who makes them smaller: does something come back, and would a provider take it?

The histories have parallel calls, results in any order, pictures, empty results, very long messages, and end where a
model is asked: after a user's message or after results. Half of them are as crashes and clients leave them: a call that
was never answered, a result whose call is gone, a message that is empty. `StrictProvider` of clew.testing refuses what
real providers refuse."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from multiprocessing import get_context
from random import Random
from typing import Any
from urllib.parse import urlsplit

from benchmark.judging import MODEL
from benchmark.methods import CLEW
from benchmark.peers import Child, Failed, NoAnswer, Peer
from clew.compression import compress
from clew.testing.conversations import conversation
from clew.testing.provider import StrictProvider
from clew.wire import check
from proofs import Figures, Settings
from proofs.beside import CAP, everybody, together
from proofs.tables import missing, named, table

Message = dict[str, Any]
Fit = Callable[[list[Message], int], list[Message]]  # makes a history fit into a window

HISTORIES = 600
WINDOWS = 4_000, 16_000
TOO_LARGE = "context_length_exceeded"


def measure(settings: Settings) -> Figures:
    """Everybody on the same histories."""
    many = 12 if settings.quick else settings.some(HISTORIES)
    groups: list[tuple[str | Peer, ...]] = [(CLEW,), ("as they are",), *([] if settings.quick else together())]
    rows: list[dict[str, Any]] = []
    with get_context("spawn").Pool(settings.processes) as pool:
        work = partial(one_group, seed=settings.seed, many=many)
        for done, found in enumerate(pool.imap(work, groups, chunksize=1), 1):
            settings.heard("validity", done, len(groups))
            rows += found
    return {"histories": many, "windows": list(WINDOWS), "cap": CAP, "peers": everybody(), "rows": rows}


def one_group(methods: Sequence[str | Peer], seed: int, many: int) -> list[dict[str, Any]]:
    """Methods that run in one process."""
    first = methods[0]
    if isinstance(first, str):
        return [one_method(first, ours if first == CLEW else unchanged, seed, many)]
    rows = []
    with Child(first, CAP) as child:
        for peer in methods:
            assert isinstance(peer, Peer)
            child.peer = peer
            rows.append(one_method(peer.name, partial(asked_of, child), seed, many))
    return rows


def ours(messages: list[Message], window: int) -> list[Message]:
    try:
        return compress(messages, model=MODEL, window=window).messages
    except Exception as error:  # counted like an error of a peer
        raise Failed(str(error)) from error


def unchanged(messages: list[Message], window: int) -> list[Message]:
    return messages


def asked_of(child: Child, messages: list[Message], window: int) -> list[Message]:
    """What a peer makes of a history."""
    child.begin(window)
    return child.fit(messages)


def history(seed: int, number: int) -> tuple[list[Message], bool]:
    """A history, and whether it is damaged."""
    random = Random(f"{seed} {number}")
    body = conversation(random.randrange(10**9), random.randint(1, 14), wordy=random.choice((20, 60, 200)))
    messages: list[Message] = body["messages"]
    if random.random() < 0.4:  # in the middle of its work: the newest are results
        results = [n for n, message in enumerate(messages) if message["role"] == "tool"]
        while results and results[-1] + 1 < len(messages) and messages[results[-1] + 1]["role"] == "tool":
            results.pop()
        messages = messages[: results[-1] + 1] if results else messages
    if random.random() < 0.2:
        told = [message for message in messages if message["role"] == "tool"]
        for message in random.sample(told, min(2, len(told))):
            message["content"] = random.choice(("", "x" * 40_000))
    damaged = number % 2 == 1
    return (broken(messages, random) if damaged else messages), damaged


def broken(messages: Sequence[Message], random: Random) -> list[Message]:
    """A history as a crash, or a client that edits, leaves it."""
    found = list(messages)
    results = [n for n, message in enumerate(found) if message["role"] == "tool"]
    calls = [n for n, message in enumerate(found) if message.get("tool_calls")]
    match random.randrange(4):
        case 0 if results:
            del found[random.choice(results)]
        case 1 if calls:
            del found[random.choice(calls)]
        case 2:
            found.insert(random.randint(1, len(found) - 1), {"role": "assistant", "content": None})
        case _:
            found.insert(1, {"role": "tool", "tool_call_id": "call_from_before", "content": "42"})
    return found


def one_method(name: str, fit: Fit, seed: int, many: int) -> dict[str, Any]:
    """How often a provider refuses what a method leaves, and why; how often nothing is left."""
    refused: Counter[str] = Counter()
    why: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    with provider() as ask:
        for number in range(many):
            messages, damaged = history(seed, number)
            kind = "damaged" if damaged else "sound"
            for window in WINDOWS:
                asked[kind] += 1
                try:
                    sent = fit(messages, window)
                except Failed:
                    cause = "an error"
                except NoAnswer:
                    cause = "no answer in time"
                else:
                    cause = ask(sent, window)
                if cause:
                    refused[kind] += 1
                    why[cause] += 1
    return {"method": name, "asked": dict(asked), "refused": dict(refused), "why": dict(why)}


@contextmanager
def provider() -> Iterator[Callable[[list[Message], int], str]]:
    """Asks a strict provider, and says why it refuses, if it does."""
    known = {f"{MODEL}-{window}": window for window in WINDOWS}
    with StrictProvider(models=known) as strict:
        connection = HTTPConnection(urlsplit(strict.url).netloc)

        def ask(messages: list[Message], window: int) -> str:
            body = json.dumps({"model": f"{MODEL}-{window}", "messages": messages}).encode()
            headers = {"Content-Type": "application/json", "Authorization": "Bearer key"}
            connection.request("POST", "/v1/chat/completions", body, headers)
            reply = connection.getresponse()
            raw = reply.read()
            strict.heard.clear()
            return "" if reply.status == 200 else cause(raw, messages)

        yield ask
        connection.close()


def cause(raw: bytes, messages: list[Message]) -> str:
    """A refusal in one or two words."""
    if json.loads(raw)["error"].get("code") == TOO_LARGE:
        return "too large"
    rules = {found.rule for found in check({"messages": messages}, "openai_chat")}
    return "call or result alone" if any("call" in rule or "tool" in rule for rule in rules) else "empty or malformed"


# --- what the documents say -------------------------------------------------------------------------------------------


def blocks(figures: Figures) -> dict[str, str]:
    """A table: refused of a thousand, and why."""
    rows = figures["rows"]
    causes = sorted({cause for row in rows for cause in row["why"]})
    head = ["method", "sound", "damaged", *causes]
    lines = []
    for row in rows:
        whole = sum(row["asked"].values())
        by_kind = [thousand(row["refused"].get(kind, 0), row["asked"][kind]) for kind in ("sound", "damaged")]
        lines.append([row["method"], *by_kind, *(thousand(row["why"].get(cause, 0), whole) for cause in causes)])
    windows = " and ".join(f"{window:,}" for window in figures["windows"])
    told = f"{figures['histories']} histories in windows of {windows} tokens; of 1,000 results, so many fail."
    return {"validity": f"{told}\n\n{table(head, lines + missing(figures, len(head)))}"}


def thousand(part: int, whole: int) -> str:
    return f"{1_000 * part / whole:.0f}"


def behind(figures: Figures) -> Iterator[str]:
    """What a provider would refuse of clew's, and who does better."""
    failed = {row["method"]: sum(row["refused"].values()) for row in figures["rows"]}
    ours = next(row for row in figures["rows"] if row["method"] == CLEW)
    if failed[CLEW]:
        why = ", ".join(f"{cause}: {many}" for cause, many in ours["why"].items())
        better = [name for name, many in failed.items() if many < failed[CLEW]]
        beside = f"; fewer in {named(better)}" if better else "; no other method has fewer"
        many = f"{failed[CLEW]} of {sum(ours['asked'].values())} results of clew cannot be sent ({why}){beside}"
        yield f"Random histories, half of them damaged: {many}."
