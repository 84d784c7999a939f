"""Exact tokens: paths, ids, hashes, URLs, code names, dates, times and numbers, known however they are written.

What a text has of them is compared with what the originals have. Both are read by the same pattern into the same keys,
so that 28 April is 2023-04-28, 12.3k is 12,345, and `getUserName` is `get_user_name`. Ordinary words are no tokens.
"""

import json
import re
import string
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import NamedTuple

from clew.core.caches import remembers
from clew.facts.finding import EXTENSION, SHA, classify
from clew.text.framing import seen, shown
from clew.text.words import COMMON, SIGNS, leaves

ATOMS = 12  # parts of a name that are looked at one by one
STEM = 5  # letters by which a word is the same word
ROUNDINGS = 200  # values that one rounded number is compared with
CAPITALS = 0.2  # of the words inside sentences: where more begin with one, it does not mean a name
_CLOSING = "/.,;:!?*"  # what a URL does not end with
_ENDINGS = ("s", "es", "ed", "ing", "er", "en")  # of a name that is used as a word
YEARS = range(1600, 2100)

# Words that hold a sentence together, and nothing more.
SMALL_WORDS = COMMON | frozenset(
    "about after again all also any because been before both did does each had here how more most one only over per "
    "since some still such than their them there they too two up via were where which while who why "
    "der die das und ist nicht ein eine mit auf für von zu den dem des les est pas une dans pour sur avec que qui "
    "los las con por para del una como más pero".split()
)
_MONTHS = (
    "jan january januar jänner janvier janv enero ene gennaio janeiro januari января stycznia ledna ocak",
    "feb february februar février fevrier févr febrero febbraio fevereiro februari февраля lutego února şubat",
    "mar march märz maerz mars marzo março maart марта mars marca března mart",
    "apr april avril avr abril abr aprile апреля kwietnia dubna nisan",
    "may mai mayo maggio maio mei мая maj maja května mayıs",
    "jun june juni juin junio giugno junho июня czerwca června haziran",
    "jul july juli juillet juil julio luglio julho июля lipca července temmuz",
    "aug august août aout agosto ago augustus августа augusti sierpnia srpna ağustos",
    "sep sept september septembre septiembre settembre setembro сентября września září eylül",
    "oct october oktober okt octobre octubre ottobre outubro октября października října ekim",
    "nov november novembre noviembre novembro ноября listopada listopadu kasım",
    "dec december dezember dez décembre decembre diciembre dic dicembre dezembro декабря grudnia prosince aralık",
)
_MONTH = {form: n for n, names in enumerate(_MONTHS, 1) for name in names.split() for form in (name, seen(name))}
_NUMBERS = {
    word: n
    for n, words in {
        10: "ten zehn dix diez", 11: "eleven elf onze once", 12: "twelve zwölf douze doce dozen",
        13: "thirteen dreizehn treize trece", 14: "fourteen vierzehn quatorze catorce", 15: "fifteen fünfzehn quince",
        16: "sixteen sechzehn seize dieciséis", 17: "seventeen siebzehn diecisiete", 18: "eighteen achtzehn dieciocho",
        19: "nineteen neunzehn diecinueve", 20: "twenty zwanzig vingt veinte", 30: "thirty dreißig trente treinta",
        40: "forty vierzig quarante cuarenta", 50: "fifty fünfzig cinquante cincuenta",
        60: "sixty sechzig soixante sesenta", 70: "seventy siebzig setenta", 80: "eighty achtzig ochenta",
        90: "ninety neunzig noventa", 100: "hundred hundert cent cien", 1000: "thousand tausend mille mil",
    }.items()
    for word in words.split()
}  # fmt: skip
# What a unit is worth in the smallest of its kind: only that they agree with each other matters.
_UNITS = {
    unit: worth
    for worth, units in {
        1e3: "k K thousand tsd Tsd kB KB kb s sec m kg km l L 千 公里 千米 公斤", 1e4: "万 萬",
        1e6: "M mio Mio million millions MB Mb",
        1e8: "亿 億", 1e9: "bn billion B GB Gb", 1e12: "TB", 1: "ms mm g ml bytes", 10: "cm cl",
        60e3: "min", 3.6e6: "h",
        1024: "KiB", 1024**2: "MiB", 1024**3: "GiB", 0.01: "% percent Prozent pct",
    }.items()
    for unit in units.split()
}  # fmt: skip
_UNIT = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_NAMED_MONTH = "|".join(sorted(map(re.escape, _MONTH), key=len, reverse=True))
_SCANNED = re.compile(
    # A line break inside quoted JSON is no letter of the next word; nothing else begins with what stands around words.
    r"(?P<skip>\\[nrt]|[\s\"'`(){}\[\]<>|=,;:*]+)"
    # Most words, before all that they are not is tried; one before a digit may be a month.
    r"|(?P<word>[A-Za-z]++(?![\w./@+~:-]|,?\s(?:de\s)?\d))"
    r"|(?P<url>\b(?:https?|ftp|wss?)://[^\s\"'<>`)\]}|\\]+)"
    r"|(?P<date>(?<![\w.])(?:1[6-9]|20)\d\d(?:[-/.]\d\d?[-/.]\d\d?(?!\d)(?:[T ]\d\d:\d\d)?|-(?:0\d|1[0-2])(?![\w-])"
    r"|\s?[年년]\s?\d\d?\s?[月월](?:\s?\d\d?\s?[日号號일])?)"
    r"|(?<![\w.])\d\d?\s?[月월]\s?\d\d?(?!\d)(?:\s?[日号號일])?"
    r"|(?<![\w.])\d\d?\s?[日号號일](?!\w)"
    r"|(?<![\w.,])\d\d?\.\s?\d\d?\.(?:\s?\d{4}(?!\d))?(?!\d)"
    rf"|(?<![\w.,])\d\d?(?:st|nd|rd|th|er|\.|º|ª)?\s(?:of\s|de\s|d['’])?(?i:{_NAMED_MONTH})\b(?:\.?,?\s(?:de\s|of\s)?\d{{4}}(?!\d))?"
    # What stands before a digit only is looked at twice: most words are no month.
    rf"|\b(?=[^\W\d_]{{3,12}}\.?,?\s(?:de\s)?\d)(?i:{_NAMED_MONTH})\.?,?\s(?:de\s)?(?:\d\d?(?:st|nd|rd|th)?(?![\d:]|[.,]\d)(?:,?\s(?:19|20)\d\d(?!\d))?|(?:19|20)\d\d(?!\d))"
    r"|(?<![\w.,/-])\d\d?/\d\d?(?:/(?:\d{4}|\d\d))?(?![\w/])|(?<![\w.,/-])\d\d-\d\d(?![\w-]|\.\d))"
    r"|(?P<time>(?<![\w:.])\d\d?(?:[:hH]\d\d(?!\d)(?::\d\d)?(?:\s?[aApP]\.?[mM]\b)?"
    r"|\s?(?:[aApP]\.?[mM]\b|[uU]hr\b|o['’]clock|[点點時时시](?:\s?\d\d?\s?分)?)))"
    r"|(?P<number>(?<![\w.])\d{1,9}\s?[万萬]\s?\d{1,4}(?![\w.])"
    r"|(?<![\w.])[$€£¥]?(?:\d{1,3}(?:[,.'\u2009\u202f ]\d{3})+(?!\d)|\d+)(?:[.,]\d{1,9})?"
    rf"(?:\s?(?:公里|千米|公斤|[万萬亿億千]|(?:{_UNIT})(?!\w)))?(?![A-Za-z0-9_%]|[-./@]\w))"
    r"|(?P<chunk>(?:[#.@/$]|[~-](?=[-~/A-Za-z])){0,9}\w[\w./@+~-]*)"
)
_APART = re.compile(r"(?<=[\u0e00-\uffff])(?=[!-~])|(?<=[!-~])(?=[\u0e00-\uffff])")
_TOGETHER = re.compile(r"(?<=[\u0e00-\uffff]) (?=[!-~])|(?<=[!-~]) (?=[\u0e00-\uffff])")
_ATOM = re.compile(r"[_-]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[^\W\d])(?=\d)|(?<=\d)(?=[^\W\d])")
_JOINT = re.compile(r"[/.@:+~#$?&=%]+")
_HOST = re.compile(r"[/?#:]")
_DIGITS = re.compile(r"\d+")
_SPACED = re.compile(r"\d \d")
_DAY = re.compile(r"(\d\d?)(?:\s?[日号號일]|st|nd|rd|th)")  # of a month that was named before
_MYRIADS = re.compile(r"(\d{1,9})\s?[万萬]\s?(\d{1,4})")
_FIGURE = re.compile(r"\d(?:[\d.,'\u2009\u202f ]*\d)?")
_VALUE = re.compile(r"\d+(?:[.,]\d+)?")
_CHAIN = re.compile(r"(?<![\d.])\d+(?:\.\d+)+")
_RANGE = re.compile(rf"\d[\d.,]*(?:[-/]\d[\d.,]*)+(?:{_UNIT})?")
_GROUPS = re.compile(r"(?<![\w.,])\d{2,5}(?:[ -]\d{2,5}){1,5}(?![\w.,]\d)")
_DOTTED = re.compile(r"(\d\d?)\.(\d\d)")  # a number, a time or a day
_ALSO = re.compile(r"(\d\d?)\s?(?:[-–/,&]|[^\W\d_]{1,3})\s?\Z")  # a day before another of the same month
_DEGREES = re.compile("°[CF]")
_FEW = re.compile(r"\d,\d")  # perhaps a list
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)?")
_INSIDE = re.compile(r"(?<=[a-zà-ÿ,] )[^\W\d_]{3,}")
_BOLD = re.compile(r"\*\*[^*\n]{1,200}\*\*|`[^`\n]{1,200}`")
_LISTED = re.compile(r"\s{0,20}\d{1,3}[.)]\s")  # the number of a line in a list
_PROPER = re.compile(r"(?<=[a-zà-ÿ,] )[A-Z][a-zà-ÿ]{3,}\b(?![\w_/.(*:-])")
_LETTERS = re.compile(r"[^\W\d_]+")
_MARKED = re.compile(r"`[^`\n]*`")
_ABOUT = re.compile(
    r"(?i)(?:~|≈|about|approx\.?|approximately|around|roughly|some|circa|ca\.|nearly|almost|over|under|than|etwa|rund|ungefähr"
    r"|knapp|environ|unos|unas|cerca de|aproximadamente|casi|约|約|近|超|およそ|ほぼ)\s?[$€£¥]?$"
)
_FIGURES = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_PLACES = {"十": 10, "百": 100, "千": 1000}
_COUNTED = re.compile("[零〇一二三四五六七八九两十百千]{2,9}")


