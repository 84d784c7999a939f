"""Which folders belong together: those of one repository, or a folder alone."""

from pathlib import Path

REPOSITORY = ".git"  # a folder, or a file in a further work tree


def project_of(folder: str | Path, home: Path) -> Path | None:
    """The repository that a folder is in, or the folder itself; None for what is no path on this system.

    A home folder is no repository: whoever keeps settings there in git does not make one project of everything.
    """
    text = str(folder)
    place = home / text[2:] if text.startswith("~/") else Path(text)
    if not place.is_absolute():
        return None
    try:
        place, own = place.resolve(), home.resolve()
        for above in (place, *place.parents):
            if above != own and (above / REPOSITORY).exists():
                return above
    except (OSError, RuntimeError, ValueError):
        return None
    return place
