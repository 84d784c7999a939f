"""What a gateway did, in numbers: counted as events come, and written as Prometheus reads them."""

from collections import defaultdict
from collections.abc import Iterator

from clew import events

_SECONDS = (0.005, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0)
_HELP = {
    "clew_requests_total": "Requests of clients, by path and status.",
    "clew_failed_open_total": "Requests that clew failed on and that went on as they came.",
    "clew_not_fitted_total": "Requests that could not be made to fit and went on as they came.",
    "clew_compactions_answered_total": "Compactions of clients that were answered from the log.",
    "clew_compactions_answered_seconds_total": "Time that these took.",
    "clew_folds_total": "Edits by which clew made a history shorter.",
    "clew_tokens_folded_total": "Tokens that these left out.",
    "clew_tokens_sent_total": "Tokens that providers counted in requests.",
    "clew_tokens_cached_total": "Those of them that came from a provider's cache.",
    "clew_tokens_answered_total": "Tokens that providers counted in answers.",
    "clew_dollars_total": "What that cost, where prices are known.",
    "clew_recalls_total": "Times that a model asked for an original.",
}
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counts; it is a listener of the engine's events."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Labels], float] = defaultdict(float)
        self._seconds = [0] * (len(_SECONDS) + 1)
        self._time = 0.0
        self.running = 0

    def add(self, name: str, by: float = 1, **labels: str) -> None:
        """Count something."""
        self._counts[name, tuple(sorted(labels.items()))] += by

    def took(self, seconds: float) -> None:
        """Count the time to the first byte of an answer."""
        self._time += seconds
        self._seconds[next((i for i, most in enumerate(_SECONDS) if seconds <= most), len(_SECONDS))] += 1

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.Edited():
                self.add("clew_folds_total", step=event.by.partition("(")[0])
                self.add("clew_tokens_folded_total", max(0, event.tokens_before - event.tokens_after))
            case events.Observed():
                self.add("clew_tokens_sent_total", event.input)
                self.add("clew_tokens_cached_total", event.cache_read)
                self.add("clew_tokens_answered_total", event.output)
                self.add("clew_dollars_total", event.cost or 0)
            case events.Recalled():
                self.add("clew_recalls_total")

    def text(self) -> str:
        """All of it, as Prometheus reads it."""
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        for name, help in _HELP.items():
            yield f"# HELP {name} {help}"
            yield f"# TYPE {name} counter"
            found = {labels: value for (known, labels), value in self._counts.items() if known == name}
            for labels, value in (found or {(): 0}).items():
                yield f"{name}{_labels(labels)} {value:g}"
        yield "# HELP clew_requests_running Requests that are being answered."
        yield "# TYPE clew_requests_running gauge"
        yield f"clew_requests_running {self.running}"
        yield "# HELP clew_first_byte_seconds Time to the first byte of an answer."
        yield "# TYPE clew_first_byte_seconds histogram"
        total = 0
        for most, count in zip((*map(str, _SECONDS), "+Inf"), self._seconds, strict=True):
            total += count
            yield f'clew_first_byte_seconds_bucket{{le="{most}"}} {total}'
        yield f"clew_first_byte_seconds_sum {self._time:.6f}"
        yield f"clew_first_byte_seconds_count {total}"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    told = (f'{name}="{value}"' for name, value in labels)  # names of ours: none needs escapes
    return "{" + ",".join(told) + "}"
