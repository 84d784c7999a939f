"""Whether a value can be a secret: it stands for no other value, it is no code, and it looks as its name promises."""

import re
from base64 import b64decode

from clew.secrets.kinds import VALUES, Proof

SHORTEST = 4  # characters of a password; what is shorter is guessed at once
LOOK = 200  # characters of a value that say what it is

_CALL = re.compile(
    r"[A-Za-z_$][\w$]*(?:(?:\??\.|->|::)[A-Za-z_$][\w$]*)*[(\[{<]|[(\[{|>*&+?=/~.-]|[A-Za-z_]\w*(?:\.|->|::)[A-Za-z_]\w*\b"
)
_VARIABLE = re.compile(r"(?:[A-Za-z_]\w*\.)+[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")  # of the environment, as code reads it
_CMDLET = re.compile(r"(?:Convert(?:To|From)|Get|Read|New|Import)-[A-Z][A-Za-z]+")  # of PowerShell
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_NAME_OF_ONE = re.compile(r"_|(?i:pass|pwd|token|secret|key|hash|user|value|input|auth|cred)")  # a variable
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_NO_TOKEN = re.compile(r"[\s()\[\]{}<>]")  # prose, code, a regular expression
_TURN = re.compile(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])")
_CLASSES = (re.compile(r"[a-z]"), re.compile(r"[A-Z]"), re.compile(r"\d"))
_SIGN = re.compile(r"[^\w./: -]")
_LONG_WORD = re.compile(r"[a-z]{7}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def is_empty(value: str, proof: Proof | None) -> bool:
    """Whether a value stands for a secret that is elsewhere, or for none."""
    if (
        VALUES["reference"].match(value)
        or VALUES["template"].search(value, 0, LOOK)
        or VALUES["empty"].fullmatch(value)
    ):
        return True
    # Words such as "example" in the middle of randomness are no words.
    wordy = len(_CLASSES[2].findall(value, 0, LOOK)) < 4 and not is_random(value)
    return wordy and bool(VALUES["to fill in"].search(value) or (proof != "any" and VALUES["made up"].search(value)))


def proves(proof: Proof, value: str, *, loud: bool = False) -> bool:
    """Whether a value looks as its name promises; a loud name is all capitals."""
    if proof == "base64":
        return is_base64(value)
    if proof == "random":
        return is_random(value)
    if proof == "loud":
        return loud and is_random(value)
    if proof == "mixed":
        return is_mixed(value) or (value.isalnum() and len(value) >= (8 if loud else 14))
    return len(value) >= SHORTEST and not (VALUES["prose"].search(value) and " " in value)


def is_bare_secret(value: str, proof: Proof, *, plain: bool) -> bool:
    """Whether a value without quotes is one, and no code or prose; no code can stand in a plain place."""
    if _VARIABLE.fullmatch(value) or _CMDLET.fullmatch(value):
        return False
    if is_random(value):
        return True
    if _CALL.match(value):
        return False
    if value.isdigit():
        return len(value) >= 4 and proof == "any"
    if not _WORD.fullmatch(value):
        return len(value) >= 4 and any(map(str.isalnum, value))
    if plain:
        return not (value.isupper() and "_" in value)
    if any(map(str.isdigit, value)):
        return len(value) >= 6 and not _NAME_OF_ONE.search(value)
    return len(value) >= 12 and value.islower() and value.isalpha() and not _NAME_OF_ONE.search(value)


def is_random(value: str) -> bool:
    """Whether letters and digits are mixed as no word and no version mixes them."""
    if len(value) < 8 or _NO_TOKEN.search(value, 0, LOOK):
        return False
    if len(_TURN.findall(value, 0, LOOK)) >= 3:
        return True
    return (
        len(value) >= 20 and all(c.search(value, 0, LOOK) for c in _CLASSES) and not _LONG_WORD.search(value, 0, LOOK)
    )


def is_mixed(value: str) -> bool:
    """Whether a value is more than words: random, or of three kinds of characters."""
    if is_random(value):
        return True
    kinds = sum(bool(c.search(value, 0, LOOK)) for c in (*_CLASSES, _SIGN))
    return len(value) >= 8 and " " not in value and kinds >= 3


def is_base64(value: str) -> bool:
    """Whether a value is base64 of some text, or long and random."""
    if len(value) < 8 or len(value) % 4 or not _BASE64.fullmatch(value) or value.islower():
        return False
    try:
        return b64decode(value).decode().isprintable() or b"\n" in b64decode(value)
    except ValueError:
        return len(value) >= 40 and is_random(value)


def is_uuid(value: str) -> bool:
    """Whether a value is a UUID, which under some names is no secret."""
    return bool(_UUID.fullmatch(value))
