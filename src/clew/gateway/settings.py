"""How a gateway works, one setting at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ClientCompaction = Literal["prevent", "answer", "pass"]
OfferedTools = bool | Literal["auto"]


@dataclass(frozen=True)
class GatewaySettings:
    """What a gateway is told beside its engine and its upstreams."""

    compaction: ClientCompaction = "prevent"
    """`prevent`: clew folds, and the client never needs to; `answer`: the client decides when, and clew answers from
    the log; `pass`: neither. In the first two, a compaction that a client asks for is answered from the log."""

    tools: OfferedTools = "auto"
    """Whether tools to recall and search are offered where clew decides; where the agent does, they always are.
    `auto`: to clients that are known to take them well."""

    summary: Literal["none", "own"] = "none"
    """Whether models of conversations write chapters: clew asks them with API keys alone, and what they write for a
    client that compacts stands first in its answer."""

    closed: bool = False
    """What happens to a request that clew fails on: `True`, it is refused; `False`, it goes on as it came."""

    scope: str = "default"
    """Whose log it is, where there are no keys."""

    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Keys of clients, and the scope of each; with any, a request without one is refused."""

    hosts: tuple[str, ...] = ()
    """Names under which it may be reached, beside those of this machine itself."""

    body: int = 64 << 20
    """Bytes of the largest request, and of the largest answer that is no stream."""

    requests: int = 512
    """Requests at the same time; with more, clients are asked to come again."""

    client_silence: float = 60
    """Seconds in which a client must send something of its request, or take something of its answer."""

    upstream_silence: float = 900
    """Seconds for which an upstream may say nothing: models think long."""
