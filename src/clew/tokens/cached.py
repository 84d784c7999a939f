"""tiktoken's vocabularies where it has already fetched them: never over the network."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

# name -> (name of the file in tiktoken's cache, its sha256); tiktoken fetches again where the hash differs.
_FILES = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}


@cache
def encoding(name: str) -> Callable[[str], int] | None:
    """A function that counts with tiktoken, or None where that would need the network."""
    if name not in _FILES or not _is_cached(name):
        return None
    try:
        import tiktoken
    except ImportError:
        return None
    encode = tiktoken.get_encoding(name).encode_ordinary
    return lambda text: len(encode(text))


def _is_cached(name: str) -> bool:
    file, sha256 = _FILES[name]
    # tiktoken's own rules: the first of these that is set, and an empty one turns its cache off.
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            folder = os.environ[variable]
            break
    else:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    path = Path(folder) / file
    return bool(folder) and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256
