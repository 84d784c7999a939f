"""The tools with which an agent looks after its own context, as data: hosts offer them, a controller runs them."""

import re
from functools import cache
from importlib.resources import files

from clew.core.own_tools import RECALL, SEARCH
from clew.engine.cue import NET, Cue
from clew.errors import BadRequest
from clew.steps.handoff import NEW_SESSION
from clew.store.records import Method
from clew.wire.formats.tools import ToolDeclaration

PIN = "pin"
SUMMARIZE, TRUNCATE = "summarize_context", "truncate_context"
LOOKING = (RECALL, SEARCH)  # of use to any agent
STEERING = (NEW_SESSION, *LOOKING, PIN, SUMMARIZE, TRUNCATE)  # of one that decides itself

LATEST = 100 - 100 // NET - 1  # per cent of the room

_TEXT = {"type": "string"}
_PARAMETERS = {
    NEW_SESSION: ({"summary": _TEXT}, ["summary"]),
    RECALL: ({"id": _TEXT, "lines": _TEXT, "pattern": _TEXT}, ["id"]),
    SEARCH: ({"query": _TEXT}, ["query"]),
    PIN: ({"id": _TEXT, "off": {"type": "boolean"}}, ["id"]),
    SUMMARIZE: ({"focus": _TEXT}, []),
    TRUNCATE: ({}, []),
}


def offered(method: Method, subagent: bool, when: str, how: str) -> list[ToolDeclaration]:
    """The tools for an agent, the same for a whole session: they head what a provider caches."""
    names = LOOKING if method == "auto" or subagent else STEERING
    return [_tool(name, when, how) for name in names]


def _tool(name: str, when: str, how: str) -> ToolDeclaration:
    text = _words(name)
    properties, required = _PARAMETERS[name]
    if name == NEW_SESSION:
        text = text.replace("{when}", in_words(when)).replace("{how}", f"\n\n{how.strip()}" if how.strip() else "")
    return ToolDeclaration(name, text, {"type": "object", "properties": properties, "required": required})


@cache
def _words(name: str) -> str:
    return files("clew.control").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def cue_of(when: str) -> Cue:
    """When an agent is asked to act, as far as the user's words are a number. Raises `BadRequest` for what is too late.

    Words that are no number leave it to the agent: then clew counts with the usual share.
    """
    when = when.strip()
    if share := re.fullmatch(r"(\d{1,3})\s*%", when):
        if not 0 < int(share[1]) <= LATEST:
            raise BadRequest(
                f"new_session.when is {when}: from {LATEST + 1}% on, clew compacts by itself so that a request never "
                f"exceeds its window; use 1% to {LATEST}%"
            )
        return Cue(int(share[1]))
    if count := re.fullmatch(r"([\d_,]+)(?:\s*tokens)?", when):
        return Cue(tokens=int(re.sub("[_,]", "", count[1])))
    return Cue()


def in_words(when: str) -> str:
    """When an agent shall begin a new session: a share, a number of tokens, or the user's own words."""
    cue = cue_of(when)
    if cue.tokens is not None:
        return f"when more than {cue.tokens:,} tokens are used (context_window less remaining_tokens)"
    return when.strip() if when.strip() and not when.strip().endswith("%") else f"when used_pct >= {cue.percent}"
