"""What a request holds beside its history, from one format to another: system prompt, tools, parameters."""

from collections.abc import Iterable
from dataclasses import replace as with_
from typing import Any

from clew.core.items import Frame
from clew.wire.convert.tools import tools_of
from clew.wire.formats import named
from clew.wire.formats.plain import Block, fresh
from clew.wire.formats.tools import Choice, ToolDeclaration

STOPS = 4  # sequences that every provider takes


def convert_frame(frame: Frame, to: str, model: str | None = None) -> Frame:
    """The frame in another format, for another model if one is named; what has no counterpart is left out."""
    codec = named(to)
    key = codec.model_key
    if frame.format == to:
        return frame if model is None else with_(frame, model=model, body={**frame.body, key: model})
    name = frame.model if model is None else model
    body: Block = {key: name} if name else {}
    body |= {**_parameters(frame, to), **codec.fixed}
    if tools := tools_of(frame):
        choice = named(frame.format).read_choice(frame.body)
        body |= codec.write_tools(list(tools.values()), choice if choice.only in ("", *tools) else Choice("auto"))
    system = codec.system(frame.system) if frame.system.strip() else {}
    return codec.split({**body, **system, codec.LIST: codec.lead(frame.system)})[0]


def declare(frame: Frame, names: Iterable[str]) -> Frame:
    """The frame with these tools declared, where it declares none: some providers take no calls without."""
    tools = [ToolDeclaration(name, "Called earlier, and not on offer now.") for name in dict.fromkeys(names)]
    if frame.tools or not tools:
        return frame
    codec = named(frame.format)
    return codec.split({**frame.body, **codec.write_tools(tools, Choice("none")), codec.LIST: []})[0]


def _parameters(frame: Frame, to: str) -> Block:
    told, target = _named_parameters(frame), named(to)
    if target.least_limit is not None:
        told.setdefault("limit", target.least_limit)
    if isinstance(told.get("temperature"), int | float) and target.warmest is not None:
        told["temperature"] = min(told["temperature"], target.warmest)
    if isinstance(stop := told.get("stop"), str | list):
        told["stop"] = [stop] if isinstance(stop, str) else fresh(stop)[:STOPS]
    return target.with_parameters(told)


def _named_parameters(frame: Frame) -> dict[str, Any]:
    """The parameters that a frame names, under names of our own."""
    format = named(frame.format)
    held = format.parameter_holder(frame.body)
    keys = {name: key for name, key in format.parameters._asdict().items() if name != "holder"}
    return {name: held[key] for name, key in keys.items() if held.get(key) is not None}
