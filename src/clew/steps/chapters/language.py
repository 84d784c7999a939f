"""Which language a text is in: by its script, and where that does not tell by its small words. Silent when unsure."""

import re
from collections import Counter
from collections.abc import Mapping
from unicodedata import name

LEAST_LETTERS = 20  # letters: less tells nothing
SURE = 3  # times as many small words as of the next language

_SCRIPTS: Mapping[str, str] = {
    "CYRILLIC": "a language in Cyrillic letters",
    "GREEK": "Greek",
    "ARABIC": "a language in Arabic letters",
    "HEBREW": "Hebrew",
    "DEVANAGARI": "a language in Devanagari",
    "THAI": "Thai",
    "HANGUL": "Korean",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "CJK": "Chinese",
}
_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "English": "the and is are of to in that it for with this not you be on as have from was will can please",
        "German": "der die das und ist nicht ein eine ich mit auf für von zu den dem wir auch sich bitte wird sind",
        "French": "le la les et est pas une des du que qui dans pour sur avec vous nous ce sont mais être plus par",
        "Spanish": "el la los las y es no una que de en para con por se su como más pero está esto hay del al",
        "Portuguese": "o os as e é não uma que de em para com por se seu como mais mas está isso há do da ao",
        "Italian": "il lo gli e è non una che di in per con si su come più ma questo sono del della anche nel",
        "Dutch": "de het en is niet een ik met op voor van te dat we ook zijn als maar wordt naar bij dit er",
        "Polish": "i w na nie jest to się z do że jak o po ale dla tak ten są co przez tylko może",
        "Turkish": "ve bir bu için ile da de ne gibi çok daha var olan değil ama en kadar sonra olarak",
        "Czech": "a je na se v že to s do z pro jak jsou ale by který není tak už jen při",
        "Swedish": "och är det att en som på för med inte av till den har jag om vi men ett kan",
    }.items()
}
_WORD = re.compile(r"[^\W\d_]+")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|(?:(?<!\S)\S*|(?<=`)[^\s`]*)[/\\_<>={}]\S*", re.DOTALL)


def language_of(text: str) -> str:
    """The language of a text, in words that a model understands; empty if it is not plain which one it is."""
    words = [w.lower() for w in _WORD.findall(_CODE.sub(" ", text[:20_000]))]
    letters = "".join(words)
    if len(letters) < LEAST_LETTERS:
        return ""
    scripts = Counter(_script(c) for c in letters)
    if scripts.get("Japanese", 0) * 10 > len(letters):
        return "Japanese"  # it has Chinese characters too
    script, times = scripts.most_common(1)[0]
    if script:
        return script if times * 2 > len(letters) else ""
    small = Counter({language: sum(w in known for w in words) for language, known in _WORDS.items()})
    (best, most), (_, next_most) = small.most_common(2)
    return best if most >= SURE and most >= SURE * next_most else ""


def _script(letter: str) -> str:
    """What the script of a letter says of its language; nothing for a Latin one."""
    return "" if letter < "\u0370" else _SCRIPTS.get(name(letter, "").split(" ")[0].split("-")[0], "")
