"""Markdown, code and diffs as HTML. All that was said is escaped: no element, link or picture of it gets through."""

import difflib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MOST = 10_000  # characters that are read as Markdown: longer ones take a server's time
# Characters that are coloured. Pygments looks for patterns that text made for it takes very long to go through, and no
# other request is answered meanwhile: hence as few, and no language of prompts and outputs.
COLOURED = 2_000
COMPARED = 400  # lines of what was exchanged: what there is room for, and lines are compared with all others
# Languages that are coloured, by the names that people give them and the ends of their files.
LANGUAGES: Mapping[str, str] = {
    name: language
    for language, names in {
        "python": "py python3",
        "javascript": "js jsx mjs",
        "typescript": "ts tsx",
        "json": "jsonl",
        "bash": "sh shell zsh",
        "yaml": "yml",
        "toml": "",
        "html": "htm",
        "css": "scss",
        "sql": "",
        "go": "",
        "rust": "rs",
        "java": "",
        "kotlin": "kt",
        "swift": "",
        "ruby": "rb",
        "php": "",
        "c": "h",
        "cpp": "c++ cc hpp",
        "csharp": "cs c#",
        "xml": "svg",
    }.items()
    for name in (language, *names.split())
}
_DIFF = frozenset({"diff", "patch", "udiff"})
_DIFFS = ("diff --git ", "--- ", "*** Begin Patch", "@@ ", "Index: ")
# How a line of a diff begins, and how it is shown; the longer one first.
_MARKS = {"+++": "gh", "---": "gh", "@@": "gu", "+": "gi", "-": "gd"}


def code(text: str, language: str = "") -> Markup:
    """A text in a language, coloured where that is known; a diff in any case."""
    if language.lower() in _DIFF or text.startswith(_DIFFS):
        return Markup("").join(map(_diff_line, text.splitlines(keepends=True)))
    known = LANGUAGES.get(language.lower())
    if known is None or len(text) > COLOURED or "\r" in text:  # a lexer loses that sign
        return escape(text)
    try:
        lexer = get_lexer_by_name(known, stripnl=False)
    except ClassNotFound:
        return escape(text)
    made = highlight(text, lexer, HtmlFormatter(nowrap=True, classprefix="h-"))
    return Markup(made if text.endswith("\n") else made.removesuffix("\n"))  # noqa: S704 - escaped there


def _diff_line(line: str) -> Markup:
    mark = next((mark for mark in _MARKS if line.startswith(mark)), None)
    return Markup('<span class="h-{}">{}</span>').format(_MARKS[mark], line) if mark else escape(line)


def language(given: Mapping[str, Any]) -> str:
    """The language of what a call is about, by the end of a file's name among its arguments."""
    ends = (PurePosixPath(v).suffix[1:] for v in given.values() if isinstance(v, str) and len(v) < 1_000)
    return next((end for end in ends if end.lower() in LANGUAGES), "")


def changed(old: str, new: str) -> str:
    """What was exchanged, as a diff."""
    lines = difflib.unified_diff(old.splitlines()[:COMPARED], new.splitlines()[:COMPARED], lineterm="", n=2)
    return "\n".join([*lines][2:]) or f"-{old!r}\n+{new!r}"  # what differs ends a line


def markdown(text: str) -> Markup:
    """A text as its author meant it to look."""
    if len(text) > MOST:
        return Markup("<pre>{}</pre>").format(text)
    return Markup(_reader().render(text))  # noqa: S704 - escaped by the reader, which knows no HTML


@cache
def _reader() -> MarkdownIt:
    made = MarkdownIt("js-default", {"html": False, "highlight": lambda text, name, _: str(code(text, name))})
    made.disable("image")
    for name in ("th_open", "td_open"):
        made.add_render_rule(name, _unstyled)
    for name in ("heading_open", "heading_close"):
        made.add_render_rule(name, _heading)
    made.add_render_rule("link_open", lambda *_: "<u>")
    made.add_render_rule("link_close", _address)
    return made


def _unstyled(self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    return f"<{tokens[at].tag}>"


def _heading(self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    """The page has headings of its own, by which it is read out."""
    return '<p class="heading">' if tokens[at].nesting > 0 else "</p>\n"


def _address(self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    """Where a link leads, to be read: what an agent quotes is followed by nobody who did not mean to."""
    start = next(n for n in range(at, -1, -1) if tokens[n].type == "link_open")
    address = str(tokens[start].attrs.get("href", ""))
    label = "".join(token.content for token in tokens[start + 1 : at])
    return "</u>" if label == address else str(Markup("</u> <code>{}</code>").format(address))
