"""Real conversations, where somebody has some: `*.jsonl.gz`, one a line, with `messages` in OpenAI's format."""

import json
from collections.abc import Iterator
from gzip import open as unzipped
from pathlib import Path

from clew import Request
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.wire import check, decode
from loads.talking import MODEL, Message

MOST = 2_500_000  # bytes said: enough for a figure
METER = Meter(counter_for(MODEL))


def tokens_in(messages: list[Message]) -> int:
    return METER.items(decode({"messages": messages}, "openai_chat")[1]).tokens


def recorded(folder: Path) -> Iterator[tuple[str, Iterator[tuple[list[Message], Request]]]]:
    """Each conversation, as turns: what is new, and the request that a client makes of it."""
    said = 0
    for path in sorted(folder.glob("*.jsonl.gz")):
        with unzipped(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                messages = json.loads(line).get("messages", [])
                said += len(line)
                if said > MOST:
                    return
                if messages and not check({"messages": messages}, "openai_chat"):
                    yield f"{path.name}:{number}", _requests(messages)


def _requests(messages: list[Message]) -> Iterator[tuple[list[Message], Request]]:
    told = 0
    for n in range(1, len(messages) + 1):
        if n == len(messages) or messages[n]["role"] == "assistant":
            body = json.dumps({"model": MODEL, "messages": messages[:n]}).encode()
            yield messages[told:n], Request(body)
            told = n
