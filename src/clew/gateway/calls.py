"""A call of a model, from a client to its provider and back."""

from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import aiohttp

from clew import wire
from clew.catalog.stated import served
from clew.clients.known import AGENTS, PROMPTS
from clew.control import ContextController
from clew.core import rawjson
from clew.core.items import Frame, Item, Scope
from clew.engine.engine import Engine
from clew.errors import BadRequest, ClewError, OverBudget, SecretFound, StoreError
from clew.exchange.answers import AnswerReader
from clew.exchange.exchange import Caller, Exchange, NotATurn
from clew.exchange.offering import are_offerable
from clew.exchange.thread import warn
from clew.gateway import own_answers, usage
from clew.gateway.compacting import Beside, Compactions, in_form
from clew.gateway.degraded import WAITING, SparedThread, SpareEngine
from clew.gateway.hidden import HiddenAsides
from clew.gateway.http import GatewayReply, GatewayRequest, Refused
from clew.gateway.line import Outgoing, PathModelLine, UpstreamLine
from clew.gateway.methods import METHOD_HEADER, ConversationMethods
from clew.gateway.metrics import Metrics
from clew.gateway.own_models import OwnModels
from clew.gateway.seals import Seals
from clew.gateway.settings import GatewaySettings, OfferedTools
from clew.gateway.speakers import KnownConversation, NamedConversation, speaker
from clew.gateway.upstreams import Upstreams, model_of
from clew.recognition.proof import taken
from clew.recognition.side_requests import SideRequest, side_request
from clew.steps.chapters.by_model import ByModel
from clew.steps.handoff import NEW_SESSION
from clew.store.waiting import patience
from clew.wire.convert.tools import declared
from clew.wire.formats.base import ApiCall
from clew.wire.requests import is_elsewhere, with_model


