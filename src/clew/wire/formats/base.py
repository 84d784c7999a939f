"""What a wire format is: a body to frame and items and back, and all in which its provider differs from others."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_
from typing import Any, ClassVar, Literal, NamedTuple

from clew.core.items import Frame, Item
from clew.errors import BadRequest, ModelError
from clew.wire.formats.media import Media
from clew.wire.formats.plain import Block
from clew.wire.formats.tools import Choice, ToolDeclaration
from clew.wire.rules.turns import Rule
from clew.wire.streams.building import AnswerBuilder
from clew.wire.streams.joined import IsOurs, JoinedStream


class ParameterKeys(NamedTuple):
    """How the parameters of a request are called; empty: there is none."""

    limit: str
    temperature: str = "temperature"
    top_p: str = "top_p"
    stream: str = "stream"
    stop: str = "stop"
    holder: str = ""  # the object that has them, beside what it is in


ApiAct = Literal["answer", "count", "compact"]


class ApiCall(NamedTuple):
    """What a path asks of a provider."""

    format: str
    act: ApiAct = "answer"
    model: str = ""  # where the path says it, and not the body
    streamed: bool | None = None  # the same


class Provider(NamedTuple):
    """Whose API it is."""

    kind: str  # as a configuration names it
    home: str
    variables: tuple[str, ...]  # of the environment, with a key
    header: str = "authorization"  # in which it wants the key


class CallResult(NamedTuple):
    """The outcome of one call among others."""

    id: str
    name: str
    text: str
    failed: bool = False


class ModelQuestion(NamedTuple):
    """What a model is asked, by itself or after a request."""

    text: str
    limit: int  # tokens of the answer
    model: str
    system: str = ""
    after: Block | None = None
    like: Mapping[str, Any] = {}  # a request that names parameters as its server knows them


class Format:
    """One wire format. What is the same in most of them is written here; the others say what theirs is."""

    NAME: ClassVar[str]
    number: ClassVar[int | None] = None  # what logs on disk have in place of its name, if they have not the name
    LIST: ClassVar[str]  # the key under which a body has its history
    RULES: ClassVar[Sequence[Rule]]  # what its provider refuses

    provider: ClassVar[Provider | None] = None  # to whom requests go on
    parameters: ClassVar[ParameterKeys]
    model_key: ClassVar[str] = "model"
    paths: ClassVar[Mapping[str, ApiAct]] = {}  # what a path at the root of its API asks for
    usage_keys: ClassVar[Sequence[str]] = ()  # of a report: what was read, and the sum where there is one
    counted_answer: ClassVar[Sequence[str]] = ()  # parameters that its provider adds to what it reads
    user_first: ClassVar[bool] = False  # the user has to speak first
    says_system: ClassVar[bool] = False  # system messages may stand anywhere
    refuses_empty_text: ClassVar[bool] = False
    refuses_empty_results: ClassVar[bool] = False
    declares_calls: ClassVar[bool] = False  # a history with calls needs tools declared
    names_results: ClassVar[bool] = False  # a result names its tool
    joins_results: ClassVar[bool] = False  # one message has all results
    signs_first_call: ClassVar[bool] = False  # of calls made together, that one alone
    least_limit: ClassVar[int | None] = None  # tokens of an answer where nobody named any: it wants a number
    warmest: ClassVar[float | None] = None  # the temperature that is too much
    mark: ClassVar[Block | None] = None  # how the end of a cached prefix is marked
    keeps_marks: ClassVar[bool] = False  # marks mean the same as in others
    fixed: ClassVar[Mapping[str, Any]] = {}  # what a request made from another one says beside

    streams_lists: ClassVar[bool] = False  # unless events are asked for
    end_of_stream: ClassVar[bytes] = b""  # after the last event

    # The body.

    def split(self, body: Mapping[str, Any]) -> tuple[Frame, list[Any]]:
        """The frame of a body, and the messages that are history."""
        raise NotImplementedError

    def join(self, frame: Frame, messages: Sequence[Block]) -> Block:
        """The body of a frame and these messages."""
        raise NotImplementedError

    def read(self, message: Any, where: str) -> list[Item]:
        """The items of a message."""
        raise NotImplementedError

    def write(self, items: Iterable[Item]) -> list[Block]:
        """The messages of these items."""
        raise NotImplementedError

    # The frame.

    def system(self, text: str) -> Block:
        """What a body has where it says this to the model."""
        return {"system": text}

    def lead(self, text: str) -> list[Block]:
        """The messages that say it, where it is one of them."""
        return []

    def parameter_holder(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The object that has the parameters of a body."""
        holder = self.parameters.holder
        held = body.get(holder) if holder else body
        return held if isinstance(held, Mapping) else {}

    def with_parameters(self, told: Mapping[str, Any]) -> Block:
        """What a body has where these parameters, under names of our own, are set."""
        keys = self.parameters
        written = {key: told[name] for name, key in keys._asdict().items() if key and name in told}
        return {keys.holder: written} if keys.holder and written else written

    # Tools.

    def read_choice(self, body: Mapping[str, Any]) -> Choice:
        """Which of its tools a body wants to be called."""
        raise NotImplementedError

    def write_tools(self, tools: list[ToolDeclaration], choice: Choice) -> Block:
        """These tools as a body declares them, with the choice among them."""
        raise NotImplementedError

    def declared(self, frame: Frame) -> list[Any]:
        """What a frame declares."""
        return list(frame.tools)

    def added_tools(self, body: Mapping[str, Any]) -> list[Any]:
        """The tools that stand before the history itself."""
        return []

    def declaring(self, tools: list[Any]) -> Block:
        """What a body has where it declares these tools, which are in this format already."""
        return {"tools": tools}

    def with_tools(self, body: Mapping[str, Any], tools: list[ToolDeclaration]) -> Block:
        """The body with these tools after its own."""
        return {**body, "tools": [*(body.get("tools") or ()), *self.write_tools(tools, Choice())["tools"]]}

    def plain_schema(self, schema: Any) -> Any:
        """The schema of a tool in the language of JSON schema."""
        return schema

    # Calls, results, media.

    def written_call(self, id: str, name: str, arguments: str) -> Block | None:
        """A call that another provider's model made; None: as any call is written."""
        return None

    def content_of(self, result: Item) -> Any:
        """The blocks that a result gave back, where there are blocks."""
        return (result.wire or {}).get("content")

    def has_failed(self, result: Item) -> bool:
        """Whether a result says that its call failed."""
        return False

    def shown(self, media: Media) -> Block | None:
        """What shows it inside of a result."""
        return self.write_media(media)

    def with_parts(self, result: Item, parts: Sequence[str | Block], failed: bool) -> Item:
        """A result that says these texts and shows these things."""
        return result

    def read_media(self, block: Mapping[str, Any]) -> Media | str | None:
        """What a block shows; a document of plain text is that text, and None is nothing to show."""
        raise NotImplementedError

    def write_media(self, media: Media) -> Block | None:
        """The block that shows it; None where the provider would refuse it."""
        raise NotImplementedError

    def arranged(self, items: list[Item]) -> list[Item]:
        """A history that came from another format, with no more and nothing in other places than its provider takes."""
        return items

    def for_model(self, model: str, items: list[Item]) -> list[Item]:
        """The same, for what only some of its models take."""
        return items

    # What a host says.

    def with_tail(self, messages: list[Any], text: str) -> list[Any]:
        """The messages with a trailing system message, or a trailing text of the user's where that is forbidden."""
        return [*messages, {"role": "system", "content": text}]

    def results(self, results: Sequence[CallResult]) -> list[Block]:
        """The messages that answer calls: all of them together, as providers want it."""
        raise NotImplementedError

    def begun(self, text: str) -> Block:
        """What the assistant had said when somebody cancelled, as a message."""
        return {"role": "assistant", "content": text}

    def asked(self, text: str) -> Block:
        """What a user typed, as a message."""
        return {"role": "user", "content": text}

    def question(self, asked: ModelQuestion) -> Block:
        """The body that asks it; `after` is the body's to change."""
        raise ModelError(f"nobody is asked in the format {self.NAME}", "refused")

    # What a server says.

    def read_request(self, path: str) -> ApiCall | None:
        """What a path at the root of a provider's API asks for; None: nothing of this kind."""
        return ApiCall(self.NAME, self.paths[path]) if path in self.paths else None

    def read_request_below(self, path: str) -> ApiCall | None:
        """The same where a base URL may have a path of its own."""
        return next((ApiCall(self.NAME, act) for known, act in self.paths.items() if path.endswith(known)), None)

    def is_spoken(self, path: str, headers: Container[str]) -> bool:
        """Whether a client that asks for nothing that is known speaks it."""
        return False

    def counted(self, tokens: int) -> Block:
        """The answer to a request that only counts."""
        return {"input_tokens": tokens}

    def error(self, status: int, message: str, code: str | None = None) -> Block:
        """What a client is told that something is wrong."""
        kind = _OPENAI_KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def answer_block(self, text: str, model: str, read: int, written: int) -> Block:
        """An answer that says a text and that no model gave; `read` and `written` are the tokens it reports."""
        raise BadRequest(f"answers in the format {self.NAME} are not given here")

    def events(self, whole: Block) -> Iterator[tuple[str, Block]]:
        """The same as it is streamed: the name of each event, and what it says."""
        raise BadRequest(f"answers in the format {self.NAME} are not given here")

    def answer(self) -> AnswerBuilder:
        """What puts an answer together."""
        raise BadRequest(f"answers in the format {self.NAME} are not read here")

    def joined(self, is_ours: IsOurs) -> JoinedStream:
        """One stream for a caller, out of several answers."""
        raise BadRequest(f"answers in the format {self.NAME} are not read here")

    def without(self, answer: Any, calls: Container[str], left: bool) -> Any:
        """A whole answer without some of its calls; `left` says whether there are others in it."""
        raise BadRequest(f"answers in the format {self.NAME} are not read here")


_OPENAI_KINDS = {401: "invalid_request_error", 429: "rate_limit_exceeded"}


def texts(parts: Sequence[str | Block], text: Block) -> list[Block]:
    """The parts of a result as blocks, of which `text` is one of a text."""
    return [text | {"text": part} if isinstance(part, str) else part for part in parts if part and part != "\n"]


def with_block(messages: list[Any], block: Block) -> list[Any]:
    """Messages whose last one is the user's and ends with this block."""
    if not messages or messages[-1].get("role") != "user":
        return [*messages, {"role": "user", "content": [block]}]
    last = messages[-1]
    content = last.get("content") or []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return [*messages[:-1], {**last, "content": [*blocks, block]}]


def is_seen(parts: Sequence[str | Block]) -> bool:
    """Whether there is more than words."""
    return any(not isinstance(part, str) for part in parts)


def with_wire(result: Item, block: Block) -> Item:
    """A result that its format writes as this block."""
    return with_(result, wire=block)
