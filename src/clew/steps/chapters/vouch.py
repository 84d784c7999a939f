"""What code vouches for in a model's account of a stretch: its words stand, and what nobody said is named below them.

Exact tokens that stand nowhere in the originals are named, and so is what only tools named. Left out are lines that
give the user a permission, a refusal or a rule which they did not type, and orders to the reader that come from tools.
"""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from typing import Literal, NamedTuple

from clew.clients.voices import parts_of
from clew.core.items import Item, Node
from clew.facts.sheets import voice_of
from clew.steps.chapters.exact import (
    ExactToken,
    KeysOfTexts,
    Originals,
    capitals_are_rare,
    proper,
    stems,
    text_of,
    tokens,
    written,
)
from clew.steps.worklog.blocks import BY_TOOLS, NOT_FOUND
from clew.text.framing import neutral, seen, shown
from clew.text.quoting import speaks_for_user, unvoiced

MOST_NAMED = 30  # not found: those that are named one by one
MOST_BY_TOOLS = 10
MOST_COPIED = 2  # sentences: who looks many things up takes many over, and each has its words above
CODED = 2  # words a sign: with fewer it is a row of a table or a program
SAID = 6  # words by which a line is known
SHARED = 1 / 3  # of a claim's words stand in the sentence that it is taken from: the others paraphrase it
REPEATED = 0.6  # of an order's words stand in one line of a result
TELLS = 1  # word by which a writer says that somebody says so
LEAST_WORDS = 2  # that no letters of other scripts look like: a text is written in Cyrillic ones
LEAST_WISH = 2  # words beside those that say who speaks: with one it is a heading
FEW = 24  # characters of a claim that does not say what it is about
LONG = 400  # characters of a line
SHORT_ANSWER = 80  # characters: a yes or no, which is about the question before it
QUESTION = 600  # characters at the end of what was said before an answer

_CLAIMS = tomllib.loads(files("clew.steps.chapters").joinpath("claims.toml").read_text(encoding="utf-8"))


def _any(name: str) -> str:
    return f"(?:{'|'.join(_CLAIMS[name])})"


