"""What servers really send, in all its variety: events of streams, and what was said in them."""

from typing import Any, NamedTuple

from clew.core import rawjson
from clew.llm.streaming import Spoken, ToolCall

Event = dict[str, Any]

CHAT, RESPONSES, ANTHROPIC = "openai_chat", "openai_responses", "anthropic"


class Recorded(NamedTuple):
    """A stream, and what it comes to; `shown` is what was seen of text and thoughts on the way."""

    name: str
    format: str
    events: list[Event]
    spoken: Spoken
    shown: str

    @property
    def raw(self) -> bytes:
        """Its bytes; the names of events as Anthropic and OpenAI give them."""
        named = [f"event: {event['type']}\n".encode() if "type" in event else b"" for event in self.events]
        lines = [name + b"data: " + rawjson.dumps(e) for name, e in zip(named, self.events, strict=True)]
        return b"\n\n".join([*lines, b"data: [DONE]\n\n" if self.format == CHAT else b""])


# --- Chat Completions -----------------------------------------------------------------------------------------------


def chunk(delta: Event, why: str | None = None, **more: Any) -> Event:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": why}], **more}


def fragment(index: int | None, arguments: Any = "", id: str | None = None, name: str | None = None) -> Event:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    made = {"id": id, "type": "function"} if id is not None else {}
    return {"tool_calls": [{**({"index": index} if index is not None else {}), **made, "function": function}]}


def said(content: str | None = None, **more: Any) -> list[Event]:
    return [{"role": "assistant", "content": content, **more}]


def made(*calls: tuple[str, str, str]) -> list[Event]:
    return [{"id": id, "type": "function", "function": {"name": name, "arguments": raw}} for id, name, raw in calls]


LS, PWD = ToolCall("c1", "ls", {"in": "/"}, '{"in":"/"}'), ToolCall("c2", "pwd", {}, "{}")
BOTH = made(("c1", "ls", '{"in":"/"}'), ("c2", "pwd", "{}"))

