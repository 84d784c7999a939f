"""What is put into a client's own files, and where these are: the words in which each client is described."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.config import Places
from clew.installing.formats import TextFormat, jsonc

Base = Callable[[Places], Path]  # the folder that a client's files are in
ClewCommand = tuple[str, ...]  # how clew is started on this machine: a program and its first arguments


@dataclass(frozen=True, slots=True)
class Plug:
    """A file of a client, and what has to be in it.

    A key that ends with `EACH` names a list, and the value is one more element of it. A file that is clew's as a whole,
    such as a plugin, has the format `own_file` and the one key `OWN_TEXT`.
    """

    base: Base
    files: tuple[str, ...]  # the first that exists is changed, the last is where a new one goes
    values: Mapping[Any, Any]  # by key
    format: TextFormat = jsonc
    gentle: frozenset[Any] = frozenset()  # keys that are set only where nothing is

    def file(self, places: Places) -> Path:
        """The file to change."""
        known = [self.base(places) / name for name in self.files]
        return next((file for file in known if file.is_symlink() or file.exists()), known[-1])


Plugs = Callable[[ClewCommand], tuple[Plug, ...]]


Starting = Callable[[ClewCommand, str], tuple[Plug, ...]]  # the command, and the gateway's address


def in_home(name: str = "", variable: str = "") -> Base:
    """A folder in the user's own, or the one that a variable names."""

    def base(places: Places) -> Path:
        said = places.env.get(variable, "") if variable else ""
        return places.path(said, places.folder) if said else places.home / name

    return base


def in_config(name: str) -> Base:
    """A folder where programs on Linux keep their configuration, and those that do so elsewhere."""

    def base(places: Places) -> Path:
        said = places.env.get("XDG_CONFIG_HOME")
        return (Path(said) if said else places.home / ".config") / name

    return base


def starting_line(clew: ClewCommand, url: str, client: str) -> str:
    """A command that a client runs before each prompt: it starts the gateway, and where clew is gone, says so."""
    line = shell_line(*clew, "hook", f"{client}-gateway", platform=sys.platform)
    if sys.platform == "win32":
        return line
    told = shlex.quote(in_words_of(client, gone(clew, client)))
    return f"{line} || curl -sfo /dev/null -m 2 {url}/livez || printf %s {told}"


def in_words_of(client: str, why: str) -> str:
    """What a client is told that must not ask its gateway now, so that its user sees it at once."""
    match client:
        case "opencode" | "pi":  # their plugins say it in their own way
            return why
        case "qwen":  # without a screen it is silent about what it keeps back, and says soon that nobody answers
            return json.dumps({"systemMessage": why})
        case "gemini":
            return json.dumps({"decision": "deny", "reason": why})
    return json.dumps({"decision": "block", "reason": why})


def gone(clew: ClewCommand, client: str) -> str:
    """What a client says where clew is no longer what it was."""
    return (
        f"clew is gone from {clew[0]}, and its gateway does not answer. With the clew that you have now, run: "
        f"clew install {client} --gateway, or to work without it: clew uninstall {client}"
    )


def shell_line(*words: str, platform: str) -> str:
    """A command as a shell takes it."""
    return subprocess.list2cmdline(words) if platform == "win32" else shlex.join(words)