class Way(NamedTuple):
    """One way in which a token may stand in the originals: some keys in one node that fits, others anywhere."""

    here: tuple[str, ...]
    anywhere: tuple[str, ...] = ()


class ExactToken(NamedTuple):
    """A token of a text, as it is written there, and the ways in which it may be found."""

    kind: str
    text: str
    ways: tuple[Way, ...]
    rounded: tuple[tuple[float, float], ...] = ()  # of a number that may be: from where to where it may be meant


def plain(text: str) -> str:
    """The text as it looks, with spaces between letters and signs that are written without one."""
    return text if text.isascii() else _APART.sub(" ", seen(shown(_DEGREES.sub("°", text))))


def written(token: ExactToken) -> str:
    """A token as its text has it."""
    return token.text if token.text.isascii() else _TOGETHER.sub("", token.text)


def stems(text: str) -> set[str]:
    """The content words of a text by their first letters; where there are no spaces, by pairs of signs."""
    return set[str]().union(*map(_stems, {*_LETTERS.findall(plain(text).lower())}))


@remembers(1 << 16)
def _stems(word: str) -> tuple[str, ...]:
    if word[0] >= "\u0e00" and SIGNS.match(word):
        return tuple(word[i : i + 2] for i in range(len(word) - 1))
    if len(word) < 2 or word in SMALL_WORDS:
        return ()
    return ((word.removesuffix("s") if len(word) > 3 else word)[:STEM],)


