"""What only a provider reads: steps leave it as it is, where it is, and fold around it."""

from collections.abc import Callable, Iterator
from typing import Any

from clew.core.caches import per_object
from clew.core.items import Item
from clew.core.view import View

TRIGGER = "compaction_trigger"  # the last item of a request in which a client has its provider compact
COMPACTED = "compaction"
# In OpenAI's Responses: what the client itself runs is history like any other call.
RUN_BY_CLIENT = tuple(
    f"{tool}_call{end}" for tool in ("local_shell", "shell", "apply_patch", "computer") for end in ("", "_output")
)
# In Gemini's: what the provider ran has no id.
CODE_KEYS = frozenset({"executableCode", "executable_code", "codeExecutionResult", "code_execution_result"})
# Formats in which a system message in the middle is the client's way to change its instructions.
INSTRUCTED = frozenset({"anthropic", "openai_responses"})


@per_object
def sealed(view: View) -> frozenset[int]:
    """Where a compaction of the provider's own, a setting, or something unknown stands: it is never replaced."""
    return _followed(view, frozenset(_places(view, is_sealed)))


@per_object
def served(view: View) -> frozenset[int]:
    """Where a tool stands that the provider ran."""
    return frozenset(_places(view, _is_served))


@per_object
def instructed(view: View) -> frozenset[int]:
    """Where a system message stands that changes what the client told its model at first."""
    found = _places(view, _is_instruction) if view.frame.format in INSTRUCTED else ()
    return _followed(view, frozenset(found))


def _followed(view: View, places: frozenset[int]) -> frozenset[int]:
    """These, and what Anthropic wants after a system message: one of the assistant's."""
    if view.frame.format != "anthropic":
        return places
    nodes = view.nodes
    ends = (i for i in places if nodes[i].item.role == "system" and i + 1 < len(nodes))
    return places | {i + 1 for i in ends if nodes[i + 1].item.role == "assistant"}


def asks_to_compact(view: View) -> bool:
    """Whether the client has its provider compact: all that was said is for the provider to read, if it fits."""
    last = view.nodes[-1].item if view.nodes else None
    return (last is not None and type_of(last) == TRIGGER) or isinstance(view.frame.body.get(COMPACTED), dict)


def is_sealed(item: Item) -> bool:
    """Whether a step may never replace it."""
    return item.kind == "opaque" and not item.call_id and not _is_run(item)


def type_of(item: Item) -> str:
    """What the provider calls it."""
    kind: Any = (item.wire or {}).get("type")
    return kind if isinstance(kind, str) else ""


def _is_served(item: Item) -> bool:
    return item.kind == "opaque" and not is_sealed(item) and type_of(item) not in RUN_BY_CLIENT


def _is_run(item: Item) -> bool:
    """A tool that ran, what it gave, or a reference to what the provider keeps."""
    kind = type_of(item)
    return kind.endswith(("_call", "_output", "_reference")) or bool(CODE_KEYS & (item.wire or {}).keys())


def _is_instruction(item: Item) -> bool:
    return item.role == "system" and item.kind in ("text", "media")


def _places(view: View, holds: Callable[[Item], bool]) -> Iterator[int]:
    return (i for i, node in enumerate(view.nodes) if holds(node.item))
