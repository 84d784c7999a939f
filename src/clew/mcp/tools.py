"""The tools of the server as data, and what a call of one comes to."""

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from clew.core.arguments import checked, takes
from clew.errors import ToolError
from clew.mcp.telling import sized

if TYPE_CHECKING:
    from clew.mcp.answers import Answers

_TEXT, _FLAG = {"type": "string"}, {"type": "boolean"}
_NUMBER = {"type": "integer"}

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "search": takes("text", text=_TEXT, conversation=_TEXT, size=_NUMBER),
    "recall": takes("id", id=_TEXT, lines=_TEXT, pattern=_TEXT, size=_NUMBER),
    "timeline": takes(conversation=_TEXT, before=_NUMBER, size=_NUMBER),
    "lost": takes(conversation=_TEXT, size=_NUMBER),
    "pin": takes("id", id=_TEXT, off=_FLAG),
    "status": takes(conversation=_TEXT, size=_NUMBER),
}
WRITING = ("pin",)

Given = Mapping[str, Any]
_ACTS: "Mapping[str, Callable[[Answers, Given, int], Awaitable[str]]]" = {
    "search": lambda answers, given, size: answers.search(given["text"], given.get("conversation", ""), size),
    "recall": lambda answers, given, size: answers.recall(
        given["id"], given.get("lines", ""), given.get("pattern", ""), size
    ),
    "timeline": lambda answers, given, size: answers.timeline(given.get("conversation", ""), given.get("before"), size),
    "lost": lambda answers, given, size: answers.lost(given.get("conversation", ""), size),
    "pin": lambda answers, given, size: answers.pin(given["id"], given.get("off", False)),
    "status": lambda answers, given, size: answers.status(given.get("conversation", ""), size),
}


def prompt_text(name: str) -> str:
    """The words of a file of ours."""
    return files("clew.mcp").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def arguments(name: str, given: Any) -> dict[str, Any]:
    """The arguments of a call, if they fit. Raises `ToolError`."""
    if name not in SCHEMAS:
        raise ToolError(f"there is no tool {name[:60]!r}; there are {', '.join(SCHEMAS)}")
    return checked(name, SCHEMAS[name], {} if given is None else given)


async def call(answers: "Answers", name: str, given: Given) -> str:
    """What a call with fitting arguments gives back, in a bounded number of characters."""
    return await _ACTS[name](answers, given, sized(given.get("size")))
