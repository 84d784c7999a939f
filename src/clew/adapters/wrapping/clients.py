"""Clients of the SDKs: which SDK it is, one like it with another HTTP client, and errors that it lets pass."""

from importlib import import_module
from typing import Any

from clew.adapters.wrapping.lines import RequestHandler, relayed
from clew.errors import BadRequest, ClewError

# Where the root of an SDK's errors is.
ROOTS = {
    "openai": ("openai", "OpenAIError"),
    "anthropic": ("anthropic", "AnthropicError"),
    "google.genai": ("google.genai.errors", "APIError"),
}
# What a client of google-genai was made of, by its argument and the attribute of what it sends with.
GENAI_ARGUMENTS = {
    "vertexai": "vertexai",
    "credentials": "_credentials",
    "project": "project",
    "location": "location",
    "api_key": "api_key",
}


def errors_of(client: Any) -> tuple[str, type[Exception]]:
    """The SDK of a client, and the root of its errors. Raises `BadRequest` for a client of any other."""
    for kind in type(client).__mro__:
        sdk = next((name for name in ROOTS if f"{kind.__module__}.".startswith(f"{name}.")), "")
        if sdk:
            module, name = ROOTS[sdk]
            root: type[Exception] = getattr(import_module(module), name)
            return sdk, root
    raise BadRequest(f"wrap: expected a client of openai, anthropic or google-genai, got {type(client).__name__}")


def passable(error: ClewError, client: Any) -> ClewError:
    """The error as one of a client's SDK, too."""
    sdk, root = errors_of(client)
    kind = type(type(error).__name__, (type(error), root), {"__module__": type(error).__module__})
    made: ClewError = kind.__new__(kind, *error.args)
    if sdk == "google.genai":  # what its users read of an error
        made.__dict__.update(code=400, status=None, message=str(error), response=None, details=None)
    made.__dict__.update(vars(error))
    return made


def relayed_client(plain: Any, ask: RequestHandler, mark: object) -> Any:
    """A client like this one, whose requests are asked about before they go out through its HTTP client."""
    # What it sends with has no public name in any SDK; to give it another one has.
    if errors_of(plain)[0] != "google.genai":
        http = relayed(plain._client, ask)
        http.clew = mark
        return plain.copy(http_client=http)
    api = plain._api_client
    made = {"httpx_client": relayed(api._httpx_client, ask)}
    if api._async_httpx_client is not None:  # else Google's own library signs what is awaited
        made["httpx_async_client"] = relayed(api._async_httpx_client, ask)
    given = {name: value for name, held in GENAI_ARGUMENTS.items() if (value := getattr(api, held, None)) is not None}
    if given.get("vertexai") and given.get("project"):
        given.pop("api_key", None)
    return type(plain)(**given, http_options=api._http_options.model_copy(update=made))
