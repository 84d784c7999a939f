"""Text from elsewhere, made unable to pass for a frame of this conversation."""

import re

# What hosts, providers and clew itself wrap around text that has authority.
_TAG = re.compile(
    r"<(?=/?\s*\|?\s*(?:\w+:)?(?:system|developer|user|human|assistant|admin|tool|function|context[_-]status|summary|"
    r"reminder|important|instructions?|policy|approv|constraint|goal|task|new[_-]session|im_|start|end|eot|s>|inst|sys))",
    re.IGNORECASE,
)
_BRACKET = re.compile(
    r"\[(?=/?\s*(?:summary|data:|end of data|system|developer|user|assistant|inst|context|fallback|"
    r"earlier conversation|result of|same output))",
    re.IGNORECASE,
)


def neutral(text: str) -> str:
    """The same words, with look-alikes of tags and frames marked as quoted."""
    return _BRACKET.sub("(", _TAG.sub("‹", text))