CHATS = [
    Recorded(
        "fragments of two calls come mixed",
        CHAT,
        [
            chunk(fragment(0, "", "c1", "ls")),
            chunk(fragment(1, "", "c2", "pwd")),
            chunk(fragment(0, '{"in"')),
            chunk(fragment(1, "{}")),
            chunk(fragment(0, ':"/"}')),
            chunk({}, "tool_calls"),
        ],
        Spoken(said(tool_calls=BOTH), "", [LS, PWD], "calls", "tool_calls", None),
        "",
    ),
    Recorded(
        "every call has the index 0, and the reason is stop",
        CHAT,
        [chunk(fragment(0, '{"in":"/"}', "c1", "ls")), chunk(fragment(0, "{}", "c2", "pwd")), chunk({}, "stop")],
        Spoken(said(tool_calls=BOTH), "", [LS, PWD], "calls", "stop", None),
        "",
    ),
    Recorded(
        "no index, the id and the name in every fragment, arguments that are an object",
        CHAT,
        [
            chunk(fragment(None, '{"in":', "c1", "ls")),
            chunk(fragment(None, '"/"}', "c1", "ls")),
            chunk(fragment(None, {}, "c2", "pwd")),
            chunk(fragment(None, {"a": 1}, "c3", "cat"), "tool_calls"),
        ],
        Spoken(
            said(tool_calls=[*BOTH[:1], *made(("c2", "pwd", "{}"), ("c3", "cat", '{"a":1}'))]),
            "",
            [LS, ToolCall("c2", "pwd", {}, ""), ToolCall("c3", "cat", {"a": 1}, '{"a":1}')],
            "calls",
            "tool_calls",
            None,
        ),
        "",
    ),
    Recorded(
        "thoughts under two names, and usage in every chunk",
        CHAT,
        [
            chunk({"reasoning": "Hm", "reasoning_content": "Hm"}, usage={"prompt_tokens": 5, "completion_tokens": 1}),
            chunk({"content": "Hi"}, "stop", usage={"prompt_tokens": 5, "completion_tokens": 2}),
        ],
        Spoken(
            said("Hi", reasoning_content="Hm", reasoning="Hm"),
            "Hi",
            [],
            "end",
            "stop",
            {"prompt_tokens": 5, "completion_tokens": 2},
        ),
        "(Hm)Hi",
    ),
    Recorded(
        "thoughts of a router, with a signature and a seal",
        CHAT,
        [
            chunk({"reasoning": "a", "reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0}]}),
            chunk({"reasoning": "b", "reasoning_details": [{"type": "reasoning.text", "text": "b", "index": 0}]}),
            chunk({"reasoning_details": [{"type": "reasoning.text", "signature": "sig", "index": 0}]}),
            chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "xyz", "index": 1}]}),
            chunk({"content": "Hi"}, "stop"),
        ],
        Spoken(
            said(
                "Hi",
                reasoning="ab",
                reasoning_details=[
                    {"type": "reasoning.text", "text": "ab", "index": 0, "signature": "sig"},
                    {"type": "reasoning.encrypted", "data": "xyz", "index": 1},
                ],
            ),
            "Hi",
            [],
            "end",
            "stop",
            None,
        ),
        "(a)(b)Hi",
    ),
    Recorded(
        "a refusal",
        CHAT,
        [chunk({"content": None, "refusal": ""}), chunk({"refusal": "I can"}), chunk({"refusal": "not."}, "stop")],
        Spoken(said(refusal="I cannot."), "I cannot.", [], "refused", "stop", None),
        "I cannot.",
    ),
    Recorded(
        "a filter",
        CHAT,
        [{"choices": [], "prompt_filter_results": []}, chunk({"content": "Well"}), chunk({}, "content_filter")],
        Spoken(said("Well"), "Well", [], "refused", "content_filter", None),
        "Well",
    ),
    Recorded(
        "arguments that the limit cut off",
        CHAT,
        [chunk({"content": "Now:"}), chunk(fragment(0, '{"in":"/et', "c1", "ls")), chunk({}, "length")],
        Spoken(
            said("Now:", tool_calls=made(("c1", "ls", '{"in":"/et'))),
            "Now:",
            [ToolCall("c1", "ls", None, '{"in":"/et')],
            "length",
            "length",
            None,
        ),
        "Now:",
    ),
    Recorded(
        "a custom tool, and a signature of Gemini",
        CHAT,
        [
            chunk({"tool_calls": [{"index": 0, "id": "c1", "custom": {"name": "sql", "input": "select "}}]}),
            chunk({"tool_calls": [{"index": 0, "custom": {"input": "1"}, "extra_content": {"google": "sig"}}]}),
            chunk({}, "tool_calls"),
        ],
        Spoken(
            said(
                tool_calls=[
                    {
                        "id": "c1",
                        "type": "custom",
                        "custom": {"name": "sql", "input": "select 1"},
                        "extra_content": {"google": "sig"},
                    }
                ]
            ),
            "",
            [ToolCall("c1", "sql", None, "select 1")],
            "calls",
            "tool_calls",
            None,
        ),
        "",
    ),
    Recorded(
        "thoughts between tags",
        CHAT,
        [
            *(chunk({"content": part}) for part in ("\n<th", "ink>a < b", "</", "b></thi", "nk>\n", "\n Hi", " ")),
            chunk({}, "stop"),
        ],
        Spoken(said("\n<think>a < b</b></think>\n\n Hi "), "Hi ", [], "end", "stop", None),
        "(a < b)(</b>)Hi ",
    ),
    Recorded(
        "thoughts that do not end",
        CHAT,
        [chunk({"content": "<think>So"}), chunk({"content": " </thin"}), chunk({}, "length")],
        Spoken(said("<think>So </thin"), "", [], "length", "length", None),
        "(So)( )(</thin)",
    ),
    Recorded(
        "half a tag that is text",
        CHAT,
        [chunk({"content": " "}), chunk({"content": "<thin"}), chunk({}, "stop")],
        Spoken(said(" <thin"), " <thin", [], "end", "stop", None),
        " <thin",
    ),
    Recorded("nothing at all", CHAT, [chunk({}, "stop")], Spoken([], "", [], "end", "stop", None), ""),
]

# --- Messages -------------------------------------------------------------------------------------------------------


def blocks(*shown: tuple[Event, list[Event]], why: str) -> list[Event]:
    """The events of blocks, each with its deltas."""
    events: list[Event] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
        {"type": "ping"},
    ]
    for index, (block, deltas) in enumerate(shown):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": why, "stop_sequence": None}
    last = {"type": "message_delta", "delta": delta, "usage": {"input_tokens": None, "output_tokens": 7}}
    return [*events, last, {"type": "message_stop"}]


USED = {"input_tokens": 9, "output_tokens": 7}
EMPTY = {"type": "text", "text": ""}


def text(words: str) -> Event:
    return {"type": "text_delta", "text": words}


SEALED = {"type": "redacted_thinking", "data": "EmwK"}
CITED = {"type": "char_location", "cited_text": "so", "document_index": 0}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}