# --- the originals ----------------------------------------------------------------------------------------------------


class KeysOfTexts:
    """The keys of each text, read once: each chapter of several is held against all that its model was shown."""

    def __init__(self) -> None:
        self._of: dict[str, frozenset[str]] = {}
        self._known: dict[str, frozenset[str]] = {}  # what a piece of a text gives

    def __call__(self, text: str) -> frozenset[str]:
        if (keys := self._of.get(text)) is None:
            looks = plain(text)
            keys = self._of[text] = frozenset(_keys(looks, self._known)).union(f"w{stem}" for stem in stems(text))
        return keys


class Originals:
    """Where each key stands, by the number of its node; -1 is what stands beside the history."""

    def __init__(self, texts: Sequence[str], beside: str = "", keys: KeysOfTexts | None = None) -> None:
        self._at: defaultdict[str, list[int]] = defaultdict(list)
        keys = keys or KeysOfTexts()
        for n, text in enumerate((beside, *texts), -1):
            for key in keys(text) if n >= 0 else keys(text) | _days_around(plain(text)):
                self._at[key].append(n)
        self.size = len(texts)
        self._values = sorted({float(key[1:]) for key in self._at if key[0] == "n"})
        self._hashes = sorted(key[1:] for key in self._at if key[0] == "s" and SHA.fullmatch(key[1:]))

    def nodes_with(self, stem: str) -> Sequence[int]:
        """The nodes that have a word."""
        return self._at.get(f"w{stem}", ())

    def fitting(self, words: set[str]) -> set[int] | None:
        """The nodes that have one of these words, and their neighbours; None: all of them."""
        found = [nodes for word in words if (nodes := self.nodes_with(word))]
        if not found:
            return None
        return {-1}.union(*((n - 1, n, n + 1) for some in found for n in some))

    def where(self, token: ExactToken, fitting: set[int] | None) -> set[int]:
        """The nodes in which a token stands; empty: nowhere. A number, which stands somewhere by chance, must fit."""
        found = set[int]()
        fitting = fitting if token.kind == "number" else None
        for here, anywhere in (*token.ways, *self._rounded(token), *self._begun(token)):
            if all(key in self._at for key in (*here, *anywhere)):
                nodes = set.intersection(*(set(self._at[key]) for key in here))
                found |= nodes if fitting is None else nodes & fitting
        return found

    def _rounded(self, token: ExactToken) -> Iterator[Way]:
        for least, most in token.rounded:
            start = bisect_left(self._values, least)
            stop = min(bisect_left(self._values, most), start + ROUNDINGS)
            yield from (Way((_value(value),)) for value in self._values[start:stop])

    def _begun(self, token: ExactToken) -> Iterator[Way]:
        if token.kind == "sha":
            start = bisect_left(self._hashes, token.text.lower())
            found = self._hashes[start : start + 1]
            yield from (Way((f"s{full}",)) for full in found if full.startswith(token.text.lower()))


