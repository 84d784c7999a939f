"""Several answers as one stream: `joined` is what all formats have in common."""

from collections.abc import Callable, Mapping

from clew.adapters.wrapping.joining.chat import ChatStream
from clew.adapters.wrapping.joining.joined import IsOurs, JoinedStream
from clew.adapters.wrapping.joining.messages import MessagesStream
from clew.adapters.wrapping.joining.responses import ResponsesStream

__all__ = ["STREAMS", "JoinedStream"]

STREAMS: Mapping[str, Callable[[IsOurs], JoinedStream]] = {
    "openai_chat": ChatStream,
    "openai_responses": ResponsesStream,
    "anthropic": MessagesStream,
}
