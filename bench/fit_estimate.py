"""Fit the weights of estimate: python bench/fit_estimate.py CORPUS_DIR

CORPUS_DIR holds *.jsonl.gz, one conversation per line with a `messages` list. Prints the error per kind
of text on pieces that were not fitted, then the weights.
"""

import gzip
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from clew.tokens import vocabulary_for
from counts import built_in_samples
from estimate import PATTERNS, features

PIECE = 1500  # characters: about the size of a message
Rows = list[tuple[list[float], int]]


def conversations(folder: Path, limit: int = 400_000) -> Iterator[tuple[str, str]]:
    """(kind, text) of each message, at most `limit` characters from each file."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        kind, left = path.name.split(".")[0], limit
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                for message in json.loads(line).get("messages", ()):
                    text = message.get("content")
                    if isinstance(text, str) and len(text) > 20 and left > 0:
                        yield f"{kind} {message['role']}", text
                        left -= len(text)
                if left <= 0:
                    break


def pieces(samples: Iterator[tuple[str, str]], each: int = 150) -> dict[str, list[str]]:
    """At most `each` pieces per kind of text, of several sizes: short text is common too."""
    found: dict[str, list[str]] = {}
    for kind, text in samples:
        size = PIECE
        while text:
            found.setdefault(kind, []).append(text[:size])
            text, size = text[size:], PIECE if size < PIECE else PIECE // 8
    return {kind: random.sample(all_of, min(each, len(all_of))) for kind, all_of in found.items()}


def solve(rows: Rows, ridge: float = 1e-6, rounds: int = 3000) -> list[float]:
    """Weights, none negative, of least squared relative error: coordinate descent on the normal equations."""
    width = len(rows[0][0])
    gram = [[0.0] * width for _ in range(width)]
    goal = [0.0] * width
    for row, target in rows:
        scaled = [x / max(target, 20) for x in row]
        y = target / max(target, 20)
        for i, x in enumerate(scaled):
            if x:
                goal[i] += x * y
                line = gram[i]
                for j, z in enumerate(scaled):
                    line[j] += x * z
    weights = [0.0] * width
    for _ in range(rounds):
        for i in range(width):
            rest = goal[i] - sum(g * w for g, w in zip(gram[i], weights, strict=True)) + gram[i][i] * weights[i]
            weights[i] = max(0.0, rest / (gram[i][i] + ridge))
    return weights


def report(weights: Sequence[float], rows: dict[str, Rows]) -> None:
    """Print bias and mean error per kind."""
    means = []
    for kind, tests in sorted(rows.items()):
        total = sum(target for _, target in tests)
        guesses = [sum(w * x for w, x in zip(weights, row, strict=True)) for row, _ in tests]
        bias = sum(guesses) / total - 1
        wrong = sum(abs(g - target) for g, (_, target) in zip(guesses, tests, strict=True)) / total
        means.append(wrong)
        print(f"  {kind:32} bias {bias:+7.1%}   mean error {wrong:6.1%}   {len(tests):4} pieces")
    print(f"  mean over kinds {sum(means) / len(means):.1%}")


def fit(texts: dict[str, list[str]], count: Callable[[str], int], inputs: Callable[[str], list[float]]) -> list[float]:
    """Fit on every other piece, report on the rest."""
    rows = {kind: [(inputs(text), count(text)) for text in all_of] for kind, all_of in texts.items()}
    weights = solve([row for tests in rows.values() for row in tests[::2]])
    report(weights, {kind: tests[1::2] for kind, tests in rows.items() if len(tests) > 1})
    return weights


def main() -> None:
    """Fit and print."""
    random.seed(7)
    folder = Path(sys.argv[1])

    def samples() -> Iterator[tuple[str, str]]:
        yield from built_in_samples(200_000)
        yield from conversations(folder)

    texts = pieces(samples())
    weights = fit(texts, vocabulary_for("gpt-4o").count, lambda text: [float(n) for n in features(text)])
    print("_WEIGHTS = {")
    for pattern, weight in zip(PATTERNS, weights, strict=True):
        print(f"    {pattern!r}: {weight:.4f},")
    print("}")


if __name__ == "__main__":
    main()
