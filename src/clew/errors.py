"""What can go wrong, as one tree.

ClewError
├── BadRequest        a body, an argument or a setting that cannot be read; says where and why; a ValueError, too
│   ├── BadConfig     settings that cannot hold; carries every problem, each with its remedy
│   └── TooLarge      what is packed in it has more bytes than may be unpacked; says how many may
├── Busy              a running turn depends on what was to be changed
├── CannotWait        clew.run was called where it cannot wait for an answer; a RuntimeError, too
├── SecretFound       a request holds secrets, and the policy is to refuse them
├── OverBudget        frame and pins alone exceed the limit; carries the numbers
├── BrokenHistory     an edit would break a provider's rule
│   └── Pinned        an edit would replace something pinned
├── NotFound          no such node here
│   ├── Ambiguous     a short id that fits more than one
│   └── Purged        it was here; says when it was taken away, and why
├── ModelError        a model did not answer; says which kind of fault
│   └── BrokenOff     it stopped in the middle; carries what had come (clew.llm.streaming)
├── MissingExtra      a package is not installed; says how to get it; an ImportError, too
├── ToolError         a tool cannot do what it was called for; the text is for the model that called it
└── StoreError        the log cannot be used
    ├── ForeignFile   the file is not a clew store
    ├── NewerFile     a later clew wrote it
    └── Conflict      another writer extended the branch first
"""

import shlex
import sys
from importlib.util import find_spec
from typing import Literal

Fault = Literal["auth", "network", "timeout", "busy", "overflow", "refused"]  # why a model did not answer


class ClewError(Exception):
    """The root of all errors that clew raises on purpose."""


class BadRequest(ClewError, ValueError):
    """A body, an argument or a setting cannot be read."""


class BadConfig(BadRequest):
    """Some settings are unknown or wrong."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class TooLarge(BadRequest):
    """Something packed has more bytes than may be unpacked."""


class Busy(ClewError):
    """Something was to be changed that a running turn depends on."""


class CannotWait(ClewError, RuntimeError):
    """`clew.run` was called from clew's own loop, or while the interpreter ends."""


class SecretFound(ClewError):
    """A request holds secrets and the policy is to refuse them; says which kinds, and nothing more."""


class OverBudget(ClewError):
    """The parts that may not be shortened do not fit."""

    def __init__(self, message: str, *, needed: int, limit: int) -> None:
        super().__init__(message)
        self.needed = needed
        self.limit = limit


class BrokenHistory(ClewError):
    """An edit would leave a history that a provider refuses."""


class Pinned(BrokenHistory):
    """An edit would replace a pinned node."""


class NotFound(ClewError):
    """No such node in this lineage."""


class Ambiguous(NotFound):
    """A short id fits more than one node."""


class Purged(NotFound):
    """It was here, and somebody had it taken away."""


class ModelError(ClewError):
    """A model did not answer."""

    def __init__(self, message: str, fault: Fault, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.fault: Fault = fault
        self.retry_after = retry_after  # seconds, where a busy provider says so


class MissingExtra(ClewError, ImportError):
    """Something needs a package that is not installed; says what to type to install it."""

    def __init__(self, need: str, extra: str) -> None:
        super().__init__(need, extra)
        self.extra = extra

    def __str__(self) -> str:
        return f"{self.args[0]}: {install_line(self.extra)}"


def install_line(extra: str) -> str:
    """What installs an extra of clew into the environment that runs now, which has pip or was made by uv."""
    python = shlex.quote(sys.executable or "python")
    tool = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"{tool} 'clew[{extra}]'"


class ToolError(ClewError):
    """A tool cannot do what it was called for; the text is for the model that called it."""


class StoreError(ClewError):
    """The log cannot be opened, read or written."""

    def __init__(self, message: str, damage: str = "") -> None:
        super().__init__(message)
        self.damage = damage  # what was found, where the log is damaged


class ForeignFile(StoreError):
    """The file exists and is not a clew store."""


class NewerFile(StoreError):
    """The file was written by a later version of clew."""


class Conflict(StoreError):
    """Another writer extended this branch first; reload and try again."""
