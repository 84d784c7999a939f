"""The server, in the terms of the protocol: tools, resources and prompts, each answered in words."""

from collections.abc import Awaitable
from typing import Any, TypeVar
from urllib.parse import unquote

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from clew import __version__
from clew.errors import ClewError, NotFound
from clew.mcp.brief import brief, passage
from clew.mcp.library import Library
from clew.mcp.telling import MOST_CHARACTERS, bounded, sized
from clew.mcp.tools import SCHEMAS, WRITING, arguments, call, prompt_text
from clew.screens.lines import called, words
from clew.store.records import Session
from clew.text.framing import neutral

ADDRESS = "clew://conversation/"
RESOURCES_AT_ONCE = 50
PROMPTS = {
    "handoff": "Write a handoff of a conversation, with what the log has of it.",
    "resume": "Go on with a conversation where it stopped, with what the log has of it.",
}
PROMPT_ARGUMENT = "A conversation, by name or id; the newest of this project unless given."

T = TypeVar("T")


def server(library: Library) -> Server[Any]:
    """A server over a library."""
    answering = _Answering(library)
    return Server(
        "clew",
        version=__version__,
        title="clew",
        description="What was said in this project's agent sessions, also what a compaction dropped.",
        instructions=prompt_text("server"),
        on_list_tools=answering.list_tools,
        on_call_tool=answering.call_tool,
        on_list_resources=answering.list_resources,
        on_list_resource_templates=answering.list_templates,
        on_read_resource=answering.read_resource,
        on_list_prompts=answering.list_prompts,
        on_get_prompt=answering.get_prompt,
    )


class _Answering:
    """Answers requests; what cannot be done is said in words."""

    def __init__(self, library: Library) -> None:
        self._library = library

    # --- tools --------------------------------------------------------------------------------------------------------

    async def list_tools(self, context: Any, asked: Any) -> types.ListToolsResult:
        tools = []
        for name, schema in SCHEMAS.items():
            hints = types.ToolAnnotations(
                read_only_hint=name not in WRITING, destructive_hint=False, idempotent_hint=True, open_world_hint=False
            )
            about = prompt_text(name)
            tools.append(types.Tool(name=name, description=about, input_schema=dict(schema), annotations=hints))
        return types.ListToolsResult(tools=tools)

    async def call_tool(self, context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            given = arguments(asked.name, asked.arguments)
            told, failed = await call(await self._library.answers(), asked.name, given), False
        except ClewError as error:
            told, failed = f"Error: {neutral(str(error))} {self._library.reading()}".strip(), True
        return types.CallToolResult(content=[types.TextContent(text=bounded(told))], is_error=failed)

    # --- resources ----------------------------------------------------------------------------------------------------

    async def list_resources(
        self, context: Any, asked: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await _in_words(self._resources((asked.cursor if asked else None) or "0"))

    async def _resources(self, cursor: str) -> types.ListResourcesResult:
        try:
            reach = await self._library.reach()
            listed = await reach.listed()
        except NotFound:
            return types.ListResourcesResult(resources=[])
        start = int(cursor) if cursor.isdecimal() and len(cursor) < 10 else 0
        stop = start + RESOURCES_AT_ONCE
        found = []
        for session in listed[start:stop]:
            about = await reach.about(session)
            parts = [neutral(words(part, 160)) for part in (about.agent, about.folder, about.title) if part]
            name = neutral(called(session))
            uri, told = f"{ADDRESS}{session.branch}", ", ".join(parts)
            found.append(types.Resource(uri=uri, name=name, description=told, mime_type="text/plain"))
        return types.ListResourcesResult(resources=found, next_cursor=str(stop) if stop < len(listed) else None)

    async def list_templates(self, context: Any, asked: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=f"{ADDRESS}{{id}}",
            name="conversation",
            description=f"The newest of what was said in a conversation, in at most {MOST_CHARACTERS:,} characters.",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, context: Any, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        text = await _in_words(self._passage(str(asked.uri)))
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=str(asked.uri), mime_type="text/plain", text=text)]
        )

    async def _passage(self, uri: str) -> str:
        if not uri.startswith(ADDRESS) or not (name := unquote(uri.removeprefix(ADDRESS))):
            raise NotFound(f"{uri[:80]!r} is not here: resources are {ADDRESS} and the id of a conversation")
        reach = await self._library.reach()
        return await passage(reach, await reach.get(name), MOST_CHARACTERS)

    # --- prompts ------------------------------------------------------------------------------------------------------

    async def list_prompts(self, context: Any, asked: Any) -> types.ListPromptsResult:
        given = [types.PromptArgument(name="conversation", description=PROMPT_ARGUMENT, required=False)]
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=name, description=about, arguments=given) for name, about in PROMPTS.items()]
        )

    async def get_prompt(self, context: Any, asked: types.GetPromptRequestParams) -> types.GetPromptResult:
        text = await _in_words(self._prompt(asked.name, (asked.arguments or {}).get("conversation", "")))
        said = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=PROMPTS[asked.name], messages=[said])

    async def _prompt(self, name: str, conversation: str) -> str:
        if name not in PROMPTS:
            raise NotFound(f"there is no prompt {name[:60]!r}; there are {', '.join(PROMPTS)}")
        reach, answers = await self._library.reach(), await self._library.answers()
        session: Session = await reach.one(conversation)
        head = prompt_text(name)
        return f"{head}\n\n{await brief(reach, answers, session, sized(MOST_CHARACTERS) - len(head) - 2)}"


async def _in_words(work: Awaitable[T]) -> T:
    """What comes of some work; what cannot be done is an error of the protocol, with words."""
    try:
        return await work
    except ClewError as error:
        raise MCPError(types.INVALID_PARAMS, bounded(neutral(str(error)))) from None
