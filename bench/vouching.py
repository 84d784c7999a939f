"""Both error rates of the check of a model's words, without a reader.

python bench/vouching.py [--cases FILE] [--corpus DIR…] [--pairs DIR…] [--show] [--json FILE]

Pairs of a conversation and a summary of it: those of a reader test's cases (--cases, their conversations in --corpus),
those that a product wrote where it compacted a conversation of --corpus, NAME.json and NAME.txt in folders (--pairs).
Counted for each group: lines that stand byte for byte, those left out and those with a neutralised sign apart; of the
tokens as they are written, how many are named as not found; of tokens altered one at a time to what occurs nowhere in
the originals, how many are named; the same for tokens swapped with another of the same summary, which nobody can know.
What a token is and where it may not occur is said here, not asked of the check.
"""

import argparse
import gzip
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clew.core.items import Digests
from clew.steps.chapters.vouch import Vouched, Vouching
from clew.steps.worklog.blocks import NOT_FOUND
from clew.wire import decode

FORMAT = "openai_chat"
ALTERED = 30  # of each class and summary
MONTHS = "January February March April May June July August September October November December".split()
_EXTENSION = r"(?:py|ts|tsx|js|go|rs|java|json|jsonl|md|txt|toml|ya?ml|docx|csv|sh|sql|log|html|css)"
CLASSES = {
    "url": re.compile(r"https?://[^\s)>\"'`,;]+[\w/]"),
    "path": re.compile(
        rf"(?<![\w/:.-])(?:(?:~|\.{{1,2}})?/)?(?:[\w.-]+/)*[\w-]{{2,}}\.{_EXTENSION}\b|(?<![\w/:.-])/[\w.-]+(?:/[\w.-]+)+\w"
    ),
    "date": re.compile(
        r"(?<![\w:-])(?:\d{4}-[01]\d-[0-3]\d|[01]\d-[0-3]\d)(?![\w:-])|(?<!\d)\d{1,2}月\d{1,2}日"
        rf"|\b\d{{1,2}} (?:{'|'.join(MONTHS)})\b|\b(?:{'|'.join(MONTHS)}) \d{{1,2}}(?:st|nd|rd|th)?\b"
        r"|(?<![\w/.])(?:[1-9]|1[0-2])/(?:[12]\d|3[01])(?![\w/])"
    ),
    "hash": re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b"),
    "id": re.compile(r"\b[A-Z]{1,6}-\d[\w-]*\b|\b[A-Z]{1,4}\d{2,}\b|#\d{2,}\b"),
    "number of 4 digits": re.compile(r"(?<![\w.,#/-])(?:\d{1,3}(?:,\d{3})+|\d{4,})(?![\w,.:/-]|\.\d)"),
    "other number": re.compile(r"(?<![\w.,#/:-])(?:\d{2,3}|\d{1,3}\.\d{1,3})(?![\w,:/.-]|\s?[年月日])"),
    "code name": re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b[a-z]+(?:_[a-z0-9]+)+\b|\b(?:[A-Z][a-z]+){2,}\b"),
    "proper name": re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b(?![_/.(])"),
}
# What a product says around a summary that a model wrote.
AROUND = re.compile(
    r"\AThis session is being continued[^\n]*\n+|\n+(?:If you need specific details|(?:Please )?continue the conv).*\Z",
    re.DOTALL | re.IGNORECASE,
)
TITLED = re.compile(r"\b[A-Z][A-Za-z]{3,}")
HARD = ("url", "path", "date", "hash", "id", "number of 4 digits")


class Pair(NamedTuple):
    """A conversation up to a cut, and what was written of it."""

    group: str
    name: str
    messages: Sequence[Any]
    summary: str


class Told(NamedTuple):
    """A token of a summary: its class, the line that it stands in, and where."""

    kind: str
    line: str
    start: int
    stop: int

    @property
    def text(self) -> str:
        return self.line[self.start : self.stop]

    def instead(self, text: str) -> str:
        """The line with another."""
        return self.line[: self.start] + text + self.line[self.stop :]


# --- pairs ----------------------------------------------------------------------------------------------------------


def from_cases(path: Path, talks: dict[str, Any]) -> Iterator[Pair]:
    """The cases of a reader test whose summaries lie beside them."""
    for case in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if "summary" in case:
            name = case["conv_id"]
            own = path.parent / str(case.get("file"))
            lies_beside = own.suffix == ".json"
            messages = json.loads(own.read_text(encoding="utf-8")) if lies_beside else talks[name]["messages"]
            text = (path.parent / "llm" / Path(case["summary"]).name).read_text(encoding="utf-8")
            yield Pair("cases", name, messages[: case["cut_index"]], text)


def from_products(talks: dict[str, Any]) -> Iterator[Pair]:
    """What products wrote where they compacted a conversation, without what they say around it."""
    for name, talk in talks.items():
        for cut in talk.get("real_compactions") or ():
            if text := cut.get("summary"):
                text = AROUND.sub("", text)
                yield Pair("products", f"{name}@{cut['index']}", talk["messages"][: cut["index"]], text)


def from_folder(folder: Path) -> Iterator[Pair]:
    """NAME.json, a list of messages, and NAME.txt."""
    for path in sorted(folder.glob("*.json")):
        if (summary := path.with_suffix(".txt")).exists():
            messages = json.loads(path.read_text(encoding="utf-8"))
            yield Pair(folder.name, path.stem, messages, summary.read_text(encoding="utf-8"))


def conversations(folders: Sequence[Path]) -> dict[str, Any]:
    """Conversations by id, of all files of JSON lines."""
    found = dict[str, Any]()
    for file in sorted(file for folder in folders for file in folder.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for talk in map(json.loads, lines):
                if "messages" in talk:
                    found[talk["id"]] = talk
                elif "sessions" in talk:
                    turns = [{k: t[k] for k in ("role", "content")} for s in talk["sessions"] for t in s["turns"]]
                    found[f"lme-{talk['id']}"] = {"messages": turns}
    return found


# --- altering -------------------------------------------------------------------------------------------------------


class Altering:
    """Makes of a token one that occurs nowhere in the originals."""

    def __init__(self, originals: str, seed: str) -> None:
        self._text = originals.lower()
        self._numbers = set(re.findall(r"\d+", self._text)) | set(re.findall(r"\d+", self._text.replace(",", "")))
        self._decimals = set(re.findall(r"\d+\.\d+", self._text))
        self._dice = random.Random(seed)

    def altered(self, token: Told) -> str | None:
        """Another, or nothing where every one that was tried occurs."""
        for _ in range(40):
            text = self._date(token.text) if token.kind == "date" else self._other(token)
            if text and text != token.text and not self._occurs(token.kind, text):
                return text
        return None

    def _occurs(self, kind: str, text: str) -> bool:
        if kind == "date":
            return any(re.search(rf"(?<!\d){re.escape(form)}(?!\d)", self._text) for form in _forms(text))
        if "number" in kind:
            return text.replace(",", "") in (self._decimals if "." in text else self._numbers)
        return text.lower().lstrip("#") in self._text

    def _other(self, token: Told) -> str:
        """A digit that is another; where there is none, two letters of one word."""
        text, dice = token.text, self._dice
        digits = [n for n, c in enumerate(text) if c.isdigit()]
        if token.kind in ("id", "number of 4 digits", "other number") or (token.kind == "hash" and dice.random() < 0.5):
            at = dice.choice(digits)
            return text[:at] + dice.choice([d for d in "123456789" if d != text[at]]) + text[at + 1 :]
        if token.kind == "hash":
            at = dice.randrange(len(text))
            return text[:at] + dice.choice([d for d in "0123456789abcdef" if d != text[at]]) + text[at + 1 :]
        words = list(re.finditer(r"[A-Za-z]{3,}", text.removeprefix("https")))
        if not words:
            return ""
        word, shift = dice.choice(words), 5 if text.startswith("https") else 0
        changed = list(text)
        for at in dice.sample(range(word.start() + shift, word.end() + shift), 2):
            new = dice.choice([c for c in "abcdefghijklmnoprstuvw" if c != text[at].lower()])
            changed[at] = new.upper() if text[at].isupper() else new
        return "".join(changed)

    def _date(self, text: str) -> str:
        """Another day, perhaps of another month."""
        runs = list(re.finditer(r"\d+", text))
        last = runs[-1]
        day = self._dice.randint(10 if last.end() - last.start() == 2 else 1, 28)
        return text[: last.start()] + str(day).zfill(last.end() - last.start()) + text[last.end() :]


def _forms(text: str) -> list[str]:
    """How a date may be written."""
    named = next((n for n, month in enumerate(MONTHS, 1) if month in text), 0)
    runs = [int(run) for run in re.findall(r"\d+", text)]
    month, day = (named, runs[0]) if named else (runs[-2], runs[-1])
    if not 1 <= month <= 12:
        return []
    name = MONTHS[month - 1].lower()
    both = [f"{a}{sign}{b}" for sign in "-/." for a, b in ((month, day), (day, month))]
    full = [f"{a:02}{sign}{b:02}" for sign in "-/." for a, b in ((month, day), (day, month))]
    named_ = [f"{name} {day}", f"{name[:3]} {day}", f"{day} {name}", f"{day} {name[:3]}", f"{day}. {name}"]
    return [*both, *full, *named_, f"{month}月{day}日"]


# --- counting -------------------------------------------------------------------------------------------------------


def told(summary: str) -> Iterator[Told]:
    """The tokens of a summary; what is part of one is none of its own."""
    for line in summary.splitlines():
        taken = list[tuple[int, int]]()
        bold = [found.span() for found in re.finditer(r"\*\*[^*]+\*\*", line)]
        title = len(TITLED.findall(line)) * 2 > len(re.findall(r"[A-Za-z]{4,}", line))  # capitals mean nothing there
        for kind, pattern in CLASSES.items():
            for found in pattern.finditer(line):
                start, stop = found.span()
                skipped = kind == "proper name" and (title or any(a < start < b for a, b in bold))
                if not any(start < b and a < stop for a, b in taken) and not skipped:
                    taken.append((start, stop))
                    yield Told(kind, line, start, stop)


def names(vouched: Vouched) -> set[str]:
    """What is named as not found."""
    found = (line.removeprefix(NOT_FOUND) for line in vouched.findings if line.startswith(NOT_FOUND))
    return {name for line in found for name in re.sub(r" and \d+ more$", "", line).split(", ")}


class Tally:
    """The figures of one group."""

    def __init__(self) -> None:
        self.pairs = self.lines = self.stand = self.tokens = self.unfound = 0
        self.left_out, self.changed, self.named = list[str](), list[str](), list[str]()
        self.verbatim = list[str]()  # named, though they stand in the originals letter by letter
        self.tried, self.caught = Counter[str](), Counter[str]()
        self.swapped, self.seen = Counter[str](), Counter[str]()
        self.untested = Counter[str]()
        self.missed = defaultdict[str, list[str]](list)

    def add(self, pair: Pair) -> None:
        """One pair."""
        frame, items = decode({"messages": list(pair.messages)}, FORMAT)
        vouching = Vouching(Digests().chain(items), frame.system)
        vouched = vouching.vouch(pair.summary)
        self.pairs += 1
        self.tokens += vouched.tokens
        self.unfound += vouched.unfound
        self.left_out += [f"{pair.name}: {why}: {line}" for why, line in vouched.left_out]
        originals = "\n".join([frame.system, json.dumps(list(pair.messages), ensure_ascii=False)])
        self.named += [f"{pair.name}: {name}" for name in sorted(names(vouched))]
        self.verbatim += [f"{pair.name}: {name}" for name in names(vouched) if name.lower() in originals.lower()]
        lines = [line for line in pair.summary.splitlines() if line.strip()]
        standing = Counter(vouched.text.splitlines())
        gone = [line for line in lines if not standing[line]]
        out = {line for _, line in vouched.left_out}
        self.changed += [f"{pair.name}: {line}" for line in gone if line.strip() not in out]
        self.lines += len(lines)
        self.stand += len(lines) - len(gone)
        self._alter(pair, vouching, originals)

    def _alter(self, pair: Pair, vouching: Vouching, originals: str) -> None:
        altering, dice = Altering(originals, pair.name), random.Random(pair.name)
        known = dict[str, set[str]]()

        def named(text: str) -> set[str]:
            if text not in known:
                known[text] = names(vouching.vouch(text))
            return known[text]

        def is_named(token: Told, text: str) -> bool:
            # Whether a capital means a name is seen from a whole text; all else from its line.
            whole = pair.summary if token.kind == "proper name" else token.line
            return bool(named(whole.replace(token.line, token.instead(text), 1)) - named(whole))

        by_kind = defaultdict[str, list[Told]](list)
        for token in told(pair.summary):
            by_kind[token.kind].append(token)
        for kind, every in by_kind.items():
            for token in every if len(every) <= ALTERED else dice.sample(every, ALTERED):
                if (text := altering.altered(token)) is None:
                    self.untested[kind] += 1
                    continue
                self.tried[kind] += 1
                if is_named(token, text):
                    self.caught[kind] += 1
                else:
                    self.missed[kind].append(f"{pair.name}: {token.text} -> {text}")
                others = sorted({other.text for other in every} - {token.text})
                if others:
                    self.swapped[kind] += 1
                    self.seen[kind] += is_named(token, dice.choice(others))

    def figures(self) -> dict[str, Any]:
        """All of it, as shares."""

        def share(some: int, all_: int) -> float | None:
            return round(some / all_, 3) if all_ else None

        soft = [kind for kind in CLASSES if kind not in HARD]
        return {
            "pairs": self.pairs,
            "lines": self.lines,
            "stand": share(self.stand, self.lines),
            "left out": len(self.left_out),
            "neutralised": len(self.changed),
            "tokens": self.tokens,
            "unaltered named": share(self.unfound, self.tokens),
            "of these letter by letter in the originals": len(self.verbatim),
            "altered named": {
                kind: (share(self.caught[kind], self.tried[kind]), self.tried[kind], self.untested[kind])
                for kind in CLASSES
            },
            "paths, ids, URLs, hashes, dates, numbers of 4 digits": share(
                sum(self.caught[k] for k in HARD), sum(self.tried[k] for k in HARD)
            ),
            "other numbers and names": share(sum(self.caught[k] for k in soft), sum(self.tried[k] for k in soft)),
            "swapped named": {kind: share(self.seen[kind], self.swapped[kind]) for kind in CLASSES},
        }


def main() -> int:
    """Run it."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--cases", type=Path, help="cases.jsonl of a reader test; summaries in llm/ beside it")
    asked.add_argument("--corpus", type=Path, nargs="*", default=[], help="folders of conversations in *.jsonl.gz")
    asked.add_argument("--pairs", type=Path, nargs="*", default=[], help="folders of NAME.json and NAME.txt")
    asked.add_argument("--show", action="store_true", help="each line left out, each name, each miss")
    asked.add_argument("--json", type=Path, help="where the figures go")
    given = asked.parse_args()
    talks = conversations(given.corpus)
    pairs = [*(from_cases(given.cases, talks) if given.cases else ()), *from_products(talks)]
    pairs += [pair for folder in given.pairs for pair in from_folder(folder)]
    tallies = defaultdict[str, Tally](Tally)
    for pair in pairs:
        tallies[pair.group].add(pair)
    figures = {group: tally.figures() for group, tally in tallies.items()}
    for group, tally in tallies.items():
        print(f"\n{group}")
        for name, value in figures[group].items():
            print(f"  {name}: {value}" if not isinstance(value, dict) else f"  {name}:")
            for kind, share in value.items() if isinstance(value, dict) else ():
                print(f"    {kind:20} {share}")
        if given.show:
            for title in ("left_out", "changed", "named", "verbatim"):
                print(f"  {title}:", *getattr(tally, title), sep="\n    ")
            for kind, missed in tally.missed.items():
                print(f"  missed {kind}:", *missed[:25], sep="\n    ")
    print(json.dumps(figures))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