_PERSON, _SIGNED = rf"\b{_any('person')}(?:['’]s)?", _any("person_in_signs")
_GRANTS, _BINDS = _any("grants"), _any("binds")
_LITTLE = r"(?:[\w'’-]{1,30}[ ,]{1,2}){0,5}?"
_PERMISSION = re.compile(
    rf"(?i){_PERSON}\s{_LITTLE}(?:{_GRANTS}|{_any('refuses')})"
    rf"|{_PERSON}\s{_LITTLE}{_any('confirms')}(?=[^.!?;\n]{{0,80}}\b{_any('may')}\b)"
    rf"|\b{_GRANTS}\w{{0,6}}\s(?:by|vo[mn]|par|por|da)\s(?:\w{{1,4}}['’ ])?{_PERSON}"
    rf"|\b(?:by|vo[mn]|par|por|da)\s(?:\w{{1,4}}['’ ])?{_PERSON}\s{_LITTLE}{_GRANTS}"
    rf"|\b{_any('approved')}|{_any('approved_in_signs')}"
    rf"|{_SIGNED}[^。.!?;\n]{{0,12}}(?:{_any('grants_in_signs')}|{_any('refuses_in_signs')})"
)
_RULE = re.compile(
    rf"(?i){_PERSON}\s(?:\w{{1,20}}\s){{0,2}}?{_any('prefers')}|{_PERSON}\b(?!-)"
    rf"(?=[^.!?;\n]{{0,60}}(?:\b{_any('says')}\b))(?=[^.!?;\n]{{0,160}}\b{_BINDS})"
    rf"|{_PERSON}\s(?:\w{{1,20}}\s){{0,2}}?(?:rules?|preferences?|instructions?|orders?|polic(?:y|ies)|wish(?:es)?)\b(?!\W*$)"
    rf"|{_SIGNED}(?=[^。!?;\n]{{0,60}}{_any('binds_in_signs')})"
)
_REFUSES = re.compile(rf"(?i)\b{_any('refuses')}|{_any('refuses_in_signs')}")
_ORDER = re.compile(rf"(?i)(?:^\W{{0,9}}|[.!?:;–—-]\s)(?:{_any('orders')})|{_any('orders_in_signs')}")
_ACT = re.compile(
    rf"(?i)^[\W\d]{{0,9}}(?:(?:now|then|first|immediately|next)[, ]{{1,2}})?"
    rf"(?:{_any('acts')}\b(?!-)|{_any('acts_in_signs')})"
)
_SETTLES = re.compile(
    rf"(?i)(?<![^\W\d_])(?:{_GRANTS}|{_BINDS}|{_any('refuses')}|{_any('settles')})"
    rf"|{_any('grants_in_signs')}|{_any('refuses_in_signs')}|{_any('binds_in_signs')}|{_any('settles_in_signs')}"
)
_READER = re.compile(rf"(?i)(?<![^\W\d_]){_any('reader')}|{_any('reader_in_signs')}")
_NEXT = re.compile(rf"(?i)(?<![a-z]){_any('next')}")
_NOT = re.compile(rf"(?i)\b{_any('denies')}\b|n['’]t\b|{_any('denies_in_signs')}")
_DENIES = re.compile(rf"(?i)\b(?:{_any('denies')}|{_any('avoids')})\b|n['’]t\b|{_any('denies_in_signs')}")
_ASSENT = re.compile(rf"(?i)^\W{{0,9}}(?:{_any('assents')}\b|{_any('assents_in_signs')})")
_COMMAND = re.compile(rf"(?:sudo |\$ )?(?:{_any('programs')}\s\S|[a-z][\w.-]*\s(?:\S+\s){{0,3}}--?[a-zA-Z])")
_SPEAKING = stems(_CLAIMS["speaking"])
# What somebody asked for once is a request.
_ASKED = re.compile(
    r"(?i)^\W{0,9}(?:\d{1,2}[.)]\s)?(?:the\s)?\w{1,20}\s(?:asked|requested|wanted|asks|wants)\s(?:\w{1,20}\s)?"
    r"(?:to|for|if|whether|why|how|what)\b"
)
_HEADING = re.compile(
    r"\s{0,3}(?:#{1,6}\s|\*\*[^*\n]{1,80}\*\*:?\s*$|【|\d{1,2}\.\s[^.\n]{1,60}:?$|[^\n:]{1,60}:\s*$"
    r"|[A-Z][A-Z /()-]{2,60}$)"
)
_ASKS = re.compile(rf"(?i){_PERSON}\s{_LITTLE}{_any('asks')}")
_THE_PERSON = re.compile(r"(?i)\bthe (?:person|customer|client)\b")
# In bold it is a heading.
_SUBJECT = re.compile(
    rf"(?i)^(?!\W{{0,9}}\*\*)\W{{0,9}}(?:[^\W\d_]{{1,4}}['’ ]\s?)?"
    rf"(?:{_PERSON}(?<!['’]s)\s(?=[^\W\d_])|{_SIGNED}(?![的の의]))"
)
_NAMED = re.compile(rf"(?i){_PERSON}|{_SIGNED}")
_COUNTED = "number", "date", "time"  # kinds of tokens that name nothing
_ENDS = re.compile(r"[.!?。！？]\W{0,3}$")
_ASIDE = re.compile(r"[(:]")
_SENTENCE = re.compile(r"(?<=[.!?;])\s|(?<=。)|\n")
_CLAUSE = re.compile(r"[:：]\s|[\[\](){}<>‹›]")
_CODE = re.compile(r"`([^`\n]{3,200})`")
_SIGN = re.compile(r"[`|{}=<>]+|[,;]$")  # of a table or a program
_CYRILLIC = re.compile(r"(?<![^\W\d_])[\u0400-\u04ff]+(?![^\W\d_])")
_QUOTE = re.compile(r"[\"“„«「『]([^\"“”„«»「」『』\n]{12,400})[\"”“»」』]")
_ACCOUNT = re.compile(r"[A-Z][A-Z0-9]{1,9}-\d{1,12}|#?\d{6,20}")
_HOST = re.compile(
    r"(?:[\w-]{1,60}\.){1,6}(?:com|org|net|io|dev|app|ai|co|de|fr|es|uk|ru|cn|jp|eu|info|biz|xyz|example|test|local|internal)"
)
_PACKAGE = re.compile(r"(?<![\w./@-])(?:@[a-z][\w.-]{0,60}/[a-z][\w.-]{0,60}|[a-z][\w.-]{1,60}(?:==|@)\d[\w.]{0,20})")


