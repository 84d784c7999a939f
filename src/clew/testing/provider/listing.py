"""The list of models, which both providers keep under one path."""

from collections.abc import Mapping
from typing import Any

from clew.testing.provider.answers import CREATED, ProviderBody

PATH = "/v1/models"


def found(path: str, models: Mapping[str, int], format: str) -> ProviderBody | None:
    """What a path under the list says; only Anthropic tells how large a window is."""
    entries = {name: _entry(name, window, format) for name, window in models.items()}
    if path != PATH:
        return entries.get(path.removeprefix(f"{PATH}/")) if path.startswith(f"{PATH}/") else None
    listed: dict[str, Any] = {"data": list(entries.values())}
    if format != "anthropic":
        return {"object": "list", **listed}
    names: list[str | None] = [*entries] or [None]
    return {**listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}


def _entry(name: str, window: int, format: str) -> ProviderBody:
    if format != "anthropic":
        return {"id": name, "object": "model", "created": CREATED, "owned_by": "strict"}
    made = {"type": "model", "id": name, "display_name": name, "created_at": "2025-10-09T08:53:20Z"}
    return {**made, "lifecycle": "active", "max_input_tokens": window}
