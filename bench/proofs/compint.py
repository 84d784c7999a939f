"""COMPINT: do constraints that a user states once survive a compaction? Its fifteen sentences, in other contexts.

Their chats and agent runs lie where not everybody can fetch them, so chats are those of LongMemEval-S and agent runs
are made up, both of about 100,000 tokens. No model judges: a constraint is there if all its words are, in a row."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, product
from multiprocessing import get_context
from typing import Any

from benchmark.generators import compose
from benchmark.judging import MODEL, Messages, shown
from benchmark.memories import SOURCE as CHATS
from benchmark.memories import holds, questions
from benchmark.public import Source
from clew.compression import compress
from proofs import Figures, Missing, Settings, place
from proofs.tables import share, table

SOURCE = Source(
    "compint",
    "https://github.com/ZhiqiEliWang/compaction-integrity",
    "54859228888c708945a5280deec4cd2db75885e3",
    "src/compaction_integrity",
)
SIZE = 4_096  # tokens: what their compactors may write
LONG = 100_000  # tokens of an agent's run
CONTEXTS = 4  # of each kind; theirs are 50
FRAME = "For the rest of this session. "  # how theirs begin in the main table: explicit, as a preference
POSITIONS: dict[str, Callable[[int], int]] = {
    "top": lambda count: 0,
    "middle": lambda count: count // 2,
    "bottom": lambda count: -1,
}
# In per cent, 100,000 tokens of input, at the top: project page and README at the commit above.
PUBLISHED = {
    "chat": ("WildChat", 28.3, 90.3),
    "agent": ("Hermes Agent", 88.4, 95.6),
}


def measure(settings: Settings) -> Figures:
    """Every constraint at every position in every context."""
    sentences = constraints((place(SOURCE, settings) / "sssc.py").read_text(encoding="utf-8"))
    count = 1 if settings.quick else settings.some(CONTEXTS)
    chats = [[turn.message for turn in asked.chat] for asked in islice(questions(place(CHATS, settings)), count)]
    if not chats:
        raise Missing("no chats are there")
    runs = [compose("coding", settings.seed + n, LONG).messages for n in range(count)]
    contexts = [("chat", chat) for chat in chats] + [("agent", run) for run in runs]
    asked = list(product(contexts, POSITIONS, sentences))
    kept = Counter[str]()
    with get_context("spawn").Pool(settings.processes) as pool:
        for done, found in enumerate(pool.imap_unordered(one, asked, chunksize=5)):
            settings.heard("constraints", done, len(asked))
            kept.update(found)
    whole = {f"{kind} {position}": len(sentences) * count for kind in PUBLISHED for position in POSITIONS}
    kinds = Counter(kind for kind, _ in sentences)
    return {
        "contexts": count,
        "sentences": len(sentences),
        "size": SIZE,
        "kept": {name: kept[name] for name in whole},
        "of": whole,
        "missed": {kind: [kept[f"missed {kind}"], n * len(contexts) * len(POSITIONS)] for kind, n in kinds.items()},
    }


def constraints(module: str) -> list[tuple[str, str]]:
    """Kind and words of each constraint, read from the module that lists them: nothing of it is run."""
    for node in ast.parse(module).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["SSSCS"]:
            found: list[dict[str, Any]] = ast.literal_eval(node.value)
            return [(each["type"], each["sssc"]) for each in found]
    raise Missing("its module has no list of constraints")


def one(asked: tuple[tuple[str, Messages], str, tuple[str, str]]) -> list[str]:
    """What to count for one constraint in one context."""
    (context, messages), position, (kind, sentence) = asked
    view = compress(said(messages, sentence, position), model=MODEL, target_tokens=SIZE)
    return [f"{context} {position}" if holds(shown(view.messages), sentence) else f"missed {kind}"]


def said(messages: Messages, sentence: str, position: str) -> Messages:
    """The conversation in which the user says it, before all else in one of their messages."""
    spoken = [n for n, message in enumerate(messages) if message["role"] == "user"]
    at = spoken[POSITIONS[position](len(spoken))]
    told = {**messages[at], "content": f"{FRAME}{sentence[0].lower()}{sentence[1:]}\n{messages[at]['content']}"}
    return [*messages[:at], told, *messages[at + 1 :]]


# --- what the documents say -------------------------------------------------------------------------------------------


def blocks(figures: Figures) -> dict[str, str]:
    """What is kept by context and position, and what is missed by kind."""
    rows = [
        [f"{kind} ({many(figures, kind)} each)", *(cell(figures, kind, position) for position in POSITIONS)]
        for kind in PUBLISHED
    ]
    lost = [[kind.lower(), str(missed), str(whole)] for kind, (missed, whole) in figures["missed"].items()]
    return {
        "compint": f"{table(['context', *POSITIONS], rows)}\n\n{table(['kind of constraint', 'missed', 'of'], lost)}"
    }


def published(figures: Figures) -> Iterator[list[str]]:
    """Theirs and ours, where the constraint is said first."""
    for kind, (theirs, best, extractor) in PUBLISHED.items():
        told = f"17 % on average; best {best} %; with a 9B model beside it {extractor} % ({theirs}, judged by a model)"
        yield ["[COMPINT](#compint)", f"constraints kept, {kind}, said first", told, cell(figures, kind, "top")]


def behind(figures: Figures) -> Iterator[str]:
    """Where fewer are kept than with the best that is published."""
    for kind, (theirs, best, extractor) in PUBLISHED.items():
        for position in POSITIONS:
            kept, whole = figures["kept"][f"{kind} {position}"], figures["of"][f"{kind} {position}"]
            if 100 * kept < extractor * whole:
                better = f"their extractor, a 9B model, has {extractor / 100:.3f} of those said first in {theirs}"
                worse = f", the best compactor {best / 100:.3f}" if 100 * kept < best * whole else ""
                yield f"COMPINT, {kind}, constraint at the {position}: {share(kept, whole)} kept; {better}{worse}."


def cell(figures: Figures, kind: str, position: str) -> str:
    name = f"{kind} {position}"
    return share(figures["kept"][name], figures["of"][name])


def many(figures: Figures, kind: str) -> int:
    return int(figures["of"][f"{kind} top"])
