"""Templates, and the headers that keep what they show harmless."""

import re
import sys
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from clew import __version__
from clew.core.bounds import clip
from clew.core.items import SHORT
from clew.core.threads import in_thread
from clew.core.times import universal
from clew.page import transcript
from clew.page.markup import markdown
from clew.screens.lines import count, dollars, words

# No script, style or picture but ours; nothing is sent elsewhere, and no other page may show this one inside it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


async def render(template: str, **values: Any) -> str:
    """A template with these values, escaped; in a thread, for it may be long."""
    return await in_thread(lambda: _environment().get_template(template).render(**values))


def secured(reply: Response) -> Response:
    """An answer with the headers that every answer of the page has."""
    reply.headers.update(_HEADERS)
    return reply


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("clew.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "tokens": tokens,
        "money": lambda amount: dollars(amount) or "–",
        "time": _time,
        "words": words,
        "clip": clip,
        "body": transcript.body,
        "markdown": markdown,
        "pictures": transcript.pictures,
        "short": lambda whole: whole[:SHORT],
        "step": lambda by: by.partition("(")[0],
        "marked": _marked,
        "share": lambda share: f"{share:.0%}",
    }
    made.globals |= {"clipped": transcript.CLIPPED, "count": count, "everything": sys.maxsize, "version": __version__}
    return made


def tokens(number: float | None) -> str:
    """So many tokens, in a few characters."""
    if number is None:
        return "–"
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size:
            return f"{number / size:.1f}{unit}" if number < 100 * size else f"{number / size:.0f}{unit}"
    return f"{number:.0f}"


def _time(at: float | None) -> Markup:
    """A moment; the browser writes it in its user's own way."""
    if not at:
        return Markup("")
    moment = universal(at)
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(timespec="seconds"), f"{moment:%Y-%m-%d %H:%M} UTC"
    )


def _marked(text: str, asked: str) -> Markup:
    """A text with the words that were asked for marked in it."""
    found = sorted({word for word in re.findall(r"\w+", asked) if len(word) > 1}, key=len, reverse=True)
    if not found:
        return escape(text)
    parts = re.split(f"({'|'.join(map(re.escape, found))})", text, flags=re.IGNORECASE)
    marked = [Markup("<mark>{}</mark>").format(part) if n % 2 else escape(part) for n, part in enumerate(parts)]
    return Markup("").join(marked)
