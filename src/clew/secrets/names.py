"""Fields that hold secrets, known by what they are called, and their values in any notation."""

import re
from collections.abc import Iterator

from clew.core.caches import remembers
from clew.secrets.kinds import ANCHORS, BEFORE, BEHIND, NAMES, Name
from clew.secrets.values import is_bare_secret, is_empty, is_uuid, proves

VALUE = 8192  # characters that are looked at for the end of a quoted value


_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[.-]")

_WORDS = re.compile(r"[^_ ]+")

_BACK = re.compile(r"(?:[A-Za-z][\w.-]* )?[\w.-]*\Z")
_ON = re.compile(r"[\w-]{0,40}+")
_LEAD = re.compile(
    r"""(?:\\{0,7}["'`][\])]?|\])?                           # the name may be quoted, or stand in an index,
    (?:\s?:\s?[\w\[\]|., ]{2,40}?(?=\s?=))?                  # and have a type
    (?:[ \t]{0,20}(?P<sign>=>|[=!]==?|:=|\?=|\|\|=|:(?!:)|[=>])(?:\s{0,20}(?=[burf@$]?\\{0,7}["'`])|[ \t]{0,20})
    |(?:\s|\\{1,7}[nr]|,){1,40}(?:\\{0,7}["'])?[vV]alue(?:\\{0,7}["'])?\s{0,5}[:=]\s{0,5}
    |</key>\s{0,20}<string>|[ ]\{[^{}]{0,200}?default\s{0,9}=\s{0,9}
    |(?P<loose>\s{0,3}[,(]\s{0,9}(?=\\{0,7}["'])            # arguments, or a list of names
        |[ \t]{1,9}(?:(?:[\w@.]{1,20}+[ ]){0,4}[\w@.]{1,20}+:[ \t]|(?:is|was|to|of)[ \t]{1,3})?))    # prose
    (?P<open>[burf@$]?(?P<slashes>\\{0,7})(?P<quote>["'`]))?""",
    re.VERBOSE,
)
_BARE = re.compile(r"(?:[^\s\"'`\\<>]|\\(?![nrtu\"'\\])){1,4096}")
_DIGIT = re.compile(r"\d")
_OPTION = re.compile(r"(?:^|[\s\"'\[(])(?:--?(?=\w)|(?i:env|setenv|set|export) )[\w.-]*\Z")


def kind_of(name: str, value: str) -> str:
    """The kind of secret that a field holds, going by its name; empty if it holds none."""
    row = _row(name) if len(name) <= 100 else None
    return row.kind if row and _believed(row, value, name) else ""


def small(text: str) -> str:
    """The text in small letters, each at its place."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters have longer small forms
        lower = "".join(one if len(one := c.lower()) == 1 else c for c in text)
    return lower


def named(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """The values in a text that stand behind a name such as `password`: kind, start, stop."""
    for anchor in ANCHORS:
        at = lower.find(anchor)
        while at >= 0:
            end = at + len(anchor)
            on = _ON.match(text, end)
            lead = _LEAD.match(text, on.end()) if on else None
            if lead:
                back = _BACK.search(text[max(0, at - 40) : at])
                start = at - len(back[0]) if back else at
                if text[start - 1 : start] == "\\" and start < at:
                    start += 1  # the letter of an escaped line end
                if found := _value(text, start, lead):
                    yield found
                    end = found[2]
            at = lower.find(anchor, end)


@remembers(4096)
def _row(name: str) -> Name | None:
    """What a name says of its value, if it says so at all."""
    plain = _WORD_STARTS.sub("_", name).lower()
    for row in NAMES:
        for match in row.pattern.finditer(plain):
            before, behind = _WORDS.findall(plain, 0, match.start()), _WORDS.findall(plain, match.end())
            if BEFORE.isdisjoint(before[-1:]) and BEHIND.isdisjoint(behind):
                return row
    return None


def _believed(row: Name, value: str, name: str) -> bool:
    if is_empty(value, row.proof) or (row.kind == "session" and is_uuid(value)):
        return False
    return proves(row.proof, value, loud=_is_loud(name))


def _is_loud(name: str) -> bool:
    return name.rpartition(" ")[2].isupper()


def _value(text: str, start: int, lead: re.Match[str]) -> tuple[str, int, int] | None:
    """The secret that the name from `start` on leads to."""
    name = text[start : lead.start()]
    row = _row(name)
    if row is None:
        return None
    option = bool(_OPTION.search(text[max(0, start - 16) : lead.start()]))
    span = (lead["open"] and _quoted(text, lead)) or _bare(text, lead, row, start, option)
    if span is None or not _believed(row, value := text[slice(*span)], name):
        return None
    return None if lead["loose"] and not option and _is_prose(name, value) else (row.kind, *span)


def _is_prose(name: str, value: str) -> bool:
    """Whether a name and what stands beside it, with no sign between them, are only words."""
    return name.lower().endswith("pass") or "=" in value or not (_DIGIT.search(value) and proves("mixed", value))


def _quoted(text: str, lead: re.Match[str]) -> tuple[int, int] | None:
    """The span of a value up to the quote that closes it, which is escaped as often as the one that opened it."""
    slashes = len(lead["slashes"])
    for match in re.compile(r"(?<!\\)(\\*)" + lead["quote"]).finditer(text, lead.end(), lead.end() + VALUE):
        if len(match[1]) % (2 * slashes + 2) == slashes:
            start, stop = lead.end(), match.end() - 1 - slashes
            return None if "\n" in text[start:stop] else (start, stop)
    return None


def _bare(text: str, lead: re.Match[str], row: Name, start: int, option: bool) -> tuple[int, int] | None:
    """The span of a value without quotes, for a name from `start` on."""
    match = _BARE.match(text, lead.end())
    name, sign = text[start : lead.start()], lead["sign"]
    if match is None or (name.endswith("PASS") and sign == ":"):  # the verdict of a test
        return None
    next = text[match.end() : match.end() + 1]
    if sign == ">" and next != "<":  # no element that is closed again
        return None
    line = re.split(r"\n|\\n", text[max(0, start - 80) : start])[-1].strip(" \t-\"'\\")
    alone = next in ("", "\n", "\r", "\\") and (not line or _is_loud(name))  # nothing else is on its line
    value = match[0].rstrip(",;)}]") if alone else re.split(r"[,;&)}\]]", match[0], maxsplit=1)[0]
    parameter = sign == "=" and text[start - 1 : start] in ("?", "&", ";")
    word = alone and len(value) == len(match[0]) >= 6 and value.islower() and value.isalpha()
    plain = _is_loud(name) or option or parameter or word or sign == ">"
    if not value or not is_bare_secret(value, row.proof, plain=plain):
        return None
    return match.start(), match.start() + len(value)
