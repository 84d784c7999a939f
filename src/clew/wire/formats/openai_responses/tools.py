"""Tools of Responses, some of which stand in the history."""

from clew.wire.formats.openai_chat.tools import with_choice
from clew.wire.formats.plain import Block
from clew.wire.formats.tools import Choice, ToolDeclaration


def write_tools(tools: list[ToolDeclaration], choice: Choice) -> Block:
    """These tools as a body declares them, with the choice among them."""
    # Without a word, this API makes schemas strict, and what was optional required.
    body: Block = {
        "tools": [{"type": "function", **t.about, "parameters": t.takes, "strict": t.strict} for t in tools],
    }
    return body | with_choice(choice, {"type": "function", "name": choice.only})
