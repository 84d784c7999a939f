"""What may be shown of a conversation: its facts, without the secrets in them.

A fact is a piece of what was said, and may be a piece of a secret that nobody would know for one by itself. So secrets
are looked for in whole items, where their place and their name tell them, and every fact that has to do with one of
them is masked.
"""

from collections.abc import Iterable

from clew.audit.survival import shown
from clew.core.items import Item
from clew.secrets.masking import find, masked

HIDDEN = "[secret]"


class Masking:
    """The secrets of one session, and facts without them."""

    def __init__(self, items: Iterable[Item], summaries: Iterable[str]) -> None:
        said = (text for item in items if item.kind in ("text", "call") for text in (item.text, *shown(item)))
        found = {text[s.start : s.stop] for text in (*said, *summaries) for s in find(text)}
        self._secrets = sorted((secret for secret in found if secret.strip()), key=len, reverse=True)

    def __call__(self, fact: str) -> str:
        """The fact as it may be shown."""
        for secret in self._secrets:
            if fact in secret:
                return HIDDEN
            fact = fact.replace(secret, HIDDEN)
        return masked(fact)
