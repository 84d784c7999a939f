"""boto3's client of Bedrock: the requests of `converse` and `converse_stream` fit, through the events of the client.

They are changed before they are signed, made shorter where the model finds them too long, and listened to for usage.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any
from urllib.parse import unquote

from clew.adapters.host import Host
from clew.adapters.hosted import Hosted
from clew.adapters.wrapping.clients import BEDROCK, passable
from clew.catalog.usage import spent
from clew.core import rawjson
from clew.core.bridge import cross, run
from clew.core.items import Node, Scope
from clew.core.threads import in_thread_of_its_own
from clew.core.view import View
from clew.engine.engine import Engine
from clew.errors import ClewError
from clew.exchange.exchange import MENDS, RAISED
from clew.exchange.thread import Thread, best, warn
from clew.steps.chapters.model import Prompt, Reply
from clew.store.records import Origin

CONVERSE = ("Converse", "ConverseStream")
CONVERSE_PATH = re.compile(r"/model/([^/]+)/converse(?:-stream)?$")
CONVERSE_FORMAT = "bedrock"
CALL_KEY = "clew"  # under which a call has its conversation in botocore's context of it


_asking: ContextVar[bool] = ContextVar("clew_asking", default=False)  # clew itself


class _ConverseCall:
    """A call under way: its conversation, and the body that it began with."""

    def __init__(self, thread: Thread, body: Mapping[str, Any]) -> None:
        self.thread = thread
        self.body = body
        self.mends = MENDS


class BedrockKeeper:
    """What stands behind a wrapped client, as its attribute `clew`."""

    def __init__(
        self, client: Any, engine: Engine, session: str | None, scope: Scope, origin: Origin | None = None
    ) -> None:
        self._host = Host(engine, method="auto", offer=False, tell=False)
        self.controller = self._host.controller()
        self.session = session
        self.scope = scope
        self.last: View | None = None  # what was last sent, in whichever conversation
        self._several = False  # conversations were there
        self._client = client
        self._origin = origin
        for name, handler in self._handlers():
            client.meta.events.register_first(name, handler)
        client.clew = self

    @property
    def engine(self) -> Engine:
        return self.controller.engine

    async def recall(self, id: str) -> Sequence[Node]:
        """The originals that an id stands for; from blocking code, `clew.run(client.clew.recall(id))`."""
        return await cross(self.engine.recall(self.scope, id))

    def child(self, name: str, client: Any) -> Any:
        """Wrap another client for a sub-agent, whose lineage hangs under what was last sent."""
        if self.last is None:
            raise ClewError("child() needs a parent request: send one first")
        thread = Thread(self.controller, self.session, scope=self.scope)
        # Without a name, what was sent last may be another conversation's.
        origin = Origin("beside" if self._several and self.session is None else "subagent", self.last.branch)
        BedrockKeeper(client, self.engine, thread.name_of_child(name), self.scope, origin)
        return client

    def unwrap(self) -> None:
        """Leave the client as it was."""
        for name, handler in self._handlers():
            self._client.meta.events.unregister(name, handler)
        del self._client.clew

    def _handlers(self) -> Iterator[tuple[str, Any]]:
        for operation in CONVERSE:
            yield f"before-call.{BEDROCK}.{operation}", self._fit
            yield f"needs-retry.{BEDROCK}.{operation}", self._mend
            yield f"after-call.{BEDROCK}.{operation}", self._hear

    def _fit(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        """Have what fits sent instead of a request, which is signed later."""
        found = None if _asking.get() else CONVERSE_PATH.search(params["url_path"])
        try:
            body = rawjson.loads(params["body"]) if found else None
        except ClewError:  # what is wrong with it is its provider's to say
            return
        if not found or not isinstance(body, dict) or not body.get("messages"):
            return
        model = unquote(found[1])
        own = self._host.author(Hosted(model, partial(self._asked, model)))
        thread = Thread(self.controller, self.session, scope=self.scope, origin=self._origin, own=own)
        context[CALL_KEY] = _ConverseCall(thread, {"modelId": model, **body})
        self._put(context[CALL_KEY], params)

    async def _asked(self, model: str, prompt: Prompt) -> Reply:
        """What a model says to a question of clew's, through the same client and all events of it."""
        system = {"system": [{"text": prompt.system}]} if prompt.system else {}
        said = [{"role": "user", "content": [{"text": prompt.text}]}]
        limit = {"maxTokens": prompt.max_tokens}
        ask = partial(self._client.converse, modelId=model, messages=said, inferenceConfig=limit, **system)
        token = _asking.set(True)
        try:
            answer = await in_thread_of_its_own(ask)
        finally:
            _asking.reset(token)
        text = "".join(block.get("text", "") for block in answer["output"]["message"]["content"])
        return Reply(text, spent(answer["usage"]), cut=answer["stopReason"] == "max_tokens")

    def _put(self, call: _ConverseCall, request: dict[str, Any]) -> None:
        try:
            sent = run(call.thread.fit(call.body, CONVERSE_FORMAT))
        except RAISED as error:
            failure = passable(error, self._client)
        except Exception as error:
            warn("clew failed; the original request is sent unchanged", error)
            return
        else:
            self._several |= self.last is not None and self.last.branch != sent.view.branch
            self.last = sent.view
            if not sent.is_as_it_came:
                told = {key: value for key, value in sent.body.items() if key != "modelId"}
                request["body"] = rawjson.dumps(told)
            return
        raise failure

    def _mend(self, request_dict: dict[str, Any], response: Any = None, **_: Any) -> int | None:
        """Nought seconds to wait before a shorter request is tried; None where this is not to be."""
        call = request_dict["context"].get(CALL_KEY)
        error = response[1].get("Error") if response else None
        if call is None or error is None or not call.mends:
            return None
        call.mends -= 1
        if not run(best(call.thread.refused(f"{error.get('Code')}: {error.get('Message')}"), False)):
            return None
        self._put(call, request_dict)
        return 0

    def _hear(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        """Take note of what the provider counted, at the end of a stream too."""
        if call := context.pop(CALL_KEY, None):
            _observe(call.thread, parsed)
            if "stream" in parsed:
                parsed["stream"] = _HeardStream(parsed["stream"], call.thread)


class _HeardStream:
    """botocore's stream of events, which is listened to."""

    def __init__(self, stream: Any, thread: Thread) -> None:
        self._stream = stream
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        for event in self._stream:
            _observe(self._thread, event.get("metadata") or {})
            yield event


def _observe(thread: Thread, told: Mapping[str, Any]) -> None:
    if usage := told.get("usage"):
        run(best(thread.heard(usage), None))
