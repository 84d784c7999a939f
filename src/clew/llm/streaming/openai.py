"""Speakers of OpenAI's two APIs; the older one is also that of most other servers."""

from collections.abc import Mapping
from typing import Any

from clew.errors import ModelError
from clew.llm.openai import OpenAIModel, connect
from clew.llm.streaming.remote import RemoteSpeaker
from clew.wire.formats import openai_chat, openai_responses
from clew.wire.formats.openai_chat.answers import ChatAnswer
from clew.wire.formats.openai_responses.answers import ResponsesAnswer


class ResponsesSpeaker(RemoteSpeaker):
    """A model of OpenAI over Responses, or of a server at `base_url`, which gets no key but `api_key`."""

    sdk = OpenAIModel.sdk
    format = openai_responses.NAME
    path = "/responses"
    answer = ResponsesAnswer

    def _connect(self) -> Any:
        return connect(self._base_url, self._api_key, self._http())


class ChatSpeaker(RemoteSpeaker):
    """A model over Chat Completions, of OpenAI or a server at `base_url`, which gets no key but `api_key`."""

    sdk = OpenAIModel.sdk
    format = openai_chat.NAME
    path = "/chat/completions"
    answer = ChatAnswer

    _reports = True  # whether the server takes the wish for usage; known once it refused

    def _connect(self) -> Any:
        return connect(self._base_url, self._api_key, self._http())

    async def _open(self, body: Mapping[str, Any]) -> Any:
        if self._reports:
            try:
                options = {**(body.get("stream_options") or {}), "include_usage": True}
                return await super()._open({**body, "stream_options": options})
            except ModelError as error:
                refused = error.fault == "refused" and ("stream_options" in str(error) or "include_usage" in str(error))
                if not refused or "stream_options" in body:
                    raise
            self._reports = False
        return await super()._open(body)
