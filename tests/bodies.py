"""Request bodies that cover every block type and message form of both formats, and judges that ask the official SDKs.

The bodies in `*_ODD` are what a provider may send one day, or a client today: unknown blocks, unknown keys.
"""

import os
from collections.abc import Iterable
from functools import cache, reduce
from operator import or_
from typing import IO, Annotated, Any, Required, Union, get_args, get_origin

from anthropic.types.beta import BetaMessageParam, BetaTextBlockParam, BetaToolUnionParam
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from pydantic import BaseModel, TypeAdapter, ValidationError
from typing_extensions import TypedDict, get_type_hints, is_typeddict

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKMSAwIG9iago8PD4+CmVuZG9iagp0cmFpbGVyCjw8Pj4KJSVFT0Y="
SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds8nXmG3s"
MARK = {"type": "ephemeral"}
LONG_MARK = {"type": "ephemeral", "ttl": "1h"}

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
SHELL: dict[str, Any] = {
    "name": "run_shell",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
}


def asked(*messages: dict[str, Any], **frame: Any) -> dict[str, Any]:
    """An Anthropic body."""
    return {"model": "claude-opus-4-8", "max_tokens": 1024, "messages": list(messages)} | frame


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words} | more


def use(i: str, name: str = "get_weather", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": i, "name": name, "input": {"city": "Zürich"}} | more


def result(i: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": i} | more


def served(i: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": i, "name": name, "input": given}


def gave(i: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": f"{kind}_tool_result", "tool_use_id": i, "content": content} | more


HELLO = {"role": "user", "content": "Hello, Claude"}
GO_ON = {"role": "user", "content": "Go on."}

_TEXTS: list[dict[str, Any]] = [
    {"messages": [HELLO]},
    asked(HELLO),
    asked(HELLO, system="You are terse."),
    asked(HELLO, {"role": "assistant", "content": "Hi! 👋"}, user(text("Tell me more."), text("Slowly."))),
    asked(HELLO, HELLO, {"role": "assistant", "content": "One."}, {"role": "assistant", "content": "Two."}, GO_ON),
    asked({"role": "assistant", "content": "I begin."}, HELLO),
    asked(
        {"role": "user", "content": "The Greek sun? (A) Sol (B) Helios"}, {"role": "assistant", "content": "It is ("}
    ),
    asked(HELLO, {"role": "assistant", "content": []}),
    asked(
        HELLO,
        stream=True,
        temperature=1,
        stop_sequences=["\n\nHuman:"],
        metadata={"user_id": "u-1"},
        service_tier="auto",
        top_k=5,
        cache_control=MARK,
        container="container_011",
        context_management={"edits": [{"type": "clear_tool_uses_20250919"}]},
        output_config={"effort": "high"},
    ),
    asked(
        user(text("What colour is grass?")),
        assistant(
            text("The grass is ", citations=None),
            text(
                "green.",
                citations=[
                    {
                        "type": "char_location",
                        "cited_text": "The grass is green.",
                        "document_index": 0,
                        "document_title": "Facts",
                        "start_char_index": 0,
                        "end_char_index": 19,
                    },
                    {
                        "type": "page_location",
                        "cited_text": "Green.",
                        "document_index": 1,
                        "document_title": None,
                        "start_page_number": 1,
                        "end_page_number": 2,
                    },
                    {
                        "type": "content_block_location",
                        "cited_text": "green",
                        "document_index": 2,
                        "document_title": None,
                        "start_block_index": 0,
                        "end_block_index": 1,
                    },
                    {
                        "type": "web_search_result_location",
                        "cited_text": "grass",
                        "encrypted_index": "Eo8BCioIAhgBIiQy",
                        "title": "Grass",
                        "url": "https://example.com/grass",
                    },
                    {
                        "type": "search_result_location",
                        "cited_text": "green",
                        "search_result_index": 0,
                        "source": "https://example.com",
                        "title": "Grass",
                        "start_block_index": 0,
                        "end_block_index": 1,
                    },
                ],
            ),
        ),
        GO_ON,
    ),
]

_MEDIA: list[dict[str, Any]] = [
    asked(
        user(
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/ant.jpg"}, "cache_control": MARK},
            {"type": "image", "source": {"type": "file", "file_id": "file_011"}},
            {
                "type": "image",
                "source": {"type": "url", "url": "https://example.com/big.webp"},
                "transformations": {"oversized_image": "error"},
            },
            text("What is in these images?"),
        )
    ),
    asked(
        user(
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                "title": "Report",
                "context": "Internal.",
                "citations": {"enabled": True},
                "cache_control": MARK,
            },
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "The grass is green."}},
            {"type": "document", "source": {"type": "content", "content": "One chunk"}},
            {
                "type": "document",
                "source": {
                    "type": "content",
                    "content": [
                        text("First chunk"),
                        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": PIXEL}},
                    ],
                },
            },
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
            {"type": "document", "source": {"type": "file", "file_id": "file_012"}},
            {
                "type": "search_result",
                "source": "https://example.com/kb/1",
                "title": "Knowledge",
                "content": [text("It depends.")],
                "citations": {"enabled": True},
            },
            {"type": "container_upload", "file_id": "file_013"},
            text("Summarize."),
        )
    ),
]

_TOOLS: list[dict[str, Any]] = [
    asked(
        {"role": "user", "content": "Weather in Zürich?"},
        assistant(text("Let me look."), use("toolu_01")),
        user(result("toolu_01", content="15 degrees")),
        tools=[WEATHER],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
    ),
    asked(
        HELLO,
        assistant(
            use("toolu_02"),
            use("toolu_03", input={}),
            use("toolu_04", caller={"type": "direct"}),
            use("toolu_14", caller={"type": "code_execution_20260120", "tool_id": "srvtoolu_99"}),
            use("toolu_05"),
            use("toolu_06"),
        ),
        user(
            result("toolu_02", content=[text("15 degrees"), text("windy")]),
            result(
                "toolu_03",
                content=[{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}],
            ),
            result("toolu_04", content="ConnectionError: no route to host", is_error=True),
            result("toolu_05"),
            result("toolu_14", content="16 degrees"),
            result("toolu_06", content=""),
            text("And in Bern?"),
        ),
        {"role": "assistant", "content": "I could not look."},
        GO_ON,
        tools=[WEATHER],
    ),
    asked(
        HELLO,
        assistant(use("toolu_07"), use("toolu_08")),
        user(result("toolu_07", content=[])),
        user(result("toolu_08", content=[{"type": "tool_reference", "tool_name": "get_weather"}])),
        tools=[WEATHER | {"defer_loading": True}, SHELL],
    ),
    asked(
        HELLO,
        assistant(use("toolu_09")),
        user(
            result(
                "toolu_09",
                content=[
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "15 degrees"},
                        "cache_control": MARK,
                    },
                    {"type": "search_result", "source": "kb", "title": "Weather", "content": [text("15 degrees")]},
                ],
            )
        ),
        tools=[WEATHER | {"cache_control": LONG_MARK}],
        system=[text("You are terse.", cache_control=LONG_MARK)],
    ),
    asked(
        user(text("First", cache_control=MARK)),
        assistant(use("toolu_10", cache_control=MARK)),
        user(result("toolu_10", content=[text("15", cache_control=MARK)], cache_control=MARK)),
        tools=[WEATHER],
        system=[text("You are terse."), text("You are kind.", cache_control=None)],
    ),
    asked(
        HELLO,
        assistant(use("toolu_11", "screenshot", input={}, toolset_name="browser")),
        user(
            result(
                "toolu_11",
                toolset_name="browser",
                content=[
                    {
                        "type": "browser_state",
                        "tabs": [{"tab_id": "1", "title": "Example", "url": "https://example.com", "active": True}],
                        "state_changes": [
                            {"type": "tab_opened", "tab_id": "1"},
                            {"type": "download_started", "download_id": "d1", "url": "https://example.com/a"},
                            {"type": "download_completed", "download_id": "d2", "url": "https://example.com/b"},
                            {"type": "download_failed", "download_id": "d3", "url": "https://example.com/c"},
                        ],
                    }
                ],
            )
        ),
        tools=[{"type": "browser_toolset_20260801"}],
    ),
    asked(
        HELLO,
        assistant(use("toolu_12", "bash", input={"command": "ls"}), use("toolu_13", "str_replace_based_edit_tool")),
        user(result("toolu_12", content="a.txt"), result("toolu_13", content="done")),
        tools=[
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
            {"type": "memory_20250818", "name": "memory"},
            {"type": "computer_20250124", "name": "computer", "display_width_px": 1024, "display_height_px": 768},
        ],
    ),
]

