"""Google's generateContent."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace as with_
from typing import Any
from urllib.parse import unquote

from clew.core import rawjson
from clew.core.items import Item
from clew.wire.formats.base import (
    ApiAct,
    ApiCall,
    CallResult,
    Format,
    ModelQuestion,
    ParameterKeys,
    Provider,
    is_seen,
    with_wire,
)
from clew.wire.formats.gemini import codec, media, tools, writing
from clew.wire.formats.gemini.answers import GeminiAnswer
from clew.wire.formats.gemini.calls import without
from clew.wire.formats.gemini.codec import LIST, NAME, RESPONSE, id_of, identified
from clew.wire.formats.gemini.joining import GeminiStream
from clew.wire.formats.gemini.rules import RULES
from clew.wire.formats.media import Media
from clew.wire.formats.plain import Block
from clew.wire.formats.tools import object_at

__all__ = ["LIST", "NAME", "Gemini", "id_of", "identified"]

# Google's word for calls that its model did not make: Gemini 3 refuses a call without a signature.
# (ai.google.dev/gemini-api/docs/thought-signatures, under FAQs; the same on Vertex AI)
UNSIGNED = "skip_thought_signature_validator"
OLD_GEMINI = re.compile(r"gemini-[12]\b")  # sees no pictures inside results
ACTS = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)$")
ROOTS = ("/v1", "/v1beta", "/v1alpha")
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Gemini(Format):
    """Contents with parts; results must stand by themselves, and name their tools."""

    NAME, LIST, RULES = NAME, LIST, RULES
    number = 3
    provider = Provider(
        NAME, "https://generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "x-goog-api-key"
    )
    answer, joined = staticmethod(GeminiAnswer), staticmethod(GeminiStream)
    answer_block, events = staticmethod(writing.answer_block), staticmethod(writing.events)
    split, join = staticmethod(codec.split), staticmethod(codec.join)
    read, write = staticmethod(codec.read), staticmethod(codec.write)
    read_choice, write_tools = staticmethod(tools.read_choice), staticmethod(tools.write_tools)
    read_media, write_media = staticmethod(media.read_media), staticmethod(media.write_media)
    plain_schema = staticmethod(tools.lowered)
    parameters = ParameterKeys("maxOutputTokens", "temperature", "topP", "", "stopSequences", "generationConfig")
    usage_keys = ("promptTokenCount", "totalTokenCount")
    user_first = refuses_empty_text = names_results = joins_results = signs_first_call = streams_lists = True

    def system(self, text: str) -> Block:
        return {"systemInstruction": {"parts": [{"text": text}]}}

    def parameter_holder(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        body = tools.camel_keys(body)
        return {**object_at(body, "config"), **object_at(body, self.parameters.holder)}

    def written_call(self, id: str, name: str, arguments: str) -> Block:
        called = {"id": id, "name": name, "args": rawjson.loads(arguments)}
        return {"functionCall": called, "thoughtSignature": UNSIGNED}

    def content_of(self, result: Item) -> Any:
        parts = _inner(result).get("parts")
        return [{"text": result.text}, *parts] if isinstance(parts, list) else None

    def has_failed(self, result: Item) -> bool:
        return object_at(_inner(result), "response").keys() == {"error"}

    def shown(self, media: Media) -> Block | None:
        block = self.write_media(media)
        return block if block is not None and "inlineData" in block else None

    def with_parts(self, result: Item, parts: Sequence[str | Block], failed: bool) -> Item:
        if not result.name or not (failed or is_seen(parts)):
            return result
        said = {"id": result.call_id, "name": result.name, "response": {"error" if failed else "result": result.text}}
        shown = [part for part in parts if not isinstance(part, str)]
        return with_wire(result, {"functionResponse": said | ({"parts": shown} if shown else {})})

    def for_model(self, model: str, items: list[Item]) -> list[Item]:
        return [part for item in items for part in _apart(item)] if OLD_GEMINI.search(model) else items

    def with_tail(self, messages: list[Any], text: str) -> list[Any]:
        return [*messages, {"role": "user", "parts": [{"text": text}]}]

    def results(self, results: Sequence[CallResult]) -> list[Block]:
        said = [{"name": r.name, "response": {"error" if r.failed else "result": r.text}} for r in results]
        parts = [{"functionResponse": identified(r.id) | one} for r, one in zip(results, said, strict=True)]
        return [{"role": "user", "parts": parts}] if parts else []

    def begun(self, text: str) -> Block:
        return {"role": "model", "parts": [{"text": text}]}

    def question(self, asked: ModelQuestion) -> Block:
        body = asked.after or {LIST: [], **(self.system(asked.system) if asked.system else {})}
        key = "generation_config" if "generation_config" in body else "generationConfig"
        config = body.get(key) or {}
        thinking = config.get("thinkingConfig") or config.get("thinking_config") or {}
        budget = thinking.get("thinkingBudget", thinking.get("thinking_budget")) or 0
        most = "max_output_tokens" if "max_output_tokens" in config else "maxOutputTokens"
        limited = {**config, most: asked.limit + max(0, budget)}
        return {**body, key: limited, LIST: [*body[LIST], self.asked(asked.text)]}

    def asked(self, text: str) -> Block:
        return {"role": "user", "parts": [{"text": text}]}

    def read_request(self, path: str) -> ApiCall | None:
        """The path names the model, too."""
        found = ACTS.search(path)
        return _call(found) if found and path[: found.start()] in ROOTS else None

    def read_request_below(self, path: str) -> ApiCall | None:
        return _call(found) if (found := ACTS.search(path)) else None

    def is_spoken(self, path: str, headers: Container[str]) -> bool:
        return path.startswith("/v1beta/") or "x-goog-api-key" in headers

    def counted(self, tokens: int) -> Block:
        return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}

    def error(self, status: int, message: str, code: str | None = None) -> Block:
        kind = STATUSES.get(status, "INTERNAL" if status >= 500 else "FAILED_PRECONDITION")
        return {"error": {"code": status, "message": message, "status": kind}}

    def without(self, answer: Any, calls: Container[str], left: bool) -> Any:
        return without(answer, calls)


def _call(found: re.Match[str]) -> ApiCall:
    act: ApiAct = "count" if found[2] == "countTokens" else "answer"
    return ApiCall(NAME, act, unquote(found[1]), found[2] == "streamGenerateContent")


def _inner(result: Item) -> Mapping[str, Any]:
    wire = result.wire or {}
    return next((held for key in RESPONSE if isinstance(held := wire.get(key), Mapping)), {})


def _apart(item: Item) -> Iterator[Item]:
    """A result, and beside it what it shows."""
    match item.wire:
        case {"functionResponse": {"parts": list(parts), **rest}}:
            yield with_(item, wire={"functionResponse": rest})
            yield from (Item("media", "user", wire=part) for part in parts)
        case _:
            yield item
