"""The list of models, which two providers keep under one path, and Google under its own."""

from collections.abc import Mapping
from typing import Any

from clew.testing.provider.answers import CREATED, ProviderBody

PATH = "/v1/models"
GOOGLE_PATH = "/v1beta/models"


def found(path: str, models: Mapping[str, int], format: str) -> ProviderBody | None:
    """What a path under the list says; OpenAI does not tell how large a window is."""
    entries = {name: _entry(name, window, format) for name, window in models.items()}
    root = GOOGLE_PATH if path.startswith(GOOGLE_PATH) else PATH
    if path != root:
        return entries.get(path.removeprefix(f"{root}/")) if path.startswith(f"{root}/") else None
    if format == "gemini":
        return {"models": list(entries.values())}
    listed: dict[str, Any] = {"data": list(entries.values())}
    if format != "anthropic":
        return {"object": "list", **listed}
    names: list[str | None] = [*entries] or [None]
    return {**listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}


def _entry(name: str, window: int, format: str) -> ProviderBody:
    if format == "gemini":
        limits = {"inputTokenLimit": window, "outputTokenLimit": 65_536}
        methods = {"supportedGenerationMethods": ["generateContent", "countTokens"]}
        return {"name": f"models/{name}", "version": "001", "displayName": name, **limits, **methods}
    if format != "anthropic":
        return {"id": name, "object": "model", "created": CREATED, "owned_by": "strict"}
    made = {"type": "model", "id": name, "display_name": name, "created_at": "2025-10-09T08:53:20Z"}
    return {**made, "lifecycle": "active", "max_input_tokens": window}
