"""What a model server of one's own will take: asked of the server, since a catalog cannot know how it was started.

Nothing is sent but the model's name: no key, through no proxy, after no redirect, and to no public address.
"""

import json
import re
import socket
from dataclasses import dataclass
from http.client import HTTPException
from ipaddress import ip_address
from threading import Thread
from typing import Any, Literal
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

__all__ = ["Probed", "probe"]

_LARGEST = 1_000_000  # bytes of an answer; an Ollama model with its licence takes tens of thousands
_TOKENS = range(256, 100_000_001)  # what a window can be; anything else is a mistake

ServerKind = Literal["ollama", "llama.cpp", "vllm", "lmstudio"]


@dataclass(frozen=True, slots=True)
class Probed:
    """A window in tokens; `sure` is False where it is the model's maximum and the server may take less."""

    window: int
    server: ServerKind
    sure: bool


def probe(base_url: str, model: str, timeout: float = 2.0) -> Probed | None:
    """Ask a local server how much of a model's window it offers; None if it does not say within `timeout` seconds."""
    found: list[Probed | None] = []

    def ask() -> None:
        root = _root(base_url)
        found.append(_found(_Host(root, timeout), model) if root else None)

    # A thread, because neither a name look-up nor a server that drips bytes can be timed out otherwise.
    thread = Thread(target=ask, name="clew-probe", daemon=True)
    thread.start()
    thread.join(timeout)
    return found[0] if found else None


def _found(host: "_Host", model: str) -> Probed | None:
    """Tell the server's kind from the list of models that each of them has."""
    listed = _objects(host.answer("/v1/models"), "data")
    if any(entry.get("owned_by") == "llamacpp" for entry in listed):
        return _llama_cpp(host, model, listed)
    if any("max_model_len" in entry for entry in listed):
        return _vllm(model, listed)
    if listed:
        return _lm_studio(host, model) or _ollama(host, model)
    return None


def _llama_cpp(host: "_Host", model: str, listed: list[dict[str, Any]]) -> Probed | None:
    """A slot's share of the context: that is what one request can use."""
    named = [entry for entry in listed if model in _names(entry)]
    if not named and len(listed) > 1:
        return None
    entry = (named or listed)[0]  # a server of one model answers to any name
    window = _tokens(entry, "meta", "n_ctx")
    if window is None:
        # A server of many models would load one to answer, unless told not to.
        props = host.answer(f"/props?model={quote(model, errors='replace')}&autoload=false")
        window = _tokens(props, "default_generation_settings", "n_ctx")
    return _probed("llama.cpp", window, _tokens(entry, "meta", "n_ctx_train"))


def _vllm(model: str, listed: list[dict[str, Any]]) -> Probed | None:
    """What the server was started with; an adapter has the window of the model it adapts."""
    entries = {str(entry.get("id")): entry for entry in listed}
    entry = entries.get(model, {})
    return _probed(
        "vllm", _tokens(entry, "max_model_len") or _tokens(entries, str(entry.get("parent")), "max_model_len")
    )


def _lm_studio(host: "_Host", model: str) -> Probed | None:
    """What the model was loaded with; one that is not loaded will be, with settings that are not told."""
    entries = {str(entry.get("id")): entry for entry in _objects(host.answer("/api/v0/models"), "data")}
    entry = entries.get(model, {})
    return _probed("lmstudio", _tokens(entry, "loaded_context_length"), _tokens(entry, "max_context_length"))


def _ollama(host: "_Host", model: str) -> Probed | None:
    """What the model file sets, else what the model is loaded with.

    The default (4k, 32k or 256k by the size of video memory, or OLLAMA_CONTEXT_LENGTH) is in no answer: it shows once
    the model is loaded. A longer prompt is cut short without a word.
    """
    shown = host.answer("/api/show", {"model": model})
    info = shown.get("model_info") if isinstance(shown, dict) else None
    if not isinstance(info, dict):
        return None
    most = _tokens(info, f"{info.get('general.architecture')}.context_length")
    if shown.get("remote_host"):  # models in Ollama's cloud offer all they have
        return _probed("ollama", most)
    # Go writes a million as 1e+06.
    written = re.search(r"^num_ctx\s+([\d.e+]+)$", str(shown.get("parameters")), re.MULTILINE)
    window = _tokens(_integer(written[1])) if written else None
    if window is None:
        running = _objects(host.answer("/api/ps"), "models")
        window = next(
            (_tokens(m, "context_length") for m in running if _tagged(m.get("model")) == _tagged(model)), None
        )
    return _probed("ollama", min(window, most or window) if window else None, most)


def _probed(server: ServerKind, window: int | None, most: int | None = None) -> Probed | None:
    if window:
        return Probed(window, server, sure=True)
    return Probed(most, server, sure=False) if most else None


def _names(entry: dict[str, Any]) -> list[Any]:
    """What a llama.cpp model is called."""
    aliases = entry.get("aliases")
    return [entry.get("id"), *(aliases if isinstance(aliases, list) else ())]


def _tagged(name: Any) -> str:
    """An Ollama model's name with its tag."""
    full = str(name).lower()
    return full if ":" in full.rpartition("/")[2] else f"{full}:latest"


def _integer(number: str) -> int | None:
    try:
        return int(float(number))
    except (ValueError, OverflowError):
        return None


def _tokens(answer: Any, *keys: str) -> int | None:
    """The number under these keys of an answer, if it can be a window."""
    for key in keys:
        answer = answer.get(key) if isinstance(answer, dict) else None
    return answer if type(answer) is int and answer in _TOKENS else None


def _objects(answer: Any, key: str) -> list[dict[str, Any]]:
    """The objects listed under a key."""
    listed = answer.get(key) if isinstance(answer, dict) else None
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


# --- the wire -----------------------------------------------------------------------------------------------------


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Where a redirect leads was not given by the user."""


@dataclass(frozen=True, slots=True)
class _Host:
    """A server by the start of its addresses."""

    root: str
    timeout: float

    def answer(self, path: str, question: dict[str, str] | None = None) -> Any:
        """The JSON behind a path, or None."""
        body = None if question is None else json.dumps(question).encode()
        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "clew"}
        try:
            request = Request(self.root + path, body, headers)  # noqa: S310 (the scheme was looked at)
            with build_opener(ProxyHandler({}), _Stay).open(request, timeout=self.timeout) as response:
                text = response.read(_LARGEST + 1)
            return json.loads(text) if len(text) <= _LARGEST else None
        except (OSError, ValueError, HTTPException, RecursionError):
            return None


def _root(base_url: str) -> str | None:
    """The address without the API's version and without a user's name or password; None if it is not a private one."""
    try:
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname or not _is_private(url.hostname):
            return None
        name = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
        port = f":{url.port}" if url.port else ""
    except (OSError, ValueError):
        return None
    return f"{url.scheme}://{name}{port}{url.path.rstrip('/').removesuffix('/v1').rstrip('/')}"


def _is_private(host: str) -> bool:
    """Whether a host is this machine or near it; a link-local address is a cloud's metadata, not a model."""
    found = {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(host, None)}
    addresses = [ip_address(address) for address in found]
    return bool(addresses) and not any(a.is_global or a.is_link_local or a.is_multicast for a in addresses)