MESSAGES = [
    Recorded(
        "sealed thoughts, citations and a search of the provider's own",
        ANTHROPIC,
        blocks(
            (SEALED, []),
            (SEARCH, [{"type": "input_json_delta", "partial_json": '{"query":"x"}'}]),
            (FOUND, []),
            (EMPTY, [text("It is "), text("so."), {"type": "citations_delta", "citation": CITED}]),
            (EMPTY, [text(" \n")]),
            why="pause_turn",
        ),
        Spoken(
            [
                {
                    "role": "assistant",
                    "content": [
                        SEALED,
                        SEARCH | {"input": {"query": "x"}},
                        FOUND,
                        {"type": "text", "text": "It is so.", "citations": [CITED]},
                    ],
                }
            ],
            "It is so. \n",
            [],
            "end",
            "pause_turn",
            USED,
        ),
        "It is so. \n",
    ),
    Recorded(
        "arguments that are no JSON",
        ANTHROPIC,
        blocks(
            (
                {"type": "tool_use", "id": "t1", "name": "ls", "input": {}},
                [{"type": "input_json_delta", "partial_json": '{"in": /}'}],
            ),
            ({"type": "tool_use", "id": "t2", "name": "pwd", "input": {}}, []),
            why="tool_use",
        ),
        Spoken(
            [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "t1", "name": "ls", "input": {"INVALID_JSON": '{"in": /}'}},
                        {"type": "tool_use", "id": "t2", "name": "pwd", "input": {}},
                    ],
                }
            ],
            "",
            [ToolCall("t1", "ls", None, '{"in": /}'), ToolCall("t2", "pwd", {}, "{}")],
            "calls",
            "tool_use",
            USED,
        ),
        "",
    ),
    Recorded(
        "nothing but thoughts",
        ANTHROPIC,
        blocks(
            ({"type": "thinking", "thinking": "", "signature": ""}, [{"type": "thinking_delta", "thinking": "Hm"}]),
            why="max_tokens",
        ),
        Spoken([], "", [], "length", "max_tokens", USED),
        "(Hm)",
    ),
    Recorded(
        "a refusal of Claude",
        ANTHROPIC,
        blocks((EMPTY, [text("I will")]), why="refusal"),
        Spoken(
            [{"role": "assistant", "content": [{"type": "text", "text": "I will"}]}],
            "I will",
            [],
            "refused",
            "refusal",
            USED,
        ),
        "I will",
    ),
]

# --- Responses ------------------------------------------------------------------------------------------------------


def items(*shown: tuple[Event, list[Event]], **response: Any) -> list[Event]:
    """The events of items, each with its own, and the response at the end."""
    events: list[Event] = [{"type": "response.created", "response": {"status": "in_progress"}}]
    for index, (item, own) in enumerate(shown):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events += [{"output_index": index, **event, "type": f"response.{event['type']}"} for event in own]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    status = response.get("status", "completed")
    return [*events, {"type": f"response.{status}", "response": {"status": status, **response}}]


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
SQL = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sql", "input": "select 1"}
PATCH: Event = {"type": "apply_patch_call", "call_id": "c2", "operation": {"type": "delete_file", "path": "a"}}
SEARCHED = {"type": "web_search_call", "id": "ws_1", "status": "completed"}


def message(*parts: Event) -> Event:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": list(parts)}


NO = message({"type": "refusal", "refusal": "No."})
WELL = message({"type": "output_text", "text": "Well", "annotations": []})

RESPONSE = [
    Recorded(
        "thoughts in two parts, tools of every kind, and no output at the end",
        RESPONSES,
        items(
            (
                THOUGHT,
                [
                    {"type": "reasoning_summary_part.added", "summary_index": 0},
                    {"type": "reasoning_summary_text.delta", "summary_index": 0, "delta": "a"},
                    {"type": "reasoning_summary_part.added", "summary_index": 1},
                    {"type": "reasoning_summary_text.delta", "summary_index": 1, "delta": "b"},
                ],
            ),
            (SEARCHED, [{"type": "web_search_call.searching"}]),
            (SQL, [{"type": "custom_tool_call_input.delta", "delta": "select 1"}]),
            (PATCH, []),
            output=[],
            usage={"input_tokens": 3},
        ),
        Spoken(
            [THOUGHT, SEARCHED, SQL, PATCH],
            "",
            [
                ToolCall("c1", "sql", None, "select 1"),
                ToolCall("c2", "apply_patch_call", PATCH["operation"], '{"type":"delete_file","path":"a"}'),
            ],
            "calls",
            "completed",
            {"input_tokens": 3},
        ),
        "(a)(\n\n)(b)",
    ),
    Recorded(
        "a refusal over Responses",
        RESPONSES,
        items((NO, [{"type": "refusal.delta", "delta": "No."}]), output=[NO]),
        Spoken([NO], "No.", [], "refused", "completed", None),
        "No.",
    ),
    Recorded(
        "a filter over Responses",
        RESPONSES,
        items(
            (WELL, [{"type": "output_text.delta", "delta": "Well"}]),
            status="incomplete",
            incomplete_details={"reason": "content_filter"},
        ),
        Spoken([WELL], "Well", [], "refused", "content_filter", None),
        "Well",
    ),
]

RECORDED = [*CHATS, *MESSAGES, *RESPONSE]
