"""Request bodies that cover every part type of Gemini's generateContent, in both spellings.

The bodies in `GEMINI_ODD` are what the service may send one day, or a client today: unknown parts, unknown keys.
"""

from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SIGNATURE = "CqQBAVSoXO4"
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}},
}


def asked(*contents: dict[str, Any], **frame: Any) -> dict[str, Any]:
    return {"contents": list(contents)} | frame


def user(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)} | more


def model(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)} | more


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"text": words} | more


def call(name: str = "get_weather", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"city": "Zürich"}} | more}


def response(name: str = "get_weather", value: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": value or {"result": "15 degrees"}} | more}


HELLO = user(text("Hello"))
HI = model(text("Hi! 👋"))
GO_ON = user(text("Go on."))
TOOLS: list[dict[str, Any]] = [{"functionDeclarations": [WEATHER]}, {"googleSearch": {}}]

GEMINI: list[dict[str, Any]] = [
    asked(HELLO),
    asked({"parts": [text("Hello")]}),
    asked(HELLO, HI, user(text("Tell me more."), text("Slowly."))),
    asked(HELLO, HELLO, HI, HI, GO_ON),
    asked(
        HELLO,
        systemInstruction={"parts": [text("You are terse."), text("You are kind.")]},
        tools=TOOLS,
        toolConfig={"functionCallingConfig": {"mode": "AUTO"}},
        generationConfig={"temperature": 0.5, "thinkingConfig": {"includeThoughts": True}},
        safetySettings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        cachedContent="cachedContents/1",
    ),
    asked(HELLO, system_instruction={"role": "system", "parts": [{"text": "You are terse."}]}),
    asked(HELLO, model="gemini-2.5-pro", config={"system_instruction": "You are terse.", "tools": TOOLS}),
    asked(
        user(
            {
                "inlineData": {"mimeType": "image/png", "data": PIXEL},
                "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"},
            },
            {"inline_data": {"mime_type": "image/png", "data": PIXEL}},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://bucket/a.mp4"}, "videoMetadata": {"fps": 1.0}},
            {"file_data": {"mime_type": "video/mp4", "file_uri": "gs://b/a"}, "video_metadata": {"start_offset": "1s"}},
            text("What is in these?", partMetadata={"n": 1}),
        )
    ),
    asked(HELLO, model(text("Let me look."), call()), user(response()), tools=TOOLS),
    asked(
        HELLO,
        model(
            text("The user wants two cities.", thought=True),
            call() | {"thoughtSignature": SIGNATURE},
            call(),
            call("run_shell", args={}),
            {"functionCall": {"name": "now"}},
        ),
        user(
            response(value={"output": "15 degrees"}),
            response(value={"temperature": 15, "wind": [1.5, None]}),
            response("run_shell", {"error": "denied"}, willContinue=False),
            response("now", parts=[{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]),
            text("And in Bern?"),
        ),
        model(text("", thoughtSignature=SIGNATURE), text("15 degrees.", thoughtSignature=SIGNATURE)),
        GO_ON,
        tools=TOOLS,
        model="gemini-3-pro",
    ),
    asked(
        HELLO,
        model(call(id="c1"), call(id="c2")),
        user(response(id="c2"), response(id="c1", value={"result": "16 degrees"})),
        model(call()),
        {"role": "function", "parts": [response()]},
    ),
    asked(
        HELLO,
        model({"function_call": {"name": "get_weather", "args": {}}, "thought_signature": SIGNATURE}),
        user({"function_response": {"name": "get_weather", "response": {"result": "15"}}}),
        tools=[{"function_declarations": [WEATHER]}],
    ),
    asked(
        HELLO,
        model(
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"executable_code": {"language": "PYTHON", "code": "print(2)", "id": "x1"}},
            {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "2", "id": "x1"}},
            {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}}},
            {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}},
            text("One."),
        ),
        GO_ON,
        tools=[{"codeExecution": {}}],
    ),
]

GEMINI_ODD: list[dict[str, Any]] = [
    asked(
        user({"hologram": {"beam": [1, None]}}, text("Look.", shout=True), mood="calm"),
        model(call(speed=2) | {"extra": {}}, text("Hm.", thought=False), thoughts=[]),
        user(response(took=1.5), text("And?")),
        aNewParameter=[{}],
        tools=[{"newTool": {}}, {"functionDeclarations": [WEATHER | {"new": 1}]}],
    ),
    asked(HELLO, model(call(id="get_weather~0")), user(response(id="get_weather~0"))),
]

# What no service accepts, and must come back all the same.
GEMINI_BAD: list[dict[str, Any]] = [
    asked(),
    asked({}, {"role": None, "parts": None}, {"role": "", "parts": []}, {"role": "model"}),
    asked(user({}, {"text": 7}, text(""), {"functionCall": 7}, {"functionResponse": None}, call(), response())),
    asked(model(response(), response(id="c1"), text("in the wrong place"), {"inlineData": None})),
    asked(user(response(id=7), response(id=""), response(name=""), {"functionResponse": {}}), tools=7),
    asked(model(call(args=7), call(args=None), call(id=None), {"functionCall": {}}), tools=[7, {}], config=7),
    asked(model(call(args={"raw": b"\x00\xff"}), call(args={"n": float("inf")}), call(args={"n": 2**70}))),
    asked(user({"inlineData": {"mimeType": "image/png", "data": b"\x89PNG"}}), system_instruction=7),
]
