"""What the secrets policy means for a turn: nothing that clew keeps, writes or gives back holds a secret.

What the client sends to its model passes as it came: the client chose to send it. The log, every stand-in and every
recall have it masked. Digests are of what was sent, so a history that comes again is recognised.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Literal, get_args

from clew.core.items import Frame, Item, Node, Scope
from clew.errors import BadRequest, SecretFound
from clew.events import Secret

Policy = Literal["off", "keys", "redact", "refuse"]
POLICIES = get_args(Policy)


class Guard:
    """One policy over the items of one turn."""

    def __init__(self, policy: Policy, secret: bytes, scope: Scope) -> None:
        if policy not in POLICIES:
            raise BadRequest(f"secrets: expected one of {', '.join(POLICIES)}, got {policy!r}")
        self.policy = policy
        self._chosen = policy != "keys"  # whether passwords that a person chose are secrets, too
        self._key = blake2b(b"secrets " + scope.encode("utf-8", "surrogatepass"), key=secret[:64]).digest()[:32]
        self._raw: dict[int, tuple[Item, Item]] = {}  # by identity: a masked item, and what was sent

    def admit(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items as they may be kept; raises `SecretFound` where the policy is to refuse."""
        if self.policy == "off":
            return items
        # At its first use: to compile the patterns takes a tenth of a second, and who only looks needs none.
        from clew.secrets.masking import kinds_in, masked_item

        if self.policy == "refuse":
            if kinds := sorted({kind for item in items for kind in kinds_in(item)}):
                raise SecretFound(
                    f"the request contains secrets ({', '.join(kinds)}), and the policy is to refuse them"
                )
            return items
        kept = []
        for item in items:
            safe = masked_item(item, self._key, chosen=self._chosen)
            if safe is not item:
                self._raw[id(safe)] = safe, item
            kept.append(safe)
        return kept

    def frame(self, frame: Frame) -> Frame:
        """The frame as it may be kept; raises `SecretFound` where the policy is to refuse."""
        if self.policy == "off":
            return frame
        from clew.secrets.masking import masked_frame

        self.expect_names(model=frame.model)
        safe = masked_frame(frame, self._key, chosen=self._chosen)
        if safe is not frame and self.policy == "refuse":
            raise SecretFound(
                "the system prompt, the tools or a parameter contain secrets, and the policy is to refuse them"
            )
        return safe

    def expect_names(self, **names: str | None) -> None:
        """Raise `SecretFound` where a name holds a secret: names cannot be masked, for things are found by them.

        The policy `keys`, which nobody has to ask for, refuses nothing.
        """
        from clew.secrets.masking import find

        for what, name in names.items() if self.policy in ("redact", "refuse") else ():
            if kinds := sorted({secret.kind for secret in find(name or "")}):
                raise SecretFound(
                    f"the name of the {what} contains a secret ({', '.join(kinds)}), and names are logged "
                    f"unmasked: choose another name"
                )

    def masked_events(self, scope: Scope, branch: str, seq: int, nodes: Sequence[Node]) -> Iterator[Secret]:
        """What was masked in these nodes, as listeners hear it."""
        from clew.secrets.masking import kinds_in

        raw = self.sent({n.id: n.item for n in nodes}).values()
        found = [kind for item in raw for kind in kinds_in(item, chosen=self._chosen)]
        if found:
            yield Secret(scope, branch, seq, tuple(sorted(set(found))), len(found))

    def sent(self, nodes: Mapping[str, Item]) -> dict[str, Item]:
        """Of these nodes, the items that were masked, as they were sent."""
        return {id_: self._raw[id(item)][1] for id_, item in nodes.items() if id(item) in self._raw}


def as_sent(nodes: Iterable[Node], sent: Mapping[str, Item]) -> tuple[Node, ...]:
    """Nodes as they go to the model: those that hold a secret as the client sent them."""
    return tuple(Node(n.id, n.content, sent[n.id]) if n.id in sent else n for n in nodes)
