"""A hook, from what a client says on standard input to what it is answered.

Clients run this at every call of a tool, so nothing is imported here that a short event does not need. Whatever goes
wrong, the client goes on as without clew: it is answered nothing, and the fault is told on standard error.
"""

import json
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any

from clew.core.own_tools import is_own_tool

if TYPE_CHECKING:
    from clew.hooks.previews import ResultKeeping

SMALL_RESULT = 40_000  # bytes of an event: a third of the smallest window that anybody works with has more
RESULT_EVENTS = ("PostToolUse", "AfterTool")
STARTS, KEY = "-gateway", "codex-key"  # what clew install --gateway has clients run before they ask


# What another process answers to an event; None: it cannot be asked.
EventAsking = Callable[[Sequence[str], bytes], str | None]


def run(words: list[str], source: IO[bytes], target: IO[str], ask: EventAsking | None = None) -> int:
    """Answer one event; always 0, since anything else would be a fault of the client's, but for one who wants a key.

    What takes more than a moment, another process is asked for, if there is one to `ask`.
    """
    if words == [KEY]:
        from clew.hooks.starting import key

        return key()
    try:
        client, said = words[0] if words else "", source.read()
        told = ask(words, said) if ask and is_work(client, said) else None
        if told := answer(client, said) if told is None else told:
            target.write(told)
    except Exception as error:  # fails open, whatever it is
        from clew.exchange.thread import warn

        warn("`clew hook` failed; the client goes on without it", error)
    return 0


def is_work(client: str, said: bytes) -> bool:
    """Whether an event needs the log, or a session file."""
    if (
        client.endswith((STARTS, "-status"))
        or client == "crush"
        or (len(said) < SMALL_RESULT and is_short_result(said))
    ):
        return False
    event = json.loads(said)
    large = event.get("hook_event_name") in RESULT_EVENTS and len(said) >= SMALL_RESULT
    return large or _was_compacted(event)


def answer(client: str, said: bytes, keep: "ResultKeeping | None" = None) -> str:
    """What to answer to an event, as the client reads it; nothing: all is well as it is."""
    if client.endswith(STARTS):
        from clew.hooks.starting import started

        return started(client)
    if client.endswith("-status"):
        from clew.hooks.status import status_line

        return status_line(json.loads(said))
    if client == "crush":
        from clew.hooks.crush import answer_before_tool

        return answer_before_tool(json.loads(said))
    if len(said) < SMALL_RESULT and is_short_result(said):
        return ""
    event = json.loads(said)
    name = event.get("hook_event_name", "")
    if name in RESULT_EVENTS:
        return _after_tool(client, name, event, keep)
    if name == "PreCompress":
        from clew.hooks.pending import expect

        expect(event)
    elif name in ("SessionStart", "BeforeAgent"):
        return _hook_output(name, {"additionalContext": _put_back(client, event)})
    return ""


def is_short_result(said: bytes) -> bool:
    """Whether an event is the result of a tool to which nothing is to be added, seen without reading it."""
    return b'"PostToolUse"' in said and b'"AfterTool"' not in said


def _after_tool(client: str, name: str, event: dict[str, Any], keep: "ResultKeeping | None") -> str:
    answers: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    if not is_own_tool(str(event.get("tool_name", ""))):  # its answers have a bounded size, and are what was recalled
        from clew.hooks.pressure import too_large

        given = event.get("tool_response")
        if large := too_large(event):
            from clew.clients.known import BY_COMMAND, name_in
            from clew.hooks.previews import kept_alone, previewed

            shorter = previewed(event, given, large, name_in(client), keep or kept_alone)
            replaced = BY_COMMAND[client].replaces if client in BY_COMMAND else ""
            if shorter != given and replaced:
                answers[replaced] = shorter
            elif shorter != given:  # it has no words for this but to hide the result and give a reason
                whole = {"decision": "deny", "reason": _text(shorter)}
    if name == "AfterTool" and (back := _put_back(client, event)):
        answers["additionalContext"] = back
    return _hook_output(name, answers, whole)


def _text(response: Any) -> str:
    content = response.get("llmContent") if isinstance(response, dict) else response
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _put_back(client: str, event: dict[str, Any]) -> str:
    """What a compaction dropped, if there was one that nothing was put back after."""
    if not _was_compacted(event):
        from clew.hooks.pending import heard_of_own

        heard_of_own(event)
        return ""
    from clew.clients.known import name_in
    from clew.hooks.putting_back import dropped_in

    return dropped_in(event, name_in(client), name_in(client, "search"))


def _was_compacted(event: dict[str, Any]) -> bool:
    from clew.hooks.pending import is_by_clew, is_expected

    if event.get("hook_event_name") == "SessionStart":
        return event.get("source") == "compact" and not is_by_clew(event)
    return is_expected(event)


def _hook_output(event: str, answers: dict[str, Any], whole: dict[str, Any] | None = None) -> str:
    said = {key: value for key, value in answers.items() if value}
    told = {**(whole or {}), **({"hookSpecificOutput": {"hookEventName": event, **said}} if said else {})}
    return json.dumps(told) if told else ""
