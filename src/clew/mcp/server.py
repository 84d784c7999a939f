"""The server, in the terms of the protocol: tools, resources and prompts, each answered in words.

Requests and answers are plain values, as they stand in messages. The protocol's SDK takes two seconds to import, in
which an agent has no tools; so nothing of it is needed here, nor the log before something is asked of it.
"""

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from clew import __version__
from clew.core.arguments import checked, takes
from clew.core.lazy import gone
from clew.errors import ClewError, NotFound, ToolError
from clew.mcp.telling import MOST_CHARACTERS, bounded, sized
from clew.text.framing import neutral

if TYPE_CHECKING:
    from clew.mcp.answers import Answers
    from clew.mcp.library import Library


_TEXT, _FLAG = {"type": "string"}, {"type": "boolean"}
_NUMBER = {"type": "integer"}

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "search": takes("text", text=_TEXT, conversation=_TEXT, size=_NUMBER),
    "recall": takes("id", id=_TEXT, lines=_TEXT, pattern=_TEXT, size=_NUMBER),
    "timeline": takes(conversation=_TEXT, before=_NUMBER, size=_NUMBER),
    "lost": takes(conversation=_TEXT, size=_NUMBER),
    "pin": takes("id", id=_TEXT, off=_FLAG),
    "status": takes(conversation=_TEXT, size=_NUMBER),
}
WRITING = ("pin",)

Given = Mapping[str, Any]
_ACTS: "Mapping[str, Callable[[Answers, Given, int], Awaitable[str]]]" = {
    "search": lambda answers, given, size: answers.search(given["text"], given.get("conversation", ""), size),
    "recall": lambda answers, given, size: answers.recall(
        given["id"], given.get("lines", ""), given.get("pattern", ""), size
    ),
    "timeline": lambda answers, given, size: answers.timeline(given.get("conversation", ""), given.get("before"), size),
    "lost": lambda answers, given, size: answers.lost(given.get("conversation", ""), size),
    "pin": lambda answers, given, size: answers.pin(given["id"], given.get("off", False)),
    "status": lambda answers, given, size: answers.status(given.get("conversation", ""), size),
}


SERVER_NAME, ABOUT = "clew", "What was said in this project's agent sessions, also what a compaction dropped."
ADDRESS = "clew://conversation/"
RESOURCES_AT_ONCE = 50
PROMPTS = {
    "handoff": "Write a handoff of a conversation, with what the log has of it.",
    "resume": "Go on with a conversation where it stopped, with what the log has of it.",
}
PROMPT_ARGUMENT = "A conversation, by name or id; the newest of this project unless given."
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # of the protocol, the newest first
INVALID_PARAMS, NO_METHOD = -32602, -32601
PLAIN_TEXT = "text/plain"

Params = Mapping[str, Any]
McpReply = dict[str, Any]


__getattr__ = gone(__name__, server="`clew mcp` is it; in a program, `clew.mcp.stdio.serve_lines`")


