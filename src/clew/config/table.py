"""The table of settings: a field is a row, and parsing, checks, `clew config` and the docs follow from it."""

import dataclasses
import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from clew import catalog
from clew.config.gateway import GatewayTable
from clew.config.kinds import (
    ADDRESSES,
    AUTHOR,
    FORMAT_LIST,
    MODEL,
    PRICE,
    STORE,
    SWITCH,
    TEXT,
    choice,
    count,
    named,
    share,
)
from clew.config.setting import NAME, Key, Setting
from clew.core.extensions import STEPS
from clew.core.limits import HIGH, HIGH_NARROW, LOW, LOW_SMALL, MEMORY, NARROW, Budget
from clew.steps import PRESET_NAMES
from clew.store.places import Server

USUAL_READ = 0.1  # of the price of input: what providers take for what is read from their cache
CACHE_PRICES = ("cache_read", "cache_write", "cache_write_1h")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one request may take: the fields of a `Budget`."""

    window: Annotated[
        int | None,
        Setting(count(1, 200_000), "Tokens of a request and its answer together", "the model's own", project="yes"),
    ] = None
    reserve: Annotated[
        int | None,
        Setting(
            count(0, 8192),
            "Tokens reserved for the answer",
            "what answers take, at first 8192",
            project="yes",
        ),
    ] = None
    high: Annotated[
        float | None,
        Setting(
            share(0.7),
            "Compact above this share of the room, whether it pays or not",
            f"{HIGH}; {HIGH_NARROW} up to {NARROW // 1000}k",
            project="yes",
        ),
    ] = None
    low: Annotated[
        float | None,
        Setting(
            share(0.5),
            "Compact down to this share of the room",
            f"{LOW}; {LOW_SMALL} of a small window",
            project="yes",
        ),
    ] = None
    start: Annotated[
        int | None,
        Setting(count(1, 150_000), "Also compact above this many tokens of history", "none", project="yes"),
    ] = None
    tail: Annotated[int, Setting(count(0, 20_000), "Tokens at the end that are kept unchanged", project="yes")] = (
        Budget.tail
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """A model that writes the chapters which stand in for a history."""

    model: Annotated[str, Setting(AUTHOR, "The model that writes chapters", project="none")] = "own"
    instructions: Annotated[str | None, Setting(TEXT, "Extra instructions for every prompt", "none")] = None


@dataclass(frozen=True, slots=True)
class NewSession:
    """The user's words to an agent that decides itself when to begin a new session."""

    when: Annotated[
        str, Setting(TEXT, "When to begin one: 80%, 150000 tokens, or instructions", "75%", project="yes")
    ] = ""
    how: Annotated[str, Setting(TEXT, "Instructions for its summary", "clew's own", project="yes")] = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent of `clew run` and `clew chat`."""

    model: Annotated[str | None, Setting(MODEL, "The model it uses", "none: must be set")] = None
    theme: Annotated[Literal["dark", "light"], Setting(choice("dark", "light"), "Colours of `clew chat`")] = "dark"


@dataclass(frozen=True, slots=True)
class Costs:
    """What a model's tokens cost, where the catalog is wrong or silent."""

    input: Annotated[float | None, Setting(PRICE, "Price of input", project="yes")] = None
    output: Annotated[float | None, Setting(PRICE, "Price of output", project="yes")] = None


@dataclass(frozen=True, slots=True)
class Override:
    """What is known of a model better than the catalog knows it."""

    window: Annotated[
        int | None, Setting(count(1, 200_000), "Context window of the model, in tokens", project="yes")
    ] = None
    start: Annotated[
        int | None,
        Setting(count(1, 150_000), "`budget.start` for this model", "budget.start", project="yes"),
    ] = None
    prices: Costs = Costs()


