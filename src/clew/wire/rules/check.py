"""What a provider would refuse about a body, said before it is sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clew.errors import BadRequest
from clew.wire.formats import anthropic, bedrock, detect, gemini, openai_chat, openai_responses
from clew.wire.rules import anthropic as rules_anthropic
from clew.wire.rules import bedrock as rules_bedrock
from clew.wire.rules import gemini as rules_gemini
from clew.wire.rules import openai_chat as rules_openai_chat
from clew.wire.rules import openai_responses as rules_openai_responses
from clew.wire.rules.turns import Rule

RULES_OF: dict[str, list[Rule]] = {
    openai_chat.NAME: rules_openai_chat.RULES,
    anthropic.NAME: rules_anthropic.RULES,
    openai_responses.NAME: rules_openai_responses.RULES,
    bedrock.NAME: rules_bedrock.RULES,
    gemini.NAME: rules_gemini.RULES,
}


@dataclass(frozen=True, slots=True)
class Broken:
    """One place in a body where a provider's rule does not hold."""

    rule: str
    where: str  # such as messages[3].content[1]
    why: str
    source: str  # the provider's own words for it, or where they are documented


def check(body: Mapping[str, Any], format: str | None = None) -> list[Broken]:
    """Every rule of the format's provider that the body breaks; a body of only `messages` will do."""
    format = format or detect(body)
    if format not in RULES_OF:
        raise BadRequest(f"unknown format {format!r}: use one of {', '.join(RULES_OF)}")
    return [Broken(r.__name__, where, why, source(r)) for r in RULES_OF[format] for where, why in r(body)]


def source(rule: Rule) -> str:
    """The refusal that a rule stands for, in the provider's words."""
    return " ".join((rule.__doc__ or "").split())
