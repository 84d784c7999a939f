"""Is this error a refusal because the request was too long, and which limit does it name?"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, NamedTuple

What = Literal["tokens", "bytes", "images", "messages"]
_NUMBER = r"\d[\d,_]*(?:\.\d+)?(?:[km]\b)?"
_TABLE: dict[str, Any] = tomllib.loads(files("clew.wire.overflow").joinpath("wordings.toml").read_text("utf-8"))


# Said with many of the words of an overflow, and nothing that a shorter history mends: throttling, money, the length of
# the answer, content, access.
_NEVER = re.compile(
    r"""rate.?limit | too.many.requests | throttl | quota | billing | \bcredits?\b | insufficient | overloaded
    | (?:at|over|tier).capacity | \b[tr]p[mdhs]\b | per.(?:min|minute|hour|day|second|week|month)\b | please.wait
    | \b(?:dai|hour|week|month)ly\b | workspace | organi[sz]ation | upgrade.your
    | retry.after | (?<!\w)429(?!\w)
    | content.?(?:filter|policy|management) | safety | moderation | flagged
    | api.?key | unauthori[sz]ed | timed.out | time-?out.(?:error|exceeded|of) | request.time-?out
    | expired | session.token | access.token | \bjwt\b
    | (?:max_(?:completion_|output_|new_)?tokens|max(?:imum)?.?output.?tokens|maximum.tokens.you.requested)\W.{0,60}
      (?:too.large|too.big|must.be|cannot|exceed|>|less.than|greater|at.most|between|range|should|limit|support)
    | max.tokens.(?:must|value|param|should|cannot) | range.of.max_
    | at.most.[\d,]+.(?:completion|output) | maximum.(?:allowed.)?number.of.output | (?:output|completion).tokens?.limit
    | budget_tokens
    | (?:^|[.:"]\ ?)(?:\w+\ ){0,2}(?:output|response|completion|answer)\b.{0,20}(?:exceed|truncated|too.long)""",
    re.IGNORECASE | re.VERBOSE,
)
# What may be too long or too many without the history being so.
_PERHAPS = re.compile(
    r"""\b(?:image|file|pdf|audio|video|attachment|upload|document|page|batch)\w*\b.{0,60}
      (?:too.(?:large|big|long|many|small)|exceed|maximum|size|dimension)
    | (?:exceed|maximum|too.(?:large|big|long|many)).{0,40}
      \b(?:image|file|pdf|audio|video|attachment|upload|dimension|tools|functions|characters|headers?|urls?|fields?)
    | \btools\b.{0,40}(?:too.many|maximum|exceed|limit|at.most|too.long)
    | \bcharacters?\b | \bfields?\b | \bfile.?name | \bstop.sequences? | \bexpected.maxlength
    | string.above.max.length | string.too.long | array.too.long""",
    re.IGNORECASE | re.VERBOSE,
)
# What a request itself said is not what the provider says of it.
_ECHOED = frozenset({"messages", "input", "prompt", "contents", "tools", "request", "headers", "system", "stream"})
_FIELDS = ("message", "body", "response", "error", "errors", "detail", "details", "doc", "args")
_DEEP = 6
_LONG = 20_000
_FIGURE = re.compile(r"(?<![\w.-])(\d[\d,_]*(?:\.\d+)?)( ?[km]\b)?(?![\w-]*\.\d)", re.IGNORECASE)
_LIMIT_FIELD = re.compile(r"""["']?\b(?:n_ctx|max_model_len|context_length|max_input_tokens)["']?[:=]\s*(\d+)""")
_ASKED_FIELD = re.compile(r"""["']?\b(?:n_prompt_tokens|prompt_tokens|input_tokens)["']?[:=]\s*(\d+)""")
_BEFORE_LIMIT = re.compile(
    r"(?:limit|max\w*|window|capacity|context|length|size|allow\w*|support\w*|up to|only|than|exceeds?|most|>)"
    r"\W*(?:\w+\W+){0,3}$",
    re.I,
)
_SMALLEST = 256  # a figure below is a status, a version or an index, and no window


class Wording(NamedTuple):
    """A provider, what it says, an example of it, and what there was too much of."""

    provider: str
    pattern: re.Pattern[str]
    example: str
    what: What = "tokens"


def _wording(row: Mapping[str, Any]) -> Wording:
    pattern = row["pattern"]
    for name, part in _TABLE["parts"].items():
        pattern = pattern.replace(f"<{name}>", part)
    for name in ("limit", "asked", "more", "answer"):
        pattern = pattern.replace(f"<{name}>", f"(?P<{name}>{_NUMBER})")
    return Wording(**{**row, "pattern": re.compile(pattern.replace("<n>", _NUMBER), re.IGNORECASE)})


PLAIN, FIRM, LOOSE = (tuple(map(_wording, _TABLE[kind])) for kind in ("plain", "firm", "loose"))


@dataclass(frozen=True, slots=True)
class Overflow:
    """A request was too long: the limit that was named, what was asked for, and who said so."""

    limit: int | None
    asked: int | None
    provider: str
    what: What = "tokens"


def overflow(error: BaseException | Mapping[str, Any] | str | bytes) -> Overflow | None:
    """What an error says of a request that was too long; None if it says something else."""
    # A line each: what is said twice must not make a sentence with itself.
    text = "\n".join(dict.fromkeys(_plain(said) for said in _strings_of(error, 0)))
    for wording in PLAIN:
        if found := wording.pattern.search(text):
            return _read(wording, found, text)
    for rows, but in ((FIRM, _NEVER), (LOOSE, _PERHAPS)):
        if but.search(text):
            return None
        for wording in rows:
            if found := wording.pattern.search(text):
                return _guess(wording, found, text)
    return None


def _read(wording: Wording, found: re.Match[str], text: str) -> Overflow | None:
    named = {key: _figure(value) for key, value in found.groupdict().items() if value}
    limit, asked = named.get("limit"), named.get("asked")
    answer = named.get("answer", 0)
    if limit and answer >= limit:
        return None  # the answer alone has no room: a limit on output
    if asked is not None:
        asked += named.get("more", 0) + answer
    if wording.what == "tokens":
        limit = limit if limit is not None else _field(_LIMIT_FIELD, text)
        asked = asked if asked is not None else _field(_ASKED_FIELD, text)
    return Overflow(limit, asked, wording.provider, wording.what)


def _guess(wording: Wording, found: re.Match[str], text: str) -> Overflow:
    """The figures of a wording that was never seen: what was asked is above the limit, or there was no refusal."""
    known = _read(wording, found, text)
    if known and (known.limit or known.asked):
        return known
    sentence = text[max(found.start() - 80, 0) : found.end() + 120]
    figures = [(_figure(m[0]), m.start()) for m in _FIGURE.finditer(sentence)]
    figures = [(value, at) for value, at in figures if value >= _SMALLEST and value not in (400, 413, 422, 500)]
    values = sorted({value for value, _ in figures})
    if len(values) == 2:
        return Overflow(values[0], values[1], wording.provider, wording.what)
    limit = next((value for value, at in figures if _BEFORE_LIMIT.search(sentence[:at])), None)
    asked = values[-1] if values and values[-1] != limit else None
    return Overflow(limit, asked, wording.provider, wording.what)


def _strings_of(error: object, depth: int) -> Iterator[str]:
    """Every string an error carries, from the outside in; an SDK is never imported to read its errors."""
    if error is None or depth > _DEEP:
        return
    if isinstance(error, bytes | bytearray):
        yield from _strings_of(bytes(error).decode("utf-8", "replace"), depth)
    elif isinstance(error, str):
        yield error[:_LONG]
    elif isinstance(error, int | float):
        yield str(error)
    elif isinstance(error, Mapping):
        said = ((key, " ".join(_strings_of(value, depth + 1))) for key, value in error.items() if key not in _ECHOED)
        yield " ".join(f'"{key}": {value},' for key, value in said)
    elif isinstance(error, list | tuple):
        for value in error[:16]:
            yield from _strings_of(value, depth + 1)
    else:
        yield from _of_object(error, depth)


def _of_object(error: object, depth: int) -> Iterator[str]:
    if isinstance(error, BaseException):
        yield type(error).__name__
        yield str(error)[:_LONG]
        for cause in (error.__cause__, error.__context__):
            yield from _strings_of(cause, depth + 1)
    for field in (*_FIELDS, "text", "code", "status_code"):
        try:
            value = getattr(error, field, None)
        except Exception:  # noqa: S112 - `response.text` of a stream that nobody read raises
            continue
        if not callable(value):
            yield from _strings_of(value, depth + 1)


def _plain(text: str) -> str:
    """One line, without the escapes of JSON in JSON and with plain quotes."""
    text = re.sub(r"\\+u0027|[’‘´]", "'", text)
    text = re.sub(r"\\+u003e", ">", text)
    text = re.sub(r"\\+(?=[\"'/`])", "", text)
    return re.sub(r"(?:\\+[nrt]|\s)+", " ", text)


def _figure(text: str) -> int:
    """A number as people write it: 200,000, 128k, 1M."""
    text = text.strip().lower().replace(",", "").replace("_", "").rstrip(".")
    scale = {"k": 1_000, "m": 1_000_000}.get(text[-1:], 1)
    return int(float(text.rstrip("km ")) * scale)


def _field(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return int(found[1]) if found else None
