"""Whose words these are: what a tool or an assistant tells of the user is marked, for the user did not say it.

What the user said, wants, allowed or refused is told from messages of the user alone. Where text of others tells of it,
that is quoted as theirs.
"""

import re

from clew.text.framing import seen, shown

# Where somebody tells what the user says or wants. The words for a user in other languages are enough.
FOR_THE_USER = (
    r"\b(?:by|from) the (?:user|human|owner)\b|\b(?:user|human|owner)(?:'s)?\s+(?:\w+ly |has |had |have |also )?"
    r"(?:said|says|ask|want|wish|approv|confirm|permi|request|demand|tell|told|instruct|prefer|authori|consent|decid"
    r"|order)"
    r"|\b(?:(?:be)?nutzer|anwender|utilisat|usuari|usuári|utente|пользовател|gebruiker|użytkownik|användar|uživatel"
    r"|kullan[ıi]c)|用户|使用者|ユーザ|利用者|사용자|משתמש|مستخدم|ผู้ใช้|उपयोगकर्ता"
)
_MORE = (
    r"|\bby (?:a |our |your )?(?:user|human|owner)\b"
    r"|\b(?:user|human|owner)(?:['’]s)?\s+(?:(?:\w{1,20}ly|has|had|have|also|just|then|already|now|still|explicitly)\s+){0,3}"
    r"(?:allow|agree|accept|grant|reject|declin|den(?:y|ie)|refus|cancel|abort|interrupt|answer|repl(?:y|ie)|respond"
    r"|wrote|typed|chose|choos|select|insist|doesn|does not|did not|didn|must|never|always|need|trust|green-?li)"
    r"|\buser['’]s (?:\w{1,20} ){0,2}(?:permission|approval|consent|words?|answers?|rules?|orders?|reply|feedback"
    r"|tasks?|goals?|requests?|wish(?:es)?|instructions?|preferences?|decisions?|messages?|plans?)\b"
    r"|\b(?:user|human|owner)\s{0,3}(?:\([^()\n]{0,40}\)\s{0,3})?[:：]|\w user text\b"
    r"|newest request:"
    r"|<\|?\s{0,3}/?(?:user|human)\b|\|>\s{0,3}user\b|im_start\W{0,3}user\b|\buser feedback\b"
)
_SPEAKS = re.compile(f"(?i){FOR_THE_USER}{_MORE}", re.MULTILINE)
# What each of these has, and most text has not; each is looked at with what stands around it.
_USER = re.compile(
    "user|human|owner|newest request|nutzer|anwender|utilisat|usuari|usuári|utente|пользовател|gebruiker|użytkownik"
    "|användar|uživatel|kullan[ıi]c|משתמש|مستخدم|ผู้ใช้|उपयोगकर्ता|用户|使用者|ユーザ|利用者|사용자"
)
BEFORE, AFTER = 30, 120  # characters
_ODD = re.compile(r"[^\W\x00-\x7f]|[\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")  # letters, and what hides
# A line that begins as those do with which the log, and a summary in plain text, name who speaks.
_SPEAKER = re.compile(
    r"^(\W{0,9}(?:the )?(?:newest request|user|human|assistant|system|result|call of [^\n:]{0,80}))\s{0,3}[:：]"
    r"(?! ?\(quoted\))",
    re.IGNORECASE | re.MULTILINE,
)
LINE_ENDS = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")

_MARKS = str.maketrans("“”", '""')  # nobody ends a quotation from inside

ASSISTANT, TOOL = "the assistant", "a tool says"


def speaks_for_user(text: str) -> bool:
    """Whether a text tells what the user said, wants, allowed or refused."""
    text = LINE_ENDS.sub("\n", text)
    return any(map(_speaks, (text, seen(shown(text))) if _ODD.search(text) else (text,)))


def _speaks(text: str) -> bool:
    text, start, stop = text.lower(), 0, 0
    for name in _USER.finditer(text):
        if name.start() - BEFORE > stop:
            if _SPEAKS.search(text, start, stop):
                return True
            start = name.start() - BEFORE
        stop = name.end() + AFTER
    return _SPEAKS.search(text, start, stop) is not None


def quoted(text: str, by: str) -> str:
    """Words of somebody else on one line: between marks, after who said them, where they speak for the user."""
    return f"{by}: {enclosed(text)}" if speaks_for_user(text) else text


def enclosed(text: str) -> str:
    """A text between marks that it cannot close itself."""
    return f"“{text.translate(_MARKS)}”"


def code(text: str) -> str:
    """A command or a line of code between marks; one that tells of the user cannot close them."""
    return "`" + (text.replace("`", "'") if "`" in text and speaks_for_user(text) else text) + "`"


def unvoiced(text: str) -> str:
    """Lines of somebody else, none of which begins as a line of another speaker does."""
    if ":" not in text and "：" not in text:
        return text
    text = LINE_ENDS.sub("\n", shown(text))
    parts, end = [], 0
    for found in _SPEAKER.finditer(seen(text)):
        parts += [text[end : found.end(1)], " (quoted)"]
        end = found.end(1)
    return "".join((*parts, text[end:]))
