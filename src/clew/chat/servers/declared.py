"""MCP servers that a file declares: `.mcp.json` of a project, or `mcp.json` beside the user's settings."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PROJECT_SERVERS = ".mcp.json"
USER_SERVERS = "mcp.json"
FILE_BYTES = 1_000_000
NAME_CHARACTERS = 64
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
TRANSPORTS = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}


@dataclass(frozen=True, slots=True)
class ServerDeclaration:
    """A server as a file declares it: a command to run, or an address to ask."""

    name: str
    source: str  # the file, as people know it
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def reached(self) -> str:
        """The command line or the address, as the file has it: variables in it stay unread."""
        return self.url or " ".join([self.command, *self.args])

    def filled(self, env: Mapping[str, str]) -> "ServerDeclaration":
        """The same with `${NAME}` and `${NAME:-otherwise}` replaced. Raises ValueError where a variable is not set."""

        def text(value: str) -> str:
            return VARIABLE.sub(lambda found: _value(found[1], found[2], env), value)

        def texts(values: Mapping[str, str]) -> dict[str, str]:
            return {name: text(value) for name, value in values.items()}

        args, url = tuple(map(text, self.args)), text(self.url)
        return ServerDeclaration(
            self.name, self.source, text(self.command), args, texts(self.env), url, texts(self.headers)
        )


@dataclass(frozen=True, slots=True)
class DeclaredServers:
    """What a file declares, and what of it cannot be read."""

    servers: tuple[ServerDeclaration, ...] = ()
    faults: tuple[str, ...] = ()
    text: str = ""  # of the file
    digest: str = ""  # of the file; nothing where there is none


def project_servers(folder: Path) -> DeclaredServers:
    """Those of the project: of the folder, or of the nearest one above it in the same repository that has the file."""
    above = [folder, *folder.parents]
    root = next((place for place in above if (place / ".git").exists()), folder)
    for place in above[: above.index(root) + 1]:
        if (place / PROJECT_SERVERS).is_file():
            name = "../" * (len(folder.parts) - len(place.parts)) + PROJECT_SERVERS
            return read_servers(place / PROJECT_SERVERS, name)
    return DeclaredServers()


def read_servers(file: Path, name: str) -> DeclaredServers:
    """What a file declares; one that is not there declares nothing."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(FILE_BYTES + 1)
        if len(raw) > FILE_BYTES:
            raise ValueError(f"is longer than {FILE_BYTES:,} bytes")
        text = raw.decode("utf-8-sig")
        entries = json.loads(text)["mcpServers"]
        if not isinstance(entries, dict):
            raise TypeError
    except FileNotFoundError:
        return DeclaredServers()
    except (KeyError, TypeError):
        return DeclaredServers(faults=(f'{name}: there is no "mcpServers" with servers by name in it',))
    except (OSError, ValueError, RecursionError) as error:
        return DeclaredServers(faults=(f"{name} cannot be read: {error}",))
    servers, faults = [], []
    for key, entry in entries.items():
        try:
            if declared := _declared(key, entry, name):
                servers.append(declared)
        except ValueError as error:
            faults.append(f"{name}, server {key[:NAME_CHARACTERS]!r}: {error}")
    return DeclaredServers(tuple(servers), tuple(faults), text, sha256(raw).hexdigest())


def _declared(name: str, entry: Any, source: str) -> ServerDeclaration | None:
    """One entry; None where it is switched off. Raises ValueError."""
    if not isinstance(entry, dict):
        raise ValueError("it must be an object")
    if entry.get("disabled") is True:
        return None
    if not name.strip() or len(name) > NAME_CHARACTERS:
        raise ValueError(f"its name must have 1 to {NAME_CHARACTERS} characters")
    kind = entry.get("type")
    if kind is not None and kind not in TRANSPORTS:
        raise ValueError(f"the type {str(kind)[:40]!r} is not supported: stdio and http are")
    command, url = _text(entry, "command"), _text(entry, "url")
    if bool(command) == bool(url) or (kind and not entry.get(TRANSPORTS[kind])):
        raise ValueError('it needs either a "command" or a "url"')
    if url and (urlsplit(url).scheme not in ("http", "https") and not url.startswith("${")):
        raise ValueError("its url must begin with http:// or https://")
    args = entry.get("args", [])
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        raise ValueError('"args" must be a list of texts')
    return ServerDeclaration(name, source, command, tuple(args), _texts(entry, "env"), url, _texts(entry, "headers"))


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key) or ""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f'"{key}" must be a text')
    return value.strip()


def _texts(entry: Mapping[str, Any], key: str) -> dict[str, str]:
    value = entry.get(key) or {}
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise ValueError(f'"{key}" must be an object with texts in it')
    return dict(value)


def _value(name: str, otherwise: str | None, env: Mapping[str, str]) -> str:
    if (found := env.get(name, otherwise)) is None:
        raise ValueError(f"the environment variable {name} is not set")
    return found