def text_of(text: str, name: str = "") -> str:
    """The words of a call or a result: what JSON escapes is written out."""
    if "\\u" in text and text[:1] in "{[":
        with suppress(ValueError, RecursionError):
            text = f"{text}\n" + "\n".join(leaves(json.loads(text)))
    return f"{name} {text}" if name else text


def _keys(text: str, known: dict[str, frozenset[str]]) -> set[str]:
    found, marks = set[str](), set[str]()
    for match in _SCANNED.finditer(text):
        if (kind := str(match.lastgroup)) == "skip":
            continue
        chunk = match.group().rstrip(_CLOSING) if kind == "url" else match.group()
        mark = chunk if kind in ("word", "chunk") else f"{kind} {chunk}"
        if mark not in marks:
            marks.add(mark)
            if (keys := known.get(mark)) is None:
                keys = known[mark] = frozenset(_keys_of(kind, chunk))
            found |= keys
        if kind == "date" and (also := _ALSO.search(text, max(0, match.start() - 8), match.start())):
            found |= {f"d{month}-{int(also[1])}" for _, month, day in _dates(chunk) if day}
    for match in _GROUPS.finditer(text):  # a telephone number, however it is parted
        runs = _DIGITS.findall(match.group())
        found |= {_value(int("".join(runs[n:stop]))) for n in range(len(runs)) for stop in range(n + 2, len(runs) + 1)}
    for match in _COUNTED.finditer(text):
        found.add(_value(_counted(match.group())))
    return found


