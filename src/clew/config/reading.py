"""From files and variables to a `Config`, or to all that is wrong with them at once."""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.config.kinds import STORE
from clew.config.places import Places, is_file
from clew.config.setting import NAME, Key, Setting
from clew.config.table import SETTINGS, Config, built, nearest, passed_over, read_key, setting_of, write_key
from clew.core.limits import HIGH_NARROW
from clew.errors import BadConfig
from clew.store.places import Server, is_url

# Which file to read; whether one process does the work of all; where our tests find conversations.
OTHERS = frozenset({"CLEW_CONFIG", "CLEW_RESIDENT", "CLEW_CORPUS"})
LARGEST = 1_000_000  # bytes of a file that somebody wrote by hand
SHOWN = 60  # characters of a wrong value

Values = dict[Key, Any]


def load(env: Mapping[str, str], folder: Path, platform: str = sys.platform) -> Config:
    """What holds in a folder: defaults, the user's file, the project's, the environment. Raises `BadConfig`."""
    return assembled(Places(env, folder, platform))


def edited(places: Places, key: str, value: str | None, *, project: bool = False) -> tuple[Path, str, Config]:
    """The file to write to set a key, or to take it out for None; its new text, and what would hold then.

    Raises `BadConfig`.
    """
    from clew.config.toml import changed  # only who writes a file waits for it

    path = (places.project_file() or places.folder / "clew.toml") if project else places.user_file()
    shown, problems = places.shown(path), list[str]()
    try:
        parts = read_key(key)
    except KeyError:
        raise BadConfig(passed_over(key) or f"{key} is not a setting; {nearest(key)}") from None
    setting = setting_of(parts)
    assert setting is not None, "it was just read"
    parsed = None if value is None else _parsed(setting, value, key, problems)
    text = _text(path, shown, problems) if is_file(path) else ""
    _tree(text, shown, problems)
    if project and is_file(path) and not places.trusted(path):
        problems.append(f"{shown}: belongs to another user; copy it to make it yours")
    if problems:
        raise BadConfig(*problems)
    try:
        new = changed(text, parts, parsed)
    except ValueError as error:
        told = f"{shown}: clew cannot set this in the way the file is written; put it there: {error}"
        raise BadConfig(told) from None
    return path, new, assembled(places, {path: new})


def assembled(places: Places, texts: Mapping[Path, str] | None = None) -> Config:
    """What holds; `texts` stand in for files that are not written yet."""
    return _Reading(places, texts or {}).config()


class _Reading:
    """Values as they come together, and problems as they are found."""

    def __init__(self, places: Places, texts: Mapping[Path, str]) -> None:
        self.places = places
        self.texts = texts
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.values: Values = {}
        self.sources: dict[Key, str] = {}

    def config(self) -> Config:
        defaults = {s.key: s.default for s in SETTINGS if s.variable}
        self._take({**defaults, ("store",): self.places.store()}, "default")
        self._user()
        self._project()
        self._environment()
        if not self.problems:
            self.problems += _clashes(self.values, self.sources)
        if self.problems:
            raise BadConfig(*self.problems)
        sources = {write_key(key): self.sources[key] for key in sorted(self.sources, key=_rank)}
        config: Config = built(Config, self.values, sources=sources, notes=tuple(self.notes))
        return config

    def _user(self) -> None:
        path = self.places.user_file()
        shown = self.places.shown(path)
        if is_file(path) or path in self.texts:
            self._take(self._file(path), f"user file {shown}")
        elif self.places.env.get("CLEW_CONFIG"):
            self.problems.append(f"{shown}: no such file; CLEW_CONFIG must name one that exists")

    def _project(self) -> None:
        path = self.places.project_file()
        path = path or next((p for p in self.texts if p != self.places.user_file()), None)
        if path is None:
            return
        shown = self.places.shown(path)
        if path not in self.texts and not self.places.trusted(path):
            self.notes.append(f"{shown} is not read: it belongs to another user; copy it to make it yours")
            return
        self._take(self._file(path, project=True), f"project file {shown}", project=True)

    def _environment(self) -> None:
        variables = {s.variable: s for s in SETTINGS if s.variable}
        for name, text in sorted(self.places.env.items()):
            if not name.startswith("CLEW_") or name in OTHERS:
                continue
            if note := passed_over(name):
                self.notes.append(note)
            elif name not in variables:
                self.problems.append(f"{name} is not a variable that clew knows; {nearest(name)}")
            elif text:
                value = _parsed(variables[name], text, name, self.problems)
                self._take(
                    {variables[name].key: self._placed(variables[name], value, self.places.folder)},
                    f"environment {name}",
                )

    def _take(self, values: Values, source: str, *, project: bool = False) -> None:
        for key, value in values.items():
            setting = setting_of(key)
            if project and setting and setting.project == "stricter":
                rank = setting.kind.choices.index
                if rank(value) <= rank(self.values[key]):
                    continue
            self.values[key] = value
            self.sources[key] = source

    def _file(self, path: Path, *, project: bool = False) -> Values:
        """The values of a file that are as they should be."""
        shown = self.places.shown(path)
        text = self.texts[path] if path in self.texts else _text(path, shown, self.problems)
        values: Values = {}
        for key, value in _leaves(_tree(text, shown, self.problems)):
            setting = setting_of(key)
            if not setting and (note := passed_over(write_key(key))):
                self.notes.append(f"{shown}: {note}")
            elif told := _wrong(key, value, setting, self._home() if project else ""):
                from clew.config.toml import line_of  # a file that is right needs none

                line = line_of(text, key)
                self.problems.append(f"{shown}:{line}: {told}" if line else f"{shown}: {told}")
            else:
                values[key] = self._placed(setting, value, path.parent)
        return values

    def _placed(self, setting: Setting | None, value: Any, folder: Path) -> Any:
        """A value; a path as seen from a folder."""
        if setting and setting.kind is STORE and is_url(str(value)):
            return Server(value)
        if setting and setting.kind is STORE:
            return self.places.path(value, folder)
        return _frozen(value)

    def _home(self) -> str:
        return self.places.shown(self.places.user_file())


