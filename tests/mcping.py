"""One user's machine: projects, session files of agents, a log; and `clew mcp`, asked by the SDK's own client.

The SDK is imported where it is used: every process of the tests imports this file, and one of them needs it.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import NAMESPACE_URL, uuid5

from pydantic import BaseModel

from clew import Budget, Engine, Request, __version__, open_store
from clew.config.reading import load
from clew.engine.settings import Settings
from clew.mcp.library import Library
from clew.mcp.opening import library
from clew.mcp.server import ABOUT, SERVER_NAME, McpError, McpServer, prompt_text
from clew.sessions.transcripts import Transcript, TranscriptStretch, write

if TYPE_CHECKING:
    from mcp import Client, StdioServerParameters
    from mcp.server.lowlevel import Server

R = TypeVar("R", bound=BaseModel)
SESSION_PLACES = {
    "claude-code": ".claude/projects/some/{}.jsonl",
    "codex": ".codex/sessions/2026/01/02/rollout-{}.jsonl",
    "pi": ".pi/agent/sessions/some/{}.jsonl",
}


@dataclass
class Machine:
    """A home folder, the project that a client is in, and another one."""

    home: Path

    def __post_init__(self) -> None:
        self.store = self.home / "clew.db"
        for folder in (self.project, self.other):
            (folder / ".git").mkdir(parents=True)

    @property
    def project(self) -> Path:
        return self.home / "shop"

    @property
    def other(self) -> Path:
        return self.home / "bank"

    def file(self, name: str, texts: Sequence[str], folder: Path | None = None, agent: str = "claude-code") -> Path:
        """A session file of an agent in which these things were said in turn, or a longer one in its place."""
        said = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
        id = str(uuid5(NAMESPACE_URL, name))
        stretches = (TranscriptStretch(tuple(said)),)
        told = Transcript("anthropic", stretches, id, agent=agent, model="claude-opus-4-6")
        path = self.home / SESSION_PLACES[agent].format(id)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = write(with_folder(told, folder or self.project), agent)
        path.write_bytes(data)
        return path

    async def logged(
        self, name: str, texts: Sequence[str], folder: Path | None = None, scope: str = "default", window: int = 200_000
    ) -> None:
        """A conversation that went through clew, turn by turn, held in a folder."""
        store = open_store(self.store)
        engine = Engine(store, Budget(window=window), Settings())
        system = f"You are an agent.\nWorking directory: {folder or self.project}\n"
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
        for n, text in enumerate(texts):
            messages.append({"role": ("user", "assistant")[n % 2], "content": text})
            if n % 2 == 0:
                body = {"model": "gpt-4o", "messages": list(messages)}
                view = await engine.prepare(Request(body, "openai_chat", scope, name))
                await engine.observe(view, {"input_tokens": 100 + n, "output_tokens": 5})
        await store.close()

    def command(self, *arguments: str) -> "StdioServerParameters":
        """How a client starts the server in the project."""
        from mcp import StdioServerParameters

        return StdioServerParameters(
            command=sys.executable,
            args=["-m", "clew.cli", "mcp", *arguments],
            cwd=self.project,
            env={**self.env},
        )

    @property
    def env(self) -> dict[str, str]:
        known = {key: os.environ[key] for key in ("PATH", "COVERAGE_PROCESS_CONFIG") if key in os.environ}
        return {**known, "HOME": str(self.home), "CLEW_STORE": str(self.store), "CLEW_PROBE": "off"}

    @asynccontextmanager
    async def asked(self, **wanted: Any) -> AsyncIterator["Asked"]:
        """A server of its own, and a client that asks it: without a process, which takes seconds to start."""
        from mcp import Client

        told = library(load(self.env, self.project), self.env, self.project, **wanted)
        try:
            if told.indexer:
                told.indexer.start()
            async with Client(by_sdk(told)) as client:
                yield Asked(client)
        finally:
            await told.close()


@dataclass
class Asked:
    """A client, and what came back."""

    client: "Client"

    async def __call__(self, tool: str, **given: Any) -> str:
        """What a tool answers, if it can."""
        came = await self.client.call_tool(tool, given)
        assert not came.is_error, _text(came)
        return _text(came)

    async def refused(self, tool: str, **given: Any) -> str:
        """Why a tool does not."""
        came = await self.client.call_tool(tool, given)
        assert came.is_error, _text(came)
        return _text(came)

    async def either(self, tool: str, **given: Any) -> str:
        return _text(await self.client.call_tool(tool, given))


def by_sdk(library: Library) -> "Server[Any]":
    """The server as the protocol's SDK runs it, whose client checks each answer."""
    import mcp_types as types
    from mcp import MCPError
    from mcp.server.lowlevel import Server

    made = McpServer(lambda: library)

    def answering(method: str, kind: type[R]) -> Callable[[Any, Any], Awaitable[R]]:
        async def answer(context: Any, asked: Any) -> R:
            params = asked.model_dump(by_alias=True, mode="json", exclude_none=True) if asked else {}
            try:
                return kind.model_validate(await made.answer(method, params))
            except McpError as error:
                raise MCPError(error.code, str(error)) from None

        return answer

    return Server(
        SERVER_NAME,
        version=__version__,
        title=SERVER_NAME,
        description=ABOUT,
        instructions=prompt_text("server"),
        on_list_tools=answering("tools/list", types.ListToolsResult),
        on_call_tool=answering("tools/call", types.CallToolResult),
        on_list_resources=answering("resources/list", types.ListResourcesResult),
        on_list_resource_templates=answering("resources/templates/list", types.ListResourceTemplatesResult),
        on_read_resource=answering("resources/read", types.ReadResourceResult),
        on_list_prompts=answering("prompts/list", types.ListPromptsResult),
        on_get_prompt=answering("prompts/get", types.GetPromptResult),
    )


def _text(came: Any) -> str:
    [block] = came.content
    text: str = block.text
    return text


async def until(ask: Callable[[], Awaitable[str]], wanted: str) -> str:
    """What is answered once it has this in it."""
    while wanted not in (told := await ask()):
        await asyncio.sleep(0.05)
    return told


def with_folder(told: Transcript, folder: Path) -> Transcript:
    from dataclasses import replace

    return replace(told, cwd=str(folder))


def lines_of(raw: bytes) -> list[Any]:
    return [json.loads(line) for line in raw.splitlines()]
