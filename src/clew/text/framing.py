"""Text from elsewhere, made unable to pass for a frame of this conversation."""

import re
from unicodedata import category, normalize

# What hosts, providers and clew itself wrap around text that has authority, in the letters that `seen` gives.
_TAG = (
    r"<(?=[/|\s]*(?:\w+:)?(?:system|developer|user|human|assistant|admin|tool|function|invoke|parameter|message|context"
    r"|summary|reminder|important|instructions?|policy|approv|constraint|goal|task|new[_-]session|im_|start|end[_-]?of|bos"
    r"|eos|eot|s>|inst|sys|data>|think|thought|reasoning|scratchpad|channel|command|local[_-]command|bash[_-]"
    r"|environment[_-]|session[_-]|ide[_-]|permission|persisted[_-]|turn>|unk>|pad>|sop>))"
)
# Marks of chat templates: whatever stands beside a bar, as in <|channel|>, and the words that some have in brackets.
_TEMPLATE = (
    r"<(?=/?\|/?\w|\w[\w -]{0,40}\|>)"
    r"|\[(?=/?(?:available_tools|tool_(?:calls?|results?|content)|think\]|args\]|call_id\]|gmask\]|model_settings|e~\[))"
    r"|\](?=~!?b[\[\]])"
)
# A line that begins as a speaker's does where turns are plain text.
_SPEAKER = (
    r"^[ \t>*]{0,9}(?-i:Human|Assistant|HUMAN|ASSISTANT|USER)[ \t*]{0,3}:"
    r"|^[ \t]{0,9}\#{2,3}[ \t]{0,3}(?:instruction|response|input|human|assistant|user|system)[ \t]{0,3}:"
)
_BRACKET = (
    r"\[(?=\W{0,9}(?:end\W+of\W+data|data\W{0,3}:)|/\s*data\b|/?\s*(?:summary|system|developer|user|human|assistant|"
    r"inst|context|fallback|work log|earlier conversation|result of|same output|the report of sub-agent|a summary;)|"
    r"[^\[\]\n]{0,300}(?:\b|_)(?:recall [0-9a-f]{6}|out of view))"
)
_FRAME = re.compile(f"{_TAG}|{_BRACKET}|{_TEMPLATE}|{_SPEAKER}", re.IGNORECASE | re.MULTILINE)
_MARKS = {"<": "‹", "[": "(", "]": ")", ":": " (quoted):"}  # by the last character of what was found

# Letters and brackets that look like those of ASCII and are none by Unicode's own account.
_ALIKE = dict(
    zip(
        map(ord, "аеорсухіјѕԁһӏʟмтвнкαορυντικΑΒΕΖΗΙΚΜΝΟΡΤΥΧАВЕКМНОРСТУХІЈЅ˂ᐸ❮⟨〈【⟦〔❲〖"),
        "aeopcyxijsdhllmtbhkaopuvtikABEZHIKMNOPTYXABEKMHOPCTYXIJS<<<<<[[[[[",
        strict=True,
    )
)
_JOINS = "\u200c\u200d"  # some scripts need them between their letters


class _Seen(dict[int, str]):
    """For each character one that it looks like, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        plain = normalize("NFKC", chr(code))
        found = self[code] = _ALIKE.get(ord(plain), plain) if len(plain) == 1 else chr(code)
        return found


class _Printed(dict[int, int | None]):
    """For each character itself, or nothing if there is nothing to see of it."""

    def __missing__(self, code: int) -> int | None:
        hidden = category(chr(code)) == "Cf" and chr(code) not in _JOINS
        found = self[code] = None if hidden else code
        return found


_SEEN, _SHOWN = _Seen(), _Printed()
_JOINED = re.compile(f"(?<=[ -~])[{_JOINS}]+|[{_JOINS}]+(?=[ -~])")


def shown(text: str) -> str:
    """The text without characters that hide, split or turn round what others say."""
    return text if text.isascii() else _JOINED.sub("", text.translate(_SHOWN))


def seen(text: str) -> str:
    """The text as it looks, in plain letters where there are some; a character for a character."""
    return text if text.isascii() else text.translate(_SEEN)


def neutral(text: str) -> str:
    """The same words, with look-alikes of tags and frames marked as quoted."""
    text = shown(text)
    looks = seen(text)
    parts, end = [], 0
    for frame in _FRAME.finditer(looks):
        at = frame.end() - 1
        parts += [text[end:at], _MARKS[looks[at]]]
        end = at + 1
    return "".join((*parts, text[end:]))
