"""Request bodies of OpenAI's Responses API that cover every input item, and a judge that asks the official SDK.

The bodies in `RESPONSES_ODD` are what the API may send one day, or a client today: unknown items, unknown keys.
"""

from functools import cache
from typing import Any

from openai.types.responses.response_input_param import ResponseInputItemParam
from openai.types.responses.tool_param import ToolParam
from pydantic import TypeAdapter, ValidationError

from bodies import PDF, PIXEL, strict

Body = dict[str, Any]

SEALED = "gAAAAABo7mZyQ0lI"
IMAGE: Body = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"}
WEATHER: Body = {
    "type": "function",
    "name": "get_weather",
    "strict": True,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
MARK: Body = {"mode": "explicit", "ttl": "30m"}


def body(*items: Any, **frame: Any) -> Body:
    return {"model": "gpt-5", "input": list(items)} | frame


def user(*parts: Body, **more: Any) -> Body:
    return {"type": "message", "role": "user", "content": list(parts)} | more


def words(text: str, **more: Any) -> Body:
    return {"type": "input_text", "text": text} | more


def said(id: str, *parts: Body, **more: Any) -> Body:
    """A message as the API gave it."""
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": list(parts)} | more


def answer(text: str, **more: Any) -> Body:
    return {"type": "output_text", "text": text, "annotations": []} | more


def thought(id: str, **more: Any) -> Body:
    return {"type": "reasoning", "id": id, "summary": []} | more


def call(call_id: str, **more: Any) -> Body:
    return {"type": "function_call", "call_id": call_id, "name": "get_weather", "arguments": '{"city":"Zürich"}'} | more


def output(call_id: str, said: Any = "15 degrees", **more: Any) -> Body:
    return {"type": "function_call_output", "call_id": call_id, "output": said} | more


HI: Body = {"role": "user", "content": "Hi"}
HELLO: Body = {"role": "assistant", "content": "Hello!"}

_MESSAGES: list[Body] = [
    {"model": "gpt-5", "input": "Hello"},
    {"model": "gpt-5", "input": "Hello", "instructions": "Be terse.", "store": False, "include": []},
    body(HI),
    body(HI, instructions="Be terse.", tools=[WEATHER], previous_response_id="resp_1", context_management=[]),
    body(HI, conversation="conv_1", prompt_cache_key="k", stream=True, reasoning={"effort": "high"}),
    body({"role": "developer", "content": "Be terse."}, {"role": "system", "content": "Be kind."}, HI, HELLO, HI),
    body(user(words("Be terse."), role="developer"), HI, HELLO, {"role": "developer", "content": "Now in French."}, HI),
    body({"role": "system", "content": "Only this."}),
    body(
        user(words("Hi", prompt_cache_breakpoint=MARK)), HELLO, user(words("And"), words("more."), status="completed")
    ),
    body(
        user(
            words("What is this?"),
            IMAGE,
            {"type": "input_image", "file_id": "file_1", "detail": "low", "prompt_cache_breakpoint": MARK},
            {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
            {"type": "input_file", "file_url": "https://example.com/a.pdf"},
        ),
        said("msg_1", answer("A pixel.", logprobs=[])),
        {"type": "message", "role": "user", "content": "Sure?"},
        said("msg_2", {"type": "refusal", "refusal": "I would rather not say."}, phase="final_answer"),
        user(words("")),
        {"role": "assistant", "content": "", "phase": "commentary"},
        {"role": "user", "content": []},
    ),
    body(
        HI,
        said(
            "msg_3",
            answer("One, "),
            answer(
                "two.",
                annotations=[
                    {"type": "url_citation", "url": "https://e.com", "title": "E", "start_index": 0, "end_index": 3},
                    {"type": "file_citation", "file_id": "file_1", "filename": "a.txt", "index": 3},
                    {"type": "file_path", "file_id": "file_2", "index": 3},
                    {
                        "type": "container_file_citation",
                        "container_id": "cntr_1",
                        "file_id": "cfile_1",
                        "filename": "b.txt",
                        "start_index": 0,
                        "end_index": 3,
                    },
                ],
                logprobs=[{"token": "two", "bytes": [116], "logprob": -0.1, "top_logprobs": []}],
            ),
        ),
        HI,
    ),
]

_CALLS: list[Body] = [
    body(HI, call("call_1"), output("call_1"), tools=[WEATHER]),
    body(
        HI,
        thought("rs_1", encrypted_content=SEALED, summary=[{"type": "summary_text", "text": "Look at the sky."}]),
        said("msg_1", answer("I will look."), phase="commentary"),
        call("call_1", id="fc_1", status="completed"),
        call("call_2", id="fc_2", status="completed", caller={"type": "direct"}, namespace="sky"),
        output("call_1", id="fco_1", status="completed"),
        output("call_2", [words("cloudy"), IMAGE | {"detail": "high"}, {"type": "input_file", "file_id": "file_1"}]),
        thought("rs_2", content=[{"type": "reasoning_text", "text": "So it rains."}], status="completed"),
        said("msg_2", answer("Rain.")),
        HI,
        store=False,
    ),
    body(
        HI,
        thought("rs_1", encrypted_content=None),
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_3", "name": "patch", "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "call_3", "output": "Done!"},
        {"type": "custom_tool_call", "call_id": "call_4", "name": "patch", "input": ""},
        {"type": "custom_tool_call_output", "id": "ctco_1", "call_id": "call_4", "output": [words("Done!"), IMAGE]},
        HI,
    ),
    body(output("call_9"), previous_response_id="resp_1"),
    body({"type": "item_reference", "id": "fc_9"}, output("call_9"), {"id": "msg_9"}, HI),
    body({"type": "compaction", "id": "cmp_1", "encrypted_content": SEALED}, HI, {"type": "compaction_trigger"}),
]

_CLICK: Body = {"type": "click", "x": 1, "y": 2, "button": "left"}
_ACTIONS: list[Body] = [
    _CLICK,
    {"type": "double_click", "x": 1, "y": 2, "keys": None},
    {"type": "drag", "path": [{"x": 1, "y": 2}]},
    {"type": "keypress", "keys": ["CTRL", "C"]},
    {"type": "move", "x": 1, "y": 2},
    {"type": "screenshot"},
    {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": 9},
    {"type": "type", "text": "hello"},
    {"type": "wait"},
]
_SEARCH: Body = {"type": "web_search_call", "id": "ws_1", "status": "completed"}

_HOSTED: list[Body] = [
    body(
        HI,
        thought("rs_1"),
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "call_1",
            "action": _CLICK,
            "status": "completed",
            "pending_safety_checks": [{"id": "sc_1", "code": "malicious", "message": "Careful."}],
        },
        {
            "type": "computer_call_output",
            "call_id": "call_1",
            "acknowledged_safety_checks": [{"id": "sc_1"}],
            "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PIXEL}"},
        },
        {
            "type": "computer_call",
            "id": "cu_2",
            "call_id": "call_2",
            "actions": _ACTIONS,
            "status": "completed",
            "pending_safety_checks": [],
        },
        {
            "type": "computer_call_output",
            "call_id": "call_2",
            "output": {"type": "computer_screenshot", "file_id": "f"},
        },
    ),
    body(
        HI,
        thought("rs_1"),
        _SEARCH | {"action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "https://e.com"}]}},
        _SEARCH | {"id": "ws_2", "action": {"type": "open_page", "url": "https://e.com"}},
        _SEARCH | {"id": "ws_3", "action": {"type": "find_in_page", "url": "https://e.com", "pattern": "x"}},
        {
            "type": "file_search_call",
            "id": "fs_1",
            "queries": ["q"],
            "status": "completed",
            "results": [{"file_id": "file_1", "text": "Found.", "score": 0.5, "attributes": {"a": 1.0}}],
        },
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "code": "1 + 1",
            "container_id": "cntr_1",
            "status": "completed",
            "outputs": [{"type": "logs", "logs": "2"}, {"type": "image", "url": "https://e.com/i.png"}],
        },
        {"type": "image_generation_call", "id": "ig_1", "result": PIXEL, "status": "completed"},
        said("msg_1", answer("Here.")),
        HI,
    ),
    body(
        HI,
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "call_1",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
        {"type": "local_shell_call_output", "id": "call_1", "output": '{"stdout":"a"}', "status": "completed"},
        {
            "type": "shell_call",
            "id": "sh_1",
            "call_id": "call_2",
            "action": {"commands": ["ls", "pwd"], "timeout_ms": 1000, "max_output_length": None},
            "environment": {"type": "local", "skills": [{"name": "s", "description": "d", "path": "p"}]},
        },
        {
            "type": "shell_call_output",
            "call_id": "call_2",
            "max_output_length": 4096,
            "output": [
                {"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "slow", "outcome": {"type": "timeout"}},
            ],
        },
        {
            "type": "shell_call",
            "call_id": "call_3",
            "action": {"commands": ["ls"]},
            "environment": {"type": "container_reference", "container_id": "cntr_1"},
        },
        {"type": "shell_call_output", "call_id": "call_3", "output": []},
    ),
    body(
        HI,
        *(
            part
            for n, operation in enumerate(("create_file", "update_file", "delete_file"))
            for part in (
                {
                    "type": "apply_patch_call",
                    "call_id": f"call_{n}",
                    "status": "completed",
                    "operation": {"type": operation, "path": "a.py"}
                    | ({} if operation == "delete_file" else {"diff": "+x"}),
                },
                {"type": "apply_patch_call_output", "call_id": f"call_{n}", "status": "completed", "output": "Done!"},
            )
        ),
    ),
    body(
        HI,
        {
            "type": "mcp_list_tools",
            "id": "mcpl_1",
            "server_label": "deep",
            "tools": [{"name": "ask", "input_schema": {}, "annotations": None, "description": None}],
        },
        {"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}", "name": "ask", "server_label": "deep"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "arguments": "{}",
            "name": "ask",
            "server_label": "deep",
            "approval_request_id": "mcpr_1",
            "output": "42",
        },
        *(
            {
                "type": "mcp_call",
                "id": f"mcp_{n}",
                "arguments": "{}",
                "name": "ask",
                "server_label": "d",
                "error": error,
            }
            for n, error in enumerate(
                (
                    {"type": "mcp_protocol_error", "code": 1, "message": "no"},
                    {"type": "mcp_tool_execution_error", "content": []},
                    {"type": "http_error", "code": 500, "message": "no"},
                ),
                start=2,
            )
        ),
    ),
    body(
        {"type": "additional_tools", "role": "developer", "tools": [WEATHER]},
        {"type": "configuration_update", "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}},
        HI,
        {"type": "tool_search_call", "arguments": {"query": "sky"}, "call_id": "call_1", "execution": "client"},
        {"type": "tool_search_output", "tools": [WEATHER], "call_id": "call_1", "execution": "client"},
        {"type": "program", "id": "prog_1", "call_id": "call_2", "code": "f()", "fingerprint": "fp"},
        call("call_3", caller={"type": "program", "caller_id": "call_2"}),
        output("call_3", caller={"type": "program", "caller_id": "call_2"}),
        {"type": "program_output", "id": "po_1", "call_id": "call_2", "result": "1", "status": "completed"},
        {
            "type": "configuration_update",
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
        },
        HI,
    ),
]

RESPONSES: list[Body] = _MESSAGES + _CALLS + _HOSTED

RESPONSES_ODD: list[Body] = [
    body(HI, {"type": "hologram_call", "id": "h_1", "beam": [1, None]}, {"type": "hologram_call_output", "id": "h_1"}),
    body({"type": "message", "role": "user", "content": [{"type": "hologram"}, words("Hi"), {"type": "aroma"}]}, HI),
    body({"role": "user", "content": [words("Hi", mood="glad"), words("there", mood=[])]}),
    body({"role": "user", "content": [words("Hi", mood=None)], "name": "kim"}, HI | {"type": None}),
    # OpenRouter and others leave out what the API never does
    body(HI, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes"}]}, HI),
    body(HI, thought("rs_1", format="x", signature="y"), HELLO | {"reasoning_details": [{"type": "x"}]}, HI),
    body({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}]}),
    body(HI, call("call_1", index=0), output("call_1", is_error=False), an_unknown_key={"deep": [1]}),
    body(
        HI,
        {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "", "status": "done"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "", "name": "n"},
    ),
]


def judge(request: Body) -> list[str]:
    """What the types of OpenAI's SDK find wrong with a body."""
    items = request["input"] if isinstance(request["input"], list) else []
    found = []
    for kind, values in ((ResponseInputItemParam, items), (ToolParam, request.get("tools", []))):
        try:
            _lists(kind).validate_python(values)
        except ValidationError as error:
            found += [f"{e['loc']} {e['msg']}" for e in error.errors()]
    return found


@cache
def _lists(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(list[strict(kind)])  # type: ignore[arg-type, misc]
