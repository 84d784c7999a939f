"""A small model in this process, by llama.cpp: no key, no server of one's own, nothing leaves the machine.

The library does not come without its HTTP server: that is bound to loopback and to a key that nobody knows.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from pathlib import Path
from threading import Event, Lock
from typing import Any

from clew.errors import MissingExtra, ModelError
from clew.llm import replies, requests, weights
from clew.llm.weights import SMOLLM2
from clew.steps.notes.model import Prompt, Reply
from clew.wire.overflow import overflow

try:
    import xllamacpp
except ImportError:
    raise MissingExtra("a model in process needs llama.cpp: pip install 'clew[local]'") from None

Message = Mapping[str, Any]
Chunk = dict[str, Any]

_BATCH = 256  # tokens read at once: after each, a call that was cancelled ends


class LocalModel:
    """A model from a file, SmolLM2 by default; those of one file and window are one in memory, loaded at first use."""

    def __init__(self, path: Path | None = None, *, window: int = SMOLLM2.window, threads: int = 1) -> None:
        self.path = path or SMOLLM2.path(weights.folder(os.environ))
        self.window = window
        self.threads = threads

    def __repr__(self) -> str:
        return f"LocalModel({self.name!r})"

    @property
    def name(self) -> str:
        return self.path.stem

    async def __call__(self, prompt: Prompt) -> Reply:
        body = requests.chat(prompt, self.name, "max_tokens")
        # The same prompt gives the same reply: the likeliest word each time, and nothing kept of the call before.
        asked = {"messages": body["messages"], "max_tokens": prompt.max_tokens, "temperature": 0, "cache_prompt": False}
        text, choice, spent = [], Chunk(), Chunk()
        async with aclosing(self.chunks(asked)) as chunks:
            async for chunk in chunks:
                spent = chunk.get("usage") or spent
                for choice in chunk.get("choices") or ():
                    text.append(choice["delta"].get("content") or "")
        said = {"message": {"content": "".join(text)}, "finish_reason": choice.get("finish_reason")}
        return replies.read({"choices": [said], "usage": spent}, replies.chat)

    async def stream(self, messages: Sequence[Message], max_tokens: int) -> AsyncIterator[str]:
        """The answer to a conversation, piece by piece; what it shares with the last one is not read again."""
        async with aclosing(self.chunks({"messages": list(messages), "max_tokens": max_tokens})) as chunks:
            async for chunk in chunks:
                for choice in chunk.get("choices") or ():
                    if text := choice["delta"].get("content"):
                        yield text

    async def close(self) -> None:
        """Free the memory; the next call loads the model again."""
        with _lock:
            loaded = _all.pop(self._key, None)
        if loaded:
            await asyncio.to_thread(loaded.close)

    @property
    def _key(self) -> tuple[Path, int, int]:
        return self.path.absolute(), self.window, self.threads

    async def chunks(self, body: Mapping[str, Any]) -> AsyncGenerator[Chunk, None]:
        """The answer to a body of Chat Completions, in its chunks."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Queue[Chunk | None] = asyncio.Queue()
        over = Event()

        def hear(chunk: Chunk | None) -> bool:
            loop.call_soon_threadsafe(heard.put_nowait, chunk)
            return over.is_set()  # True ends the call

        with _lock:
            if self._key not in _all:
                _all[self._key] = _Loaded(*self._key)
            loaded = _all[self._key]
        done = asyncio.wrap_future(loaded.worker.submit(loaded.ask, dict(body), hear))
        try:
            while (chunk := await heard.get()) is not None:
                if "error" in chunk:
                    raise _failure(self.name, chunk["error"])
                yield chunk
            await done
        finally:
            # Not waited for: the thread is done with this call before it begins the next.
            over.set()
            done.cancel()


class _Loaded:
    """A model in memory and the thread that works for it, one call after the other."""

    def __init__(self, path: Path, window: int, threads: int) -> None:
        self.path, self.window, self.threads = path, window, threads
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="clew-local")
        self._server: Any = None

    def ask(self, body: Chunk, hear: Callable[[Chunk | None], bool]) -> None:
        """Say every chunk of the answer, and None after the last."""
        try:
            self._server = self._server or self._load()
            more = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
            self._server.handle_chat_completions({**body, **more}, hear)
        finally:
            with suppress(RuntimeError):  # the loop of a call that was cancelled may be closed
                hear(None)

    def close(self) -> None:
        self.worker.shutdown()
        self._server = None

    def _load(self) -> Any:
        if not self.path.is_file():
            raise ModelError(f"{self.path}: no weights there; clew model fetch downloads them", "refused")
        params = xllamacpp.CommonParams()
        params.model.path = str(self.path)
        params.n_ctx, params.n_parallel = self.window, 1
        params.n_batch = params.n_ubatch = _BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.threads
        params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [secrets.token_urlsafe()]
        params.n_threads_http, params.ui, params.endpoint_slots = 1, False, False
        params.warmup, params.offline, params.cache_ram_mib, params.verbosity = False, True, 0, -1
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelError(f"{self.path} cannot be loaded: {error}", "refused") from None


_lock = Lock()
_all: dict[tuple[Path, int, int], _Loaded] = {}  # in memory now


def _failure(name: str, error: Mapping[str, Any]) -> ModelError:
    said = str(error.get("message"))
    return ModelError(f"{name}: {said}", "overflow" if overflow(said) else "refused")