_THINKING: list[dict[str, Any]] = [
    asked(
        HELLO,
        assistant(
            {"type": "thinking", "thinking": "The user greets me.", "signature": SIGNATURE},
            {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
            text("Let me look."),
            use("toolu_20"),
        ),
        user(result("toolu_20", content="15 degrees")),
        assistant({"type": "thinking", "thinking": "", "signature": SIGNATURE}, use("toolu_21")),
        user(result("toolu_21", content="16 degrees")),
        tools=[WEATHER],
        thinking={"type": "enabled", "budget_tokens": 1024},
        max_tokens=4096,
    ),
    asked(HELLO, assistant(use("toolu_22")), user(result("toolu_22")), tools=[WEATHER], thinking={"type": "adaptive"}),
    asked(
        HELLO,
        assistant({"type": "thinking", "thinking": "Short.", "signature": SIGNATURE}),
        assistant(text("Hi.")),
        GO_ON,
    ),
]

_SERVER: list[dict[str, Any]] = [
    asked(
        HELLO,
        assistant(
            served("srvtoolu_01", "web_search", query="claude shannon"),
            gave(
                "srvtoolu_01",
                "web_search",
                [
                    {
                        "type": "web_search_result",
                        "url": "https://example.com",
                        "title": "Shannon",
                        "encrypted_content": "EqgfCioIARgB",
                        "page_age": "April 30, 2025",
                    }
                ],
                cache_control=MARK,
            ),
            served("srvtoolu_02", "web_search", query=""),
            gave(
                "srvtoolu_02", "web_search", {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
            ),
            text("He was born in 1916."),
        ),
        GO_ON,
        tools=[{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}],
    ),
    asked(
        HELLO,
        assistant(
            served("srvtoolu_03", "web_fetch", url="https://example.com/a"),
            gave(
                "srvtoolu_03",
                "web_fetch",
                {
                    "type": "web_fetch_result",
                    "url": "https://example.com/a",
                    "retrieved_at": "2026-01-01T00:00:00Z",
                    "content": {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "Article"},
                    },
                },
            ),
            served("srvtoolu_04", "web_fetch", url="https://example.com/b"),
            gave(
                "srvtoolu_04", "web_fetch", {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"}
            ),
        ),
        {"role": "system", "content": "Answer in German from here on."},
    ),
    asked(
        HELLO,
        assistant(
            served("srvtoolu_05", "code_execution", code="print(1)"),
            gave(
                "srvtoolu_05",
                "code_execution",
                {
                    "type": "code_execution_result",
                    "stdout": "1\n",
                    "stderr": "",
                    "return_code": 0,
                    "content": [{"type": "code_execution_output", "file_id": "file_020"}],
                },
            ),
            served("srvtoolu_06", "code_execution", code="x"),
            gave(
                "srvtoolu_06",
                "code_execution",
                {"type": "code_execution_tool_result_error", "error_code": "unavailable"},
            ),
            served("srvtoolu_07", "code_execution", code="y"),
            gave(
                "srvtoolu_07",
                "code_execution",
                {
                    "type": "encrypted_code_execution_result",
                    "encrypted_stdout": "EqQB",
                    "stderr": "",
                    "return_code": 0,
                    "content": [],
                },
            ),
            served("srvtoolu_08", "bash_code_execution", command="ls"),
            gave(
                "srvtoolu_08",
                "bash_code_execution",
                {
                    "type": "bash_code_execution_result",
                    "stdout": "a.txt",
                    "stderr": "",
                    "return_code": 0,
                    "content": [{"type": "bash_code_execution_output", "file_id": "file_021"}],
                },
            ),
            served("srvtoolu_09", "bash_code_execution", command="sleep 1000"),
            gave(
                "srvtoolu_09",
                "bash_code_execution",
                {"type": "bash_code_execution_tool_result_error", "error_code": "execution_time_exceeded"},
            ),
            served("srvtoolu_10", "text_editor_code_execution", command="view", path="a.txt"),
            gave(
                "srvtoolu_10",
                "text_editor_code_execution",
                {"type": "text_editor_code_execution_view_result", "content": "a", "file_type": "text", "num_lines": 1},
            ),
            served("srvtoolu_11", "text_editor_code_execution", command="create", path="b.txt"),
            gave(
                "srvtoolu_11",
                "text_editor_code_execution",
                {"type": "text_editor_code_execution_create_result", "is_file_update": False},
            ),
            served("srvtoolu_12", "text_editor_code_execution", command="str_replace", path="b.txt"),
            gave(
                "srvtoolu_12",
                "text_editor_code_execution",
                {"type": "text_editor_code_execution_str_replace_result", "lines": ["-a", "+b"], "old_start": 1},
            ),
            served("srvtoolu_13", "text_editor_code_execution", command="view", path="c.txt"),
            gave(
                "srvtoolu_13",
                "text_editor_code_execution",
                {"type": "text_editor_code_execution_tool_result_error", "error_code": "file_not_found"},
            ),
            text("Done."),
        ),
        GO_ON,
        tools=[{"type": "code_execution_20250825", "name": "code_execution"}],
    ),
    asked(
        HELLO,
        assistant(
            served("srvtoolu_14", "tool_search_tool_regex", pattern="weather"),
            gave(
                "srvtoolu_14",
                "tool_search",
                {
                    "type": "tool_search_tool_search_result",
                    "tool_references": [{"type": "tool_reference", "tool_name": "get_weather"}],
                },
            ),
            served("srvtoolu_15", "tool_search_tool_bm25", query="x"),
            gave(
                "srvtoolu_15",
                "tool_search",
                {"type": "tool_search_tool_result_error", "error_code": "too_many_requests"},
            ),
            use("toolu_30", caller={"type": "code_execution_20250825", "tool_id": "srvtoolu_14"}),
        ),
        user(result("toolu_30", content="15 degrees")),
        tools=[
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
            {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
            WEATHER | {"defer_loading": True},
        ],
    ),
    # The server's tool waits until the client's has been answered; its result opens the next message.
    asked(
        HELLO,
        assistant(served("srvtoolu_16", "web_fetch", url="https://example.com"), use("toolu_31")),
        user(result("toolu_31", content="15 degrees")),
        assistant(
            gave("srvtoolu_16", "web_fetch", {"type": "web_fetch_tool_result_error", "error_code": "unavailable"}),
            text("Not reachable."),
        ),
        GO_ON,
        tools=[WEATHER, {"type": "web_fetch_20250910", "name": "web_fetch"}],
    ),
    asked(HELLO, assistant(text("I search."), served("srvtoolu_17", "web_search", query="a long one"))),
    asked(
        HELLO,
        assistant(
            served("srvtoolu_18", "advisor"),
            gave("srvtoolu_18", "advisor", {"type": "advisor_result", "text": "Do it.", "stop_reason": "end_turn"}),
            served("srvtoolu_19", "advisor"),
            gave("srvtoolu_19", "advisor", {"type": "advisor_redacted_result", "encrypted_content": "EqQB"}),
            served("srvtoolu_20", "advisor"),
            gave("srvtoolu_20", "advisor", {"type": "advisor_tool_result_error", "error_code": "overloaded"}),
            text("I do it."),
        ),
        GO_ON,
        tools=[{"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-4-8"}],
    ),
]

_BETA: list[dict[str, Any]] = [
    asked(
        HELLO,
        assistant(
            {
                "type": "mcp_tool_listing",
                "mcp_server_name": "files",
                "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}],
            },
            {"type": "mcp_tool_use", "id": "mcptoolu_01", "name": "read", "server_name": "files", "input": {"p": "a"}},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_01", "is_error": False, "content": [text("a")]},
            {"type": "mcp_tool_use", "id": "mcptoolu_02", "name": "read", "server_name": "files", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_02", "is_error": True, "content": "no such file"},
            text("It says a."),
        ),
        GO_ON,
        mcp_servers=[{"type": "url", "url": "https://mcp.example.com", "name": "files"}],
        tools=[{"type": "mcp_toolset", "mcp_server_name": "files"}],
    ),
    asked(
        assistant(
            {
                "type": "compaction",
                "content": "The user wants a parser ported.",
                "encrypted_content": "EqQB",
                "signature": SIGNATURE,
                "cache_control": MARK,
            },
            text("I go on."),
        ),
        GO_ON,
    ),
    asked(HELLO, assistant({"type": "compaction", "content": None}, text("I go on.")), GO_ON),
    asked(
        HELLO,
        assistant(
            text("I cannot"),
            {"type": "fallback", "from": {"model": "claude-opus-5"}, "to": {"model": "claude-opus-4-8"}},
            text("I can."),
        ),
        GO_ON,
    ),
    asked(
        HELLO,
        {"role": "system", "content": "The user is in Zürich."},
        {"role": "assistant", "content": "Grüezi."},
        user(text("Now with tools.")),
        {
            "role": "system",
            "content": [
                text("You may use the shell.", cache_control=MARK),
                {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "run_shell"}},
                {
                    "type": "tool_addition",
                    "tool": {"type": "mcp_tool_reference", "name": "read", "server_name": "files"},
                },
                {"type": "tool_removal", "tool": {"type": "mcp_toolset_reference", "server_name": "files"}},
                {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": SHELL | {"name": "sh"}}},
                {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "get_weather"}},
            ],
        },
        {"role": "system", "content": "Be quick.", "clear_at": "next_user_message"},
        tools=[WEATHER, SHELL],
    ),
    asked(
        {"role": "system", "content": [], "output_config": {"effort": "low"}},
        HELLO,
        {"role": "assistant", "content": "Hi."},
        {"role": "system", "output_config": {"effort": "max"}},
        GO_ON,
    ),
]

ANTHROPIC: list[dict[str, Any]] = [*_TEXTS, *_MEDIA, *_TOOLS, *_THINKING, *_SERVER, *_BETA]

ANTHROPIC_ODD: list[dict[str, Any]] = [
    asked(
        HELLO,
        assistant({"type": "hologram", "beam": {"x": [1, 2, None]}, "cache_control": MARK}, text("See?")),
        user({"type": "smell", "text": "roses"}, text("And this?")),
    ),
    asked(
        {"role": "user", "content": "Hello", "id": "msg_1", "mood": None},
        assistant(text("Hi.", logprobs=[-0.1]), use("toolu_40", confidence=0.5)),
        user(
            result("toolu_40", content=[text("15", unit="C"), {"type": "chart", "points": [[0, 1]]}], elapsed_ms=12),
            {"type": "image", "source": {"type": "hash", "sha256": "00", "media_type": "image/avif"}, "alt": "A cat"},
        ),
        tools=[WEATHER | {"version": 2}, {"type": "teleport_20300101", "name": "teleport", "range": "far"}],
        system=[text("You are terse.", weight=2)],
        a_new_parameter={"nested": [True, 1.5, "x"]},
    ),
    asked(
        HELLO,
        assistant(
            {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE, "depth": 3},
            served("srvtoolu_40", "divination", question="?"),
            gave("srvtoolu_40", "divination", {"type": "omen", "good": True}),
        ),
        GO_ON,
    ),
]


def chat(*messages: dict[str, Any], **frame: Any) -> dict[str, Any]:
    """An OpenAI body."""
    return {"model": "gpt-5.2", "messages": list(messages)} | frame


def call(i: str, name: str = "get_weather", arguments: str = '{"city":"Zürich"}') -> dict[str, Any]:
    return {"id": i, "type": "function", "function": {"name": name, "arguments": arguments}}


HI = {"role": "user", "content": "Hi"}
WEATHER_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "strict": True,
    },
}

_CHATS: list[dict[str, Any]] = [
    {"messages": [HI]},
    chat(HI),
    chat({"role": "system", "content": "You are terse."}, HI),
    chat({"role": "developer", "content": "You are terse.", "name": "ops"}, HI),
    chat(
        {
            "role": "system",
            "content": [{"type": "text", "text": "You are terse."}, {"type": "text", "text": "Be kind."}],
        },
        {"role": "user", "content": "Hi", "name": "ada"},
        {"role": "assistant", "content": "Hello.", "name": "bot"},
        {"role": "system", "content": "Answer in German from here on."},
        {"role": "developer", "content": [{"type": "text", "text": "Really."}]},
        HI,
        HI,
    ),
    chat({"role": "user", "content": ""}, {"role": "assistant", "content": ""}, HI),
    chat(
        HI, {"role": "assistant", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]}, HI
    ),
    chat(HI, {"role": "assistant", "content": None, "refusal": "I cannot help with that."}, HI),
    chat(HI, {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}, HI),
    chat(HI, {"role": "assistant", "content": "Sure.", "refusal": None, "audio": None, "function_call": None}, HI),
    chat(
        HI,
        {"role": "assistant", "audio": {"id": "audio_abc123"}},
        HI,
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "wav"},
    ),
    chat(
        {
            "role": "user",
            "content": [
                {
                    "type": "text",
                    "text": "What is this?",
                    "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"},
                },
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/cat.jpg", "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "UklGRiQAAABXQVZF", "format": "wav"}},
                {"type": "file", "file": {"file_id": "file-abc123"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
            ],
        }
    ),
    chat(
        HI,
        stream=True,
        stream_options={"include_usage": True},
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": {"type": "object"}},
        },
        temperature=0.5,
        top_p=1,
        n=1,
        stop=["END"],
        seed=7,
        max_completion_tokens=100,
        logit_bias={"50256": -100},
        reasoning_effort="low",
        verbosity="low",
        metadata={"run": "1"},
        store=False,
        user="u-1",
        prompt_cache_key="k",
        service_tier="auto",
        prediction={"type": "content", "content": "Hello"},
        web_search_options={"search_context_size": "low"},
    ),
    chat({"role": "user", "content": "Give me JSON."}, response_format={"type": "json_object"}),
]

