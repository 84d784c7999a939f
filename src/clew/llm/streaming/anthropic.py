"""Speakers of Anthropic's API, or of a server that speaks it."""

from typing import Any

from clew.llm.anthropic import AnthropicModel, connect
from clew.llm.streaming.remote import RemoteSpeaker
from clew.wire.formats import anthropic as wire
from clew.wire.formats.anthropic.answers import MessagesAnswer


class AnthropicSpeaker(RemoteSpeaker):
    """A model of Anthropic, or of a server at `base_url`, which gets no key but `api_key`."""

    sdk = AnthropicModel.sdk
    format = wire.NAME
    path = "/v1/messages"
    answer = MessagesAnswer

    def _connect(self) -> Any:
        return connect(self._base_url, self._api_key, self._http())
