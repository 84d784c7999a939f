"""What OpenAI refuses, by each of its two formats."""

from collections.abc import Mapping

from clew.testing.provider.faults import ProviderFault, Refusals, exceeded
from clew.wire.streams.writing import ProviderBody


class ChatRefusals(Refusals):
    """What OpenAI says of Chat Completions."""

    def lacking(self, body: ProviderBody, headers: Mapping[str, str], counts: bool) -> ProviderFault | None:
        if found := super().lacking(body, headers, counts):
            return found
        if body.get("stream_options") is None or body.get("stream"):
            return None
        words = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        return ProviderFault(400, "invalid_request_error", words, None, "stream_options")


class ResponsesRefusals(Refusals):
    """What OpenAI says of Responses."""

    def too_long(self, body: ProviderBody, asked: int, window: int) -> ProviderFault | None:
        """It names no number."""
        words = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return exceeded(words, "input") if asked > window else None
