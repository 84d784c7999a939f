"""How many tokens a request has, for clients of providers that do not say."""

from clew import wire
from clew.core import rawjson
from clew.errors import BadRequest
from clew.gateway.faults import told
from clew.gateway.http import GatewayReply, json_reply
from clew.tokens import counter_for
from clew.tokens.meter import Meter

_ANSWERS = {
    "anthropic": lambda count: {"input_tokens": count},
    "openai_responses": lambda count: {"object": "response.input_tokens", "input_tokens": count},
    "gemini": lambda count: {"totalTokens": count},
}


def counted(raw: bytes, path: str) -> GatewayReply:
    """The answer to a request at one of the paths that count; nothing of it is kept."""
    format = "anthropic" if "/messages/" in path else "openai_responses" if "/responses/" in path else "gemini"
    try:
        body = rawjson.loads(raw)
        if format == "gemini" and isinstance(body, dict):
            body = body.get("generateContentRequest") or body
        frame, items = wire.decode(body, format)
    except BadRequest as error:
        return told(400, str(error), format)
    model = frame.model or path.rpartition("/")[2].partition(":")[0]
    meter = Meter(counter_for(model, format))
    count = meter.frame(frame).plus(meter.items(items)).tokens
    return json_reply(rawjson.dumps(_ANSWERS[format](count)))