class ModelCalls:
    """Answers calls of models: fitted to their window, and from the log where a client wants to compact."""

    def __init__(
        self,
        engine: Engine,
        upstreams: Upstreams,
        settings: GatewaySettings,
        metrics: Metrics,
        when: str = "",
        how: str = "",
    ) -> None:
        self._engine, self._upstreams, self._settings, self._metrics = engine, upstreams, settings, metrics
        self._compactions = Compactions(engine)
        self.seals = Seals(engine.store.secret)
        self._methods = ConversationMethods(engine)
        self.deciding = ContextController(engine, when=when, how=how)
        self.deciding.method = "llm"
        # In `answer` a client decides, whom nobody tells: clew acts only just before it is too late.
        is_clients = settings.compaction == "answer"
        self._plain = ContextController(engine, offer=False, tell=False, is_clients=is_clients)
        self._looking = ContextController(engine, steer=False, tell=False, is_clients=is_clients)
        self._plain.method = self._looking.method = "llm" if is_clients else "auto"
        self._hidden = HiddenAsides(engine.store.secret)
        self.spare = SpareEngine(engine)
        self._own_models = OwnModels(settings.body)

    async def answer(
        self, asked: GatewayRequest, call: ApiCall, scope: Scope, http: aiohttp.ClientSession
    ) -> GatewayReply:
        """What a client gets."""
        raw = await (self.seals.open(scope, asked) if call.format == "openai_responses" else asked.body())
        given = with_model(raw, call.model)
        who = speaker(asked, raw)
        line = PathModelLine(http, asked, call.model) if call.model else UpstreamLine(http, asked)
        outgoing = self._outgoing(asked, call, given, raw)
        try:
            with patience(0 if self.spare.is_resting else WAITING):
                method = await self._methods.of(scope, who.name, asked.headers.get(METHOD_HEADER))
                origin = await self._engine.lineage.parent(scope, who.parent) if who.parent else None
        except Refused:
            raise
        except StoreError as error:
            if self._settings.closed:
                self._failed(error)
            method, origin = self._engine.settings.method, None
            self.spare.failed()
        except Exception as error:
            self._failed(error)
            return own_answers.marked(await self._passed(line, outgoing))
        whose = KnownConversation(scope, who.name, method, origin)
        offers = method == "llm" or are_wanted(self._settings.tools, asked.headers, given)
        try:
            own = self._own(call, whose, given, outgoing, http)
            return await self._fitted(call, whose, given, line, outgoing, offers, own)
        except NotATurn:
            pass
        # Rare, and read anew: what is new in it does not tell what it is about.
        beside = self._hidden.beside(whose, given, call.format)
        if not beside or not beside[0].form:
            return await self._passed(line, outgoing)
        words = await self._written(line, outgoing, call, beside[0]) if self._settings.summary == "own" else ""
        reply = await self._compacted(asked, call, scope, who, beside, words)
        return reply or await self._overheard(await self._passed(line, outgoing), whose, beside)

    async def _fitted(
        self,
        call: ApiCall,
        whose: KnownConversation,
        given: bytes,
        line: UpstreamLine,
        outgoing: Outgoing,
        offers: bool,
        own: ByModel | None,
    ) -> GatewayReply:
        """The answer of a model to what fits its window."""
        controller, body, asides = self._plain, None, None
        if offers:
            wanted = self.deciding if whose.method == "llm" else self._looking
            if body := offerable(given, call.format, wanted):
                controller, asides = wanted, self._hidden.of(whose, wire.named(call.format).split(body)[0])
        summing = list[SideRequest]()  # where clients compact as they like
        check = partial(_check_kept, summing) if self._settings.compaction == "pass" else _check
        by = outgoing.served
        thread = SparedThread(controller, whose.name, scope=whose.scope, origin=whose.origin, check=check, served=by)
        thread.own = own
        thread.spare = None if self._settings.closed else self.spare
        caller = Caller(lambda _: None, lambda error: error, self._failed, refused=(SecretFound, NotATurn))
        exchange = Exchange(thread, asides, line, outgoing, call.format, body or given, caller)
        reply: GatewayReply = await exchange.run()
        if summing and (beside := self._hidden.beside(whose, given, call.format)):
            reply = await self._overheard(reply, whose, beside)
        sent = thread.last
        if self._settings.compaction == "answer" and sent and sent.view.edits and reply.status_code < 400:
            reply = usage.scaled_reply(reply, call.format, len(given) / max(1, len(rawjson.dumps(sent.body))))
        if sent and thread.is_spared:
            return own_answers.marked(reply, own_answers.DEGRADED)
        return reply if sent else own_answers.marked(reply)

    def _own(
        self, call: ApiCall, whose: KnownConversation, given: bytes, outgoing: Outgoing, http: aiohttp.ClientSession
    ) -> ByModel | None:
        """The model of a conversation as one that writes chapters, where clew may ask it."""
        if self._settings.summary != "own" or self._engine.settings.author != "own":
            return None
        try:
            return self._own_models.author(whose.scope, call.format, call.model, given, outgoing, http)
        except BadRequest:  # its provider says what is wrong
            return None

    async def _overheard(self, reply: GatewayReply, whose: KnownConversation, beside: Beside) -> GatewayReply:
        try:
            note = self._settings.summary == "own"
            return await self._compactions.overheard(reply, whose.scope, whose.name, beside, note)
        except Exception as error:  # it is the model's own: what clew cannot do with it changes nothing
            warn("clew could not note whose summary it is", error)
            return reply

    async def _passed(self, line: UpstreamLine, outgoing: Outgoing) -> GatewayReply:
        answered = await line.send(outgoing)
        reply: GatewayReply = line.answered(answered, line.chunks(answered))
        return reply

    def _outgoing(self, asked: GatewayRequest, call: ApiCall, given: bytes, raw: bytes) -> Outgoing:
        model = call.model
        if not model and self._upstreams.needs_model(call.format):
            model = model_of(given)
        upstream = self._upstreams.find(call.format, model)
        by = served(upstream.name, asked.pairs)
        own_keys = bool(self._settings.keys)
        headers = upstream.headers(asked.pairs, own_keys)
        return Outgoing(upstream, asked.method, asked.target(own_keys), headers, raw, by)

    # --- compactions that clients ask for -----------------------------------------------------------------------------

    async def _written(self, line: UpstreamLine, outgoing: Outgoing, call: ApiCall, side: SideRequest) -> str:
        """What the client's own model writes for a client that compacts; nothing where it cannot, or only in a seal."""
        if side.form == "item":
            return ""
        answered = await line.send(outgoing)
        content = await line.read(answered)
        reader = AnswerReader(call.format)
        reader.hear(content)
        reader.hear(b"")
        spoken = reader.spoken() if answered.status_code < 400 else None
        return taken(spoken.text, side.form) if spoken and spoken.stop in ("end", "length") else ""

    async def _compacted(
        self,
        asked: GatewayRequest,
        call: ApiCall,
        scope: Scope,
        who: NamedConversation,
        beside: Beside,
        words: str = "",
    ) -> GatewayReply | None:
        """The answer to a client that compacts, behind the words of its model; None where that must give it."""
        side, frame, _ = beside
        text = await self._summary(scope, who.name, beside, words)
        if text is None and words:  # nobody knows whose it is: then it is the model's alone
            text = words
        if text is None:
            return None
        streamed = bool(frame.body.get("stream")) if call.streamed is None else call.streamed
        raw = await asked.body()
        if side.form == "item":
            turn = own_answers.turn_of(raw, text, frame.model, frame.format)
            return own_answers.responded(turn, self.seals.sealed(scope, text), streamed)
        alt = "sse" if "alt=sse" in asked.query else ""
        return own_answers.answer(
            own_answers.turn_of(raw, in_form(text, side), frame.model, call.format), streamed, alt
        )

    async def compact(self, asked: GatewayRequest, scope: Scope) -> GatewayReply | None:
        """The answer to a client that has a history compacted, in one item; None where the provider must give it."""
        raw = await self.seals.open(scope, asked)
        if self._settings.compaction == "pass":
            return None
        try:
            frame, items = wire.decode(rawjson.loads(raw), "openai_responses")
        except BadRequest:  # its provider says what is wrong
            return None
        if is_elsewhere(frame.body):
            return None
        side = SideRequest("request", "item", len(items))
        text = await self._summary(scope, speaker(asked, raw).name, (side, frame, items))
        if text is None:
            return None
        turn = own_answers.turn_of(raw, text, frame.model, frame.format)
        return own_answers.folded(turn, self.seals.sealed(scope, text))

    async def _summary(self, scope: Scope, session: str | None, beside: Beside, words: str = "") -> str | None:
        began = perf_counter()
        try:
            text = await self._compactions.summary(scope, session, *beside, words=words)
        except BadRequest:  # its provider says what is wrong
            return None
        except Exception as error:
            self._failed(error)
            return None
        if text is not None:
            self._metrics.add("clew_compactions_answered_total", format=beside[1].format)
            self._metrics.add("clew_compactions_answered_seconds_total", perf_counter() - began)
        return text

    def _failed(self, error: Exception) -> None:
        """Clew could not do its part."""
        if isinstance(error, OverBudget):  # its provider, who may count otherwise, says whether it is too long
            self._metrics.add("clew_not_fitted_total")
            warn("a request does not fit, and is sent as it came", error)
            return
        if self._settings.closed:
            raise Refused(503, f"clew failed on this request ({type(error).__name__}), and gateway.closed is on")
        self._metrics.add("clew_failed_open_total", error=type(error).__name__)
        warn("clew failed; the original request is sent unchanged", error)


