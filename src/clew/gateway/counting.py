"""How many tokens a request has, for clients of providers that do not say."""

from clew import wire
from clew.core import rawjson
from clew.errors import BadRequest
from clew.gateway.faults import error_reply
from clew.gateway.http import GatewayReply, json_reply
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.wire.requests import api_call


def counted(raw: bytes, path: str) -> GatewayReply:
    """The answer to a request at one of the paths that count; nothing of it is kept."""
    call = api_call(path)
    assert call is not None
    format = call.format
    try:
        body = rawjson.loads(raw)
        if isinstance(body, dict):
            body = body.get("generateContentRequest") or body  # Gemini's may stand inside
        frame, items = wire.decode(body, format)
    except BadRequest as error:
        return error_reply(400, str(error), format)
    model = frame.model or call.model
    meter = Meter(counter_for(model, format))
    count = meter.frame(frame).plus(meter.items(items)).tokens
    return json_reply(rawjson.dumps(wire.named(format).counted(count)))