def _rank(key: Key) -> tuple[bool, Key, int]:
    """The order of the table, model by model."""
    setting = setting_of(key)
    assert setting is not None, "unknown keys are not taken"
    named = NAME in setting.key
    return named, key[: named * 2], SETTINGS.index(setting)


def _text(path: Path, shown: str, problems: list[str]) -> str:
    try:
        if path.stat().st_size > LARGEST:
            problems.append(
                f"{shown}: is larger than {LARGEST:,} bytes, too large for a configuration; name another file"
            )
            return ""
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.append(f"{shown}: not UTF-8 at byte {error.start}; convert it with iconv -t UTF-8")
    except OSError as error:
        problems.append(f"{shown}: cannot be read ({error.strerror}); make it readable, or remove it")
    return ""


def _tree(text: str, shown: str, problems: list[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        problems.append(f"{shown}: nested too deeply")
    except ValueError as error:
        told = re.fullmatch(r"(.*) \(at (?:line (\d+), (column \d+)|(end of document))\)", str(error), re.DOTALL)
        reason, line, column, end = told.groups() if told else (str(error), None, None, None)
        place = f"{shown}:{line}" if line else shown
        hint = "; expected text in double quotes, a number, true or false, or a [list]" if "value" in reason else ""
        problems.append(f"{place}: not TOML: {reason} at {column or end or 'some number'}{hint}")
    return {}


def _leaves(tree: Mapping[str, Any], before: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Each key with its value, tables opened; an empty table is a value too, lest a misspelt one pass."""
    for name, value in tree.items():
        key = (*before, name)
        if isinstance(value, dict) and value and setting_of(key) is None:
            yield from _leaves(value, key)
        elif value != {} or not _is_table(key):
            yield key, value


def _is_table(key: Key) -> bool:
    return any(setting_of((*key, *s.key[len(key) :])) for s in SETTINGS if len(s.key) > len(key))


def _wrong(key: Key, value: Any, setting: Setting | None, home: str) -> str | None:
    """What is wrong with a key of a file; `home` is where the user's own settings are, if this is a project's."""
    name = write_key(key)
    if setting is None and _is_table(key):
        return f"{name} is {_shown(value)}; expected a table: [{name}] on a line of its own"
    if setting is None:
        return f"{name} is not a setting; {nearest('.'.join(key))}"
    if home and setting.project == "no":
        return f"{name} is not for a project to set; set it in {home}, or as {setting.variable}"
    if home and setting.project == "none" and value != "none":
        return f'{name} is {_shown(value)}; a project may only say "none"; set it in {home}, or as {setting.variable}'
    if not setting.kind.holds(value):
        return f"{name} is {_shown(value)}; expected {setting.kind.expected}"
    return None


def _parsed(setting: Setting, text: str, name: str, problems: list[str]) -> Any:
    try:
        value = setting.kind.parse(text)
        if setting.kind.holds(value):
            return value
    except ValueError:
        pass
    problems.append(f"{name} is {_cut(text)}; expected {setting.kind.expected}")
    return None


def _clashes(values: Values, sources: Mapping[Key, str]) -> Iterator[str]:
    """Values that are right alone and wrong together."""
    low, high = ("budget", "low"), ("budget", "high")
    if values[low] and values[low] > (values[high] or HIGH_NARROW):
        told = [f"{write_key(key)} is {values[key] or HIGH_NARROW} ({sources[key]})" for key in (low, high)]
        yield f"{' and '.join(told)}; low must not be above high"
    windows = [("budget", "window")] if values["budget", "window"] else [k for k in values if k[2:] == ("window",)]
    reserve = ("budget", "reserve")
    for window in windows:
        if values[reserve] is not None and values[reserve] >= values[window]:
            told = [f"{write_key(key)} is {values[key]} ({sources[key]})" for key in (reserve, window)]
            yield f"{' and '.join(told)}; the reserve must leave room in the window"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    return _cut(str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else value)


def _cut(value: object) -> str:
    """A wrong value as it may be shown: not too long, and without a password that stood in a URL."""
    text = re.sub(r"//[^/@]*@", "//…@", str(value))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
