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
SCOPE = 60  # letters of a sentence that only says how long the next one holds
NAME_LEAST = 4  # characters of a name by which one sentence is known to speak of what another does
SENTENCES_READ = 4096  # of which it is remembered what they are
LED = 8  # entries of a list, at most, that a line leads to
TYPED = 600  # characters at either end of a long message in which a rule is surely the user's own
NOTED = 40  # letters of an answer that only takes note: what it answers was said to be kept in mind
LASTING, BINDING, LEANING, UNSURE = 4, 3, 2, 1  # how sure it is that a sentence is a rule for all that comes

# Each of these has its words in the languages that people most often write in.
# A sentence with these binds what comes later, wherever they stand in it.
_LASTS = re.compile(
    r"(?i)\b(?:from now on(?!,? (?:i|we)\b)|for the rest of (?:this|the|our|my)|(?:a|one) rule for|going forward"
    r"|ab (?:jetzt|sofort)|von nun an|künftig|in zukunft"
    r"|désormais|dorénavant|à partir de maintenant|à l['’]avenir|a partir de ahora|de ahora en adelante|en adelante"
    r"|d['’]ora in poi|daqui em diante|vanaf nu|od teraz|отныне|впредь|с этого момента)\b"
    r"|今後|これから|以降は|从现在|從現在|以后(?!再)|以後|今后|앞으로|이제부터"
)
# What shall be done whenever somebody does something: the condition names them, what follows has no subject.
_WHENEVER = re.compile(
    r"(?i)^(?:when(?:ever)?|before|after|(?:each|every|any) time) you\b(?! are (?:done|ready|finished))[^,?]{2,80}, "
    r"(?!you|i|we|it|that|this|there|what|how|can|could|do|does)\w"
    r"|^(?:(?:immer )?wenn|bevor|nachdem|sobald) (?:du|sie|ihr)\b[^,?]{2,80}, (?!ich|wir|es|das|kannst|können)\w"
    r"|^(?:quand|lorsque|chaque fois que|avant que) (?:tu|vous)\b|^(?:cuando|siempre que|antes de que) [^,?]{2,80},"
    r"|^(?:когда|прежде чем|каждый раз,? когда) (?:ты|вы)\b"
)
# A clause with these demands or forbids, unless it tells of somebody.
_DEMANDS = re.compile(
    r"(?i)\b(?:must|do not|don['’]?t|not allowed|under no|no more|make sure(?! (?:i|we)\b)|ensure|forbidden|mandatory"
    r"|(?:may|shall|can) (?:not|only|never)|ha(?:s|ve) to be|needs? to be|exclusively|strictly|no exceptions?"
    r"|without (?:asking|my|exception)|(?:unless|until|before) i (?:say|tell|ask|confirm|approve|agree|have seen)"
    r"|nie(?:mals)?|immer|stets|nicht|kein\w*|muss|müssen|darf|dürfen|soll(?:en)?|nur|ausschließlich|grundsätzlich"
    r"|jede[mnrs]?|ohne (?:ausnahme|rückfrage|meine)|bevor ich"
    r"|jamais|toujours|ne\b.{1,30}\bpas|dois|doit|uniquement|chaque|sans exception|il faut"
    r"|nunca|siempre|jam[áa]s|debes?|deben|s[óo]lo|únicamente|cada|hay que|tienen? que|en ningún caso|sin (?:mi"
    r"|excepción)"
    r"|sempre|mai|никогда|всегда|нельзя|должн\w+|только|каждый|nigdy|zawsze|każd\w+|nooit|altijd|elke)\b"
    r"|^no \w+(?:es|as|en|an)(?:me|te|lo|la|los|las)?\b(?<!tienes)"
    r"|(?<!要)不要|^别|一律|必须|總是|总是|禁止|务必|千万|凡是|每次|每个|每天|都要|都用|都得|统一|只能|只用|不能"
    r"|不可以|不许|不得|永远|除非"
    r"|절대|항상|반드시|마세요"
    r"|(?:ないで|必ず|だけ|のみ|以外|毎回|常に).{0,60}(?:さい|しい|こと|ように|て|で)。?$"
)
# What demands of all, or each time, or for good.
_ALWAYS = re.compile(
    r"(?i)\b(?:always|never|every|each|exclusively|no exceptions?|nie(?:mals)?|immer|stets|ausschließlich"
    r"|grundsätzlich|jede[mnrs]?"
    r"|jamais|toujours|chaque|nunca|siempre|jam[áa]s|cada|sempre|mai|никогда|всегда|каждый|nigdy|zawsze|każd\w+"
    r"|nooit|altijd|elke)\b"
    r"|一律|凡是|每次|每个|每天|永远|总是|總是|必ず|毎回|常に|절대|항상"
)
# A clause that begins with a time that is over tells of what was.
_WAS = re.compile(r"^(?:当时|當時|上次|上回|昨天|去年|前年|那时|那時)")
# What somebody can not do binds nobody, where the sentence has begun to tell of them.
_ABLE = re.compile(r"不能|只能|不可以")
_TO_YOU = re.compile(
    r"(?i)\byou (?:(?:could|would|should|may|must) (?:always|never|only|not)|must)\b|^you (?:always|never|only)\b"
)
# A clause that begins with these, as an order does: "never …", "no emojis", "every function needs a docstring".
_FIRST = re.compile(
    r"(?i)^(?:always|never|only\b(?! \w+ing\b|.* (?:was|were)\b)|no (?!worries|thanks|doubts"
    r"|problems)[\w ]{2,30}s\b(?! (?:is|are|was|were)\b)"
    r"|(?:every|each|any|anything|nothing|nobody|no one)\b.*\b(?:needs?|stays?|goes|gets?|leaves?|ha(?:s|ve) to"
    r"|must)\b)"
)
# An order by its form: a verb at the beginning, right before what it is done to.
_ORDERS = re.compile(
    r"(?i)^(?!(?:the|an?|thanks?|sorry|same|good|nice|fine|great|sure|yes|okay|what|why|how|where|who|which|am|was|were|did"
    r"|does"
    r"|could|would|should|let|hi|hello|he|she|they|these|those|there|here|our|just|lots?|more|most|some|both|only"
    r"|all|feel|appreciate|in|on|at|to|for|with|by|from|as|of|after|before|above|about)\b)"
    r"[a-z]{2,}(?<!ing)(?<!ed)(?<![^s]s) (?:\w+ )?(?:the|an?|my|your|our|its|this|that|these|those|every|each|all"
    r"|any|no"
    r"|only|in|on|at|to|for|with|by|from|as|me|us|them|of)\b"
)
_ALL = re.compile(
    r"(?i)\b(?:only|never|always)\b|\b(?:every|each|all|your) (?:\w+ ){0,2}(?:repl(?:y|ies)|answers?|responses?"
    r"|messages?"
    r"|numbers?|names?|times?|dates?|amounts?|figures?|files?|lines?|functions?|comments?|commits?|steps?|e?mails?)\b"
)
# Who is spoken of at the beginning of a clause that only tells something; and the ways to say that it is wanted.
_TELLS = re.compile(
    r"(?i)^(?:(?:however|but|and|so|sometimes|well|also|since|because|as|that|where|which|who|actually|maybe|if) )*"
    r"(?:i|we|he|she|they|it|this|that|these|those|there|my|our|their|his|her|who|which|what|why|how|while|currently"
    r"|thanks?|ich|wir|er|es|das|man|je|nous|elle|on|ça|il(?! faut)|yo|nosotros|я|мы|он|она|они|это)(?:['’]\w+)?\b"
    r"|^(?:我|他|她|它|这|那|因为|所以|私は|僕は|나는|저는)"
)
_WANTS = re.compile(
    r"(?i)^(?:(?:and|but|so|also) )*(?:i|we)(?:['’]d| would)? (?:only )?(?:want|need|expect|prefer|require|insist|like"
    r"|rather|ask)\b(?! to\b)|^(?:ich|wir) (?:will|möchte|wollen|möchten|brauche)\b|^(?:我|我们)(?:要你|希望|要求"
    r"|需要你)"
)
_LACKS = re.compile(
    r"(?i)\b(?:i|we) (?:do not|don['’]?t|can ?not|can['’]?t|only) (?!want|need|like you)\w+"
    r"|^don['’]?t (?:worry|bother|hesitate|be (?:sorry|afraid|shy)|beat yourself|get me wrong|forget)\b"
)
# What takes an earlier word back: who reads that word must read this, too.
_REVOKES = re.compile(
    r"(?i)^(?:please |just )?forget (?:about|what|that|the|my|it)\b"
    r"|\b(?:changed my mind|take (?:it|that|this) back"
    r"|ignore what i (?:said|wrote)|no longer (?:holds?|appl(?:y|ies)|valid|wanted)"
    r"|(?:rule|instruction|wish|that|it)\b(?:[^.?]|\.\b){0,60}? (?:is|are) (?:off|void|cancell?ed|withdrawn)"
    r"|vergiss|gilt nicht mehr|doch nicht|oublie|ne vaut plus|olvida"
    r"|ya no (?:vale|hace falta|quiero))\b|忘掉|不再需要|取消"
)
# Words of a wish about how, which is for one thing as often as for all.
_LEANING = re.compile(
    r"(?i)\b(?:avoid|prefer|instead|should(?:n['’]t)?|keep|leave|use|by default|rather|stick to|follow|except|unless"
    r"|full stop|statt|évite[zr]?|plutôt|prefiero|evita|en vez|лучше|вместо)\b|, not \w+[^?]*$"
)
_LEADS = re.compile(  # what stands before what somebody wants
    r"(?i)^(?:(?:and|but|also|please|then|so|ok|okay|yes|oh|bitte|por favor)[, ]+|(?:请|請))*"
)
_LOUD = re.compile(r"\b[A-Z]{3,}\b")
_ENTRY = " -*>•\t"  # how an entry of a list begins
_CLAUSE = re.compile(r"[,;:–—,;:]\s*(?!\d)")
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


