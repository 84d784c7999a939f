"""What the tests here say, and how they look at what was said."""

from typing import Any

from strands import tool

from clew.testing import Answer, Call

LONG = "detail " * 200


@tool
def read(path: str) -> str:
    """Read a file."""
    return f"{path} says port 8{len(path)}. " + "line " * 40


def grown(turns: int) -> list[Any]:
    """A conversation that is long already."""
    return [
        {"role": role, "content": [{"text": f"{role} {n} {LONG}"}]}
        for n in range(turns)
        for role in ("user", "assistant")
    ]


def said(messages: Any) -> list[tuple[str, Any]]:
    """Messages without what Strands notes about them."""
    return [(m["role"], m["content"]) for m in messages]


def texts(body: Any) -> list[str]:
    """What the messages of a request say, each in one piece."""
    return [str(message.get("content")) for message in body["messages"]]


def reading(count: int = 1, path: str = "a.py") -> Answer:
    """An answer that calls a tool, several times at once."""
    return Answer("Let me look.", calls=tuple(Call("read", {"path": f"{n}-{path}"}) for n in range(count)))
