"""A task as crewAI words it for a model, and what of that its user said."""

from functools import cache
from typing import Any

from crewai.utilities.i18n import I18N_DEFAULT

ADDED = "<system-reminder>\n{}\n</system-reminder>"  # how clew knows what a host added by itself


def unworded(message: dict[str, Any]) -> dict[str, Any]:
    """A message of crewAI's as its user would have said it; the same one if there is nothing of crewAI's in it."""
    text = message.get("content")
    if message.get("role") != "user" or not isinstance(text, str):
        return message
    return {**message, "content": ADDED.format(text) if text in _nudges() else _task(text)}


@cache
def _nudges() -> tuple[str, ...]:
    """What crewAI says between two steps of an agent."""
    return I18N_DEFAULT.slice("post_tool_reasoning"), I18N_DEFAULT.errors("force_final_answer")


@cache
def _around(part: str, name: str) -> tuple[str, str]:
    """What stands before and after what somebody said."""
    before, _, after = I18N_DEFAULT.slice(part).partition("{" + name + "}")
    return before.lstrip(), after.rstrip()


def _task(text: str) -> str:
    for part in ("task", "task_no_tools", "native_task"):
        before, after = _around(part, "input")
        inner = text.strip()
        if before and inner.startswith(before) and inner.endswith(after):
            inner = inner.removeprefix(before).removesuffix(after)
            break
    else:
        return text
    before, after = _around("expected_output", "expected_output")
    # Not in what earlier tasks put out, which comes after it.
    asked, label, rest = inner.partition(before)
    wanted, _, more = rest.partition(after)
    return f"{asked}Expected: {wanted}{more}".strip() if label else inner.strip()
