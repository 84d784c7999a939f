"""Request bodies that cover every block type of Bedrock's Converse, as boto3 takes them: binary data is bytes.

The bodies in `BEDROCK_ODD` are what the service may send one day, or a client today: unknown blocks, unknown keys.
"""

from typing import Any

PIXEL = b"\x89PNG\r\n\x1a\n\x00\xff"
SEALED = b"\x00\x01sealed\xfe"
POINT: dict[str, Any] = {"cachePoint": {"type": "default"}}
LONG_POINT: dict[str, Any] = {"cachePoint": {"type": "default", "ttl": "1h"}}
WEATHER: dict[str, Any] = {
    "toolSpec": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "inputSchema": {"json": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
}


def asked(*messages: dict[str, Any], **frame: Any) -> dict[str, Any]:
    return {"modelId": "anthropic.claude-opus-4-8-v1:0", "messages": list(messages)} | frame


def user(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)} | more


def assistant(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)} | more


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def use(i: str, name: str = "get_weather", **more: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": i, "name": name, "input": {"city": "Zürich"}} | more}


def result(i: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": i, "content": list(content)} | more}


def thought(words: str, **more: Any) -> dict[str, Any]:
    return {"reasoningContent": {"reasoningText": {"text": words} | more}}


def document(name: str, **source: Any) -> dict[str, Any]:
    return {"document": {"format": "txt", "name": name, "source": source or {"text": "The grass is green."}}}


def image(**source: Any) -> dict[str, Any]:
    return {"image": {"format": "png", "source": source or {"bytes": PIXEL}}}


HELLO = user(text("Hello"))
HI = assistant(text("Hi! 👋"))
GO_ON = user(text("Go on."))
TOOLS: dict[str, Any] = {"tools": [WEATHER, POINT], "toolChoice": {"auto": {}}}
S3 = {"uri": "s3://bucket/a.mp4", "bucketOwner": "123456789012"}
FOUND = {
    "searchResult": {
        "source": "https://example.com/kb/1",
        "title": "Knowledge",
        "content": [{"text": "It depends."}],
        "citations": {"enabled": True},
    }
}

BEDROCK: list[dict[str, Any]] = [
    {"messages": [HELLO]},
    asked(HELLO),
    asked(HELLO, HI, user(text("Tell me more."), text("Slowly."))),
    asked(
        HELLO,
        system=[text("You are terse."), {"guardContent": {"text": {"text": "Be kind."}}}, POINT],
        inferenceConfig={"maxTokens": 1024, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
        additionalModelRequestFields={"top_k": 5, "thinking": {"type": "enabled", "budget_tokens": 1024}},
        additionalModelResponseFieldPaths=["/stop_sequence"],
        guardrailConfig={"guardrailIdentifier": "abc", "guardrailVersion": "DRAFT", "trace": "enabled"},
        performanceConfig={"latency": "optimized"},
        requestMetadata={"team": "x"},
        serviceTier={"type": "flex"},
        outputConfig={"effort": "high"},
    ),
    asked(HELLO, HI, {"role": "system", "content": [text("Answer in German.")]}, GO_ON),
    asked(
        user(
            image(),
            image(s3Location=S3),
            {"video": {"format": "mp4", "source": {"s3Location": S3}}},
            {"audio": {"format": "wav", "source": {"bytes": PIXEL}}},
            document("a", bytes=PIXEL),
            document("b", content=[{"text": "First"}, {"text": "Second"}]),
            {"document": {"name": "c", "source": {"text": "x"}, "context": "why", "citations": {"enabled": True}}},
            FOUND,
            {"guardContent": {"text": {"text": "Am I safe?", "qualifiers": ["query"]}}},
            {"guardContent": {"image": {"format": "png", "source": {"bytes": PIXEL}}}},
            text("What is in these?"),
        )
    ),
    asked(
        HELLO,
        assistant(
            {
                "citationsContent": {
                    "content": [{"text": "The grass is green."}],
                    "citations": [
                        {
                            "title": "a",
                            "sourceContent": [{"text": "The grass is green."}],
                            "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 19}},
                        }
                    ],
                }
            }
        ),
        GO_ON,
    ),
    asked(HELLO, assistant(text("Let me look."), use("t1")), user(result("t1", text("15 degrees"))), toolConfig=TOOLS),
    asked(
        HELLO,
        assistant(thought("The user greets me.", signature="EqQB"), use("t1"), use("t2", input={}), use("t3"), POINT),
        user(
            result("t1", text("15 degrees"), text("windy"), status="success"),
            result("t2", {"json": {"temperature": 15, "wind": [1.5, None]}}, image(), document("d"), FOUND),
            result("t3", text("no route to host"), status="error"),
            LONG_POINT,
            text("And in Bern?"),
            POINT,
        ),
        assistant({"reasoningContent": {"redactedContent": SEALED}}, text("I could not look.")),
        GO_ON,
        toolConfig=TOOLS,
    ),
    asked(HELLO, assistant(use("t4")), user(result("t4")), toolConfig=TOOLS),
    asked(
        HELLO,
        assistant(use("t5")),
        user(result("t5", {"video": {"format": "mp4", "source": {"bytes": PIXEL}}})),
        toolConfig=TOOLS,
    ),
    asked(
        HELLO,
        assistant(
            use("s1", "nova_grounding", type="server_tool_use"),
            result("s1", text("found"), type="nova_grounding_result", status="success"),
            text("It is known."),
        ),
        GO_ON,
        toolConfig={"tools": [{"systemTool": {"name": "nova_grounding"}}]},
    ),
    asked(
        HELLO,
        HI,
        {"role": "system", "content": [{"toolAddition": {"tool": {"type": "tool_reference", "name": "get_weather"}}}]},
        {"role": "system", "content": [{"toolRemoval": {"tool": {"type": "tool_reference", "name": "get_weather"}}}]},
        GO_ON,
    ),
]

BEDROCK_ODD: list[dict[str, Any]] = [
    asked(
        user(POINT, text("Marked before anything."), POINT, LONG_POINT, mood="calm"),
        assistant({"hologram": {"beam": [1, None]}}, use("t6", speed=2), thoughts=[]),
        user(result("t6", text("15"), took=1.5), {"cachePoint": "soon"}, text("And?")),
        toolConfig={"tools": [WEATHER, {"newTool": {}}]},
        aNewParameter=[{}],
    ),
    asked(user(POINT), assistant(POINT, POINT, text("Hi")), user(text("Go on."), POINT)),
]

# What no service accepts, and must come back all the same.
BEDROCK_BAD: list[dict[str, Any]] = [
    asked(),
    asked(HELLO, HELLO, HI, HI),
    asked(HI, HELLO),
    asked({"role": "user"}, {"role": "assistant", "content": None}, {"role": "user", "content": []}, HELLO),
    asked(user({}, {"text": 7}, {"text": "a", "image": {}}, {"toolUse": 7}, {"toolResult": None}, use("t7"))),
    asked(assistant(text("a"), result("t8", text("in the wrong place")), use("t8"), {"toolUse": {}}, result(""))),
    asked(user(result("t9", text("")), {"toolResult": {"toolUseId": 9, "content": [{"text": "x"}]}}, use("", input=7))),
    asked(user({"toolResult": {"toolUseId": "t", "content": [{"text": "x"}]}, "more": 1}), system=7, toolConfig=[]),
    asked(HELLO, system="plain", toolConfig={"tools": [7, {"toolSpec": 1}, {"toolSpec": None}]}),
    asked(assistant(use("t", input={"raw": PIXEL}), use("t", input={"n": float("inf")}), use("t", input=2**70))),
]
