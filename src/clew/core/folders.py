"""Where a user's data is kept on each system."""

import sys
from collections.abc import Mapping
from pathlib import Path


def home(env: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The user's own folder."""
    said = env.get("USERPROFILE" if platform == "win32" else "HOME")
    return Path(said) if said else Path.home()


def data(env: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The folder for what clew keeps."""
    if env.get("XDG_DATA_HOME"):
        return Path(env["XDG_DATA_HOME"]) / "clew"
    if platform == "win32":
        return Path(env.get("LOCALAPPDATA") or home(env, platform) / "AppData" / "Local") / "clew"
    if platform == "darwin":
        return home(env, platform) / "Library" / "Application Support" / "clew"
    return home(env, platform) / ".local" / "share" / "clew"


def store(env: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Where the log is, unless somebody says otherwise."""
    return data(env, platform) / "clew.db"