_CALLS: list[dict[str, Any]] = [
    chat(
        HI,
        {"role": "assistant", "content": None, "tool_calls": [call("call_1")]},
        {"role": "tool", "tool_call_id": "call_1", "content": "15 degrees"},
        tools=[WEATHER_TOOL],
        tool_choice="auto",
        parallel_tool_calls=True,
    ),
    chat(
        HI,
        {"role": "assistant", "content": "I look.", "tool_calls": [call("call_2"), call("call_3", arguments="")]},
        {"role": "tool", "tool_call_id": "call_3", "content": ""},
        {
            "role": "tool",
            "tool_call_id": "call_2",
            "content": [{"type": "text", "text": "15"}, {"type": "text", "text": "degrees"}],
        },
        {"role": "assistant", "content": "It is 15 degrees."},
        HI,
        {"role": "assistant", "tool_calls": [call("call_2")]},
        {"role": "tool", "tool_call_id": "call_2", "content": "16 degrees"},
        tools=[WEATHER_TOOL],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
    ),
    chat(
        HI,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_4", "type": "custom", "custom": {"name": "run_code", "input": "print(1)"}},
                call("call_5", arguments='{"city": '),
            ],
        },
        {"role": "tool", "tool_call_id": "call_4", "content": "1"},
        {"role": "tool", "tool_call_id": "call_5", "content": "the arguments are not JSON"},
        tools=[
            WEATHER_TOOL,
            {"type": "custom", "custom": {"name": "run_code", "description": "Runs.", "format": {"type": "text"}}},
            {
                "type": "custom",
                "custom": {
                    "name": "sql",
                    "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}},
                },
            },
        ],
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "custom", "custom": {"name": "run_code"}}]},
        },
    ),
    chat(
        HI,
        {"role": "assistant", "content": None, "function_call": {"name": "get_weather", "arguments": "{}"}},
        {"role": "function", "name": "get_weather", "content": "15 degrees"},
        {"role": "assistant", "function_call": {"name": "get_weather", "arguments": "{}"}},
        {"role": "function", "name": "get_weather", "content": None},
        functions=[{"name": "get_weather", "parameters": {"type": "object"}}],
        function_call="auto",
    ),
]