class McpError(Exception):
    """A request that cannot be answered: a code of the protocol, and words."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class McpServer:
    """Answers requests; what cannot be done is said in words."""

    def __init__(self, library: "Callable[[], Library]") -> None:
        self._library = library
        self._methods: Mapping[str, Callable[[Params], Awaitable[McpReply]]] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
        }

    async def answer(self, method: str, params: Params) -> McpReply:
        """What comes of a request. Raises `McpError`."""
        if method not in self._methods:
            raise McpError(NO_METHOD, f"there is no method {method[:60]!r}")
        try:
            return await self._methods[method](params)
        except ClewError as error:
            raise McpError(INVALID_PARAMS, bounded(neutral(str(error)))) from None

    async def _initialize(self, params: Params) -> McpReply:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": SERVER_NAME, "title": SERVER_NAME, "version": __version__, "description": ABOUT},
            "instructions": prompt_text("server"),
        }

    async def _ping(self, params: Params) -> McpReply:
        return {}

    # --- tools --------------------------------------------------------------------------------------------------------

    async def _list_tools(self, params: Params) -> McpReply:
        hints = {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
        return {
            "tools": [
                {
                    "name": name,
                    "description": prompt_text(name),
                    "inputSchema": schema,
                    "annotations": {"readOnlyHint": name not in WRITING, **hints},
                }
                for name, schema in SCHEMAS.items()
            ]
        }

    async def _call_tool(self, params: Params) -> McpReply:
        name = str(params.get("name"))
        try:
            given = arguments(name, params.get("arguments"))
            told, failed = await call(await self._library().answers(), name, given), False
        except ClewError as error:
            told, failed = f"Error: {neutral(str(error))} {self._reading()}".strip(), True
        return {"content": [{"type": "text", "text": bounded(told)}], "isError": failed}

    def _reading(self) -> str:
        try:
            return self._library().reading()
        except ClewError:  # there is none: that was said
            return ""

    # --- resources ----------------------------------------------------------------------------------------------------

    async def _list_resources(self, params: Params) -> McpReply:
        from clew.screens.lines import called, words

        try:
            reach = await self._library().reach()
            listed = await reach.listed()
        except NotFound:
            return {"resources": []}
        cursor = str(params.get("cursor") or "0")
        start = int(cursor) if cursor.isdecimal() and len(cursor) < 10 else 0
        stop = start + RESOURCES_AT_ONCE
        found = []
        for session in listed[start:stop]:
            about = await reach.about(session)
            told = ", ".join(neutral(words(part, 160)) for part in (about.agent, about.folder, about.title) if part)
            uri, name = f"{ADDRESS}{session.branch}", neutral(called(session))
            found.append({"uri": uri, "name": name, "description": told, "mimeType": PLAIN_TEXT})
        return {"resources": found, **({"nextCursor": str(stop)} if stop < len(listed) else {})}

    async def _list_templates(self, params: Params) -> McpReply:
        about = f"The newest of what was said in a conversation, in at most {MOST_CHARACTERS:,} characters."
        named = {"uriTemplate": f"{ADDRESS}{{id}}", "name": "conversation"}
        return {"resourceTemplates": [{**named, "description": about, "mimeType": PLAIN_TEXT}]}

    async def _read_resource(self, params: Params) -> McpReply:
        from clew.mcp.brief import passage

        uri = str(params.get("uri"))
        if not uri.startswith(ADDRESS) or not (name := unquote(uri.removeprefix(ADDRESS))):
            raise NotFound(f"{uri[:80]!r} is not here: resources are {ADDRESS} and the id of a conversation")
        reach = await self._library().reach()
        text = await passage(reach, await reach.get(name), MOST_CHARACTERS)
        return {"contents": [{"uri": uri, "mimeType": PLAIN_TEXT, "text": text}]}

    # --- prompts ------------------------------------------------------------------------------------------------------

    async def _list_prompts(self, params: Params) -> McpReply:
        given = [{"name": "conversation", "description": PROMPT_ARGUMENT, "required": False}]
        return {"prompts": [{"name": n, "description": about, "arguments": given} for n, about in PROMPTS.items()]}

    async def _get_prompt(self, params: Params) -> McpReply:
        from clew.mcp.brief import brief

        name = str(params.get("name"))
        if name not in PROMPTS:
            raise NotFound(f"there is no prompt {name[:60]!r}; there are {', '.join(PROMPTS)}")
        reach, answers = await self._library().reach(), await self._library().answers()
        given = params.get("arguments")
        one = await reach.one(str(given.get("conversation") or "") if isinstance(given, Mapping) else "")
        head = prompt_text(name)
        text = f"{head}\n\n{await brief(answers, one, sized(MOST_CHARACTERS) - len(head) - 2)}"
        said = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": PROMPTS[name], "messages": [said]}


def prompt_text(name: str) -> str:
    """The words of a file of ours."""
    return files("clew.mcp").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def arguments(name: str, given: Any) -> dict[str, Any]:
    """The arguments of a call, if they fit. Raises `ToolError`."""
    if name not in SCHEMAS:
        raise ToolError(f"there is no tool {name[:60]!r}; there are {', '.join(SCHEMAS)}")
    return checked(name, SCHEMAS[name], {} if given is None else given)


async def call(answers: "Answers", name: str, given: Given) -> str:
    """What a call with fitting arguments gives back, in a bounded number of characters."""
    return await _ACTS[name](answers, given, sized(given.get("size")))