def _days_around(frame: str) -> set[str]:
    """The days before and after those that the frame names: a writer says which day tomorrow is."""
    found = set[str]()
    for match in _SCANNED.finditer(frame):
        for year, month, day in _dates(match.group()) if match.lastgroup == "date" else ():
            with suppress(ValueError):
                for other in (date(year, month, day) + timedelta(days=n) for n in (-1, 1)):
                    found |= {f"d{other.month}-{other.day}", f"m{other.year}-{other.month}", _value(other.day)}
    return found


def _keys_of(kind: str, chunk: str) -> Iterator[str]:
    if kind == "date":
        yield from (f"d{month}-{day}" for _, month, day in _dates(chunk) if day)
        yield from (f"m{year}-{month}" for year, month, _ in _dates(chunk) if year)
        yield from (f"M{month}" for _, month, _ in _dates(chunk))
    if lone := _DAY.fullmatch(chunk):
        yield f"D{int(lone[1])}"
    if kind == "time" or (kind == "date" and ":" in chunk):
        yield from (
            f"t{minute}" for minute in _minutes(chunk.split("T")[-1].split(" ")[-1] if kind == "date" else chunk)
        )
    if kind == "number":
        yield from (_value(value) for value, _ in _amounts(chunk))
    if chunk.isalpha() and len(chunk) < 40:
        word = chunk.lower()
        yield f"s{word}"
        if word in _NUMBERS:
            yield _value(_NUMBERS[word])
        if chunk[1:].islower() or chunk.isupper():
            return
    if any(map(str.isdigit, chunk)):
        yield from (_value(int(run)) for run in _DIGITS.findall(chunk) if len(run) < 20)
        yield from (_value(float(run.replace(",", "."))) for run in _VALUE.findall(chunk) if len(run) < 20)
        for chain in _CHAIN.findall(chunk):
            groups = chain.split(".")[:ATOMS]
            yield from (f"c{'.'.join(groups[:n])}" for n in range(2, len(groups) + 1))
    if kind == "url":
        yield f"s{_squashed(_host(chunk.split('://')[-1]))}"
    for part in _JOINT.split(chunk):
        yield from (f"s{name}" for name in _runs(part))
    yield f"s{_squashed(chunk)}"


def _runs(part: str) -> Iterator[str]:
    """A name, its beginnings and its ends, whole words each."""
    atoms = [atom for atom in _ATOM.split(part.lower() if part.isupper() else part) if atom]
    joined = "".join(atoms).lower()
    yield joined
    if 1 < len(atoms) <= ATOMS:
        at = 0
        for atom in atoms[:-1]:
            at += len(atom)
            yield joined[:at]
            yield joined[at:]


def _host(address: str) -> str:
    """The host of an address without its scheme."""
    return _HOST.split(address, maxsplit=1)[0].removeprefix("www.")


def _squashed(name: str) -> str:
    return (name if name.isalnum() else "".join(filter(str.isalnum, name))).lower()


# --- a text -----------------------------------------------------------------------------------------------------------


def tokens(line: str) -> Iterator[ExactToken]:
    """The exact tokens of a line, in order."""
    line = _LISTED.sub("", plain(line), count=1) if _LISTED.match(line) else plain(line)
    marks = [(m.start(), m.end()) for m in _MARKED.finditer(line)]
    for match in _SCANNED.finditer(line):
        kind, chunk = str(match.lastgroup), match.group()
        match kind:
            case "date":
                yield from _date(chunk)
            case "time":
                yield ExactToken("time", chunk, tuple(Way((f"t{minute}",)) for minute in _minutes(chunk)))
            case "number":
                yield from _number(chunk, bool(_ABOUT.search(line[max(0, match.start() - 20) : match.start()])))
            case "url":
                yield _name("url", chunk.rstrip(_CLOSING))
            case "word" | "chunk":
                marked = any(start < match.start() < stop for start, stop in marks)
                yield from _named(chunk, marked)