def rules_in(request: WorkRequest) -> Iterator[tuple[str, int]]:
    """Sentences about how, from what was typed, and how sure it is that they bind."""
    only_noted = len(request.steps) == 1 and not request.steps[0].acts and width(request.steps[0].text) <= NOTED
    for one in _said(request):
        kind = kind_of_rule(one) or (UNSURE if only_noted and not _TELLS.match(_LEADS.sub("", one)) else 0)
        if kind >= BINDING or (kind and len(request.ask) <= TYPED):
            yield one, kind if _is_at_an_end(request.ask, one) else UNSURE


def orders_in(text: str) -> list[str]:
    """The lines of a client's instructions that bind, what it writes in capitals first; of one that leads to others,
    those that come below it, too."""
    found = list[tuple[int, str]]()
    led, loud = 0, 0  # lines that may still belong to one that leads to them: the next, or entries of its list
    for line in sentences(plain(text)):
        said = on_one_line(line).strip(_ENTRY)
        binds, leads, is_entry = kind_of_rule(said) >= BINDING, said.endswith(":"), line.lstrip()[:1] in _ENTRY
        if binds:
            loud = len(_LOUD.findall(said))
        if len(said) <= RULE_LENGTH and (binds or (led and not leads and (led == LED or is_entry))):
            found.append((-loud, said))
        led = LED if binds and leads else led - 1 if led and is_entry else 0
    return [said for _, said in sorted(found, key=lambda one: one[0])]


