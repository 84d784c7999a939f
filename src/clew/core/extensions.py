"""What installed packages bring to clew, each under the name that its entry point has: looked for when it is named."""

from typing import Any

from clew.errors import BadRequest

STEPS, FORMATS = "clew.steps", "clew.formats"


def is_brought(group: str, name: str) -> bool:
    """Whether a package brings it; nothing of that package is run."""
    return bool(_points(group, name))


def brought(group: str, name: str) -> Any:
    """What a package makes under a name."""
    found = _points(group, name)
    if not found:
        raise BadRequest(f"no installed package brings {name!r} as an entry point in {group}")
    try:
        return found[0].load()()
    except (Exception, SystemExit) as error:  # it is anybody's code
        raise BadRequest(
            f"{found[0].value}, the entry point {name!r} in {group}, cannot be loaded: {error or type(error).__name__}"
        ) from error


def _points(group: str, name: str) -> list[Any]:
    from importlib.metadata import entry_points  # takes as long as all else that a command imports

    return list(entry_points(group=group, name=name))
