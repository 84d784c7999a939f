"""What Gemini really sends: chunks of streams, and what was said in them."""

from typing import Any, NamedTuple

from clew.core import rawjson
from clew.llm.streaming import Spoken, ToolCall

Chunk = dict[str, Any]

SIGN = "CqQBAVSoXO4"


class Said(NamedTuple):
    """A stream, and what it comes to."""

    name: str
    chunks: list[Chunk]
    spoken: Spoken

    @property
    def events(self) -> bytes:
        """Its bytes, with the line ends that Google gives them."""
        return b"".join(b"data: " + rawjson.dumps(chunk) + b"\r\n\r\n" for chunk in self.chunks)

    @property
    def listed(self) -> bytes:
        return b"[" + b",\r\n".join(map(rawjson.dumps, self.chunks)) + b"]"


def chunk(*parts: Chunk, why: str | None = None, **more: Any) -> Chunk:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": why} if why else {})], "responseId": "r1", **more}


def text(words: str, **more: Any) -> Chunk:
    return {"text": words, **more}


def thought(words: str, **more: Any) -> Chunk:
    return {"text": words, "thought": True, **more}


def call(name: str, id: str = "", **more: Any) -> Chunk:
    return {"functionCall": ({"id": id} if id else {}) | {"name": name, "args": {"in": "/"}}, **more}


def made(name: str, id: str) -> ToolCall:
    return ToolCall(id, name, {"in": "/"}, '{"in":"/"}')


def model(*parts: Chunk) -> list[Chunk]:
    return [{"role": "model", "parts": list(parts)}]


def spoken(parts: list[Chunk], words: str, calls: list[ToolCall], stop: Any, why: str | None, usage: Any = None) -> Any:
    return Spoken(model(*parts) if parts else [], words, calls, stop, why, usage)


RECORDED = [
    Said(
        "thoughts, words and a signature in a part of its own",
        [
            chunk(thought("Hm, "), usageMetadata={"promptTokenCount": 9, "cachedContentTokenCount": 4}),
            chunk(thought("well.")),
            chunk(text("größer"), usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 1}),
            chunk(text(", 大きい\u2028")),
            chunk(
                text("", thoughtSignature=SIGN),
                why="STOP",
                usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 5, "thoughtsTokenCount": 3},
            ),
        ],
        spoken(
            [thought("Hm, well."), text("größer, 大きい\u2028"), text("", thoughtSignature=SIGN)],
            "größer, 大きい\u2028",
            [],
            "end",
            "STOP",
            {
                "promptTokenCount": 9,
                "cachedContentTokenCount": 4,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 3,
            },
        ),
    ),
    Said(
        "calls without ids, of which the first is signed",
        [chunk(text("I look."), call("ls", thoughtSignature=SIGN)), chunk(call("pwd")), chunk(call("ls"), why="STOP")],
        spoken(
            [text("I look."), call("ls", thoughtSignature=SIGN), call("pwd"), call("ls")],
            "I look.",
            [made("ls", "ls~0"), made("pwd", "pwd~0"), made("ls", "ls~1")],
            "calls",
            "STOP",
        ),
    ),
    Said(
        "calls with ids, and one without arguments",
        [chunk(call("ls", "c1"), call("ls", "c2")), chunk({"functionCall": {"name": "now", "id": "c3"}}, why="STOP")],
        spoken(
            [call("ls", "c1"), call("ls", "c2"), {"functionCall": {"name": "now", "id": "c3"}}],
            "",
            [made("ls", "c1"), made("ls", "c2"), ToolCall("c3", "now", {}, "")],
            "calls",
            "STOP",
        ),
    ),
    Said(
        "a text that is signed stays apart",
        [
            chunk(text("a")),
            chunk(text("b", thoughtSignature=SIGN)),
            chunk(text("c")),
            chunk(text(""), why="MAX_TOKENS"),
        ],
        spoken([text("a"), text("b", thoughtSignature=SIGN), text("c")], "abc", [], "length", "MAX_TOKENS"),
    ),
    Said(
        "what the provider ran, and a candidate beside the first",
        [
            chunk({"executableCode": {"language": "PYTHON", "code": "1"}}),
            {"candidates": [{"index": 1, "content": {"parts": [text("other")]}, "finishReason": "STOP"}]},
            chunk({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}, text("One."), why="STOP"),
        ],
        spoken(
            [
                {"executableCode": {"language": "PYTHON", "code": "1"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                text("One."),
            ],
            "One.",
            [],
            "end",
            "STOP",
        ),
    ),
    Said(
        "a filter",
        [chunk(text("Well")), {"candidates": [{"finishReason": "SAFETY", "index": 0}]}],
        spoken([text("Well")], "Well", [], "refused", "SAFETY"),
    ),
    Said(
        "a question that is refused",
        [{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}],
        spoken([], "", [], "refused", "PROHIBITED_CONTENT", {"promptTokenCount": 3}),
    ),
    Said("nothing but thoughts", [chunk(thought("Hm"), why="STOP")], spoken([], "", [], "end", "STOP")),
    Said("nothing at all", [chunk(why="STOP")], spoken([], "", [], "end", "STOP")),
    Said("cut", [chunk(text("So f"))], spoken([text("So f")], "So f", [], "cut", None)),
]
