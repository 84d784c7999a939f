"""All of it: what is run, in which order, and what comes out."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmark.corpus import Corpus
from benchmark.folds import Folds, fold_often
from benchmark.judging import MODEL, Curve, Heard, Method, Row, shown
from benchmark.methods import CLEW, PLAIN, clew, clew_in_tokens, in_tokens
from benchmark.planting import judge_planted, plant
from benchmark.shipped import judge_shipped
from clew.core.bridge import run
from clew.screens.demo import sample
from clew.tokens import counter_for
from estimate import estimate

WANTED = 36  # of 40 facts in view, at the size aimed for


@dataclass(frozen=True)
class Plan:
    """What to run."""

    sessions: tuple[int, ...] = (200_000, 1_000_000)  # tokens
    seed: int = 7
    folds: int = 20
    window: int = 40_000  # of the folded session
    shares: tuple[float, ...] = (0.03, 0.05, 0.1, 0.2)
    corpus: Path | None = None
    cuts: int | None = None  # of the corpus; all of them if not said
    peers: Mapping[str, Method] = field(default_factory=dict)


@dataclass(frozen=True)
class Cost:
    """CPU seconds of one compaction, beside those of counting the tokens of the same text."""

    tokens: int
    goal: int
    seconds: float
    counting: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.counting


@dataclass(frozen=True)
class Costs:
    """The CPU of sessions of several lengths."""

    rows: tuple[Cost, ...]


Found = Curve | Folds | Costs


@dataclass(frozen=True)
class Part:
    """One of the things to run."""

    name: str
    work: Callable[[Heard], Found]


@dataclass
class Report:
    """What came out, by the names of the parts."""

    found: dict[str, Found] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    peers: list[str] = field(default_factory=list)

    def add(self, part: Part, heard: Heard) -> Found:
        """Run a part and keep what it found."""
        begin = time.perf_counter()
        found = self.found[part.name] = part.work(heard)
        self.seconds[part.name] = time.perf_counter() - begin
        return found

    @property
    def curves(self) -> list[Curve]:
        return [found for found in self.found.values() if isinstance(found, Curve)]

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


def goal_of(tokens: int) -> int:
    """How small a session is to become: a tenth, or a twenty-fifth of a very long one."""
    return tokens // 10 if tokens < 500_000 else tokens // 25


def parts(plan: Plan) -> Iterator[Part]:
    """What there is to run, in order."""
    for tokens in plan.sessions:
        yield Part(f"facts planted in {tokens:,} tokens", partial(_planted, plan, tokens))
    yield Part("the shipped session", partial(_shipped, plan))
    if plan.folds:
        yield Part(f"{plan.folds} folds in a window of {plan.window:,} tokens", partial(_folds, plan))
    yield Part("CPU beside counting tokens", partial(_costs, plan))
    if plan.corpus is not None:
        corpus = Corpus(plan.corpus, plan.cuts)
        methods: dict[str, Method] = {CLEW: clew, **corpus.baselines, **plan.peers}
        yield Part("the corpus", lambda heard: corpus.judge_shares(plan.shares, methods, heard))
        yield Part("the corpus at its real cuts", lambda heard: corpus.judge_real(methods, heard))


def _planted(plan: Plan, tokens: int, heard: Heard) -> Curve:
    planted = plant(plan.seed, tokens)
    others = {name: in_tokens(method, planted.messages) for name, method in {**PLAIN, **plan.peers}.items()}
    goal = goal_of(tokens)
    sizes = goal // 4, goal // 2, goal, goal * 2
    return judge_planted(planted, sizes, {CLEW: clew_in_tokens, **others}, heard)


def _shipped(plan: Plan, heard: Heard) -> Curve:
    return judge_shipped(sample(), plan.shares, {CLEW: clew, **PLAIN, **plan.peers}, heard)


def _folds(plan: Plan, heard: Heard) -> Folds:
    return run(fold_often(plant(plan.seed, plan.sessions[0]), plan.window, plan.folds, heard))


def _costs(plan: Plan, heard: Heard) -> Costs:
    """Each clock runs over a session of its own: the tokenizer remembers what it has seen, and is quicker then."""
    count = counter_for(MODEL).text
    clew_in_tokens(sample(), goal_of(plan.sessions[0]))  # so that nothing is loaded while the clock runs
    found = []
    for done, tokens in enumerate(plan.sessions):
        heard(f"{tokens:,} tokens", done, len(plan.sessions))
        counted, folded = (plant(plan.seed + n, tokens, estimate) for n in (1, 2))
        texts = [shown([message]) for message in counted.messages]
        counting = _cpu(partial(_count_all, count, texts))
        seconds = _cpu(partial(clew_in_tokens, folded.messages, goal_of(tokens)))
        found.append(Cost(folded.tokens, goal_of(tokens), seconds, counting))
    return Costs(tuple(found))


def _count_all(count: Callable[[str], int], texts: Sequence[str]) -> int:
    return sum(map(count, texts))


def _cpu(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def verdict(curve: Curve, goal: int) -> tuple[bool, str]:
    """Whether clew keeps as many planted facts as wanted, in words."""
    row = row_of(curve, CLEW, goal)
    kept, called = round(row.kept * curve.needs), round(row.one_call * curve.needs)
    wanted = WANTED * curve.needs // 40
    told = f"wanted at {goal:,} tokens: {wanted} in view, {curve.needs} with one call; {CLEW} has {kept} and {called}"
    return kept >= wanted and called == curve.needs, told


def row_of(curve: Curve, method: str, target: float) -> Row:
    """How a method did at a size."""
    return next(r for r in curve.rows if (r.method, r.target) == (method, target))
