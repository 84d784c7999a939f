"""OpenAI's Chat Completions, which most others speak, too."""

from collections.abc import Container, Mapping, Sequence
from typing import Any, ClassVar

from clew.core.items import Frame
from clew.wire.formats.base import ApiAct, ApiCall, CallResult, Format, ModelQuestion, ParameterKeys, Provider
from clew.wire.formats.media import Media
from clew.wire.formats.openai_chat import codec, media, tools, writing
from clew.wire.formats.openai_chat.answers import ChatAnswer
from clew.wire.formats.openai_chat.codec import LIST, NAME, REASONING
from clew.wire.formats.openai_chat.joining import ChatStream
from clew.wire.formats.openai_chat.rules import RULES
from clew.wire.formats.plain import Block

__all__ = ["LIST", "NAME", "OPENAI", "REASONING", "OpenAIChat"]


OPENAI = Provider("openai", "https://api.openai.com", ("OPENAI_API_KEY",))


class OpenAIChat(Format):
    """System messages and results are messages; a result is words."""

    end_of_stream = b"data: [DONE]\n\n"
    NAME, LIST, RULES = NAME, LIST, RULES
    number = 0
    provider = OPENAI
    answer, joined = staticmethod(ChatAnswer), staticmethod(ChatStream)
    answer_block, events = staticmethod(writing.answer_block), staticmethod(writing.events)
    split, join = staticmethod(codec.split), staticmethod(codec.join)
    read, write = staticmethod(codec.read), staticmethod(codec.write)
    read_choice, write_tools = staticmethod(tools.read_choice), staticmethod(tools.write_tools)
    read_media, write_media = staticmethod(media.read_media), staticmethod(media.write_media)
    parameters = ParameterKeys("max_completion_tokens")
    paths: ClassVar[Mapping[str, ApiAct]] = {"/v1/chat/completions": "answer"}
    usage_keys = ("prompt_tokens", "total_tokens")
    counted_answer = ("max_completion_tokens", "max_tokens")
    says_system = keeps_marks = True

    def question(self, asked: ModelQuestion) -> Block:
        body = asked.after or {LIST: [{"role": "system", "content": asked.system}] if asked.system else []}
        newest, older = self.parameters.limit, "max_tokens"
        there = asked.after if asked.after and {newest, older} & asked.after.keys() else asked.like
        limit = older if older in there and (newest not in there or there is asked.like) else newest
        return {**body, LIST: [*body[LIST], self.asked(asked.text)], limit: asked.limit}

    def system(self, text: str) -> Block:
        return {}

    def lead(self, text: str) -> list[Block]:
        return [{"role": "system", "content": text}] if text.strip() else []

    def parameter_holder(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"max_completion_tokens": body.get("max_tokens"), **body}

    def declared(self, frame: Frame) -> list[Any]:
        functions = frame.body.get("functions")  # as tools were called at first
        return [*frame.tools, *(functions if isinstance(functions, list) else ())]

    def shown(self, media: Media) -> Block | None:
        return None

    def read_request_below(self, path: str) -> ApiCall | None:
        """Such a URL need not end with a version."""
        return ApiCall(NAME) if path.endswith("/chat/completions") else None

    def results(self, results: Sequence[CallResult]) -> list[Block]:
        return [{"role": "tool", "tool_call_id": r.id, "content": r.text} for r in results]

    def without(self, answer: Any, calls: Container[str], left: bool) -> Any:
        for choice in answer.get("choices") or ():
            message = {key: value for key, value in choice["message"].items() if key != "tool_calls"}
            kept = [call for call in choice["message"].get("tool_calls") or () if call.get("id") not in calls]
            choice["message"] = message | ({"tool_calls": kept} if kept else {})
            if not left and choice.get("finish_reason"):  # who has nothing to call has ended
                choice["finish_reason"] = "stop"
        return answer