def _named(chunk: str, marked: bool) -> Iterator[ExactToken]:
    chunk = chunk.rstrip(".-+~/@_")
    if number := _ORDINAL.fullmatch(chunk):
        yield from _number(number[1], False)
    elif _RANGE.fullmatch(chunk):
        parts = re.split("[-/]", chunk.rstrip(string.ascii_letters))
        if len(parts) > 2 and "/" not in chunk:
            yield ExactToken(
                "id",
                chunk,
                (Way((f"s{_squashed(chunk)}",)), Way(tuple(_value(int(p)) for p in parts if p.isdigit()) or ("-",))),
            )
        else:
            for part in parts:
                yield from _number(part.rstrip(".,"), False)
    elif found := classify(chunk):
        kind, start, stop = found[0]
        name = chunk[start:stop]
        if kind in ("path", "pair") and not (marked or name[0] in "/~." or EXTENSION.search(name)):
            for part in name.split("/"):  # a list, each of which may be told
                yield from _named(part, marked)
        elif kind == "version" or (kind == "id" and _CHAIN.fullmatch(name.lstrip("v"))):
            chain = _CHAIN.search(name)
            yield ExactToken(kind, name, (Way((f"c{chain.group()}",)),)) if chain else _name(kind, name)
        elif kind in ("number", "amount"):
            yield from _number(name, False)
        elif kind == "date":
            yield from _date(name)
        elif kind != "kebab" or marked:
            yield _name(kind, name)


def _name(kind: str, text: str) -> ExactToken:
    """A name of parts: the longest stands where it fits, the others anywhere; or all of it is written otherwise."""
    tail = text.split("://")[-1]
    parts = [joined for part in _JOINT.split(tail) if (joined := _squashed(part))] or [tail]
    longest = _squashed(_host(tail)) if kind == "url" else max(parts, key=len)  # a host counts as a whole
    parts = parts if kind != "url" else [longest, *filter(None, map(_squashed, _JOINT.split(tail[len(_host(tail)) :])))]
    others = tuple(f"s{part}" for part in parts if part != longest)
    ends = _ENDINGS if kind not in ("sha", "url", "path", "file") else ()
    forms = [f"s{longest}", *(f"s{longest[: -len(end)]}" for end in ends if longest.endswith(end))]
    return ExactToken(kind, text, (Way((f"s{_squashed(tail)}",)), *(Way((form,), others) for form in forms)))


def proper(line: str) -> Iterator[ExactToken]:
    """Words inside the sentences of a line that begin with a capital; none in bold, where titles stand."""
    for match in _PROPER.finditer(_BOLD.sub("", line)):
        word = match.group()
        if stem := next(iter(_stems(word.lower())), ""):
            yield ExactToken("proper", word, (Way((f"w{stem}",)), Way((f"s{word.lower()}",))))


def capitals_are_rare(text: str) -> bool:
    """Whether few words inside the sentences of a text begin with one, as they do not in German."""
    inside = _INSIDE.findall(text)
    return sum(1 for word in inside if word[0].isupper()) < CAPITALS * len(inside)


def _date(chunk: str) -> Iterator[ExactToken]:
    """A date by month and day, its year anywhere; what may be two numbers is also found as such."""
    ways = []
    for year, month, day in _dates(chunk):
        years = (_value(year),) if year else ()
        ways.append(Way((f"d{month}-{day}",), years) if day else Way((f"m{year}-{month}",)))
        ways += [Way((f"D{day}",), (f"M{month}", *years))] if day else []
    runs = _DIGITS.findall(chunk)
    if len(runs) == 2 and not _LETTERS.search(chunk):
        if all(len(run) == 1 for run in runs):
            return  # 1/2, 3/4
        ways.append(Way(tuple(_value(int(run)) for run in runs)))
    elif not ways:
        if runs and len(runs[0]) == 1 and len(runs) == 1:
            return
        ways.append(Way(tuple(_value(int(run)) for run in runs)))
    yield ExactToken("date", chunk, tuple(ways))


