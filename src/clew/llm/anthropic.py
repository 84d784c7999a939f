"""Models behind Anthropic's API, or a server that speaks it."""

from typing import Any

from clew.core.view import View
from clew.errors import MissingExtra, ModelError
from clew.llm import replies, requests
from clew.llm.remote import NO_KEY, RemoteModel
from clew.steps.notes.model import Prompt, Reply
from clew.wire.formats import anthropic as wire

try:
    import anthropic
except ImportError:
    raise MissingExtra("Anthropic models need the SDK: pip install 'clew[anthropic]'") from None

_BETA = "compact-2026-01-12"
_LEAST = 50_000  # tokens: it compacts no request below
_ANSWER = 8_192  # tokens: the API wants a limit, and a view without one is not from its client


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

    async def compact(self, view: View) -> list[dict[str, Any]]:
        """The blocks that Anthropic itself puts in place of a view's messages, verbatim."""
        body = {"max_tokens": _ANSWER, **requests.live(view, wire.NAME, self.name), "model": self.name}
        managed = dict(body.get("context_management") or {})
        edit = {
            "type": "compact_20260112",
            "trigger": {"type": "input_tokens", "value": _LEAST},
            "pause_after_compaction": True,  # the summary alone, and no answer after it
        }
        others = [e for e in managed.get("edits") or () if e.get("type") != edit["type"]]
        body["context_management"] = {**managed, "edits": [*others, edit]}
        answer = await self._post("/v1/messages?beta=true", body, **{"anthropic-beta": _BETA})
        blocks = [b for b in answer.get("content") or () if b.get("type") == "compaction" and b.get("content")]
        if not blocks:
            raise ModelError(f"{self.name} did not compact: it needs at least {_LEAST:,} tokens of input", "refused")
        return blocks
