"""A branch in memory: the log it has, the view it shows, what was sent of it last, what is known of its sizes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_

from clew.core.bridge import Lock
from clew.core.cuts import cuts
from clew.core.items import Item, Node
from clew.core.view import View, shared_start
from clew.engine.verdict import Verdict
from clew.recognition.last_body import Known
from clew.secrets.guard import as_sent
from clew.steps.chapters.asking import Wanted
from clew.steps.chapters.author import Author
from clew.store.trace import Trace
from clew.tokens.provider_size import ProviderSize

BRANCH = 9_000  # bytes of a branch beside what was said on it, measured with thousands of one message each
NODE, PLACE = 750, 250  # bytes of objects for a message or a node, and for its place in the log


@dataclass(slots=True)
class LastCall:
    """What was sent last."""

    chain: str = ""  # digest of its view
    view: View | None = None  # None: it is in the log, or nothing was sent
    frame: str = ""  # digest of its frame
    predicted: int = 0  # tokens


@dataclass(slots=True)
class Ledger:
    """How big a branch is, what came of compacting it, and what a model shall write of it."""

    size: ProviderSize = field(default_factory=ProviderSize)
    verdict: Verdict = field(default_factory=Verdict)
    wanted: Wanted | None = None  # once the answer to what was sent has come
    growth: int = 0  # tokens that came with one call, at most
    asked: int = 0  # how much had been said when a model was last asked


@dataclass(slots=True)
class Branch:
    """A branch kept in memory between turns."""

    trace: Trace
    body: Known  # what its client sent last
    view: View
    sent: LastCall = field(default_factory=LastCall)
    ledger: Ledger = field(default_factory=Ledger)
    unmasked: dict[str, Item] = field(default_factory=dict)  # nodes that hold a secret, as the client sent them
    lock: Lock = field(default_factory=Lock)  # hosts may be on several event loops
    stale: bool = False  # somebody else wrote to the branch
    beside: str | None = None  # the named session that an agent of its own speaks beside
    own: Author | None = None  # the model that it talks to, where its host lets that be asked
    keeps_all: bool = False  # what is asked here is asked about all of it: it is sent as it came if it fits
    _repaired: tuple[tuple[Node, ...], int] = (), 0  # a view that needs no repair, and where its last group begins

    @property
    def bytes(self) -> int:
        """What it takes in memory, more or less: its last body, once as it came and once read, its view, its log."""
        new = sum(len(node.item.text) for node in self.ledger.size.unmeasured(self.view))
        words = 2 * (len(self.body.raw) or self.body.characters[-1]) + self.ledger.size.bytes + new
        words += sum(len(one.asked) + len(one.answer) + sum(map(len, one.texts)) for one in self.trace.chapters)
        return BRANCH + words + NODE * (len(self.body.messages) + len(self.view.nodes)) + PLACE * len(self.trace.said)

    def lengthen(self, nodes: Sequence[Node]) -> None:
        """Let the view show these as well, at its end."""
        self.sent.chain = self.view.digests.run(self.sent.chain, (n.content for n in nodes))
        self.view = with_(self.view, nodes=(*self.view.nodes, *nodes))

    def unrepaired(self, view: View) -> int:
        """From where on a view may need repair: what comes next can only concern the last group that stays whole."""
        nodes, start = self._repaired
        return start if shared_start(nodes, view.nodes) >= start else 0

    def settle(self, view: View) -> None:
        """This view needs no repair."""
        since = self.unrepaired(view)
        free = cuts(view.nodes[since:])
        self._repaired = view.nodes, since + (free[-2] if len(free) > 1 else 0)

    def as_sent(self, view: View) -> View:
        """A view as it goes to the model: what holds a secret as the client sent it."""
        return with_(view, nodes=as_sent(view.nodes, self.unmasked)) if self.unmasked else view


def freshened(view: View, fresh: dict[str, Item]) -> View:
    """The view with the client's own newest copy of the items it re-sent: cache marks move from turn to turn."""
    nodes = list(view.nodes)
    left = len(fresh)
    for i in range(len(nodes) - 1, -1, -1):
        if not left:
            break
        item = fresh.get(nodes[i].id)
        if item is not None:
            left -= 1
            if item is not nodes[i].item:
                nodes[i] = Node(nodes[i].id, nodes[i].content, item)
    return with_(view, nodes=tuple(nodes))
