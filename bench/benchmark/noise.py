"""What a coding session mostly consists of: files, logs, listings, edits, full of names that nobody needs again."""

from random import Random

_NOUNS = (
    "ledger invoice session cursor bucket tenant shard schema payload parser writer reader router planner cache queue "
    "lease ticket report batch column record account policy handler adapter digest window buffer stream token signal"
).split()
_VERBS = "load save merge split parse render apply check drain flush rotate resolve bind encode sort trim build".split()
_FOLDERS = "core api store jobs web billing search sync common tools".split()
_ASKS = (
    "The {a} of {b} is wrong when the {c} is empty. Find out why and mend it.",
    "Now make {a}.py use the new {b}, and keep the tests green.",
    "Please go on with the {a}. The {b} can wait until the {c} is done.",
    "I saw a flaky test around {a}; look at the {b} first.",
    "Clean up the {a} module, it grew too large. Leave the {b} alone.",
)
_PLANS = (
    "Let me look at how {a} reaches the {b}.",
    "The {a} seems fine. Next is the {b}.",
    "I'll change the {a} so that the {b} no longer depends on it.",
    "Tests next, then the {a}.",
    "That explains the {a}: the {b} was read twice.",
)
_CLOSINGS = (
    "Done: the {a} now goes through the {b}, and the tests pass.",
    "The {a} is mended. The cause was an old {b} that nobody refreshed.",
)


class Noise:
    """Makes texts up, the same ones for the same state of its random numbers."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def ask(self) -> str:
        return self._words(_ASKS, 3)

    def plan(self) -> str:
        return self._words(_PLANS, 4)

    def closing(self) -> str:
        return self._words(_CLOSINGS, 6)

    def path(self) -> str:
        return f"src/{self.random.choice(_FOLDERS)}/{self._noun()}_{self._noun()}.py"

    def source(self) -> list[str]:
        """A file as a tool shows it."""
        head = [
            f'"""The {self._noun()} of each {self._noun()}."""',
            "",
            f"from {self._noun()}s import {self._name()}",
            "",
        ]
        return [f"{n:>4}  {line}" for n, line in enumerate(head + self._functions(self.random.randint(4, 14)), 1)]

    def _functions(self, count: int) -> list[str]:
        lines = []
        for _ in range(count):
            given, made = self._noun(), self._name()
            lines += [
                f"def {self._name()}({given}: str, limit: int = {self.random.randint(2, 999)}) -> dict[str, int]:",
                f"    {made} = {self._name()}({given})",
                f"    if not {made} or limit > {self.random.randint(2, 999)}:",
                f'        raise ValueError(f"no {self._noun()} for {{{given}}}")',
                f'    return {{"{self._name()}": len({made}), "{self._noun()}": limit}}',
                "",
            ]
        return lines

    def log(self) -> list[str]:
        """A run of tests or of a service: ids, codes, ports and times at every line."""
        return [self._logged() for _ in range(self.random.randint(20, 70))]

    def listing(self) -> list[str]:
        return [f"{self.path()}  {self.random.randint(200, 9_999)}" for _ in range(self.random.randint(15, 60))]

    def hits(self) -> list[str]:
        return [
            f"{self.path()}:{self.random.randint(1, 900)}:    {self._name()}({self._noun()}, {self._name()})"
            for _ in range(self.random.randint(5, 40))
        ]

    def edit(self) -> dict[str, str]:
        """The arguments of an edit."""
        old, new = self._functions(1), self._functions(self.random.randint(1, 4))
        return {"path": self.path(), "old": "\n".join(old), "new": "\n".join(new)}

    def _logged(self) -> str:
        r = self.random
        when = f"0{r.randint(0, 9)}:{r.randint(10, 59)}:{r.randint(10, 59)}.{r.randint(100, 999)}"
        match r.randrange(4):
            case 0:
                return f"{when} INFO  request {r.getrandbits(40):010x} 200 in {r.randint(1, 900)} ms"
            case 1:
                return f"{when} DEBUG {self._name()} took {r.randint(1, 900)} ms, port {r.randint(40_000, 59_999)}"
            case 2:
                return f"{when} WARN  {self._name()}: code N-{r.randint(100, 999)}, retry {r.randint(1, 5)} of 5"
            case _:
                return (
                    f"tests/{self._noun()}/test_{self._name()}.py::test_{self._name()} PASSED ({r.randint(1, 900)} ms)"
                )

    def _name(self) -> str:
        r = self.random
        return f"{r.choice(_VERBS)}_{self._noun()}_{self._noun()}{r.choice(('', '', f'_{r.randint(2, 99)}'))}"

    def _noun(self) -> str:
        return self.random.choice(_NOUNS)

    def _words(self, sentences: tuple[str, ...], most: int) -> str:
        chosen = [self.random.choice(sentences) for _ in range(self.random.randint(1, most))]
        return " ".join(s.format(a=self._name(), b=self._noun(), c=self._noun()) for s in chosen)