OPENAI_CHAT: list[dict[str, Any]] = [*_CHATS, *_CALLS]

OPENAI_CHAT_ODD: list[dict[str, Any]] = [
    # DeepSeek
    chat(
        HI,
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "The user greets me.",
            "tool_calls": [call("call_20") | {"index": 0}],
        },
        {"role": "tool", "tool_call_id": "call_20", "name": "get_weather", "content": "15 degrees"},
        thinking={"type": "enabled"},
    ),
    # OpenRouter
    chat(
        {
            "role": "system",
            "content": [{"type": "text", "text": "You are terse.", "cache_control": MARK}],
            "cache_control": LONG_MARK,
        },
        HI,
        {
            "role": "assistant",
            "content": "Hello.",
            "reasoning": "The user greets me.",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "Hm.", "signature": SIGNATURE, "format": "anthropic-claude-v1"},
                {"type": "reasoning.summary", "summary": "A greeting.", "id": "rs_1", "index": 1},
                {"type": "reasoning.encrypted", "data": "EqQB", "index": 2},
            ],
            "annotations": [
                {
                    "type": "url_citation",
                    "url_citation": {"url": "https://example.com", "title": "E", "start_index": 0, "end_index": 5},
                }
            ],
        },
        {"role": "user", "content": [{"type": "text", "text": "More.", "cache_control": MARK}]},
        provider={"order": ["anthropic"], "allow_fallbacks": False},
        reasoning={"max_tokens": 2000},
        transforms=["middle-out"],
    ),
    chat(
        {"role": "user", "content": [{"type": "hologram", "beam": [1, None]}, {"type": "video_url", "video_url": {}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}], "mood": {"joy": 1}},
        {"role": "user", "content": "And?", "timestamp": 1.5},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("call_21") | {"extra_content": {"google": {"thought_signature": "EqQB"}}}],
        },
        {"role": "tool", "tool_call_id": "call_21", "content": [{"type": "chart", "points": []}], "is_error": False},
        a_new_parameter=[{}],
    ),
]


