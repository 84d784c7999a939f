"""What is put into a client's own files, and where these are: the words in which each client is described."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clew.config import Key, Places, is_file
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


Worded = Callable[[str], str]


def blocked(why: str) -> str:
    """What most clients are told."""
    return json.dumps({"decision": "block", "reason": why})


def starting_line(clew: ClewCommand, url: str, client: str, refusal: Worded = blocked) -> str:
    """A command that a client runs before each prompt: it starts the gateway, and where clew is gone, says so."""
    line = shell_line(*clew, "hook", f"{client}-gateway", platform=sys.platform)
    if sys.platform == "win32":
        return line
    told = shlex.quote(refusal(gone(clew, client)))
    return f"{line} || curl -sfo /dev/null -m 2 {url}/livez || printf %s {told}"


def gone(clew: ClewCommand, client: str) -> str:
    """What a client says where clew is no longer what it was."""
    return (
        f"clew is gone from {clew[0]}, and its gateway does not answer. With the clew that you have now, run: "
        f"`clew install {client} --gateway`, or to work without it: `clew install {client} --remove`"
    )


def shell_line(*words: str, platform: str) -> str:
    """A command as a shell takes it."""
    return subprocess.list2cmdline(words) if platform == "win32" else shlex.join(words)


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """A client; in values and texts, @ is the gateway's address."""

    name: str  # as one types it, and its command
    title: str
    base: Base  # the folder that its files are in
    files: tuple[str, ...] = ()  # the first that exists is changed, the last is where a new one goes
    format: TextFormat = jsonc
    gateway: Mapping[Key, str] = field(default_factory=dict)  # what has to be set; nothing: it reads no file for this
    paste: tuple[str, str] | None = None  # two lines that do it without a file
    project: tuple[str, ...] = ()  # files of a project that come before the user's
    hides: bool = False  # whether such a file is read instead of the user's, and not beside it
    variables: tuple[str, ...] = ()  # of the environment that come before the file
    rivals: tuple[Key, ...] = ()  # keys of the same file that come before what is set
    note: str = ""
    plugs: Plugs | None = None  # what makes clew's tools and hooks known to it; None: there is no such way
    gets: str = "clew's tools and hooks"  # with its plugs
    plug_note: str = ""
    starting: Starting | None = None  # what starts the gateway before it is asked; None: it runs nothing then
    refusal: Worded = blocked  # what it is told that must not ask its gateway now, so that its user sees it at once

    def file(self, places: Places) -> Path:
        """The file to change."""
        return self.gateway_plug("").file(places)

    def gateway_plug(self, url: str) -> Plug:
        """What makes it talk through a gateway."""
        return Plug(self.base, self.files, self.values(url), self.format)

    def gateway_plugs(self, url: str, clew: ClewCommand | None) -> list[Plug]:
        """The same, with what starts one by this command."""
        first, others = self.gateway_plug(url), list[Plug]()
        for plug in self.starting(clew, url) if clew and self.starting else ():
            if plug.files == first.files:
                both = {**first.values, **plug.values}
                first = replace(first, values={key: value for key, value in both.items() if value is not None})
            else:
                others.append(plug)
        return [first, *others]

    def values(self, url: str) -> dict[Key, str]:
        """What has to be set, for a gateway."""
        return {key: value.replace("@", url) for key, value in self.gateway.items()}

    def lines(self, url: str, places: Places) -> tuple[str, str]:
        """Two lines to paste."""
        if self.paste is not None:
            first, second = self.paste
            return first.replace("@", url), second.replace("@", url)
        whole: dict[str, Any] = {}
        for key, value in self.values(url).items():
            table = whole
            for name in key[:-1]:
                table = table.setdefault(name, {})
            table[key[-1]] = value
        return f"in {places.shown(self.file(places))}:", json.dumps(whole)

    def is_here(self, places: Places) -> bool:
        """Whether it is on this machine: its command, or what it left when it was run."""
        if shutil.which(self.name, path=places.env.get("PATH", "")) is not None:
            return True
        usual = self.base(places) / self.files[-1] if self.files else self.base(places) / ""
        left = (usual, usual.parent) if self.files else (usual,)
        return any(path.exists() for path in left if path != places.home)

    def project_files(self, places: Places) -> Iterator[Path]:
        """Files of the project one is in that come before the user's; a home folder is no project."""
        folder = places.folder.absolute()
        for place in (folder, *folder.parents):
            if place == places.home:
                return
            for name in self.project:
                if is_file(place / name):
                    yield place / name
