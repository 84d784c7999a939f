"""Made-up words: prose, tool outputs and ids, the same for the same seed."""

from base64 import b64encode
from random import Random

NOUNS = (
    "valve ledger harbour lantern parser invoice meadow router cable drawer canvas kettle buffer anchor packet ribbon "
    "compass filter gravel hinge index jacket kernel ladder magnet needle orchard pillar quarry record saddle timber "
    "update vessel window yard zipper bridge cursor docket engine folder gasket handle insert junction keeper locker"
).split()
VERBS = (
    "holds moves opens closes writes reads counts sorts keeps drops sends checks turns lifts merges splits loads "
    "stores marks names guards fills pulls pushes finds joins"
).split()
HOW = (
    "early late twice slowly first last again by hand at night in order without delay under load in small steps".split()
)
POOL = 240  # sentences to choose from
TOKENS = 11  # of a sentence or a line of output, about


class Pen:
    """Writes what is needed, in any size; two pens of one seed write the same."""

    def __init__(self, *seed: object) -> None:
        self.random = Random("/".join(map(str, seed)))  # for variety, not for secrets
        self._sentences = [self._sentence() for _ in range(POOL)]
        self._lines = [self._line() for _ in range(POOL)]

    def _noun(self) -> str:
        return self.random.choice(NOUNS)

    def _sentence(self) -> str:
        words = (self._noun(), self.random.choice(VERBS), self._noun(), self.random.choice(HOW), self._noun())
        return "The {} {} the {} {} before the {} is ready.".format(*words)

    def _line(self) -> str:
        return f"    {self._noun()}_{self._noun()} = {self._noun()}.{self.random.choice(VERBS)}({self._noun()})"

    def prose(self, tokens: int) -> str:
        """About so many tokens of sentences, in paragraphs."""
        chosen = self.random.choices(self._sentences, k=max(1, tokens // TOKENS))
        return "\n\n".join(" ".join(chosen[n : n + 8]) for n in range(0, len(chosen), 8))

    def output(self, tokens: int, mark: str) -> str:
        """About so many tokens of what a tool prints, with a mark at its beginning, in the middle and at the end."""
        lines = self.random.choices(self._lines, k=max(1, tokens // TOKENS))
        half = len(lines) // 2
        return "\n".join((f"# {mark} begins", *lines[:half], f"# {mark} half", *lines[half:], f"# {mark} ends"))

    def id(self, prefix: str = "", size: int = 24) -> str:
        """Something random that a provider would have made."""
        return prefix + "".join(self.random.choices("0123456789abcdefghijkmnpqrstuvwxyz", k=size))

    def uuid(self) -> str:
        """An id of a session."""
        digits = f"{self.random.getrandbits(128):032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def seal(self, size: int = 180) -> str:
        """Bytes that only a provider can read: a signature, encrypted reasoning."""
        return b64encode(self.random.randbytes(size)).decode()
