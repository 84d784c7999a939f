"""A provider on loopback: it speaks Chat, Responses, Messages and Gemini's generateContent, refuses what real ones
refuse, and has a prompt cache whose hits it reports."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple
from urllib.parse import parse_qs

from clew.catalog.usage import Spent
from clew.core import rawjson
from clew.errors import BadRequest
from clew.testing.provider.answers import Answer, ProviderTurn
from clew.testing.provider.anthropic import MessagesRefusals
from clew.testing.provider.cache import Cache, CachedBlock, counted, opening, prompt, shared, spoken
from clew.testing.provider.faults import ProviderFault, Refusals
from clew.testing.provider.gemini import GeminiRefusals
from clew.testing.provider.openai import ChatRefusals, ResponsesRefusals
from clew.testing.provider.serving import LoopbackServer, ServedReply, ServedRequest
from clew.wire import check, named
from clew.wire.formats import anthropic, gemini, openai_chat, openai_responses
from clew.wire.formats.base import ApiCall
from clew.wire.formats.openai_responses.writing import compacted
from clew.wire.requests import api_call, format_of_client
from clew.wire.streams.writing import ProviderBody


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


REFUSALS: Mapping[str, Refusals] = {
    openai_chat.NAME: ChatRefusals(),
    openai_responses.NAME: ResponsesRefusals(),
    anthropic.NAME: MessagesRefusals(),
    gemini.NAME: GeminiRefusals(),
}


@dataclass(frozen=True, slots=True)
class HeardRequest:
    """One request, as it came over the wire, and what it has in common with the one before."""

    path: str
    query: str
    headers: Mapping[str, str]
    raw: bytes
    body: ProviderBody  # with the model that Gemini's path names
    spent: Spent  # as reported
    streamed: bool
    prompt: bytes = field(repr=False)  # model, tools, system and messages as a cache reads them, without marks
    before: "HeardRequest | None" = field(default=None, repr=False, compare=False)  # of the same conversation

    @property
    def shared(self) -> int:
        """Bytes with which its prompt begins as the one before did."""
        return shared(self.prompt, self.before.prompt) if self.before else 0

    @property
    def moved(self) -> bool:
        """Whether something changed in what the one before had sent."""
        return self.before is not None and self.shared < len(self.before.prompt)


@dataclass
class StrictProvider:
    """A server to use in a `with` block; it gives the answers of a script in turn, the last of them forever.

    An error that a script raises is raised at the end of the block.
    """

    script: list[Answer] | Callable[[ProviderBody], Answer] = field(default_factory=lambda: [Answer("Understood.")])
    window: int = 1_000_000
    models: Mapping[str, int] = field(default_factory=dict)  # windows by name, no other is known; if empty, all are
    conversation: Callable[[ProviderBody], Hashable] = opening  # whose request it is
    heard: list[HeardRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._cache = Cache()
        self._newest: dict[Hashable, HeardRequest] = {}
        self._lock = Lock()
        self._errors: list[Exception] = []

    def __enter__(self) -> "StrictProvider":
        self._server = LoopbackServer(self._answer)
        self._server.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._server.stop()
        if self._errors and kind is None:
            raise self._errors[0]

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return self._server.url

    @property
    def moved(self) -> list[HeardRequest]:
        """The requests that do not begin with all of the one before: where a prompt cache was lost."""
        return [heard for heard in self.heard if heard.moved]

    def _answer(self, asked: ServedRequest) -> ServedReply:
        try:
            return self._get(asked) if asked.method == "GET" else self._post(asked)
        except Exception as error:
            self._errors.append(error)
            return _failed(ProviderTurn(openai_chat.NAME), REFUSALS[openai_chat.NAME].fault(500, words=repr(error)))

    def _get(self, asked: ServedRequest) -> ServedReply:
        format = speaker(asked)
        refusals = REFUSALS[format]
        found = refusals.found(asked.path, self.models)
        if found is None:
            return _failed(ProviderTurn(format), refusals.fault(404, asked.path.rpartition("/")[2]))
        return ServedReply(200, [rawjson.dumps(found)])

    def _post(self, asked: ServedRequest) -> ServedReply:
        wanted = route(asked)
        if wanted is None:
            format = speaker(asked)
            words = f"Invalid URL (POST {asked.path})"
            return _failed(ProviderTurn(format), REFUSALS[format].fault(404, words=words))
        format = wanted.call.format
        body = _read(asked.raw)
        if body is not None and wanted.call.model:
            body = {**body, "model": wanted.call.model}
        blocks = list(prompt(counted(body or {})))
        heard, number = self._hear(asked, wanted, body or {}, blocks)
        turn = ProviderTurn(format, heard.body, spent=heard.spent, number=number, listed=not wanted.events)
        refusals = REFUSALS[format]
        fault = refusals.fault(400, words=refusals.unreadable) if body is None else self._refusal(turn, heard, wanted)
        if fault:
            return _failed(turn, fault)
        if wanted.call.act == "count":
            return _reply(turn, [rawjson.dumps(named(format).counted(turn.spent.input))], streamed=False)
        window = self.models.get(turn.model, self.window)
        if fault := refusals.too_long(turn.body, turn.spent.input, window):
            if heard.streamed and format == openai_responses.NAME:  # says it in the stream
                return _reply(turn, named(format).stream(turn, _written(turn, fault)), streamed=True)
            return _failed(turn, fault)
        answer = self._next(turn.body)
        spent = turn.spent if answer.input is None else Spent(answer.input)
        return self._message(replace(turn, answer=answer, spent=spent), heard, wanted, blocks)

    def _message(
        self, turn: ProviderTurn, heard: HeardRequest, wanted: Route, blocks: list[CachedBlock]
    ) -> ServedReply:
        answer, shape = turn.answer, named(turn.format)
        fault = None
        if answer.status != 200 and answer.raw is None:
            fault = REFUSALS[turn.format].fault(answer.status, turn.model, answer.error)
        if fault and not (answer.late and heard.streamed):
            return _failed(turn, fault)
        with self._lock:
            self._cache.write(blocks)
        if answer.raw is not None:
            return _reply(turn, [answer.raw], streamed=False)
        error = _written(turn, fault) if fault else None
        if heard.streamed and turn.listed:
            listed = gemini.writing.stream(turn, error, as_list=True)
            return _reply(turn, listed, streamed=True, kind="application/json; charset=UTF-8")
        if heard.streamed:
            return _reply(turn, shape.stream(turn, error), streamed=True)
        whole = compacted(turn, _folded(turn)) if wanted.call.act == "compact" else shape.in_one_piece(turn)
        return _reply(turn, [rawjson.dumps(whole)], streamed=False)

    def _hear(
        self, asked: ServedRequest, wanted: Route, body: ProviderBody, blocks: list[CachedBlock]
    ) -> tuple[HeardRequest, int]:
        whole = b"".join(text for text, _ in blocks)
        streamed = (
            body.get("stream") is True and wanted.call.act == "answer"
            if wanted.call.streamed is None
            else wanted.call.streamed
        )
        whose = (asked.path, str(body.get("model")), self.conversation(body))
        with self._lock:
            spent = self._cache.read(blocks, marked=named(wanted.call.format).mark is not None)
            wire = (asked.path, asked.query, asked.headers, asked.raw)
            heard = HeardRequest(*wire, body, spent, streamed, whole, self._newest.get(whose))
            self._newest[whose] = heard
            self.heard.append(heard)
            return heard, len(self.heard)

    def _refusal(self, turn: ProviderTurn, heard: HeardRequest, wanted: Route) -> ProviderFault | None:
        refusals = REFUSALS[turn.format]
        if fault := refusals.amiss(turn.body, heard.headers, heard.query, wanted.call.act == "count"):
            return fault
        if self.models and turn.model not in self.models:
            return refusals.fault(404, turn.model)
        found = check(counted(turn.body), turn.format)
        return refusals.broken(found[0]) if found else None

    def _next(self, body: ProviderBody) -> Answer:
        if callable(self.script):
            return self.script(body)
        with self._lock:
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def _read(raw: bytes) -> ProviderBody | None:
    try:
        body = rawjson.loads(raw)
    except BadRequest:
        return None
    return body if isinstance(body, dict) else None


def _reply(turn: ProviderTurn, parts: Iterable[bytes], streamed: bool, kind: str | None = None) -> ServedReply:
    answer = turn.answer
    headers = REFUSALS[turn.format].headers(answer, turn.id("req_")) | ({"Content-Type": kind} if kind else {})
    status = 200 if streamed else answer.status
    return ServedReply(status, parts, streamed, headers, answer.seconds, answer.packet, answer.pause, answer.cut)


def _failed(turn: ProviderTurn, fault: ProviderFault) -> ServedReply:
    answer, request = turn.answer, turn.id("req_")
    refusals = REFUSALS[turn.format]
    said = _written(turn, fault)
    headers = refusals.headers(answer, request)
    written = rawjson.dumps([said] if turn.listed else said)
    return ServedReply(fault.status, [written], headers=headers, seconds=answer.seconds, cut=answer.cut)


def _written(turn: ProviderTurn, fault: ProviderFault) -> ProviderBody:
    """A fault as its provider words it."""
    return REFUSALS[turn.format].written(fault, turn.id("req_"), turn.answer)


def _folded(turn: ProviderTurn) -> list[ProviderBody]:
    """All that the user said, and one item that only the provider can read."""
    kept = [dict(item) for item in spoken(turn.body) if item.get("role") == "user"]
    return [*kept, {"type": "compaction", "id": turn.id("cmp_"), "encrypted_content": turn.answer.text}]
