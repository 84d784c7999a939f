"""Several answers as one stream: `joined` is what all formats have in common."""

from collections.abc import Callable, Mapping

from clew.exchange.joining.chat import ChatStream
from clew.exchange.joining.gemini import GeminiStream
from clew.exchange.joining.joined import IsOurs, JoinedStream
from clew.exchange.joining.messages import MessagesStream
from clew.exchange.joining.responses import ResponsesStream

__all__ = ["STREAMS", "JoinedStream"]

STREAMS: Mapping[str, Callable[[IsOurs], JoinedStream]] = {
    "openai_chat": ChatStream,
    "openai_responses": ResponsesStream,
    "anthropic": MessagesStream,
    "gemini": GeminiStream,
}