def _dates(chunk: str) -> list[tuple[int, int, int]]:
    """The dates that are meant, as year, month and day; 0 for what is not said."""
    named = next((_MONTH[word] for word in _LETTERS.findall(chunk.lower()) if word in _MONTH), 0)
    runs = [int(run) for run in _DIGITS.findall(chunk)]
    year = next((run for run in runs[:3] if run in YEARS), 0)
    rest = [run for run in runs[:3] if run != year]
    if len(rest) < 3 and any(run > 31 for run in rest):
        return []
    if named:
        found = [(named, rest[0] if rest else 0)]
    elif year and runs[0] == year:
        found = [(rest[0], rest[1] if len(rest) > 1 else 0)] if rest else []
    else:
        if len(rest) > 2:
            year, rest = 2000 + rest[2], rest[:2]
        found = [(rest[0], rest[1])] if len(rest) == 2 else []
        if found and not re.search("[月월]", chunk):
            found = [(rest[1], rest[0])] if "." in chunk else [*found, (rest[1], rest[0])]
    return [(year, month, day) for month, day in found if 1 <= month <= 12 and day <= 31]


def _minutes(chunk: str) -> list[int]:
    """The minutes of a day that are meant: 2:30 may be in the afternoon."""
    runs = [int(run) for run in _DIGITS.findall(chunk)]
    hour, minute = runs[0], runs[1] if len(runs) > 1 else 0
    said = next((half for half in "ap" if re.search(rf"(?i){half}\.?m\b", chunk)), "")
    if said:
        hour = hour % 12 + (12 if said == "p" else 0)
    at = hour * 60 + minute
    return [at] if said or hour > 12 else [at, (at + 720) % 1440]


def _number(chunk: str, about: bool) -> Iterator[ExactToken]:
    found = _amounts(chunk)
    runs = _DIGITS.findall(chunk)
    if sum(map(len, runs)) < 2 or _FEW.fullmatch(chunk) or all(value < 10 and value.is_integer() for value, _ in found):
        return  # a writer counts for itself
    ways = [Way((_value(value),)) for value, _ in found]
    if _SPACED.search(chunk):  # perhaps several numbers
        ways.append(Way(tuple(_value(int(run)) for run in runs)))
    if dotted := _DOTTED.fullmatch(chunk):
        first, last = int(dotted[1]), int(dotted[2])
        ways += [Way((f"t{60 * first + last}",))] if first < 24 and last < 60 else []
        ways += [Way((f"d{last}-{first}",))] if 0 < first < 32 and 0 < last < 13 else []
    rounded = []
    for value, step in found:
        if about and not step:
            step = 10.0 ** (len(text := f"{value:.0f}") - len(text.rstrip("0")))
        rounded += [(value - step / 2, value + step)] if step else []
    yield ExactToken("number", chunk, tuple(ways), tuple(rounded))


def _amounts(chunk: str) -> list[tuple[float, float]]:
    """What a number may mean, each with how far apart those are that would be written so; 0: it is not rounded."""
    if myriads := _MYRIADS.fullmatch(chunk):  # of 1万3 the last figure is a thousand
        return [
            (
                float(int(myriads[1]) * 10_000 + int(myriads[2].ljust(4, "0") if len(myriads[2]) == 1 else myriads[2])),
                0.0,
            )
        ]
    figure = _FIGURE.search(chunk)
    if figure is None or len(figure.group()) > 40:
        return []
    text, unit = figure.group(), chunk[figure.end() :].strip()
    signs = [c for c in text if not c.isdigit()]
    found = list[tuple[float, float]]()
    if signs and signs[-1] in ".," and signs.count(signs[-1]) == 1:  # it may be a decimal point
        whole, _, part = text.rpartition(signs[-1])
        found.append((float("".join(_DIGITS.findall(whole)) + "." + part), 10.0 ** -len(part)))
    if not found or (len(found) == 1 and len(text) - text.rfind(signs[-1]) == 4 and len(signs) == 1):
        found.append((float("".join(_DIGITS.findall(text))), 0.0))
    worth = _UNITS.get(unit)
    return found if worth is None else found + [(value * worth, (step or 1.0) * worth) for value, step in found]


def _counted(text: str) -> int:
    total, digit = 0, 0
    for sign in text:
        if sign in _PLACES:
            total, digit = total + (digit or 1) * _PLACES[sign], 0
        else:
            digit = _FIGURES[sign]
    return total + digit


def _value(value: float) -> str:
    return f"n{value:.10g}"
