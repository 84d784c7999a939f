"""A corpus of real sessions with a scorer of its own: its judgement, our table."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from benchmark.judging import Curve, Cut, Heard, Method, judge_all
from clew.errors import NotFound

CHARACTERS = 4  # of a token, as the corpus counts

T = TypeVar("T")


class Corpus:
    """`score.py` beside `dev/*.jsonl.gz`, either folder will do; the scorer decides what is kept, we only call it."""

    def __init__(self, folder: Path, cuts: int | None = None) -> None:
        folder = folder.parent if folder.name == "dev" else folder
        self._scorer = _loaded(folder / "score.py")
        files = sorted((folder / "dev").glob("*.jsonl.gz"))
        talks = [file for file in files if not file.name.startswith("probes")]
        self._talks = {talk["id"]: talk for file in talks for talk in self._scorer.read(file)}
        probes = self._probes = list(self._scorer.read(folder / "dev" / "probes.jsonl.gz"))
        self._chosen = _spread([p for p in probes if p["cut_kind"].startswith("fraction")], cuts)
        self._real = _spread([(p, s) for p in probes if (s := self._summary(p))], cuts)

    @property
    def baselines(self) -> dict[str, Method]:
        """The methods the scorer brings, under its own names."""
        found = self._scorer
        return {"tail": found.tail, "head + tail": found.head_and_tail, "masked + tail": found.masked_tail}

    def measure(self, text: str) -> int:
        return len(text)

    def text_of(self, result: Any) -> str:
        return str(self._scorer.text_of(result))

    def kept(self, text: str, need: Any) -> bool:
        return bool(self._scorer.kept(text, need))

    def bound(self, text: str, need: Any) -> bool:
        return bool(self._scorer.bound(text, need))

    def judge_shares(self, shares: Sequence[float], methods: Mapping[str, Method], heard: Heard) -> Curve:
        """Every method at these shares of the tokens before each cut."""
        material = {
            share: [self._cut(p, int(p["tokens_before"] * CHARACTERS * share)) for p in self._chosen]
            for share in shares
        }
        return judge_all(f"corpus, {len(self._chosen)} cuts", material, methods, self, heard)

    def judge_real(self, methods: Mapping[str, Method], heard: Heard) -> Curve:
        """Every method, and a product's own summary, where that product compacted; the size is the summary's."""
        cuts = self.real_cuts()
        share = sum(cut.size for cut in cuts) / max(1, sum(cut.whole for cut in cuts))
        everyone: dict[str, Method | None] = {"LLM summary": None, **methods}
        return judge_all(f"corpus, {len(cuts)} real cuts", {share: cuts}, everyone, self, heard)

    def longest(self, most: int) -> Iterator[tuple[str, Sequence[Any], dict[int, list[Any]]]]:
        """The longest coding sessions: name, messages, and what is needed after which of them."""
        coding = [talk for talk in self._talks.values() if talk["kind"] == "coding"]
        for talk in sorted(coding, key=lambda talk: -talk["tokens_est"])[:most]:
            needed: dict[int, list[Any]] = {}
            for probe in (p for p in self._probes if p["conv_id"] == talk["id"]):
                needed.setdefault(probe["cut_index"], []).extend(probe["needed"])
            yield talk["id"], talk["messages"], needed

    def real_cuts(self) -> list[Cut]:
        """Where a product compacted, with the summary it wrote; the size is the summary's."""
        return [self._cut(p, len(summary), summary) for p, summary in self._real]

    def _cut(self, probe: Mapping[str, Any], size: int, summary: str = "") -> Cut:
        messages = self._talks[probe["conv_id"]]["messages"][: probe["cut_index"]]
        return Cut(probe["conv_id"], messages, size, probe["tokens_before"] * CHARACTERS, probe["needed"], summary)

    def _summary(self, probe: Mapping[str, Any]) -> str:
        """What the product wrote at this cut, if that is known."""
        made = self._talks[probe["conv_id"]].get("real_compactions") or ()
        here = (m for m in made if m.get("summary") and abs(m["index"] - probe["cut_index"]) <= 2)
        real = not probe["cut_kind"].startswith("fraction")
        return next((str(m["summary"]) for m in here), "") if real else ""


def _loaded(path: Path) -> ModuleType:
    """A scorer, as a module."""
    spec = spec_from_file_location("clew_corpus_score", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise NotFound(f"{path}: no scorer there; a corpus is a folder with score.py and dev/*.jsonl.gz in it")
    module = module_from_spec(spec)
    asked, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # the folder is not ours to write to
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = asked
    return module


def _spread(found: Sequence[T], most: int | None) -> list[T]:
    """At most so many, from all over the list."""
    if most is None or most >= len(found):
        return list(found)
    return [found[i * len(found) // most] for i in range(most)]
