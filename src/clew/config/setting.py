"""What a row of the table of settings says."""

from dataclasses import dataclass
from typing import Any, Literal

from clew.config.kinds import ValueKind

Key = tuple[str, ...]
NAME = "*"  # in a key: any name, of a model or whatever its table is of


@dataclass(frozen=True, slots=True)
class Setting:
    """A row: what it may be, what it means, what holds if nobody sets it, and whether a project may."""

    kind: ValueKind
    meaning: str
    otherwise: str = ""  # in words, where the default is no constant
    project: Literal["no", "yes", "stricter", "none"] = "no"  # none: it may say that, and nothing else
    key: Key = ()
    default: Any = None

    @property
    def variable(self) -> str:
        """The environment variable that sets it; none if a model's name is part of the key."""
        return "" if NAME in self.key else "CLEW_" + "_".join(self.key).upper()