def _check(frame: Frame, items: Sequence[Item]) -> None:
    """Raise `NotATurn` for what a client asks beside its conversation, and where that is kept by its provider."""
    if side_request(frame, items):
        raise NotATurn("it is asked beside a conversation")
    _check_kept([], frame, items)


def _check_kept(summing: list[SideRequest], frame: Frame, items: Sequence[Item]) -> None:
    """Raise it only for the latter, and for a name; what asks for a summary is put into the list."""
    if is_elsewhere(frame.body):
        raise NotATurn("its provider keeps the conversation")
    if side := side_request(frame, items):
        if not side.form:
            raise NotATurn("a name is no conversation")
        summing.append(side)


def are_wanted(tools: OfferedTools, headers: Mapping[str, str], raw: bytes) -> bool:
    """Whether a client shall have them: as it was set, else if it is known to take them well."""
    if tools != "auto":
        return tools
    return headers.get("user-agent", "").lower().startswith(AGENTS) or any(prompt in raw for prompt in PROMPTS)


def offerable(raw: bytes, format: str, controller: ContextController) -> Mapping[str, Any] | None:
    """The body, where tools of clew's can be offered in it: where a client has none, nobody expects a call."""
    try:
        body = rawjson.loads(raw)
        if not isinstance(body, dict) or not declared(body, format):
            return None
    except ClewError:
        return None
    own = controller.is_ours
    return body if are_offerable(body, format, own, always=own(NEW_SESSION)) else None
