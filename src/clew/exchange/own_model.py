"""The model that a caller talks to, as one that writes chapters: asked through the very line that the caller uses."""

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any

from clew import catalog
from clew.core import rawjson
from clew.errors import ModelError
from clew.exchange.answers import AnswerReader
from clew.exchange.transport import Transport
from clew.llm.own import OwnModel
from clew.llm.remote import seconds_to_wait
from clew.llm.requests import RequestBody
from clew.llm.streaming import Spoken
from clew.steps.chapters.allowance import Allowance
from clew.steps.chapters.by_model import ByModel
from clew.wire.streams.faults import fault_of

# How the tokens of subscriptions begin: Anthropic's, GitHub Copilot's.
LOGIN_KEYS = ("sk-ant-oat", "sk-ant-ort", "sk-ant-sid", "gho_", "ghu_", "tid=")
_BEARER = re.compile(r"bearer\s+", re.IGNORECASE)
_LOGIN_SAID = ("anthropic-beta", "x-dashscope-authtype")  # headers that say "oauth" of one
_LOGIN_HEADERS = ("chatgpt-account-id", "copilot-integration-id")  # by which clients say whose subscription it is
LONGEST_ERROR = 300  # characters of what a provider says


def own_author(
    line: Transport, request: Any, format: str, body: Mapping[str, Any], allowance: Allowance, host: str
) -> ByModel:
    """The model of a request as an author; what it is asked goes out as the request did, with other content."""
    beside = line.beside()

    async def speak(asked: RequestBody) -> Spoken:
        return await beside(_spoken(line, line.with_body(request, rawjson.dumps(asked)), format))

    name = str(body.get("model") or "")
    own = OwnModel(name, format, speak, body)
    return ByModel(own, allowance=allowance, gives_way=is_local(host) and catalog.lookup(name).prices is None)


async def _spoken(line: Transport, request: Any, format: str) -> Spoken:
    """What is answered to a request."""
    response = await line.send(request)
    try:
        content = await line.read(response)
    finally:
        await line.drop(response)
    if response.status_code >= 400:
        told = content.decode("utf-8", "replace")
        fault = fault_of(response.status_code, told)
        wait = seconds_to_wait(response.headers) if fault == "busy" else None
        said = f"the provider answered {response.status_code}: {told[:LONGEST_ERROR]}"
        raise ModelError(said, fault, retry_after=wait)
    heard = AnswerReader(format)
    heard.add(content)
    heard.add(b"")
    spoken = heard.spoken()
    if spoken is None:
        raise ModelError(heard.refusal or "the answer cannot be read", "refused")
    return spoken


def is_login(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a request says that it is sent by the login of a subscription: with that, clew asks nothing."""
    given = [(name.lower(), _BEARER.sub("", value.strip(), 1)) for name, value in headers]
    return any(
        name in _LOGIN_HEADERS or value.startswith(LOGIN_KEYS) or (name in _LOGIN_SAID and "oauth" in value.lower())
        for name, value in given
    )


def is_local(host: str) -> bool:
    """Whether a host is this machine or near it, as far as its name says."""
    try:
        return not ip_address(host.strip("[]")).is_global
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".localhost", ".internal", ".lan"))
