"""The only reader of settings, in TOML and environment: `load` gives what holds, and from where.

What programs that are started inherit, and what variables of other libraries say (tiktoken), is read where it is
of use.
"""

from typing import TYPE_CHECKING

from clew.core.lazy import loader

if TYPE_CHECKING:
    from clew.config.places import Places, here, is_file
    from clew.config.reading import assembled, edited, load
    from clew.config.setting import NAME, Key, Setting
    from clew.config.table import SETTINGS, Config, nearest, read_key, setting_of, write_key
    from clew.config.wiring import configured, engine, listeners

__all__ = [
    "NAME",
    "SETTINGS",
    "Config",
    "Key",
    "Places",
    "Setting",
    "assembled",
    "configured",
    "edited",
    "engine",
    "here",
    "is_file",
    "listeners",
    "load",
    "nearest",
    "read_key",
    "setting_of",
    "write_key",
]

# Loaded when first used: who only looks where files are need not wait for the engine.
_HOMES = {
    "places": "Places here is_file",
    "reading": "assembled edited load",
    "setting": "NAME Key Setting",
    "table": "SETTINGS Config nearest read_key setting_of write_key",
    "wiring": "configured engine listeners",
}
__getattr__ = loader(__name__, _HOMES)
