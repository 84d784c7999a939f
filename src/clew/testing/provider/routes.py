"""What a path asks for, of whom; Gemini's names the model, too."""

from typing import NamedTuple
from urllib.parse import parse_qs

from clew.testing.provider.serving import ServedRequest
from clew.wire.formats.base import ApiCall
from clew.wire.requests import api_call, format_of_client


class Route(NamedTuple):
    """What a request wants."""

    call: ApiCall
    events: bool = True  # else a stream comes as one list


def route(asked: ServedRequest) -> Route | None:
    """What is asked for, if it is served."""
    call = api_call(asked.path)
    if call is None:
        return None
    return Route(call, not call.streamed or parse_qs(asked.query).get("alt") == ["sse"])


def speaker(asked: ServedRequest) -> str:
    """Whose client it is, where no route tells."""
    return format_of_client(asked.path, asked.headers)
