"""What can be said of the settings before they are read, which takes a good part of a second."""

from clew.config.places import Places, is_file

# Settings by which a request is changed, or refused, that is far below its window.
WATCHED = ("budget", "models", "preset", "secrets", "servers")


def is_plain(places: Places) -> bool:
    """Whether nobody set anything that matters to a request far below its window; in doubt, somebody did."""
    names = [name.removeprefix("CLEW_").lower() for name in places.env if name.startswith("CLEW_")]
    try:
        files = [file for file in (places.user_file(), places.project_file()) if file and is_file(file)]
        texts = [file.read_text(encoding="utf-8").lower() for file in files]
    except (OSError, ValueError):
        return False
    return not any(word in text for word in WATCHED for text in (*names, *texts))