def _is_at_an_end(text: str, said: str) -> bool:
    return len(text) <= PASTE or not TYPED < text.find(said[:20]) < len(text) - TYPED


@remembers(SENTENCES_READ)
def kind_of_rule(said: str) -> int:
    """Whether a sentence binds what comes later, leans to it, or does neither: 0."""
    wish = said[_LEADS.match(said).end() :]  # type: ignore[union-attr]
    if _REVOKES.search(said) or _LASTS.search(wish) or _WHENEVER.match(wish):
        return LASTING
    if binding := list(_binding(wish)):
        return LASTING if any(map(_ALWAYS.search, binding)) else BINDING
    if _TELLS.match(wish) and not _WANTS.match(wish):
        return 0
    return LEANING if _LEANING.search(wish) else 0


def _binding(wish: str) -> Iterator[str]:
    """The clauses of a sentence that bind."""
    tells = False
    for clause in _CLAUSE.split(wish):
        if _binds(_ABLE.sub("", clause) if tells else clause) and not _WAS.match(clause):
            yield clause
        tells = tells or _TELLS.match(clause) is not None


def _binds(clause: str) -> bool:
    clause = clause[_LEADS.match(clause).end() :]  # type: ignore[union-attr]
    if _TO_YOU.search(clause):
        return True
    wanted = _WANTS.match(clause) is not None
    if _LACKS.search(clause) or (_TELLS.match(clause) and not wanted):
        return False
    is_order = wanted or _ORDERS.match(clause) is not None
    return bool(_DEMANDS.search(clause) or _FIRST.match(clause) or (is_order and _ALL.search(clause)))


def _said(request: WorkRequest) -> Sequence[str]:
    """What of a request can be quoted."""
    if len(request.ask) < RULE_LEAST:
        return ()
    return tuple(_quotable(request.ask)) if request.item is None else _said_in(request.item)


@per_object
def _said_in(item: Item) -> Sequence[str]:
    """Of a message that stands alone, kept: a compaction is tried with several sizes."""
    return tuple(_quotable(typed(item)))


def amended(rules: Mapping[str, UserRule], request: WorkRequest, number: int) -> Iterator[tuple[str, UserRule]]:
    """Earlier rules with what this request says about what they name; what takes a rule back gives way to no other."""
    by_name: dict[str, list[str]] | None = None
    for said in _said(request):
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


@remembers(SENTENCES_READ)
def _names(text: str) -> frozenset[str]:
    """The names in a sentence; "as-is" is none."""
    found = (name for name in _NAMES.findall(text) if len(name) >= NAME_LEAST and not name.isdigit())
    return frozenset(name for name in found if "-" not in name or not name.replace("-", "").isalpha())


def _quotable(text: str) -> Iterator[str]:
    scope = ""
    for part in sentences(plain(own_words(text))):
        said = f"{scope} {on_one_line(part)}".strip(_ENTRY)
        scope = said if width(said) <= SCOPE and not scope and _LASTS.search(said) else ""
        if RULE_LEAST <= len(said) <= RULE_LENGTH and not said.endswith((":", "?", "？")):
            yield said