Doubt = Literal["permission", "rule", "request", "order"]


class LeftOut(NamedTuple):
    """A line that does not stand, and why."""

    why: Doubt
    line: str


class Vouched(NamedTuple):
    """A model's words as they stand, and what code found about them."""

    text: str
    findings: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    tokens: int  # exact ones that were compared
    unfound: int  # of which so many stand nowhere


class Vouching:
    """The originals of one stretch, as evidence; made once, for each length of its text.

    `beside` is what stands beside the history, such as the system prompt: its date, folder and names are no inventions.
    Nor is what the model was shown `around` the stretch.
    """

    def __init__(
        self, nodes: Sequence[Node], beside: str = "", around: Sequence[Node] = (), keys: KeysOfTexts | None = None
    ) -> None:
        shown = [node.item for node in (*nodes, *around)]
        self._items = [item for item in shown if item.kind != "summary"]
        self._texts = [text_of(item.text, item.name if item.kind == "call" else "") for item in self._items]
        self._beside = beside
        told = (node.item.text for node in around if node.item.kind == "summary")  # vouched for when it was written
        self._originals = Originals(self._texts, "\n".join((beside, *told)), keys)
        self._results = {n for n, item in enumerate(self._items) if voice_of(item) == "result"}

    def vouch(self, text: str) -> Vouched:
        """The words that stand, whole and in order, and the findings."""
        kept, left_out = list[str](), list[LeftOut]()
        unfound, by_tools, copied = dict[str, None](), dict[str, None](), dict[str, None]()
        compared = missing = 0
        names = capitals_are_rare(text)
        under, fenced = "", False
        for line in unvoiced(neutral(text)).split("\n"):
            fenced ^= line.lstrip().startswith(("```", "~~~"))
            is_heading = bool(_HEADING.match(line))
            under = line if is_heading else under
            if why := self._doubt(line, by_itself=not (fenced or is_heading or _NEXT.search(under))):
                left_out.append(LeftOut(why, line.strip()))
                continue
            kept.append(line)
            fitting = self._originals.fitting(stems(line))
            is_theirs = bool(_SUBJECT.match(_looks(line)))
            for token in (*tokens(line), *(proper(line) if names and not (fenced or is_heading) else ())):
                compared += 1
                where = self._originals.where(token, fitting)
                if not where:
                    missing += 1
                    unfound[written(token)] = None
                elif where <= self._results and (_is_told(token) or (is_theirs and token.kind not in _COUNTED)):
                    whole = self._originals.where(token, None)
                    by_tools.update({written(token): None} if whole <= self._results else {})
            by_tools.update(dict.fromkeys(self._commands(line)))
            if not (fenced or is_heading) and self._is_taken_over(looks := _looks(line)):
                # A writer has words of its own: a sentence that it took over may be there to be taken over.
                if _SETTLES.search(looks):
                    by_tools[_by_its_words(line)] = None
                elif not _is_coded(looks) and not any(name.strip("`") in line for name in by_tools):
                    copied[_by_its_words(line)] = None
        most_by_tools = min(MOST_BY_TOOLS, len(by_tools) + MOST_COPIED)
        found = [(NOT_FOUND, list(unfound), MOST_NAMED), (BY_TOOLS, list(by_tools | copied), most_by_tools)]
        findings = tuple(title + _listed(names_, most) for title, names_, most in found if names_)
        return Vouched("\n".join(kept), findings, tuple(left_out), compared, missing)

    def _commands(self, line: str) -> Iterator[str]:
        """Commands in code marks, and packages, that only tools named."""
        spans = [code for code in _CODE.findall(line) if _COMMAND.match(code)]
        for name in (*spans, *_PACKAGE.findall(line)):
            said = _spaced(name)
            if said in self._tools_text and said not in self._own_text:
                yield f"`{name}`"

    # --- whose words ------------------------------------------------------------------------------------------------

    def _doubt(self, line: str, by_itself: bool) -> Doubt | Literal[""]:
        """Why a line does not stand; nothing if it does. `by_itself`: it is no code and no step of a plan."""
        looks = _looks(line)
        for sentence in filter(None, _SENTENCE.split(looks)):
            if granted := _PERMISSION.search(sentence):
                leads = [clause.end() for clause in _CLAUSE.finditer(sentence, 0, granted.start())]
                claim = sentence[leads[-1] if leads else 0 :]  # what stands before it is about something else
                if not self._is_typed(claim, permission=True) and not self._is_answered(claim, looks):
                    return "permission"
            elif (
                _RULE.search(sentence) and not _ASKED.match(sentence) and not self._is_typed(sentence, permission=False)
            ):
                return "rule"
            elif self._is_put_in_their_mouth(sentence) or (
                _speaks_for_user(sentence) and not self._is_wished(sentence, looks)
            ):
                return "request"
        ordered = _ORDER.search(looks) or (by_itself and _ACT.search(looks))
        ordered = ordered or (_READER.search(looks) and _SETTLES.search(looks))
        return "order" if ordered and self._is_a_tools(looks) else ""

    def _is_typed(self, claim: str, permission: bool, answers: bool = False) -> bool:
        """Whether a sentence that the user typed says so: a third of the words, and as much of a no.

        What is in brackets or behind a colon the writer adds; `answers`: only a yes or a no counts.
        """
        said = stems(claim) - _SPEAKING
        if not said:
            return True  # it claims nothing in particular
        head = _ASIDE.split(claim, maxsplit=1)[0]
        about = head if len(stems(head) - _SPEAKING) > 1 else claim
        if any(token.kind != "number" and not self._is_own(token) for token in tokens(about)):
            return False  # about something that only tools named
        denied = bool(_NOT.search(claim)) or bool(_REFUSES.search(claim))
        least = min(len(said), max(2, round(SHARED * len(said))))
        own = _noes(claim)  # who agreed to roll back said "back"
        for words, noes, pasted, is_answer in self._sentences:
            denies = bool(noes if denied else noes - own)
            fits = denied == denies and not pasted if permission else denied <= denies
            if fits and is_answer >= answers and len(said & words) >= least:
                return True
        return False

    def _is_wished(self, sentence: str, line: str) -> bool:
        """Whether the user may have said what a sentence tells of them: no clause of it stands in tools' words alone.

        Beside words that the user typed, a line tells what came of them.
        """
        if any(_spaced(quote) in self._typed_text for quote in _QUOTE.findall(line)):
            return True
        claim = ""
        for clause in filter(None, map(str.strip, _CLAUSE.split(sentence))):
            claim = f"{claim} {clause}" if claim else clause  # "The user said:" is nothing without what follows
            if self._is_a_tools_wish(claim):
                return False
            claim = claim if _speaks_for_user(claim) and len(stems(claim) - _SPEAKING) < LEAST_WISH else ""
        return True

    def _is_a_tools_wish(self, claim: str) -> bool:
        """Whether what it says of the user stands in calls and results, and no third of it in a sentence they typed."""
        said = stems(claim) - _SPEAKING
        least = max(1, round(SHARED * len(said)))
        if (len(said) < LEAST_WISH and not any(tokens(claim))) or not _speaks_for_user(claim):
            return False
        if any(len(said & typed[0]) >= least for typed in self._sentences):
            return False
        passing = self._results | {n for n, item in enumerate(self._items) if item.kind == "call"}
        for token in tokens(claim):
            where = self._originals.where(token, None)
            # What stands nowhere may be what a tool said in code; a wrong figure is named, and leaves the wish.
            if where <= passing and (where or token.kind not in _COUNTED):
                return True
        return 2 * sum(self._is_only_in(passing, stem) for stem in said) >= len(said)

    def _is_answered(self, claim: str, line: str) -> bool:
        """Whether a few words ("They agreed.") tell of an answer to a question about what their line is about."""
        return len(claim) <= FEW and self._is_typed(line, permission=True, answers=True)

    def _is_own(self, token: ExactToken) -> bool:
        where = self._originals.where(token, None)
        return not where or not where <= self._results

    def _is_a_tools(self, line: str, beside: int = 0) -> bool:
        """Whether a line of a result has most of its words, but for some `beside`, some of which nobody else said."""
        said = stems(line)
        if len(said) < 2:
            return False
        only = (stem for stem in said if self._is_only_in(self._results, stem) and stem not in self._beside_words)
        if not any(only) and not any(not self._is_own(token) for token in tokens(line)):
            return False
        rows = Counter(row for stem in said for row in self._rows.get(stem, ()))
        return bool(rows) and max(rows.values()) >= max(2, REPEATED * (len(said) - beside))

    def _is_taken_over(self, line: str) -> bool:
        """Whether a tool has most of its words, perhaps but for one by which the writer says who says so."""
        return self._is_a_tools(line) or (self._is_a_tools(line, TELLS) and not self._is_typed(line, permission=False))

    def _is_put_in_their_mouth(self, sentence: str) -> bool:
        """Whether it has a tool's sentence, which names nobody, be what the user does."""
        said = stems(sentence) - _SPEAKING
        is_theirs = _SUBJECT.match(sentence) and len(said) >= LEAST_WISH
        if not is_theirs or self._is_typed(sentence, permission=False):
            return False
        rows = Counter(row for stem in said for row in self._rows.get(stem, ()))
        least = max(LEAST_WISH, REPEATED * (len(said) - TELLS))
        told = [self._lines[row] for row, shared in rows.items() if shared >= least]
        return any(map(_ENDS.search, told)) and not any(map(_NAMED.search, told))

    @cached_property
    def _lines(self) -> Sequence[str]:
        """The lines of results; of a page without line ends its sentences."""
        texts = (self._texts[n].replace("\\n", "\n").split("\n") for n in sorted(self._results))
        rows = (row for text in texts for row in text)
        return [part for row in rows for part in ([row] if len(row) < LONG else _SENTENCE.split(row))]

    @cached_property
    def _rows(self) -> Mapping[str, Sequence[int]]:
        """The lines of results that have a word, by their numbers."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(self._lines):
            for stem in stems(row):
                found[stem].append(number)
        return found

    @cached_property
    def _sentences(self) -> list[tuple[set[str], set[str], bool, bool]]:
        """The words of sentences that the user typed, one and two in a row; their noes; if pasted, an answer.

        A short answer has the words of what it answers.
        """
        found, asked, done = list[tuple[set[str], set[str], bool, bool]](), "", ""
        for item in self._items:
            if item.role == "assistant" and item.kind == "text":
                asked = item.text[-QUESTION:]
            elif item.kind == "call":
                done = f"{done} {item.text[:QUESTION]}"[-2 * QUESTION :]
            for part, pasted in _typed(item):
                pieces = [piece for piece in _SENTENCE.split(_looks(part)) if piece and piece.strip()]
                if not pasted and len(part) <= SHORT_ANSWER and _ASSENT.match(part) and not _NOT.search(part):
                    found.append((stems(f"{asked} {part}"), set(), False, True))
                elif not pasted and len(part) <= 4 * SHORT_ANSWER and _DENIES.search(part):
                    noes = {"", *_noes(part)}  # "" is in no claim
                    found.append((stems(f"{asked} {done} {part}"), noes, False, True))
                done = ""
                for n, piece in enumerate(pieces):
                    both = f"{piece} {pieces[n + 1]}" if n + 1 < len(pieces) else piece
                    found.append((stems(piece), _noes(piece), pasted, False))
                    found.append((stems(both), _noes(both), pasted, False))
        return found

    def _is_only_in(self, places: set[int], stem: str) -> bool:
        """Whether a word stands there, and nowhere else in what was said."""
        where = set(self._originals.nodes_with(stem)) - {-1}
        return bool(where) and where <= places

    @cached_property
    def _beside_words(self) -> set[str]:
        return stems(self._beside)

    @cached_property
    def _typed_text(self) -> str:
        return _spaced("\n".join(part for item in self._items for part, pasted in _typed(item) if not pasted))

    @cached_property
    def _own_text(self) -> str:
        others = (text for n, text in enumerate(self._texts) if n not in self._results)
        return _spaced("\n".join((self._beside, *others)))

    @cached_property
    def _tools_text(self) -> str:
        return _spaced("\n".join(self._texts[n] for n in sorted(self._results)))


def _noes(text: str) -> set[str]:
    """The words of a text that say no, or may be told as one."""
    return {word.lower() for word in _DENIES.findall(text)}


def _speaks_for_user(text: str) -> bool:
    """Whether it tells what the user wants, also by the name that the prompt has for them."""
    return speaks_for_user(_THE_PERSON.sub("the user", text)) or _ASKS.search(text) is not None


def _by_its_words(line: str) -> str:
    """A line by its first words, as a finding names it."""
    words = line.strip(" -*•\t").partition(",")[0].split()
    return f"“{' '.join(words[:SAID])}{' …' if len(words) > SAID else ''}”"


def _is_coded(line: str) -> bool:
    """Whether it is a row of a table or a program: a sign or two make no sentence one."""
    return CODED * len(_SIGN.findall(line)) > sum(any(map(str.isalpha, word)) for word in line.split())


def _looks(text: str) -> str:
    """A text as it looks to a reader: words in Cyrillic letters as they are, where it is written in these."""
    plain = shown(text)
    looks = seen(plain)
    words = [word.span() for word in _CYRILLIC.finditer(plain)]
    if sum(not looks[start:stop].isascii() for start, stop in words) < LEAST_WORDS:
        return looks  # letters that look like others
    for start, stop in words:
        looks = looks[:start] + plain[start:stop] + looks[stop:]
    return looks


def _typed(item: Item) -> Iterator[tuple[str, bool]]:
    """What the user typed of an item, part by part, and whether it may be pasted; never what is quoted or fenced."""
    if item.role == "user" and item.kind == "text":
        for part in parts_of(item):
            if part.kind in ("typed", "copy", "pasted"):
                yield item.text[part.start : part.stop].strip(), part.kind == "pasted"


def _spaced(text: str) -> str:
    return " ".join(text.replace("\\n", " ").replace('\\"', '"').split())


def _is_told(token: ExactToken) -> bool:
    """Whether somebody may be sent to it: an address, a host, a number of an account or a ticket."""
    return token.kind in ("url", "email") or bool(_ACCOUNT.fullmatch(token.text) or _HOST.fullmatch(token.text.lower()))


def _listed(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