@dataclass(frozen=True, slots=True)
class Config:
    """What holds, and from where."""

    store: Annotated[
        Path | Server, Setting(STORE, "Where the log is: a file or a database", "clew.db in your data folder")
    ]
    scope: Annotated[str, Setting(TEXT, "The tenant the log belongs to")] = "default"
    secrets: Annotated[
        Literal["off", "keys", "redact", "refuse"],
        Setting(choice("off", "keys", "redact", "refuse"), "What to do with secrets in a request", project="stricter"),
    ] = "keys"
    preset: Annotated[
        str, Setting(named(STEPS, *PRESET_NAMES), "The strategy that makes a history fit", project="yes")
    ] = "default"
    formats: Annotated[
        tuple[str, ...], Setting(FORMAT_LIST, "Formats of requests that installed packages bring", "none")
    ] = ()
    compaction: Annotated[
        Literal["on", "shadow", "off"],
        Setting(choice("on", "shadow", "off"), "Whether histories are compacted; shadow: compute but do not use"),
    ] = "on"
    compaction_method: Annotated[
        Literal["auto", "llm"],
        Setting(choice("auto", "llm"), "Who decides when: clew, or the agent with clew as fallback", project="yes"),
    ] = "auto"
    expand: Annotated[bool, Setting(SWITCH, "Recall passages that match the newest user message", project="yes")] = True
    log: Annotated[
        Literal["off", "text", "json"], Setting(choice("off", "text", "json"), "Format of events on stderr")
    ] = "off"
    telemetry: Annotated[bool, Setting(SWITCH, "Send spans to your OpenTelemetry collector")] = False
    servers: Annotated[tuple[str, ...], Setting(ADDRESSES, "Your model servers, asked for their window", "none")] = ()
    memory: Annotated[int, Setting(count(0, 512), "Megabytes of conversations kept in memory, about")] = MEMORY >> 20
    summary: Summary = Summary()
    new_session: NewSession = NewSession()
    agent: Agent = Agent()
    gateway: GatewayTable = field(default_factory=GatewayTable)
    budget: Bounds = Bounds()
    models: Mapping[str, Override] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)  # key, from where
    notes: tuple[str, ...] = ()  # what was passed over, and why

    def value(self, key: str) -> Any:
        """The value of a key as one types it."""
        found: Any = self
        for part in read_key(key):
            found = found.get(part, Override()) if isinstance(found, Mapping) else getattr(found, part)
        return found

    def budget_for(self, model: catalog.Model, window: int | None = None) -> Budget:
        """The budget of requests to a model; `window` is above all that is set."""
        bounds = {f.name: getattr(self.budget, f.name) for f in dataclasses.fields(Bounds)}
        window = window if window is not None else self.budget.window or model.max_input or model.window
        reserve = None if self.budget.reserve is None else min(self.budget.reserve, window // 2)  # of a small model
        start = self.models.get(model.name, Override()).start or self.budget.start
        return Budget(
            **{
                **bounds,
                "window": window,
                "reserve": reserve,
                "start": start,
                "model": model.name,
                "paid": not model.local,
            }
        )

    def model(self, name: str) -> catalog.Model:
        """What is known of a model: the catalog, corrected."""
        known, own = catalog.lookup(name), self.models.get(name, Override())
        if own.window is not None:
            known = replace(known, window=own.window, max_input=None, source="given", exact=True)
        prices = {key: price for key, price in dataclasses.asdict(own.prices).items() if price is not None}
        if known.prices is not None and prices:
            known = replace(known, prices=_corrected(known.prices, prices))
        elif {"input", "output"} <= prices.keys():
            known = replace(known, prices=catalog.Prices(**prices, cache_read=USUAL_READ * prices["input"]))
        return replace(known, name=name)


def _corrected(known: catalog.Prices, prices: Mapping[str, float]) -> catalog.Prices:
    """Prices of the catalog with those that are given; those of the cache cost the same part of input as before."""
    part = prices["input"] / known.input if "input" in prices and known.input else 1.0
    cached = {key: price * part for key in CACHE_PRICES if (price := getattr(known, key)) is not None}
    return replace(known, **cached, **prices, tiers=())  # tiers are of the prices that were wrong


# --- the rows -------------------------------------------------------------------------------------------------------


def _rows(owner: type, before: Key = ()) -> Iterator[Setting]:
    defaults = {f.name: f.default for f in dataclasses.fields(owner)}
    for name, hint in get_type_hints(owner, include_extras=True).items():
        key, args = (*before, name), get_args(hint)
        if args and isinstance(args[-1], Setting):
            default = None if defaults[name] is dataclasses.MISSING else defaults[name]
            yield replace(args[-1], key=key, default=default)
        elif table := _table(hint):
            yield from _rows(table, key)
        elif table := _table(*args[-1:]):
            yield from _rows(table, (*key, NAME))


def _table(hint: Any = None) -> type | None:
    return hint if isinstance(hint, type) and dataclasses.is_dataclass(hint) else None


SETTINGS = tuple(_rows(Config))


def built(owner: type, values: Mapping[Key, Any], before: Key = (), **rest: Any) -> Any:
    """A table with the values in their places."""
    fields = dict(rest)
    for name, hint in get_type_hints(owner).items():
        key = (*before, name)
        if key in values:
            fields[name] = values[key]
        elif table := _table(hint):
            fields[name] = built(table, values, key)
        elif table := _table(*get_args(hint)[-1:]):
            names = dict.fromkeys(k[len(key)] for k in values if k[: len(key)] == key)
            fields[name] = {n: built(table, values, (*key, n)) for n in names}
    return owner(**fields)


# --- keys -----------------------------------------------------------------------------------------------------------


@lru_cache(1_000)
def setting_of(key: Key) -> Setting | None:
    """The row of a key."""
    for setting in SETTINGS:
        if len(key) == len(setting.key) and all(a in (b, NAME) for a, b in zip(setting.key, key, strict=True)):
            return setting
    return None


def write_key(key: Key) -> str:
    """A key as TOML spells it; in the row of all models, their name is NAME."""
    return ".".join("NAME" if part == NAME else part if _BARE.fullmatch(part) else quoted(part) for part in key)


def read_key(text: str) -> Key:
    """The key that somebody typed, or `KeyError`; a name may stand without its quotes, since shells eat them."""
    for setting in SETTINGS:
        if NAME not in setting.key and text == ".".join(setting.key):
            return setting.key
        head, star, tail = ".".join(setting.key).partition(NAME)
        if star and text.startswith(head) and text.endswith(tail) and (name := _name(text[len(head) : -len(tail)])):
            at = setting.key.index(NAME)
            return (*setting.key[:at], name, *setting.key[at + 1 :])
    raise KeyError(text)


def quoted(text: str) -> str:
    """Text as TOML spells it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _name(text: str) -> str:
    try:
        found = json.loads(text) if text[:1] == '"' else text
    except ValueError:
        found = text
    return str(found).strip("'")


GONE = re.compile(
    r"summary.(prompt|size|seconds|calls|hourly_calls|hourly_tokens)|budget.(done|bytes|images|messages)|agent.(steps|answer)|"
    r"gateway.(requests|client_silence|upstream_silence|body|per_minute)|"
    r"models.+.(max_output|images|prices.cache_(read|write|write_1h))|probe",
    re.IGNORECASE,
)


def passed_over(text: str) -> str:
    """What to say of a setting that was one, so that nothing that worked stops; nothing, if it never was one."""
    was = GONE.fullmatch(text.removeprefix("CLEW_").replace("_", ".", "." not in text))
    return (
        f"{text} is passed over: it was a setting in 0.1, and clew's own choice holds now; take it out" if was else ""
    )


def nearest(text: str) -> str:
    """How an unknown key should perhaps be spelled, as the end of a sentence."""
    try:
        return f"did you mean {write_key(read_key(text))}?"
    except KeyError:
        tables = dict.fromkeys(s.key[0] for s in SETTINGS)
        known = [*tables, *(write_key(s.key) for s in SETTINGS), *(s.variable for s in SETTINGS)]
        close = difflib.get_close_matches(text, known, 1)
        return f"did you mean {close[0]}?" if close else "`clew config` shows all there are"
