"""Whether a client that saves room left out a part of a result. A pure function."""

import json
import re

_SHORTENED = r"(?:trunc|trimm|clear|omit|elid|prun|compact|shorten|cut off|snip|skipp)"
# By which a client says that it left something out of a result: `[… truncated]`, `…12 tokens truncated…`.
_NOTE = re.compile(
    rf"(?:(?:…|\.\.\.)[ \t]{{0,4}})?[\[<({{][^\[\]<>(){{}}\n]{{0,200}}?{_SHORTENED}[^\[\]<>(){{}}\n]{{0,200}}[\]>)}}]"
    rf"(?:[ \t]{{0,4}}(?:…|\.\.\.))?|(?:…|\.\.\.)[^….\n]{{0,80}}{_SHORTENED}[^….\n]{{0,80}}(?:…|\.\.\.)",
    re.IGNORECASE,
)
_MASKED = "<tool_output_masked>"  # around what Gemini CLI left of a result, before where it lies whole
_LIES_AT = "\n\nOutput too large. Full output available at: "
LEFT = 64  # characters of a result that must be left of it, unless nothing is


def is_shortened(was: str, now: str) -> bool:
    """Whether a client that saves room left out some of a result, says so, and put no other words in their place."""
    if len(now) >= len(was):
        return False
    if now.startswith(_MASKED):
        left = " ".join(now.removeprefix(_MASKED).rpartition(_LIES_AT)[0].split())
        # Of what no shell said it shows a part of the answer as it is written in a request.
        written = json.dumps({"output": was}, indent=2, ensure_ascii=False)
        return any(_leaves(" ".join(text.split()), left) for text in (was, written))
    return _leaves(was, now)


def _leaves(was: str, now: str) -> bool:
    """Whether all that was left, around notes that something was left out, stood there in this order."""
    if not _NOTE.search(now):
        return False
    at = 0
    pieces = [piece.strip() for piece in _NOTE.split(now)]
    if 0 < sum(map(len, pieces)) < LEFT or not (was.startswith(pieces[0]) and was.rstrip().endswith(pieces[-1])):
        return False
    for piece in pieces:
        found = was.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def is_cleared(text: str) -> bool:
    """Whether nothing is left of a result but that something was there."""
    return not _NOTE.sub("", text).strip()
