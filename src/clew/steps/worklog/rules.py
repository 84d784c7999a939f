"""The user's rules: which of their sentences say how they want things done."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from clew.clients.voices import PASTE, own_words, typed
from clew.core.caches import per_object, remembers
from clew.core.items import Item
from clew.steps.worklog.requests import WorkRequest
from clew.steps.worklog.wording import on_one_line, plain, sentences
from clew.text.words import width

RULE_LENGTH = 300  # characters of a rule, at most
RULE_LEAST = 8  # and at least
SENTENCE = 200  # characters of a message that says one thing
SENTENCE_KNOWN = 20  # characters by which a sentence is found again
SCOPE = 60  # characters of a sentence that only says how long the next one holds
NAME_LEAST = 4  # characters of a name by which one sentence is known to speak of what another does
SENTENCES_NAMED = 4096  # whose names are kept as they were read
TYPED = 600  # characters of a message in which a wish of any form is looked for; in a longer one only strict ones are

# A wish about how, not what: a word that forbids or demands, in the languages that people most often write in.
_STRICT = re.compile(
    r"(?i)\b(?:must|never|always|do not|don['’]?t|dont|only|at most|at least|not allowed|required?|under no|no more"
    r"|make sure|ensure|forbidden|mandatory|from now on|no [\w ]{3,30}!"
    r"|ab (?:jetzt|sofort)|von nun an|désormais|dorénavant|a partir de (?:ahora|agora)|d['’]ora in poi"
    r"|nie(?:mals)?|immer|nicht|kein\w*|muss|müssen|nur|jamais|toujours|ne\b.{1,30}\bpas|dois|doit|nunca|siempre"
    r"|jam[áa]s|debes?|sempre|mai"
    r"|никогда|всегда|нельзя|должн\w+|только|nigdy|zawsze|nooit|altijd)\b|(?<!要)不要|一律|必须|总是|禁止|务必|不得|절대|항상|반드시|ないで|必ず|禁止"
    r"|だけ|のみ|以外"
)
# Words that make what they stand with last, wherever they stand.
_LASTING = re.compile(
    r"(?i)\b(?:from now on(?!,? (?:i|we)\b)|for the rest of (?:this|the|our|my)|(?:a|one) rule for|going forward"
    r"|ab (?:jetzt|sofort)|von nun an|künftig|in zukunft"
    r"|désormais|dorénavant|à partir de maintenant|à l['’]avenir|a partir de ahora|de ahora en adelante|en adelante"
    r"|d['’]ora in poi|daqui em diante|vanaf nu|od teraz|отныне|впредь|с этого момента)\b"
    r"|今後|これから|以降は|从现在|從現在|以后|以後|今后|앞으로|이제부터"
)
# What shall be done whenever somebody does something: the condition names them, what follows has no subject.
_WHENEVER = re.compile(
    r"(?i)^(?:and |but |also |please,? )*(?:when(?:ever)?|before|after|each time|every time"
    r"|any time) you\b(?! are (?:done|ready|finished))[^,?]{2,80}, (?!you|i|we|it|that|this|there|what|how|can"
    r"|could|do|does)\w"
    r"|^(?:(?:immer )?wenn|bevor|nachdem|sobald) (?:du|sie|ihr)\b[^,?]{2,80}, (?!ich|wir|es|das|kannst|können)\w"
    r"|^(?:quand|lorsque|chaque fois que|avant que) (?:tu|vous)\b|^(?:cuando|siempre que|antes de que) [^,?]{2,80},"
    r"|^(?:когда|прежде чем|каждый раз,? когда) (?:ты|вы)\b"
)
# A wish that is of all things of a kind, of every answer, or of none.
_VERB = (
    r"(?:add|address|answer|ask|avoid|begin|call|check|cite|convert|do|draft|end|explain|finish|format|give|halve"
    r"|include|indent|keep|leave|limit"
    r"|list|log|make|mark|mention|name|open|pick|put|quote|read|refer|reply|report|respond|return|round|run|say"
    r"|send|show|sign|speak|spell|start"
    r"|state|stick|store|tell|translate|treat|use|write)"
)
_GENERALLY = re.compile(
    rf"(?i)^(?:(?:and|but|also|please|then)[, ]+)*{_VERB}\b[^?]{{0,100}}?"
    r"\b(?:(?:every|each|any|all|your) (?:\w+ ){0,2}(?:repl(?:y|ies)|answers?|responses?|messages?|numbers?"
    r"|files?|commits?|names?|times?"
    r"|steps?|sections?|emails?)|only)\b[^?]*$"
    rf"|^only {_VERB}\b"
)
_ASKS_POLITELY = re.compile(
    r"(?i)^(?:bitte|merci de|por favor|per favore|пожалуйста|prosz[ęe])\b"
    r"|(?:てください|て下さい|ないでください|してほしい)。?$|^(?:请|請)"
)
# What takes an earlier word back: who reads that word must read this, too.
_REVOKES = re.compile(
    r"(?i)\b(?:forget (?:about|what|that|the|my|it)|changed my mind|take (?:it|that|this) back"
    r"|ignore what i (?:said|wrote)|no longer (?:holds?|appl(?:y|ies)|valid|wanted|needed)"
    r"|(?:rule|instruction|wish|that|it)\b(?:[^.?]|\.\b){0,60}? (?:is|are) (?:off|void|cancell?ed|withdrawn)"
    r"|vergiss|gilt nicht mehr|doch nicht|oublie|ne vaut plus|olvida"
    r"|ya no (?:vale|hace falta|quiero))\b|忘掉|不再需要|取消"
)
# What somebody says of a thing ("this always returns 0") is a rule only with one of these.
_STATES = re.compile(r"(?i)(?:this|that|it|while|currently|there|because|since|however|note)\b")
_DEMANDS = re.compile(
    r"(?i)\b(?:must|do not|don['’]?t|never|not allowed|make sure|required|forbidden|mandatory"
    r"|you (?:could|would|should|can)? ?(?:always|only))\b"
)
# Words that lead to what somebody wants: "and while I think of it: …".
_LEAD_IN = re.compile(r"^[^:.]{3,60}: (?=\S)")
_CLAUSE = re.compile(r"[,;:–—]\s+")
_LEANING = re.compile(
    r"(?i)\b(?:avoid|prefer|instead|should(?:n['’]t)?|keep|please use|by default|rather|stick to|follow|except|unless"
    r"|bitte|statt|évite|plutôt|évitez|prefiero|evita|en vez|лучше|вместо)\b"
    r"|^(?:use|write|put|name|call|leave|treat|format|indent|mark|store|return|log|run|ask|tell|give|show|answer"
    r"|reply|speak)\b"
    r"|, not \w+[^?]*$"
)
# A duty of things, not of somebody: "tests of the archive have to be marked", "every function needs a docstring".
_DUTY = re.compile(
    r"(?i)^(?!(?:i|we|you|he|she|they|it|this|that|there|what|why|how)\b)[^?]*?\b(?:ha(?:s|ve) to be|needs? to be)\b"
    r"|^(?:every|each|all|any|anything|nothing|nobody|no one)\b[^?]*?"
    r"\b(?:needs?|stays?|goes|go|gets?|leaves?|ha(?:s|ve) to)\b"
)
# A statement of how things are: no question, nobody's act, nothing that is wanted once.
_GENERAL = re.compile(
    r"(?i)^(?!(?:i|we|you|it|this|that|there|he|she|they|can|could|would|will|let|yes|no|ok|okay|please|now|then"
    r"|also|and|but|so|what|"
    r"why|how|where|when|who|is|are|do|does|did)\b)[^?]{3,60}?\b(?:is|are|stays?|remains?|goes|go|live|lives"
    r"|belongs?|starts?|ends?|"
    r"comes?|gets?|has|have|uses?|needs?|takes?|runs?|means)\b[^?]{1,60}$"
)
_ASKS = re.compile(
    r"(?i)(?:what|why|how|where|when|who|which|can|could|would|should|do|does|did|is|are|was|will|shall)\b"
)
_WONDERS = re.compile(
    r"(?i)^(?:(?:now|so|and|ok|okay|also|but|then|please|hey|hm+|well|first)[, ]+)*"
    r"(?:what|why|how|who|which|can|could|would|should|does|did|is|are|was|will|shall|wondering)\b"
)
# What somebody says of themselves, with the same words.
_LACKS = re.compile(
    r"(?i)\b(?:i|we) (?:do not|don['’]?t|can ?not|can['’]?t|only) (?:have|remember|recall|know|think|see|understand"
    r"|get|mind|care|need|believe|find|notice|feel|like|just|got|had)\b"
    r"|^(?:(?:and|but|so|ok|please)[, ]+)*don['’]?t (?:worry|bother|hesitate|be (?:sorry|afraid|shy)"
    r"|beat yourself|get me wrong|forget)\b"
)
_TO_US = re.compile(
    r"(?i)^(?:(?:please|bitte|and|but|so|also|ok|okay)[, ]+)*(?:do not|don['’]?t|never|always|make sure|ensure|you must"
    r"|you should|from now on|use|keep|no|under no)\b|^[^\x00-\x7f]"
)
_TELLS = re.compile(
    r"(?i)^(?:(?:however|but|and|so|sometimes|well|also|since|because)[, ]+)*(?:i|we|my|our|he|she|they|your)\b"
    r"(?! (?:want|need|expect|prefer|require|insist|['’]?d (?:like|rather|prefer)|would (?:like|prefer|rather)|must"
    r"|only want|never want|always want|do not want|don['’]?t want))"
)
_OPINES = re.compile(r"(?i)\b(?:i|we) (?:do not |don['’]?t )?(?:think|guess|manually|already|just)\b")
# What no plain word looks like: a path, a number with letters, an identifier.
_NAMES = re.compile(r"(?<![A-Za-z0-9_/@.:-])[A-Za-z0-9_]*(?:[0-9_/@.:-]+[A-Za-z0-9_]+)+|\b[a-z]+[A-Z]\w*")


class UserRule(NamedTuple):
    """How the user wants things done."""

    strict: int  # from 0, a wish perhaps, to 3, a word that forbids or demands
    id: str  # of who said it
    request: int  # in which
    later: str = ""  # what they said since about what it names: it may take the rule back, in any words
    later_id: str = ""
    later_request: int = 0


class _Wishes(NamedTuple):
    """What a text that was typed says, and what of it is about how."""

    said: tuple[str, ...] = ()  # all that can be quoted
    strict: tuple[str, ...] = ()
    leaning: tuple[str, ...] = ()
    alone: bool = False  # it says one thing, which may be a rule if nothing was done about it


_NOTHING = _Wishes()


def rules_in(request: WorkRequest) -> Iterator[tuple[Sequence[str], int]]:
    """Sentences about how, from what was typed, and how strict; so is a short message that nothing was done about."""
    wishes, brief = _wishes(request), len(request.ask) <= TYPED
    if wishes.strict and brief:
        yield wishes.strict, 3
    elif wishes.strict:  # of a long message those are sure that speak to us where people begin and end to type
        sure = tuple(s for s in wishes.strict if speaks_to_us(s) and _is_at_an_end(request.ask, s))
        yield sure, 3
        yield tuple(s for s in wishes.strict if s not in set(sure)), 1
    if wishes.leaning:
        yield wishes.leaning, 2
    if wishes.alone and not any(step.acts for step in request.steps):
        yield wishes.said, 0


def _is_at_an_end(text: str, said: str) -> bool:
    at = text.find(said[:SENTENCE_KNOWN])
    return len(text) <= PASTE or not TYPED < at < len(text) - TYPED


def _wishes(request: WorkRequest) -> _Wishes:
    if len(request.ask) < RULE_LEAST:
        return _NOTHING
    return _wishes_of(request.ask) if request.item is None else _wishes_in(request.item)


@per_object
def _wishes_in(item: Item) -> _Wishes:
    """Of a message that stands alone, kept: a compaction is tried with several sizes."""
    return _wishes_of(typed(item))


def _wishes_of(text: str) -> _Wishes:
    found, brief = tuple(_quotable(text)), len(text) <= TYPED
    if not found:
        return _NOTHING
    wish = {s: _LEAD_IN.sub("", s) for s in found}
    own = [s for s in found if not any(said.search(wish[s]) for said in (_LACKS, _OPINES, _WONDERS, _TELLS))]
    revoking = [s for s in found if _REVOKES.search(s)]
    takes_back = set(revoking)
    strict = [s for s in own if s in takes_back or _is_strict(wish[s]) or _lasts(wish[s])]
    known = set(strict)
    strict += [s for s in revoking if s not in known]
    if not brief:
        return _Wishes(found, tuple(strict))
    other = [s for s in found if s not in strict and not _ASKS.match(wish[s]) and not _OPINES.search(wish[s])]
    short = len(text) <= SENTENCE
    leaning = [s for s in other if _LEANING.search(s) or _DUTY.search(s) or (short and _GENERAL.search(s))]
    one = len(found) == len(other) == 1 and len(found[0].split()) > 2
    alone = one and not _LACKS.search(found[0]) and "?" not in text
    return _Wishes(found, tuple(strict), tuple(leaning), alone)


def said_later(rules: Mapping[str, UserRule], request: WorkRequest, number: int) -> Iterator[tuple[str, UserRule]]:
    """Earlier rules with what this request says about what they name; what takes a rule back gives way to no other."""
    by_name: dict[str, list[str]] | None = None
    for said in _wishes(request).said:
        if not (named := _names(said)):
            continue
        by_name = _by_name(rules) if by_name is None else by_name
        for rule in {rule for name in named for rule in by_name.get(name, ())}:
            known = rules[rule]
            if known.request < number and not (_REVOKES.search(known.later) and not _REVOKES.search(said)):
                yield rule, known._replace(later=said, later_id=next(iter(request.ids), ""), later_request=number)


def _by_name(rules: Iterable[str]) -> dict[str, list[str]]:
    """The rules that name each thing."""
    found: dict[str, list[str]] = {}
    for rule in rules:
        for name in _names(rule):
            found.setdefault(name, []).append(rule)
    return found


@remembers(SENTENCES_NAMED)
def _names(text: str) -> frozenset[str]:
    """The names in a sentence; "as-is" is none."""
    found = (name for name in _NAMES.findall(text) if len(name) >= NAME_LEAST and not name.isdigit())
    return frozenset(name for name in found if "-" not in name or not name.replace("-", "").isalpha())


def speaks_to_us(said: str) -> bool:
    """Whether a sentence tells the assistant what to do, rather than anybody."""
    wish = _LEAD_IN.sub("", said)
    return _lasts(wish) or any(way.search(wish) for way in (_TO_US, _ASKS_POLITELY))


def _lasts(wish: str) -> bool:
    """Whether a sentence binds what comes later by its form."""
    return any(form.search(wish) for form in (_LASTING, _WHENEVER, _GENERALLY))


def _is_strict(wish: str) -> bool:
    """Whether one of its clauses forbids or demands, and does not merely tell of somebody or something."""
    return any((_DEMANDS if _STATES.match(part) else _STRICT).search(part) for part in _CLAUSE.split(wish))


def _quotable(text: str) -> Iterator[str]:
    scope = ""
    for part in sentences(plain(own_words(text))):
        said = f"{scope} {on_one_line(part)}".strip(" -*>•\t")
        scope = said if width(said) <= SCOPE and not scope and _LASTING.search(said) else ""
        if RULE_LEAST <= len(said) <= RULE_LENGTH and not said.endswith((":", "?", "？")):
            yield said