def judge_anthropic(body: dict[str, Any]) -> list[str]:
    """What the types of Anthropic's SDK find wrong with a body."""
    system = body.get("system")
    return [
        *_errors(BetaMessageParam, body["messages"], "messages"),
        *_errors(BetaToolUnionParam, body.get("tools", []), "tools"),
        *_errors(BetaTextBlockParam, system if isinstance(system, list) else [], "system"),
    ]


def judge_openai(body: dict[str, Any]) -> list[str]:
    """What the types of OpenAI's SDK find wrong with a body."""
    return [
        *_errors(ChatCompletionMessageParam, body["messages"], "messages"),
        *_errors(ChatCompletionToolUnionParam, body.get("tools", []), "tools"),
    ]


def _errors(kind: Any, values: list[Any], where: str) -> list[str]:
    try:
        _lists(kind).validate_python(values)
    except ValidationError as error:
        return [f"{where}: {e['loc']} {e['msg']}" for e in error.errors()]
    return []


@cache
def _lists(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(list[strict(kind)])  # type: ignore[arg-type, misc]


@cache
def strict(kind: Any) -> Any:
    """The type with lists for iterables, which pydantic would not look into, and no keys beyond the declared ones."""
    origin, members = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        copy: Any = TypedDict(kind.__name__, {k: strict(v) for k, v in hints.items()}, total=False)  # type: ignore[misc]
        setattr(copy, "__pydantic_config__", {"extra": "forbid"} | getattr(kind, "__pydantic_config__", {}))  # noqa: B010
        return copy
    if origin is Union:
        return reduce(or_, (strict(m) for m in members if not _is_no_json(m)))
    if origin is Required:
        return Required[strict(members[0])]
    if origin is Iterable or getattr(origin, "__name__", "") == "SequenceNotStr":
        return list[strict(members[0])]  # type: ignore[misc]
    return kind


def _is_no_json(kind: Any) -> bool:
    """Whether a type is what the SDK gives back, or a file that it would read."""
    if get_origin(kind) in (Annotated, Union):
        return _is_no_json(get_args(kind)[0])
    base = get_origin(kind) or kind
    return isinstance(base, type) and issubclass(base, BaseModel | os.PathLike | IO)
