"""Names of a module that are loaded when they are first used, and names that it has no more."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NoReturn


def loader(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose modules have these names, separated by spaces."""
    known = {name: f"{package}.{module}" for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(known[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


def gone(module: str, **instead: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a module that had these names in 0.1: who imports one hears what there is instead."""

    def refuse(name: str) -> NoReturn:
        if name in instead:
            raise ImportError(f"{module}.{name} is no more: {instead[name]}", name=module)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return refuse
