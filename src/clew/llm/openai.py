"""Models behind OpenAI's API, or any server that speaks it: Ollama, vLLM, llama.cpp, LM Studio."""

from typing import Any

from clew.errors import MissingExtra
from clew.llm import replies, requests
from clew.llm.remote import NO_KEY, RemoteModel
from clew.steps.chapters.model import Prompt, Reply
from clew.wire.formats import openai_responses

try:
    import openai
except ImportError:
    raise MissingExtra("OpenAI and compatible models need the SDK", "openai") from None

_HOME = "api.openai.com"


def connect(base_url: str | None, api_key: str | None, http: Any) -> openai.AsyncOpenAI:
    """A client of OpenAI, or of a server at an address."""
    return openai.AsyncOpenAI(api_key=api_key or (NO_KEY if base_url else None), base_url=base_url, http_client=http)


class OpenAIModel(RemoteModel):
    """A model of OpenAI, or of a server at `base_url`, which gets no key but `api_key`."""

    sdk = openai

    def _connect(self) -> openai.AsyncOpenAI:
        return connect(self._base_url, self._api_key, self._http())

    async def __call__(self, prompt: Prompt) -> Reply:
        if prompt.after is not None and prompt.after.frame.format == openai_responses.NAME:
            answer = await self._post("/responses", requests.responses(prompt, self.name))
            return replies.read(answer, replies.responses)
        # OpenAI's newer models know only the one name, and some servers of one's own only the other.
        limit = "max_completion_tokens" if self._ready().base_url.host == _HOME else "max_tokens"
        answer = await self._post("/chat/completions", requests.chat(prompt, self.name, limit))
        return replies.read(answer, replies.chat)
