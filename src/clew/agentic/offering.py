"""The tools with which an agent looks after its own context, as data: hosts offer them, `Helm` runs them."""

import re
from importlib.resources import files

from clew.steps.handoff import NEW_SESSION
from clew.store.records import Method
from clew.wire.convert_frame import Tool

RECALL, SEARCH, PIN = "recall", "search_history", "pin"
SUMMARIZE, TRUNCATE = "summarize_context", "truncate_context"
LOOKING = (RECALL, SEARCH)  # of use to any agent
STEERING = (NEW_SESSION, *LOOKING, PIN, SUMMARIZE, TRUNCATE)  # of one that decides itself

WHEN = "when used_pct >= 75"

_TEXT = {"type": "string"}
_PARAMETERS = {
    NEW_SESSION: ({"summary": _TEXT}, ["summary"]),
    RECALL: ({"id": _TEXT, "lines": _TEXT, "pattern": _TEXT}, ["id"]),
    SEARCH: ({"query": _TEXT}, ["query"]),
    PIN: ({"id": _TEXT, "off": {"type": "boolean"}}, ["id"]),
    SUMMARIZE: ({"focus": _TEXT}, []),
    TRUNCATE: ({}, []),
}


def offered(method: Method, subagent: bool, when: str, how: str) -> list[Tool]:
    """The tools for an agent, the same for a whole session: they head what a provider caches."""
    names = LOOKING if method == "auto" or subagent else STEERING
    return [_tool(name, when, how) for name in names]


def _tool(name: str, when: str, how: str) -> Tool:
    text = files("clew.agentic").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()
    properties, required = _PARAMETERS[name]
    if name == NEW_SESSION:
        text = text.replace("{when}", in_words(when)).replace("{how}", f"\n\n{how.strip()}" if how.strip() else "")
    return Tool(name, text, {"type": "object", "properties": properties, "required": required})


def in_words(when: str) -> str:
    """When an agent shall begin a new session: a share, a number of tokens, or the user's own words."""
    when = when.strip()
    if share := re.fullmatch(r"(\d{1,3})\s*%", when):
        return f"when used_pct >= {share[1]}"
    if count := re.fullmatch(r"([\d_,]+)(?:\s*tokens)?", when):
        return f"when more than {int(re.sub('[_,]', '', count[1])):,} tokens are used"
    return when or WHEN
