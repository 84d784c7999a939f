"""Models behind Anthropic's API, or a server that speaks it."""

from typing import Any

from clew.errors import MissingExtra
from clew.llm import replies, requests
from clew.llm.remote import NO_KEY, RemoteModel
from clew.steps.chapters.model import Prompt, Reply

try:
    import anthropic
except ImportError:
    raise MissingExtra("Anthropic models need the SDK", "anthropic") from None


def connect(base_url: str | None, api_key: str | None, http: Any) -> anthropic.AsyncAnthropic:
    """A client of Anthropic, or of a server at an address."""
    key = api_key or (NO_KEY if base_url else None)
    client = anthropic.AsyncAnthropic(api_key=key, base_url=base_url, http_client=http)
    if not (client.api_key or client.auth_token or client.credentials):
        raise anthropic.AnthropicError("no API key; set ANTHROPIC_API_KEY")
    return client


class AnthropicModel(RemoteModel):
    """A model of Anthropic, or of a server at `base_url`, which gets no key but `api_key`."""

    sdk = anthropic

    def _connect(self) -> anthropic.AsyncAnthropic:
        return connect(self._base_url, self._api_key, self._http())

    async def __call__(self, prompt: Prompt) -> Reply:
        answer = await self._post("/v1/messages", requests.messages(prompt, self.name))
        return replies.read(answer, replies.messages)
