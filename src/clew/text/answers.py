"""Which answer a user's question got: who asks the same again wants that, and not the question."""

from collections.abc import Iterable, Sequence

from clew.core.items import Node
from clew.text.passages import asks
from clew.text.search import is_made


def is_asked(node: Node) -> bool:
    """Whether a person said it, and asks something with it."""
    return _is_typed(node) and asks(node.item.text)


def answers(nodes: Iterable[Node]) -> dict[str, str]:
    """For the id of each question that of the last that the assistant said before the user spoke again.

    The nodes follow one another.
    """
    found, asked = dict[str, str](), ""
    for node in nodes:
        if _is_typed(node):
            asked = node.id if asks(node.item.text) else ""
        elif asked and _is_told(node):
            found[asked] = node.id
    return found


def asked_now(nodes: Sequence[Node]) -> str:
    """The id of what the user said last, if the assistant is still at it: who looks for something knows that."""
    if not nodes or _is_told(nodes[-1]):
        return ""
    return next((node.id for node in reversed(nodes) if _is_typed(node)), "")


def _is_told(node: Node) -> bool:
    return node.item.kind == "text" and node.item.role == "assistant" and bool(node.item.text.strip())


def _is_typed(node: Node) -> bool:
    return node.item.kind == "text" and node.item.role == "user" and not is_made(node.item)
