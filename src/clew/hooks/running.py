"""A hook, from what a client says on standard input to what it is answered.

Clients run this at every call of a tool, so nothing is imported here that a short event does not need. Whatever goes
wrong, the client goes on as without clew: it is answered nothing, and the fault is told on standard error.
"""

import json
import sys
from typing import IO, Any

from clew.core.own_tools import is_own_tool, name_in

SMALL_RESULT = 40_000  # bytes of an event: a third of the smallest window that anybody works with has more
RESULT_EVENTS = ("PostToolUse", "AfterTool")
STARTS, KEY = "-gateway", "codex-key"  # what clew install --gateway has clients run before they ask


def run(words: list[str], source: IO[bytes], target: IO[str]) -> int:
    """Answer one event; always 0, since anything else would be a fault of the client's, but for one who wants a key."""
    if words == [KEY]:
        from clew.hooks.starting import key

        return key()
    try:
        if told := answer(words[0] if words else "", source.read()):
            target.write(told)
    except Exception as error:  # fails open, whatever it is
        from clew.exchange.thread import warn

        warn("clew hook failed; the client goes on without it", error)
    return 0


def answer(client: str, said: bytes) -> str:
    """What to answer to an event, as the client reads it; nothing: all is well as it is."""
    if client.endswith(STARTS):
        from clew.hooks.starting import started

        return started(client)
    if client.endswith("-status"):
        from clew.hooks.status import status_line

        return status_line(json.loads(said))
    if client == "crush":
        from clew.hooks.crush import told_before_tool

        return told_before_tool(json.loads(said))
    if len(said) < SMALL_RESULT and is_short_result(said):
        return ""
    event = json.loads(said)
    name = event.get("hook_event_name", "")
    if name in RESULT_EVENTS:
        return _after_tool(client, name, event)
    if name == "PreCompress":
        from clew.hooks.pending import expect

        expect(event)
    elif name in ("SessionStart", "BeforeAgent"):
        return _told(name, {"additionalContext": _put_back(client, event)})
    return ""


def is_short_result(said: bytes) -> bool:
    """Whether an event is the result of a tool to which nothing is to be added, seen without reading it."""
    return b'"PostToolUse"' in said and b'"AfterTool"' not in said


def _after_tool(client: str, name: str, event: dict[str, Any]) -> str:
    answers: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    if not is_own_tool(str(event.get("tool_name", ""))):  # its answers have a bounded size, and are what was recalled
        from clew.hooks.pressure import too_large

        given = shorter = event.get("tool_response")
        if large := too_large(event):
            from clew.hooks.previews import previewed

            shorter = previewed(event, given, large, name_in(client))
        if shorter != given and client == "claude":
            answers["updatedToolOutput"] = shorter
        elif shorter != given and client == "codex":
            answers["updatedMCPToolOutput"] = shorter
        elif shorter != given:  # it has no words for this but to hide the result and give a reason
            whole = {"decision": "deny", "reason": _text(shorter)}
    if name == "AfterTool" and (back := _put_back(client, event)):
        answers["additionalContext"] = back
    return _told(name, answers, whole)


def _text(response: Any) -> str:
    content = response.get("llmContent") if isinstance(response, dict) else response
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _put_back(client: str, event: dict[str, Any]) -> str:
    """What a compaction dropped, if there was one that nothing was put back after."""
    if event.get("hook_event_name") == "SessionStart":
        if event.get("source") != "compact":
            return ""
    else:
        from clew.hooks.pending import is_expected

        if not is_expected(event):
            return ""
    from clew.hooks.putting_back import dropped_in

    return dropped_in(event, name_in(client), name_in(client, "search"))


def _told(event: str, answers: dict[str, Any], whole: dict[str, Any] | None = None) -> str:
    said = {key: value for key, value in answers.items() if value}
    told = {**(whole or {}), **({"hookSpecificOutput": {"hookEventName": event, **said}} if said else {})}
    return json.dumps(told) if told else ""


def main() -> None:
    """`clew hook CLIENT`, without all that the other commands need."""
    sys.exit(run(sys.argv[2:], sys.stdin.buffer, sys.stdout))
